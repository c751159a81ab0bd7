"""Checks every private interface of Graphiti 0.31.1 that our code depends on. A failure shows a change in a new release.

To try a release: install it, run this file and ``tests/integration/neo4j/test_graphiti.py``, and fix `stores.graph.graphiti`.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentic_rag_backend.models.embedding.calibration import PASSAGE_OF_FACT
from agentic_rag_backend.plugins.graphiti import sdk
from agentic_rag_backend.plugins.graphiti.driver import TenantDriver
from agentic_rag_backend.plugins.graphiti.interface import TenantSearch
from agentic_rag_backend.plugins.graphiti.search import recipe

# After the SDK, which imports it without its warnings.
import graphiti_core  # isort: skip
from graphiti_core.search import search, search_utils  # isort: skip
from graphiti_core.telemetry import telemetry  # isort: skip

PACKAGE = Path(graphiti_core.__file__).parent


def parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def source(of: ModuleType | Callable[..., Any]) -> str:
    return inspect.getsource(of)


def test_the_release_is_the_one_that_this_was_written_for() -> None:
    assert importlib.metadata.version("graphiti-core") == "0.31.1" == sdk.VERSION


def test_the_search_takes_what_we_give() -> None:
    asked = parameters(sdk.Graphiti.search_)

    assert {"query", "config", "group_ids", "search_filter", "driver", "query_vector"} <= set(asked)
    assert "validate_group_ids(group_ids)" in source(search.search)
    assert "group_ids if group_ids and group_ids != [''] else None" in source(search.search), "how [] becomes every tenant"


@pytest.mark.parametrize(
    "name",
    [
        "edge_fulltext_search",
        "edge_similarity_search",
        "node_fulltext_search",
        "node_similarity_search",
        "episode_fulltext_search",
    ],
)
def test_the_interface_has_the_methods_and_is_handed_their_arguments_in_order(name: str) -> None:
    theirs, ours = getattr(sdk.SearchInterface, name), getattr(TenantSearch, name)

    assert parameters(theirs) == parameters(ours)
    called = re.search(rf"driver\.search_interface\.{name}\(\s*(.*?)\s*\)", source(getattr(search_utils, name)), re.DOTALL)
    assert called is not None
    given = [each.strip().lstrip("_") for each in called[1].split(",") if each.strip()]
    assert given == parameters(ours)[: len(given)]
    assert len(given) == len(parameters(ours))


def test_what_else_the_interface_may_be_asked_for_ends_in_the_driver() -> None:
    """Methods that we do not implement raise `NotImplementedError`. Graphiti then sends a statement of its own."""
    answered = {name for name in vars(TenantSearch) if name.endswith("_search")}
    others = {
        name for name, each in vars(sdk.SearchInterface).items() if inspect.iscoroutinefunction(each) and name not in answered
    }

    assert others == {
        "edge_bfs_search",
        "node_bfs_search",
        "community_fulltext_search",
        "community_similarity_search",
        "get_embeddings_for_communities",
        "node_distance_reranker",
        "episode_mentions_reranker",
    }


def test_the_driver_has_what_graphiti_calls() -> None:
    assert sdk.GraphDriver.__abstractmethods__ == {
        "execute_query",
        "session",
        "close",
        "delete_all_indexes",
        "build_indices_and_constraints",
    }
    assert "search_interface" in sdk.GraphDriver.__annotations__
    assert "graph_operations_interface" in sdk.GraphDriver.__annotations__
    assert parameters(TenantDriver.execute_query)[0] == parameters(sdk.GraphDriver.execute_query)[0]
    assert not TenantDriver.__abstractmethods__


def test_what_reaches_the_database_goes_through_what_the_driver_refuses() -> None:
    """A way around ``execute_query``, ``session`` and ``transaction`` would be a way around the tenant."""
    ways = set()
    for path in PACKAGE.rglob("*.py"):
        if "driver" in path.parts or path.name.endswith("_driver.py"):
            continue
        ways |= set(re.findall(r"\bdriver\.(\w+)\(", path.read_text(encoding="utf-8")))

    assert ways == {
        "build_fulltext_query",
        "build_indices_and_constraints",
        "clone",
        "close",
        "execute_query",
        "run_aoss_query",
        "save_to_aoss",
        "session",
    }
    assert "self.session()" in source(sdk.GraphDriver.transaction)
    for name in ("entity_node_ops", "entity_edge_ops", "episode_node_ops", "community_node_ops", "search_ops", "graph_ops"):
        assert getattr(sdk.GraphDriver, name).fget(None) is None


def test_the_recipe_has_the_fields_that_we_set() -> None:
    chosen = recipe(7, PASSAGE_OF_FACT)

    assert set(type(chosen).model_fields) >= {"edge_config", "node_config", "episode_config", "community_config", "limit"}
    assert (chosen.limit, chosen.community_config, chosen.episode_config) == (7, None, None)
    for part in (chosen.edge_config, chosen.node_config):
        assert part is not None
        assert {method.value for method in part.search_methods} == {"cosine_similarity", "bm25"}
        assert part.reranker.value == "reciprocal_rank_fusion"
        assert part.sim_min_score == PASSAGE_OF_FACT
    original = sdk.COMBINED_HYBRID_SEARCH_RRF
    assert original.community_config is not None
    assert original.limit == 10


def test_the_filter_has_no_field_that_we_do_not_know() -> None:
    dates = {"valid_at", "invalid_at", "created_at", "expired_at"}
    assert set(sdk.SearchFilters.model_fields) == dates | {
        "node_labels",
        "edge_types",
        "edge_uuids",
        "edge_source_node_uuids",
        "edge_target_node_uuids",
        "property_filters",
    }
    assert {each.name for each in sdk.ComparisonOperator} == {
        "equals",
        "not_equals",
        "greater_than",
        "less_than",
        "greater_than_equal",
        "less_than_equal",
        "is_null",
        "is_not_null",
    }


def test_telemetry_is_switched_off_by_the_variable_that_we_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pytest")  # It is off in tests anyway, which would hide a failure.
    assert telemetry.TELEMETRY_ENV_VAR == "GRAPHITI_TELEMETRY_ENABLED"
    assert os.environ[telemetry.TELEMETRY_ENV_VAR] == "false"
    assert telemetry.is_telemetry_enabled() is False
    monkeypatch.setenv(telemetry.TELEMETRY_ENV_VAR, "true")
    assert telemetry.is_telemetry_enabled() is True


_IMPORTS = """
import os, sys
before = dict(os.environ)
import agentic_rag_backend.plugins.graphiti.search
changed = {name: value for name, value in os.environ.items() if before.get(name) != value}
assert changed == {"GRAPHITI_TELEMETRY_ENABLED": "false"}, changed
assert "posthog" not in sys.modules
"""


def test_importing_it_reads_no_env_file_and_changes_nothing_else(tmp_path: Path) -> None:
    """In a separate process whose folder has such a file: our import must not read it."""
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-the-file\nGRAPHITI_TELEMETRY_ENABLED=true\n")
    environment = {name: value for name, value in os.environ.items() if "DOTENV" not in name and "GRAPHITI" not in name}

    def run(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    found = run(_IMPORTS)
    assert found.returncode == 0, found.stderr
    unguarded = run("import os, graphiti_core; assert os.environ['OPENAI_API_KEY'] == 'from-the-file'")
    assert unguarded.returncode == 0, f"it reads no .env file any more: the guard may go\n{unguarded.stderr}"


def test_the_modules_that_read_the_env_file_are_imported_under_the_guard() -> None:
    reading = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"^load_dotenv\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert reading == {"driver/driver.py", "graphiti.py", "helpers.py"}
    assert {f"graphiti_core.{name[:-3].replace('/', '.')}" for name in reading} <= set(sys.modules)
