"""What detection costs on a large graph, from the store to the hierarchy: `python community_scale.py FOLDER 100000 400000`.

The graph is `planted_graph`'s. It is written once, and measured in a process of its own, for its memory: reading what is
visible, weighing it and dividing it, from nothing and again from the assignment that came of that.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from planted_graph import Planted, write

from agentic_rag_backend.communities.detection import Detection, DetectionOptions, detect
from agentic_rag_backend.communities.knowledge import contexts, graph_digest, read_visible, weighted_edges
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore

T = TypeVar("T")

TENANT = TenantId("t_" + "5" * 32)
PER_DOCUMENT = {"sqlite": 4_000, "neo4j": 800}
"""Relationships a document: a document is one transaction."""


@asynccontextmanager
async def opened(store: str, folder: Path) -> AsyncIterator[GraphStore]:
    """Open the store that ``store`` names: sqlite in ``folder``, or the Neo4j at an address."""
    if store == "sqlite":
        graph: GraphStore = await SqliteGraphStore.open(folder / "graph.db")
    else:
        uri, user, password = json.loads(store)
        graph = await Neo4jGraphStore.open(Neo4jAddress(uri=uri, user=user, password=password, timeout_s=600.0))
    try:
        yield graph
    finally:
        await graph.close()


async def fill(store: str, folder: Path, planted: Planted) -> None:
    """Write the graph unless it is there."""
    async with opened(store, folder) as graph:
        if (await graph.counts(TENANT)).relationships == 0:
            per_document = PER_DOCUMENT["sqlite" if store == "sqlite" else "neo4j"]
            versions = await write(graph, TENANT, planted, per_document=per_document)
            (folder / "versions.json").write_text(json.dumps(versions), encoding="utf-8")


class Clock:
    """Wall and CPU seconds by stage, with the most memory of the process's own at the end of each."""

    def __init__(self) -> None:
        self.stages: dict[str, dict[str, float]] = {}

    def take(self, name: str, started: tuple[float, float]) -> None:
        wall, cpu = started
        most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        self.stages[name] = {
            "s": round(time.perf_counter() - wall, 1),
            "cpu_s": round(time.process_time() - cpu, 1),
            "most_mb": round(most_mb, 1),
        }

    def of(self, name: str, work: Callable[[], T]) -> T:
        """Return what ``work`` returns."""
        started = now()
        done = work()
        self.take(name, started)
        return done


def now() -> tuple[float, float]:
    """Return wall and CPU seconds."""
    return time.perf_counter(), time.process_time()


async def detect_in(store: str, folder: Path) -> dict[str, Any]:
    """Measure one detection of the graph that is there, and one more from its assignment."""
    clock, options = Clock(), DetectionOptions()
    versions = json.loads((folder / "versions.json").read_text(encoding="utf-8"))
    before_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    async with opened(store, folder) as graph:
        started = now()
        knowledge = await read_visible(graph, TENANT, versions)
        clock.take("read", started)
    edges = clock.of("weigh", lambda: weighted_edges(knowledge))
    clock.of("digest", lambda: graph_digest(knowledge, options))

    def divided(starting: Mapping[str, int] | None) -> Detection:
        return detect(edges, entities=knowledge.entities, options=options, contexts=contexts(knowledge), starting=starting)

    found = clock.of("detect", lambda: divided(None))
    base = [each for each in found.communities if each.base]
    starting = {member: number for number, each in enumerate(base) for member in each.members}
    again = clock.of("detect again", lambda: divided(starting))
    kept = {each.members for each in found.communities} & {each.members for each in again.communities}
    return {
        "entities": len(knowledge.entities),
        "relationships": len(knowledge.edges),
        "edges": len(edges),
        "communities": len(found.communities),
        "levels": 1 + max(each.level for each in found.communities),
        "largest_root": max(len(each.members) for each in found.communities if each.parent is None),
        "modularity": round(found.modularity, 4),
        "kept_again": round(len(kept) / len(found.communities), 4),
        "before_mb": round(before_mb, 1),
        "most_mb": clock.stages["detect again"]["most_mb"],
        "stages": clock.stages,
    }


def measured(store: str, folder: Path, entities: int, relationships: int) -> dict[str, Any]:
    """Make the graph, and measure detection of it in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(fill(store, folder, Planted.of(entities, relationships)))
    command = [sys.executable, __file__, str(folder), "--store", store, "--only"]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def measure(entities: int, relationships: int, *, neo4j: bool, folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return figures by store and size: a quarter of the graph and the whole in SQLite, the whole in Neo4j if asked for."""
    found = {}
    with ExitStack() as stack:
        home = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentic-rag-bench-")))
        for part in (4, 1):
            size = (entities // part, relationships // part)
            found[f"sqlite {size[0]:,} / {size[1]:,}"] = measured("sqlite", home / f"sqlite-{size[0]}", *size)
        if neo4j:
            sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures"))
            import services

            (home / "server").mkdir(exist_ok=True)
            server = stack.enter_context(services.neo4j(home / "server"))
            store = json.dumps([server.uri, server.user, server.password])
            found[f"neo4j {entities:,} / {relationships:,}"] = measured(store, home / "neo4j", entities, relationships)
    return found


def main() -> None:
    """Print figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the graph lies or is made")
    parser.add_argument("sizes", nargs="*", type=int, default=[100_000, 400_000], help="entities and relationships")
    parser.add_argument("--store", default="sqlite")
    parser.add_argument("--only", action="store_true", help="measure the graph that is there")
    parser.add_argument("--neo4j", action="store_true", help="measure Neo4j as well")
    chosen = parser.parse_args()
    if chosen.only:
        print(json.dumps(asyncio.run(detect_in(chosen.store, chosen.folder))))
        return
    print(json.dumps(measure(*chosen.sizes, neo4j=chosen.neo4j, folder=chosen.folder), indent=2))


if __name__ == "__main__":
    main()
