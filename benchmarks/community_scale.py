"""Measures detection on a large graph, from the store to the hierarchy: `python community_scale.py FOLDER 100000 400000`.

The graph comes from `planted_graph`. It is written once. A separate process, so that its memory can be measured, reads the
visible
part, weighs and divides it, from nothing and again from the resulting assignment. A Neo4j is filled without the store
(`neo4j_direct_writes`), and read through it.

Asserted: both stores hold every document completely, and give the same communities.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import neo4j_direct_writes
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress, Neo4jConnections, Transaction
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
from agentic_rag_backend.stores.graph.sqlite import SqliteGraphStore
from agentic_rag_backend.themes.communities.detection.hierarchy import Detection, DetectionOptions, detect_communities
from agentic_rag_backend.themes.communities.detection.knowledge import graph_digest, list_contexts, read_visible, weighted_edges
from agentic_rag_backend.themes.communities.detection.leiden import PreviousDivision
from planted_graph import Planted, write

T = TypeVar("T")

TENANT = TenantId("t_" + "5" * 32)
PER_DOCUMENT = 4_000
"""Relationships per document."""
HEAP = "1g"
"""Neo4j's, if it is started here."""


@asynccontextmanager
async def opened(store: str, folder: Path) -> AsyncIterator[GraphStore]:
    """Open the store: SQLite in ``folder``, or the Neo4j at the address in ``store``."""
    graph: GraphStore
    graph = await (SqliteGraphStore.open(folder / "graph.db") if store == "sqlite" else Neo4jGraphStore.open(address(store)))
    try:
        yield graph
    finally:
        await graph.close()


def address(store: str) -> Neo4jAddress:
    """Return the address of a Neo4j that ``store`` names."""
    uri, user, password = json.loads(store)
    return Neo4jAddress(uri=uri, user=user, password=password, timeout_s=600.0, write_timeout_s=600.0)


async def fill(store: str, folder: Path, planted: Planted) -> None:
    """Write the graph unless it exists."""
    noted = folder / "versions.json"
    if noted.exists():
        return
    if store == "sqlite":
        async with opened(store, folder) as graph:
            await write(graph, TENANT, planted, per_document=PER_DOCUMENT)
    else:
        connections = Neo4jConnections.open(address(store))
        try:
            await neo4j_direct_writes.fill(connections, TENANT, planted.documents(PER_DOCUMENT))
        finally:
            await connections.close()
    async with opened(store, folder) as graph:
        held = [version async for batch in graph.all_versions(TENANT) for version in batch]
    assert held, "nothing was written"
    assert all(version.whole for version in held), "a document lacks something"
    noted.write_text(json.dumps({version.document_id: version.version for version in held}), encoding="utf-8")


class Clock:
    """Wall and CPU seconds by stage, with the peak memory of the process at the end of each."""

    def __init__(self) -> None:
        self.stages: dict[str, dict[str, float]] = {}

    def take(self, name: str, started: tuple[float, float]) -> None:
        wall, cpu = started
        self.stages[name] = {
            "s": round(time.perf_counter() - wall, 1),
            "cpu_s": round(time.process_time() - cpu, 1),
            "most_mb": round(most_mb(), 1),
        }

    def of(self, name: str, work: Callable[[], T]) -> T:
        """Return what ``work`` returns."""
        started = now()
        done = work()
        self.take(name, started)
        return done


def most_mb() -> float:
    """Return the peak memory of this process. `getrusage` may report that of its parent."""
    (held,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(held.split()[1]) * 1024 / 1e6


def now() -> tuple[float, float]:
    """Return wall and CPU seconds."""
    return time.perf_counter(), time.process_time()


class Reads:
    """Counts reading transactions of a Neo4j. Each has one statement."""

    def __init__(self, graph: GraphStore) -> None:
        self.made = 0
        if isinstance(graph, Neo4jGraphStore):
            self._read, graph.connections.read = graph.connections.read, self.read  # type: ignore[method-assign]

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Read as before."""
        self.made += 1
        return await self._read(work)


def partition(found: Detection) -> str:
    """Return a hash of the communities: levels, members and the members' parents."""
    above = [None if each.parent is None else found.communities[each.parent].members for each in found.communities]
    told = sorted((each.level, each.members, parent or ()) for each, parent in zip(found.communities, above, strict=True))
    return hashlib.sha256(repr(told).encode()).hexdigest()


def as_before(found: Detection) -> PreviousDivision:
    """Return a hierarchy as input of the next detection, with half of its communities marked as changed."""
    levels: dict[int, dict[str, int]] = {}
    for number, each in enumerate(found.communities):
        levels.setdefault(each.level, {}).update(dict.fromkeys(each.members, number))
    base = {member: number for number, each in enumerate(found.communities) if each.base for member in each.members}
    return PreviousDivision(base, levels, frozenset(frozenset(each.members) for each in found.communities[::2]))


async def detect_in(store: str, folder: Path) -> dict[str, Any]:
    """Measure one detection of the existing graph, and one more from its assignment."""
    clock, options = Clock(), DetectionOptions()
    versions = json.loads((folder / "versions.json").read_text(encoding="utf-8"))
    before_mb = most_mb()
    async with opened(store, folder) as graph:
        reads, started = Reads(graph), now()
        knowledge = await read_visible(graph, TENANT, versions)
        clock.take("read", started)
    edges = clock.of("weigh", lambda: weighted_edges(knowledge))
    clock.of("digest", lambda: graph_digest(knowledge, options))

    def divided(before: PreviousDivision | None) -> Detection:
        return detect_communities(
            edges, entities=knowledge.entities, options=options, contexts=list_contexts(knowledge), previous=before
        )

    found = clock.of("detect", lambda: divided(None))
    again = clock.of("detect again", lambda: divided(as_before(found)))
    kept = {each.members for each in found.communities} & {each.members for each in again.communities}
    return {
        "entities": len(knowledge.entities),
        "relationships": len(knowledge.edges),
        "edges": len(edges),
        "communities": len(found.communities),
        "levels": 1 + max(each.level for each in found.communities),
        "largest_root": max(len(each.members) for each in found.communities if each.parent is None),
        "modularity": round(found.modularity, 4),
        "partition": partition(found),
        "reads": reads.made,
        "kept_again": round(len(kept) / len(found.communities), 4),
        "before_mb": round(before_mb, 1),
        "most_mb": clock.stages["detect again"]["most_mb"],
        "stages": clock.stages,
    }


def measured(store: str, folder: Path, entities: int, relationships: int) -> dict[str, Any]:
    """Create the graph, and measure its detection in a separate process."""
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    asyncio.run(fill(store, folder, Planted.of(entities, relationships)))
    filled_s = round(time.perf_counter() - started, 1)
    command = [sys.executable, __file__, str(folder), "--store", store, "--only"]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    answer["fill_s"] = filled_s
    print(json.dumps(answer), file=sys.stderr)
    return answer


def measure(entities: int, relationships: int, *, neo4j: bool, folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return figures by store and size: a quarter of the graph and the whole, in SQLite, and in Neo4j if requested."""
    found = {}
    with ExitStack() as stack:
        home = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentic-rag-bench-")))
        for part in (4, 1):
            size = (entities // part, relationships // part)
            name = f"{size[0]:,} / {size[1]:,}"
            found[f"sqlite {name}"] = measured("sqlite", home / f"sqlite-{size[0]}", *size)
            if neo4j:
                found[f"neo4j {name}"] = in_neo4j(home / f"neo4j-{size[0]}", *size)
                partitions = {found[f"{store} {name}"]["partition"] for store in ("sqlite", "neo4j")}
                assert len(partitions) == 1, f"other communities come of Neo4j than of SQLite at {name}"
    return found


def in_neo4j(folder: Path, entities: int, relationships: int) -> dict[str, Any]:
    """Measure in a Neo4j that holds no other data."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "fixtures"))
    import services

    folder.mkdir(parents=True, exist_ok=True)
    # Tests start it with half of this memory and little compilation, which is too slow for a run of minutes.
    os.environ.setdefault("_JAVA_OPTIONS", f"-Xmx{HEAP} -XX:TieredStopAtLevel=4")
    with services.neo4j(folder) as server:
        store = json.dumps([server.uri, server.user, server.password])
        return measured(store, folder, entities, relationships)


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
