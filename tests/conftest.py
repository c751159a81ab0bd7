"""What every test may ask for: the servers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from graph_database import empty_neo4j, neo4j_address
from services import NAMES, neo4j_server, postgres_server
from sql_database import _migrated_postgres, empty_postgres, postgres_url

__all__ = [
    "_migrated_postgres",
    "empty_neo4j",
    "empty_postgres",
    "neo4j_address",
    "neo4j_server",
    "postgres_server",
    "postgres_url",
]

_FIRST_S = 600
"""The first test that needs a server waits until it has started."""


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark the tests that need a server, and say which tests must share a process where several run beside each other.

    A file's tests stay together, for the sake of what its fixtures build; so do all that empty the one Neo4j they share.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if set(NAMES) & fixtures:
            item.add_marker("services")
            item.add_marker(pytest.mark.timeout(_FIRST_S))
        item.add_marker(pytest.mark.xdist_group("neo4j" if "neo4j_server" in fixtures else item.nodeid.partition("::")[0]))
