"""Measures loading a tenant's graph, and updating it after one document: `python graph_upkeep.py 1000 10000`.

Documents are synthetic (seeded): two chunks of seven entities each, drawn with the skew of names in a corpus. They are in the
real stores, but written without the ports, because writing 100,000 documents one by one is not the subject.

A load is compared with a plain build in the same run: all mentions and entities are read from the same store, numbered and
made into two matrices. Each runs in a separate process, to measure its memory, and alternately, to spread the machine's noise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sparse
from sqlalchemy import insert, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.document import DocumentState
from agentic_rag_backend.domain.graph import DocumentKnowledge, Entity, Mention, Support, normalise_name
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.pagerank import personalised_pagerank
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.documents.visible_documents import record_change
from agentic_rag_backend.stores.catalogue.operations import raise_state_version
from agentic_rag_backend.stores.catalogue.tables import documents
from agentic_rag_backend.stores.graph import graph_rows
from agentic_rag_backend.stores.graph.sqlite import _SQL, SqliteGraphStore

CHUNKS, PER_CHUNK, ENTITIES_PER_DOCUMENT, SKEW = 2, 7, 3, 0.7
REPEATS = 15
BATCH = 1000


def knowledge(random: np.random.Generator, document: str, size: int) -> DocumentKnowledge:
    """Return the knowledge of a document in a corpus of ``size`` documents."""
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

    def __init__(self, graph: SqliteGraphStore, catalogue: Catalogue, tenant: Tenant, size: int) -> None:
        self.graph, self.catalogue, self.tenant, self.size = graph, catalogue, tenant, size
        self.random = np.random.default_rng(11)

    @classmethod
    async def open(cls, folder: Path, size: int) -> Corpus:
        """Open the stores of ``folder``, or create and fill them with ``size`` documents."""
        made = (folder / "catalogue.db").exists()
        catalogue = await Catalogue.open(f"sqlite:///{folder / 'catalogue.db'}")
        await catalogue.migrate()
        graph = await SqliteGraphStore.open(folder / "graph.db")
        tenant = (await catalogue.tenants.tenants(limit=1)).items[0] if made else await catalogue.tenants.create("bench")
        corpus = cls(graph, catalogue, tenant, size)
        for first in range(0, 0 if made else size, BATCH):
            await corpus.write([f"document-{number:08d}" for number in range(first, min(first + BATCH, size))], visible=1)
        return corpus

    async def write(self, ids: list[str], *, visible: int) -> None:
        """Write documents to both stores. With ``visible`` 0, they are not visible yet."""
        said = [knowledge(self.random, id, self.size) for id in ids]
        owner = self.tenant.id

        def add(connection: Any) -> None:
            for each in said:
                names = graph_rows.name_rows(owner, each)
                connection.executemany(_SQL["add_entity"], graph_rows.entity_rows(owner, each))
                connection.executemany(_SQL["add_entity_name"], names)
                connection.executemany(_SQL["add_entity_support"], names)
                connection.executemany(_SQL["add_mention"], graph_rows.mention_rows(owner, each))

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
    """Return the duration of a call in ms, and its result."""
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


async def plain(corpus: Corpus) -> list[sparse.csr_matrix]:
    """Build both directions of the graph from the store, and a lookup of names, for one load without updates."""
    chunks: dict[str, int] = {}
    entities: dict[str, int] = {}
    names: dict[str, list[int]] = {}
    rows_, columns, weights = [], [], []
    versions = await corpus.catalogue.documents.visible_versions(corpus.tenant.id)
    async for some in corpus.graph.all_entities(corpus.tenant.id):
        for entity in some:
            entities[entity.id] = len(entities)
            for name in (entity.name, *entity.aliases):
                names.setdefault(normalise_name(name), []).append(entities[entity.id])
    async for mentions in corpus.graph.all_mentions(corpus.tenant.id):
        for mention in mentions:
            if versions.get(mention.support.document_id) == mention.support.version:
                rows_.append(chunks.setdefault(mention.support.chunk_id, len(chunks)))
                columns.append(entities[mention.entity_id])
                weights.append(1.0 + mention.about)
    matrix = sparse.csr_matrix((weights, (rows_, columns)), shape=(len(chunks), len(entities)))
    return [matrix, matrix.T.tocsr()]


def own_mb() -> float:
    """Return the memory of this process alone, in MB."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024 / 1e6


class Watch:
    """The longest time that the event loop was blocked, and the peak memory, during some work."""

    def __init__(self) -> None:
        self.longest_ms, self.most_mb, self.first_mb = 0.0, 0.0, own_mb()

    async def over(self, work: Awaitable[Any]) -> Any:
        """Return what ``work`` returns."""
        looking = asyncio.create_task(self._look())
        try:
            return await work
        finally:
            looking.cancel()

    async def _look(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            self.longest_ms = max(self.longest_ms, (time.perf_counter() - before) * 1000 - 5)
            self.most_mb = max(self.most_mb, own_mb() - self.first_mb)


async def load(folder: Path, size: int, what: str) -> dict[str, float]:
    """Measure one load, or one plain build, of an existing corpus: CPU and wall time in s, loop gap in ms, memory in MB."""
    corpus = await Corpus.open(folder, size)
    graphs = TenantGraphs(corpus.graph, corpus.catalogue.documents, max_bytes=1 << 40)
    watch, started, cpu = Watch(), time.perf_counter(), time.process_time()
    held = await watch.over(plain(corpus) if what == "plain" else graphs.graph(corpus.tenant))
    figures = {
        "s": time.perf_counter() - started,
        "cpu_s": time.process_time() - cpu,
        "gap_ms": watch.longest_ms,
        "most_mb": watch.most_mb,
        "left_mb": own_mb() - watch.first_mb,
    }
    await corpus.close()
    del held
    return figures


def loads(folder: Path, size: int, turns: int) -> dict[str, dict[str, float]]:
    """Return the medians of loads and of plain builds, run alternately."""
    found: dict[str, list[dict[str, float]]] = {"load": [], "plain": []}
    for _ in range(turns):
        for what, figures in found.items():
            command = [sys.executable, __file__, "--folder", str(folder), "--only", what, str(size)]
            figures.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    return {
        what: {name: statistics.median(each[name] for each in graph_rows) for name in graph_rows[0]}
        for what, graph_rows in found.items()
    }


async def measure(folder: Path, size: int) -> dict[str, float]:
    """Measure the cost of changes in a corpus of ``size`` documents: times in ms, memory in MiB."""
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as name:
        # Changes are made in a copy, because the folder is loaded again later.
        corpus = await Corpus.open(Path(shutil.copytree(folder, Path(name, "corpus"))), size)
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


async def fill(folder: Path, size: int) -> None:
    """Create a corpus."""
    await (await Corpus.open(folder, size)).close()


def main() -> None:
    """Print figures for each size given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[1_000, 10_000], help="documents, of two chunks each")
    parser.add_argument("--folder", type=Path, help="where the corpora lie or are made; for one size")
    parser.add_argument("--only", choices=["load", "plain"], help="one measurement, as JSON")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(asyncio.run(load(arguments.folder, arguments.sizes[0], arguments.only))))
        return
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as name:
            folder = arguments.folder or Path(name, "made")
            folder.mkdir(exist_ok=True)
            asyncio.run(fill(folder, size))
            for what, figures in loads(folder, size, arguments.turns).items():
                print(size, what, {name: round(value, 3) for name, value in figures.items()}, flush=True)
            print(size, {name: round(value, 2) for name, value in asyncio.run(measure(folder, size)).items()}, flush=True)


if __name__ == "__main__":
    main()
