"""Killed builds of a tree over passages: the old tree stays until the new one is complete, and no work is paid twice."""

from __future__ import annotations

import functools
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.durability.conftest import Folder

from agentic_rag_backend.settings import Settings
from agentic_rag_testing.models.process import ModelProcess

AT_ONCE = int(Settings.model_fields["llm_max_concurrency"].default)
Steps = Sequence[Mapping[str, Any]]
Point = tuple[str, int, str]
BUILDS: Mapping[str, Mapping[str, Any]] = {
    "full": {"mode": "full"},
    "incremental": {},
    # If another shape is requested, an incremental build writes a whole tree.
    "reshaped": {"cluster_size": 5},
}
MOMENTS: Sequence[tuple[str, Point]] = [
    ("full", ("trees.save_summaries", 2, "after")),
    ("full", ("vectors.upsert", 1, "after")),
    ("reshaped", ("trees.publish", 1, "after")),
    ("incremental", ("trees.change", 1, "after")),
    ("full", ("trees.save_summaries", 1, "before")),
    ("full", ("trees.next_generation", 1, "after")),
    ("full", ("trees.write_nodes", 1, "after")),
    ("full", ("trees.publish", 1, "before")),
    ("full", ("trees.publish", 1, "after")),
    ("reshaped", ("vectors.upsert", 1, "after")),
    ("reshaped", ("vectors.delete", 1, "after")),
    ("reshaped", ("trees.delete_generations", 1, "after")),
    ("incremental", ("trees.save_summaries", 1, "after")),
    ("incremental", ("vectors.upsert", 1, "after")),
    ("incremental", ("trees.change", 1, "before")),
    ("incremental", ("vectors.delete", 1, "after")),
]
"""Moments at which a build is killed."""
ALWAYS = range(2, 4)
"""Members of `MOMENTS` outside the slow runs: right after a new tree becomes current, for both kinds of builds."""
FLIPPED = {
    ("trees.publish", 1, "after"),
    ("trees.change", 1, "after"),
    ("vectors.delete", 1, "after"),
    ("trees.delete_generations", 1, "after"),
}
"""Moments after which the new tree is current."""


@dataclass(frozen=True)
class Build:
    """The result of an undisturbed build: the folder, its contents, and the model calls."""

    folder: Folder
    held: Mapping[str, Any]
    calls: int


@pytest.fixture(scope="module")
def server() -> Iterator[ModelProcess]:
    with ModelProcess() as running:
        yield running


@pytest.fixture(scope="module")
def changed(
    tmp_path_factory: pytest.TempPathFactory, server: ModelProcess, ingested: tuple[Folder, Any], update: Steps
) -> Folder:
    """A folder with a tree that a model summarised, and documents that changed since."""
    folder = ingested[0].copied(tmp_path_factory.mktemp("grown") / "data")
    folder.settings = {
        "llm": "openai",
        "extraction": "rules",
        "llm_model": "echo+latency-20ms",
        "openai_base_url": server.base_url,
        "openai_api_key": "any",
        "raptor_cluster_size": 4,
    }
    # One document of eight: after more changes, the tree would be built from nothing.
    edited = {**update[0], "put": {"report-2": update[0]["put"]["report-2"]}}
    held = folder.finished([{"tree": 1}, edited])
    assert held["orphans"] == {}
    return folder


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, server: ModelProcess, changed: Folder) -> Callable[[str], Build]:
    """Return a function that runs a build by name, once each."""

    @functools.cache
    def run(build: str) -> Build:
        before = calls(server)
        folder = changed.copied(tmp_path_factory.mktemp(build) / "data")
        held = folder.finished(steps(build))
        assert held["orphans"] == {}
        return Build(folder, held, calls(server) - before)

    return run


def steps(build: str) -> Steps:
    return [{"tree": 2, "options": BUILDS[build], "watched": True}]


def calls(server: ModelProcess) -> int:
    """Return the number of answered calls."""
    return sum(prompt.calls for prompt in server.stats().prompts.values())


def settled(server: ModelProcess) -> int:
    """Return the number of answered calls once none is pending. Calls of a killed process may still be answered."""
    until = time.monotonic() + 60
    while (stats := server.stats()).in_flight:
        assert time.monotonic() < until, f"{stats.in_flight} requests are never answered"
        time.sleep(0.02)
    return calls(server)


def tree(folder: Folder) -> tuple[int, tuple[str, ...]]:
    """Return the generation, and nodes with their children, as readers would see them, without resuming the killed work."""
    (generation,) = column(folder, "SELECT generation FROM raptor_pointers")
    query = f"SELECT node_id || ' ' || child_id FROM raptor_links WHERE generation = {generation} ORDER BY node_id, ordinal"
    children: dict[str, list[str]] = {}
    for node, child in (pair.split() for pair in column(folder, query)):
        children.setdefault(node, []).append(child)
    return generation, tuple(sorted(" ".join((node, *held)) for node, held in children.items()))


def on_record(folder: Folder) -> set[str]:
    """Return the clusters whose summary the model wrote."""
    return set(column(folder, "SELECT fingerprint FROM raptor_summaries WHERE model LIKE 'echo%'"))


def column(folder: Folder, query: str) -> list[Any]:
    connection = sqlite3.connect(folder.path / "catalogue.db")
    found = [value for (value,) in connection.execute(query)]
    connection.close()
    return found


@pytest.mark.parametrize(
    ("build", "point"),
    [
        pytest.param(build, point, id=" ".join(map(str, (build, *point))), marks=[] if number in ALWAYS else pytest.mark.deep)
        for number, (build, point) in enumerate(MOMENTS)
    ],
)
def test_a_killed_build_ends_as_one_that_nobody_disturbed(
    tmp_path: Path, server: ModelProcess, changed: Folder, undisturbed: Callable[[str], Build], build: str, point: Point
) -> None:
    expected = undisturbed(build)
    old, new = tree(changed), tree(expected.folder)
    assert old[1] != new[1]
    folder, before, written = (changed.copied(tmp_path / "data"), calls(server), on_record(changed))

    folder.killed(steps(build), *point)
    generation, nodes = tree(folder)
    assert nodes == (new[1] if point in FLIPPED else old[1])
    assert (generation > old[0]) == (point in FLIPPED and build != "incremental")
    lost = settled(server) - before - len(on_record(folder) - written)
    assert 0 <= lost <= AT_ONCE

    held = folder.finished(steps(build))
    assert held["orphans"] == {}
    assert held["state"]["tree"] == expected.held["state"]["tree"]
    assert held["state"]["jobs"] == expected.held["state"]["jobs"]
    for _, shown in held["shown"]:
        assert tuple(shown) in (old[1], new[1]), "a reader saw a part of a tree"
    assert settled(server) - before == expected.calls + lost, "paid again for what was on record"
