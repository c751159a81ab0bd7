"""Measures the latency of strategies by size of the corpus: `python latency.py 1890 20000`, and with `--tenants 500`.

The corpus is MuSiQue, ingested, and then copies of it with other names, which go to the stores without jobs and without the
encoder: their vectors are those of the originals with noise. Communities are built at every size, with random vectors of their
summaries. Questions are embedded by the real encoder. Results and vectors of
questions are not cached; themes and passages are, as in a deployment. So every question is asked twice: when these caches
hold little, and when they hold what the questions reach.

Strategies take turns, so that noise affects all alike. Then 32 readers ask at once: their throughput is compared with the two
cores' worth of one question's CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.evaluation.datasets import load_question_set
from agentic_rag_backend.evaluation.ranking_metrics import find_percentile
from agentic_rag_backend.ingestion.vectors.fact_points import FactPoints
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.resolution.resolver import Resolver
from agentic_rag_backend.memory import serve_from_now
from agentic_rag_testing.stores.passages import paragraphs_as_chunks, show
from corpora import ingest, rebuild
from report import data, finish, make_settings, quiet

STRATEGIES = ("dense", "sparse", "hybrid", "graph", "dual_level")
PER_DOCUMENT = 20
"""Passages in a document of a copy."""
NOISE = 0.3
"""Length of the noise in the vector of a copy, relative to the vector."""
READERS, READING_S = 32, 20.0
PER_TENANT = 40
SEED = 7
_WORD = re.compile(r"(?<![^\W\d_])[^\W\d_]{3,}")

Passage = tuple[str, NDArray[np.float32]]
"""A text and its vector."""


@dataclass
class Corpus:
    """The passages to copy, and the words of their names."""

    passages: Sequence[Passage]
    names: frozenset[str]

    def documents(self, first: int, count: int) -> Iterator[tuple[str, list[str], list[NDArray[np.float32]]]]:
        """Yield title, paragraphs and vectors of documents of ``count`` copied passages, the ``first``-th and later."""
        rng = np.random.default_rng(SEED + first)
        for start in range(first, first + count, PER_DOCUMENT):
            numbers = range(start, min(start + PER_DOCUMENT, first + count))
            copies = [divmod(number, len(self.passages)) for number in numbers]
            texts = [self._renamed(self.passages[at][0], copy + 1) for copy, at in copies]
            vectors = [_noisy(rng, self.passages[at][1]) for _, at in copies]
            yield f"Copies {start}", texts, vectors

    def _renamed(self, text: str, copy: int) -> str:
        suffix = "".join(chr(ord("a") + int(digit)) for digit in str(copy))
        return _WORD.sub(lambda found: found[0] + suffix if found[0] in self.names else found[0], text)


def _noisy(rng: np.random.Generator, vector: NDArray[np.float32]) -> NDArray[np.float32]:
    noise = rng.normal(size=vector.shape).astype(np.float32)
    moved = vector + NOISE * noise / np.linalg.norm(noise)
    return (moved / np.linalg.norm(moved)).astype(np.float32)


async def corpus_of(services: Container, tenant: TenantId) -> Corpus:
    """Return the ingested passages of a tenant."""
    passages: list[Passage] = []
    documents, after = services.catalogue.documents, ""
    while page := await documents.statuses(tenant, after=after, limit=100):
        for each in page:
            ready = await documents.ready(tenant, each.document.id, each.document.current_version)
            passages += [(item.chunk.text, item.vector) for item in ready.prepared if item.vector is not None]
        after = page[-1].document.id
    words: set[str] = set()
    async for batch in services.graph.all_entities(tenant):
        words.update(word for entity in batch for word in _WORD.findall(entity.name) if word[0].isupper())
    return Corpus(passages, frozenset(words))


async def plant(services: Container, tenant: TenantId, corpus: Corpus, first: int, count: int) -> None:
    """Make ``count`` copied passages visible, with the knowledge that the rules read in them."""
    extractor, resolver, facts = RuleExtractor(), Resolver(services.graph), FactPoints(services.graph, services.vectors)
    for title, texts, vectors in corpus.documents(first, count):
        document_id = await show(services.catalogue, services.vectors, tenant, (title, texts), vectors)
        extractions = await extractor.extract(title, paragraphs_as_chunks(tenant, document_id, 1, texts))
        knowledge = await resolver.resolve(tenant, document_id, 1, title, extractions)
        await services.graph.write_document(tenant, knowledge)
        await facts.write_points(tenant, knowledge)
    await services.vectors.flush()


async def communities(services: Container, tenant: TenantId) -> dict[str, Any]:
    """Build communities with random vectors instead of embedded summaries."""
    rng = np.random.default_rng(SEED)

    async def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = rng.normal(size=(len(texts), services.embedder.dimensions)).astype(np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    real, embedder = services.embedder.embed, services.embedder
    embedder.embed = embed  # type: ignore[method-assign]
    try:
        return await rebuild(services, tenant)
    finally:
        embedder.embed = real  # type: ignore[method-assign]


async def ask(services: Container, tenants: Sequence[Tenant], questions: Sequence[str]) -> dict[str, dict[str, float]]:
    """Ask every strategy every question, of the tenants in turn. Return milliseconds of time and of CPU."""
    times: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    used: dict[str, float] = dict.fromkeys(STRATEGIES, 0.0)
    for number, question in enumerate(questions):
        query = Query(tenant=tenants[number % len(tenants)], text=question, limit=10, dual_level=True)
        for name in STRATEGIES:
            started, cpu = time.perf_counter(), time.process_time()
            await services.retrievers.get(name).retrieve(query)
            times[name].append((time.perf_counter() - started) * 1000)
            used[name] += (time.process_time() - cpu) * 1000
    return {
        name: {
            "p50_ms": round(find_percentile(times[name], 0.5), 1),
            "p95_ms": round(find_percentile(times[name], 0.95), 1),
            "cpu_ms": round(used[name] / len(questions), 1),
        }
        for name in STRATEGIES
    }


async def read_at_once(
    services: Container, tenants: Sequence[Tenant], questions: Sequence[str], strategy: str, cpu_ms: float
) -> dict[str, float]:
    """Let `READERS` ask for `READING_S`. Return the throughput, and the longest wait of a reader."""
    ends = time.perf_counter() + READING_S
    times: list[float] = []
    answered = [0] * READERS

    async def reader(number: int) -> None:
        at = number * 7
        while time.perf_counter() < ends:
            query = Query(tenant=tenants[at % len(tenants)], text=questions[at % len(questions)], limit=10, dual_level=True)
            started = time.perf_counter()
            await services.retrievers.get(strategy).retrieve(query)
            times.append((time.perf_counter() - started) * 1000)
            answered[number] += 1
            at += 1

    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(reader, range(READERS)))
    elapsed, spent = time.perf_counter() - started, time.process_time() - cpu
    cores = len(os.sched_getaffinity(0))
    return {
        "per_s": round(len(times) / elapsed, 1),
        "of_cores": round(len(times) / elapsed * cpu_ms / 1000 / cores, 2),
        "cpu_ms": round(spent / len(times) * 1000, 1),
        "p50_ms": round(find_percentile(times, 0.5)),
        "p95_ms": round(find_percentile(times, 0.95)),
        "longest_per_p50": round(max(times) / find_percentile(times, 0.5), 1),
        "least_per_most": round(min(answered) / max(answered), 2),
    }


async def figures(services: Container, tenants: Sequence[Tenant], questions: Sequence[str]) -> dict[str, Any]:
    """Ask once to warm up, then measure, with the garbage collection of a server."""
    serve_from_now()
    await ask(services, tenants, questions[: max(5, len(tenants))])
    first = await ask(services, tenants, questions)
    strategies = await ask(services, tenants, questions)
    at_once = {
        name: await read_at_once(services, tenants, questions, name, strategies[name]["cpu_ms"])
        for name in ("dense", "dual_level")
    }
    return {"first": first, "again": strategies, "at_once": at_once}


async def measure(folder: Path, data_dir: Path, sizes: Sequence[int], tenants: int) -> dict[str, Any]:
    """Measure one tenant at every size, and then ``tenants`` tenants of `PER_TENANT` passages."""
    asked = load_question_set(folder / "musique")
    questions = [labelled.question for labelled in asked.questions]
    settings = make_settings(data_dir=data_dir, community_auto_rebuild=False, search_cache_mb=0, embedding_cache_mb=0)
    results: dict[str, Any] = {}
    async with open_container(settings) as services:
        tenant = (await services.tenants.create("large")).id
        await ingest(services, tenant, asked.passages)
        corpus = await corpus_of(services, tenant)
        held = len(corpus.passages)
        for size in sizes:
            started = time.perf_counter()
            if size > held:
                await plant(services, tenant, corpus, held - len(corpus.passages), size - held)
                held = size
            planted_s = time.perf_counter() - started
            built = await communities(services, tenant)
            print(size, "chunks: planted in", round(planted_s), "s, communities", built, flush=True)
            current = await services.tenants.get(tenant)
            name = f"{held} chunks"
            results[name] = await figures(services, [current], questions)
            print(results[name], flush=True)
        if tenants:
            many = [await services.tenants.create(f"small-{number}") for number in range(tenants)]
            for number, each in enumerate(many):
                await plant(services, each.id, corpus, number * PER_TENANT, PER_TENANT)
            current_many = [await services.tenants.get(each.id) for each in many]
            name = f"{tenants} tenants of {PER_TENANT} chunks"
            repeated = questions * -(-tenants // len(questions))
            results[name] = await figures(services, current_many, repeated)
            print(results[name], flush=True)
    return results


def markdown(results: Mapping[str, Any]) -> str:
    """Return the tables."""
    lines = [
        "| corpus | asked | " + " | ".join(STRATEGIES) + " | dual-level ÷ dense |",
        "|---|---|" + "---|" * (len(STRATEGIES) + 1),
    ]
    for name, row in results.items():
        for asked, found in (("first", row["first"]), ("again", row["again"])):
            cells = [f"{figure['p50_ms']} / {figure['p95_ms']} ({figure['cpu_ms']})" for figure in found.values()]
            ratio = found["dual_level"]["p95_ms"] / found["dense"]["p95_ms"]
            lines.append(f"| {name} | {asked} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    lines += ["", "Milliseconds, p50 / p95 (CPU of a search); the last column is of p95.", ""]
    lines += [
        f"{READERS} readers at once:",
        "",
        "| corpus | strategy | a second | of the cores | p50 / p95 ms | longest ÷ p50 |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in results.items():
        for strategy, found in row["at_once"].items():
            lines.append(
                f"| {name} | {strategy} | {found['per_s']} | {found['of_cores']} | {found['p50_ms']} / {found['p95_ms']} | "
                f"{found['longest_per_p50']} |"
            )
    return "\n".join(lines)


def main() -> int:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[1_890, 20_000], help="chunks of one tenant, rising")
    parser.add_argument("--tenants", type=int, default=0, help=f"then so many tenants of {PER_TENANT} chunks")
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        results = asyncio.run(measure(folder, Path(data_dir), chosen.sizes, chosen.tenants))
    return finish("latency", results, markdown(results), [])


if __name__ == "__main__":
    sys.exit(main())
