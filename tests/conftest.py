"""Fixtures and hooks for all tests."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import structlog
from graph_database import empty_neo4j, neo4j_address
from hypothesis import HealthCheck, settings
from programs import fork_servers_of_workers, keep_priority
from remembered_vectors import remember_vectors, run_of_tests
from sampling import DEEP, budget
from services import NAMES, bge_small, neo4j_server, postgres_server, qdrant_server
from sql_database import _migrated_postgres, empty_postgres, postgres_url

from agentic_rag_backend import priority
from agentic_rag_backend.memory import pause_collection, settle_collection
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_testing.models.server import ModelServer

__all__ = [
    "_migrated_postgres",
    "bge_small",
    "empty_neo4j",
    "empty_postgres",
    "neo4j_address",
    "neo4j_server",
    "postgres_server",
    "postgres_url",
    "qdrant_server",
]

# structlog's default renders each traceback with all local variables, which takes a third of a second of CPU.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False),
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)

# A busy machine may take a second for what takes a millisecond: the examples of a property have no deadline. Their default number
# is low, because every run tries other examples.
settings.register_profile(
    "without a deadline",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=budget(gate=40, deep=400),
)
settings.load_profile("without a deadline")

_LOWER_PROCESS = priority.lower_process
_FIRST_S = 600
"""The first test that needs a server waits until it has started."""
_SLOW_S = 20
"""Typical duration of a test marked ``slow``. Other tests take less than a second."""


def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for ``-n auto``: one more than cores, because tests wait for servers a third of the time."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.fixture(autouse=True, scope="session")
def _one_encoder() -> Iterator[None]:
    """Load the bundled encoder once per process, and encode each batch of texts once per test run."""
    with pytest.MonkeyPatch.context() as patch:
        remember_vectors(patch.setattr)
        yield


@pytest.fixture(autouse=True, scope="session")
def _forked_servers_of_workers() -> None:
    """Fork the processes that read documents from one that has imported everything, and keep their priority."""
    keep_priority()
    fork_servers_of_workers()


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    """A server of scripted models, for the tests of a module."""
    with ModelServer() as running:
        yield running


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database file with all tables, to be copied: copying is faster than migrating."""
    file = tmp_path_factory.mktemp("migrated") / "catalogue.db"

    async def migrate() -> None:
        opened = await Catalogue.open(f"sqlite:///{file}")
        await opened.migrate()
        await opened.close()

    asyncio.run(migrate())
    return file


@pytest.fixture
async def catalogue(tmp_path: Path, migrated_sqlite: Path) -> AsyncIterator[Catalogue]:
    """An empty catalogue in a file."""
    opened = await Catalogue.open(f"sqlite:///{shutil.copy(migrated_sqlite, tmp_path / 'catalogue.db')}")
    yield opened
    await opened.close()


@pytest.fixture
def real_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give documents a lower priority than requests, as the product does."""
    monkeypatch.setattr(priority, "lower_process", _LOWER_PROCESS)


@pytest.fixture(autouse=True)
def _level_of_the_log() -> Iterator[None]:
    """Restore the root logger's level: a command line that a test ran may have set it for the whole process."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)


def pytest_configure(config: pytest.Config) -> None:
    """With `-m deep`, run all examples of sampled properties. Must run before they are imported."""
    if "deep" in config.getoption("markexpr"):
        os.environ[DEEP] = "1"
    run = ExitStack()
    run.enter_context(run_of_tests())
    config.add_cleanup(run.close)
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # xdist would begin with the files of the most tests; see `_longest_first`


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Leave out what is imported and collected from garbage collections, which took a fifteenth of the CPU time of tests."""
    with pause_collection():
        yield
        gc.collect()
        settle_collection()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip deep tests that were not requested, mark the tests that need a server, and begin with the longest files."""
    deep = "deep" in config.getoption("markexpr")
    for item in items:
        if item.get_closest_marker("sampled") and deep:
            item.add_marker("deep")
        if item.get_closest_marker("deep") and not deep:
            item.add_marker(pytest.mark.skip(reason="deep: run by `make test-deep`"))
        if item.get_closest_marker("slo") and "slo" not in config.getoption("markexpr"):
            item.add_marker(pytest.mark.skip(reason="slo: absolute times, run by `make test-slo` on a quiet machine"))
        fixtures = set(getattr(item, "fixturenames", ()))
        if set(NAMES) & fixtures:
            item.add_marker("services")
            item.add_marker(pytest.mark.timeout(_FIRST_S))
    _longest_first(items)


def _longest_first(items: list[pytest.Item]) -> None:
    """Sort files by the time that they probably take, so that no long file runs alone at the end."""
    weights: Counter[Path] = Counter()
    for item in items:
        weights[item.path] += _SLOW_S if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: -weights[item.path])
