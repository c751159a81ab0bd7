"""Measures reads of the graph on a large tenant: `python graph_reading.py FOLDER 100000 --store neo4j`.

The graph comes from `planted_graph`, with three relationships for each entity, and one more entity, the hub, that is related to
every other one. SQLite is filled through the store, Neo4j without it (`neo4j_direct_writes`). The folder of SQLite is kept, so
that a second run only reads. A Neo4j is found or started as in the tests. The catalogue is a stand-in in memory: the figures are
those of the graph in memory, the store and the search.

Asserted: reads of the hub cost at most twenty times as much as those of other entities, which have a ten-thousandth of its
relationships.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import neo4j_direct_writes
from agentic_rag_backend.domain.document import Chunk, VisibleChunk
from agentic_rag_backend.domain.graph import DocumentKnowledge
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.domain.tenant import Tenant, TenantState
from agentic_rag_backend.knowledge.extraction.model.inquiries import DEFAULT_ONTOLOGY
from agentic_rag_backend.knowledge.ontologies import Ontologies
from agentic_rag_backend.knowledge.paths.base import PathOptions
from agentic_rag_backend.knowledge.paths.finder import PathFinder
from agentic_rag_backend.knowledge.paths.neighbourhood import NeighbourhoodOptions, NeighbourhoodReader
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.entities import EntityReader
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.stores.catalogue.base import Visibility
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.graph.neo4j import Neo4jGraphStore
from community_scale import TENANT, opened
from planted_graph import Planted

PER_DOCUMENT = 4_000
PER_ENTITY = 3
SAMPLE = 200
HUB = "entity-99999999"
_PLACE = Location(start_char=0, end_char=1, start_line=1, end_line=1)
Read = Callable[[], Awaitable[object]]


def planted(entities: int) -> Planted:
    """Return the graph with its hub, which is the last entity."""
    graph = Planted.of(entities, PER_ENTITY * entities)
    hub = int(HUB.removeprefix("entity-"))
    around = np.stack([np.arange(entities), np.full(entities, hub)], axis=1)
    return Planted(graph.groups, np.concatenate([graph.pairs, around]))


def documents(entities: int) -> Iterator[DocumentKnowledge]:
    """Yield the documents that state the graph."""
    return planted(entities).documents(PER_DOCUMENT)


class Catalogue:
    """Shows version 1 of every document."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.versions = dict.fromkeys(ids, 1)

    async def visibility(self, tenant: object, *, since: int | None = None) -> Visibility:
        return Visibility(1, self.versions if since is None else {}, whole=since is None)

    async def ontology(self, tenant: object) -> None:
        return None

    async def hydrate(self, tenant: object, ids: Sequence[str]) -> dict[str, VisibleChunk]:
        return {id: _passage(id) for id in ids}


def _passage(id: str) -> VisibleChunk:
    made: dict[str, Any] = {"text": "", "content_hash": "", "size_tokens": 1, "ordinal": 0, "location": _PLACE}
    chunk = Chunk(id=id, document_id=id.rpartition("-")[0], version=1, **made)
    return VisibleChunk(chunk=chunk, document_title="", document_key=None, metadata={})


async def fill(store: GraphStore, entities: int) -> list[str]:
    """Write the graph unless it is there. Return the ids of its documents."""
    count = -(-len(planted(entities).pairs) // PER_DOCUMENT)
    ids = [f"document-{number * PER_DOCUMENT:08d}" for number in range(count)]
    held = [each async for batch in store.all_versions(TENANT) for each in batch]
    if [each.document_id for each in held if each.whole] == ids:
        return ids
    started = time.perf_counter()
    if isinstance(store, Neo4jGraphStore):
        await neo4j_direct_writes.fill(store.connections, TENANT, documents(entities))
    else:
        for knowledge in documents(entities):
            await store.write_document(TENANT, knowledge)
    print(f"filled in {time.perf_counter() - started:.0f} s", flush=True)
    return ids


async def timed(name: str, reads: Sequence[Read]) -> float:
    """Print and return the median, in milliseconds, and print the 95th percentile."""
    times = []
    for read in reads:
        started = time.perf_counter()
        await read()
        times.append((time.perf_counter() - started) * 1000)
    cuts = statistics.quantiles(times, n=20)
    print(f"{name:<44} p50 {statistics.median(times):8.2f} ms   p95 {cuts[-1]:8.2f} ms   n {len(times)}", flush=True)
    return statistics.median(times)


async def measure(store: GraphStore, entities: int) -> None:
    """Fill the store and measure its reads."""
    catalogue: Any = Catalogue(await fill(store, entities))
    tenant = Tenant(TENANT, "bench", TenantState.ACTIVE, 1, datetime.now(UTC))
    print(f"load {os.getloadavg()[0]:.1f}; counts {await store.counts(TENANT)}", flush=True)
    graphs = TenantGraphs(store, catalogue, max_bytes=10**10)
    started = time.perf_counter()
    graph = await graphs.graph(tenant)
    print(f"first load {time.perf_counter() - started:.1f} s, {graph.size_bytes / 1e6:.0f} MB", flush=True)
    random = np.random.default_rng(3)
    drawn = [f"entity-{number:08d}" for number in random.choice(entities, 4 * SAMPLE, replace=False).tolist()]
    some = [id for id in drawn if graph.mentioned(id) is not None][: 2 * SAMPLE]
    facts = FactReader(store, catalogue, Ontologies(catalogue, DEFAULT_ONTOLOGY))
    reader = EntityReader(graphs, store, catalogue, facts)
    around = NeighbourhoodReader(graphs, store, catalogue, facts)
    paths = PathFinder(graphs, store, catalogue, facts)

    async def of_stores(id: str) -> None:
        await asyncio.gather(
            store.entities(TENANT, [id]), store.mention_counts(TENANT, [id]), store.edges_at(TENANT, [id], limit=40)
        )

    entity = await timed("entity", [partial(reader.entity, tenant, id) for id in some[:SAMPLE]])
    hub = await timed("entity, the hub", [partial(reader.entity, tenant, HUB)] * 30)
    await timed("its names, count and edges, stores only", [partial(of_stores, id) for id in some[:SAMPLE]])
    await timed("the same of the hub", [partial(of_stores, HUB)] * 30)
    await timed("list", [partial(reader.page, tenant)] * 20)
    await timed("search by name", [partial(reader.page, tenant, name=f"name {number}") for number in range(20)])
    for hops in (1, 2, 3):
        options = NeighbourhoodOptions(hops=hops)
        await timed(f"neighbourhood, {hops} hops", [partial(around.around, tenant, id, options) for id in some[:60]])
    near = await timed("neighbourhood of the hub, 1 hop", [partial(around.around, tenant, HUB)] * 30)
    pairs = list(zip(some[:100], some[100:200], strict=True))
    for hops in (2, 3, 4):
        reads = [partial(paths.between, tenant, [one], [other], PathOptions(max_hops=hops)) for one, other in pairs]
        await timed(f"paths of up to {hops} hops", reads)
        found = [len((await read()).paths) for read in reads[:20]]
        print(f"    paths found of the first 20 pairs: {found}", flush=True)
    to_hub = [partial(paths.between, tenant, [id], [HUB], PathOptions(max_hops=3)) for id in some[:60]]
    await timed("paths of up to 3 hops to the hub", to_hub)
    assert hub < 20 * entity, f"the hub costs {hub / entity:.0f} times as much"
    assert near < 100 * entity, f"the hub's neighbourhood costs {near / entity:.0f} times as much as an entity"


async def main() -> None:
    """Measure one store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("entities", type=int)
    parser.add_argument("--store", choices=("sqlite", "neo4j"), default="sqlite")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        server = "sqlite"
        if given.store == "neo4j":
            sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "fixtures"))
            import services

            # Tests start it with half of this memory and little compilation.
            os.environ.setdefault("_JAVA_OPTIONS", "-Xmx1g -XX:TieredStopAtLevel=4")
            started = stack.enter_context(services.neo4j(given.folder))
            server = json.dumps([started.uri, started.user, started.password])
        async with opened(server, given.folder) as store:
            await measure(store, given.entities)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
