"""What it costs to bring a tenant's graph up to date after one document, against loading it: `python graph_upkeep.py 2000 20000`.

Documents are synthetic (seeded): two chunks of seven entities each, drawn with the skew that names of a corpus have. They
lie in the real stores; written past the ports, because writing 200,000 documents one by one is not what is measured.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.document import DocumentState
from agentic_rag_backend.domain.graph import DocumentKnowledge, Entity, Mention, Support
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.retrieval.graph_cache import TenantGraphs
from agentic_rag_backend.retrieval.pagerank import personalised_pagerank
from agentic_rag_backend.retrieval.tenant_graph import TenantGraph
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.engine import SqlCatalogue
from agentic_rag_backend.stores.catalogue.rows import raise_state_version
from agentic_rag_backend.stores.catalogue.tables import documents
from agentic_rag_backend.stores.catalogue.visibility import record_change
from agentic_rag_backend.stores.graph import rows
from agentic_rag_backend.stores.graph.sqlite import _SQL, SqliteGraphStore

CHUNKS, PER_CHUNK, ENTITIES_PER_DOCUMENT, SKEW = 2, 7, 3, 0.7
REPEATS = 15
BATCH = 1000


def knowledge(random: np.random.Generator, document: str, size: int) -> DocumentKnowledge:
    """Return what a document of a corpus of ``size`` documents says."""
    count = max(ENTITIES_PER_DOCUMENT * size, PER_CHUNK)
    # The inverse of the distribution function of rank^-SKEW: hubs and a long tail.
    drawn = (random.random((CHUNKS, PER_CHUNK)) ** (1 / (1 - SKEW)) * count).astype(int)
    about = random.random((CHUNKS, PER_CHUNK)) < 0.15
    mentions = [
        Mention(f"entity-{entity:08d}", Support(document, 1, f"{document}-chunk-{chunk}"), about=bool(about[chunk, place]))
        for chunk in range(CHUNKS)
        for place, entity in enumerate(drawn[chunk].tolist())
        if entity not in drawn[chunk, :place].tolist()
    ]
    named = sorted({int(entity) for entity in drawn.ravel()})
    entities = tuple(Entity(id=f"entity-{number:08d}", name=f"Name {number}", type="thing") for number in named)
    chunks = tuple(f"{document}-chunk-{chunk}" for chunk in range(CHUNKS))
    return DocumentKnowledge(
        document_id=document, version=1, title=document, chunk_ids=chunks, entities=entities, mentions=tuple(mentions)
    )


class Corpus:
    """One tenant's documents in the stores of a folder."""

    def __init__(self, graph: SqliteGraphStore, catalogue: SqlCatalogue, tenant: Tenant, size: int) -> None:
        self.graph, self.catalogue, self.tenant, self.size = graph, catalogue, tenant, size
        self.random = np.random.default_rng(11)

    @classmethod
    async def make(cls, folder: Path, size: int) -> Corpus:
        """Fill the stores of ``folder`` with ``size`` documents."""
        catalogue = await SqlCatalogue.open(f"sqlite:///{folder / 'catalogue.db'}")
        await catalogue.migrate()
        graph = await SqliteGraphStore.open(folder / "graph.db")
        corpus = cls(graph, catalogue, await catalogue.tenants.create("bench"), size)
        for first in range(0, size, BATCH):
            await corpus.write([f"document-{number:08d}" for number in range(first, min(first + BATCH, size))], visible=1)
        return corpus

    async def write(self, ids: list[str], *, visible: int) -> None:
        """Write documents to both stores; not shown yet where ``visible`` is 0."""
        said = [knowledge(self.random, id, self.size) for id in ids]
        owner = self.tenant.id

        def add(connection: Any) -> None:
            for each in said:
                names = rows.name_rows(owner, each)
                connection.executemany(_SQL["add_entity"], rows.entity_rows(owner, each))
                connection.executemany(_SQL["add_entity_name"], names)
                connection.executemany(_SQL["add_entity_support"], names)
                connection.executemany(_SQL["add_mention"], rows.mention_rows(owner, each))

        def record(connection: Connection) -> None:
            connection.execute(insert(documents), [self._row(id, visible) for id in ids])

        await self.graph._connections.write(add)
        await self.catalogue._database.write(record)

    def _row(self, id: str, visible: int) -> dict[str, Any]:
        face = {"title": id, "state": DocumentState.READY.value, "content_hash": id, "media_type": "text/plain", "size_bytes": 1}
        counts = {"current_version": visible, "latest_version": 1, "chunk_count": CHUNKS, "metadata": {}, "failures": []}
        times = {"created_at": utc_now(), "updated_at": utc_now()}
        return {"tenant_id": self.tenant.id.value, "id": id, "key": id, **face, **counts, **times}

    async def change(self, id: str, values: dict[str, Any], version: int) -> None:
        """Show or hide a document as the catalogue does."""

        def work(connection: Connection) -> None:
            of = (documents.c.tenant_id == self.tenant.id.value, documents.c.id == id)
            connection.execute(update(documents).where(*of).values(**values))
            raise_state_version(connection, self.tenant.id, content=True)
            record_change(connection, self.tenant.id, id, version)

        await self.catalogue._database.write(work)
        self.tenant = replace(self.tenant, state_version=self.tenant.state_version + 1)

    async def close(self) -> None:
        """Close the stores."""
        await self.graph.close()
        await self.catalogue.close()


async def timed(call: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    """Return how long a call took, in ms, and what it returned."""
    started = time.perf_counter()
    found = await call()
    return (time.perf_counter() - started) * 1000, found


def walk_ms(graph: TenantGraph, random: np.random.Generator) -> float:
    """Return the median time of a walk from 50 chunks and three entities, in ms."""
    chunks, entities = list(graph.chunk_index.values()), list(graph.entity_index.values())
    times = []
    for _ in range(REPEATS):
        seeds = np.zeros(graph.chunk_places), np.zeros(graph.entity_places)
        seeds[0][random.choice(chunks, 50, replace=False)] = 0.35 / 50
        seeds[1][random.choice(entities, 3, replace=False)] = 0.65 / 3
        started = time.perf_counter()
        personalised_pagerank(graph, *seeds)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


async def measure(size: int) -> dict[str, float]:
    """Measure a corpus of ``size`` documents: times in ms, memory in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = await Corpus.make(Path(folder), size)
        graphs = TenantGraphs(corpus.graph, corpus.catalogue.documents, max_bytes=1 << 40)
        loading, graph = await timed(lambda: graphs.graph(corpus.tenant))
        walks = [walk_ms(graph, corpus.random)]
        added, hidden = [], []
        for number in range(REPEATS):
            await corpus.write([f"new-{number:04d}"], visible=0)
            await corpus.change(f"new-{number:04d}", {"current_version": 1}, 1)
            added.append((await timed(lambda: graphs.graph(corpus.tenant)))[0])
        for number in range(REPEATS):
            await corpus.change(f"document-{number:08d}", {"deleted_at": utc_now()}, 0)
            elapsed, graph = await timed(lambda: graphs.graph(corpus.tenant))
            hidden.append(elapsed)
        walks.append(walk_ms(graph, corpus.random))
        await corpus.close()
    return {
        "documents": size,
        "load": loading,
        "add": statistics.median(added),
        "add, longest": max(added),
        "delete": statistics.median(hidden),
        "walk, loaded": walks[0],
        "walk, kept current": walks[1],
        "MiB": graph.size_bytes / 2**20,
    }


def main() -> None:
    """Print a row of figures for each size given."""
    for size in [int(argument) for argument in sys.argv[1:]] or [2_000, 20_000]:
        print({name: round(value, 2) for name, value in asyncio.run(measure(size)).items()}, flush=True)


if __name__ == "__main__":
    main()
