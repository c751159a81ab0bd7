"""Measures ingestion and every strategy on MuSiQue and HotpotQA, with the real embedded stores.

Writes ``results/retrieval.json`` and ``results/retrieval.md``. Absolute times are reported. Asserted ratios: ``graph`` finds more
than ``hybrid`` in the first five on both sets, dual-level p95 ÷ dense p95 ≤ 4, ingestion ÷ embedder ≤ 1.6, embedded texts per
chunk ≤ 1.3.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.query import Query, Rerank, Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.evaluation.datasets import QuestionSet, load_question_set
from agentic_rag_backend.evaluation.ranking_metrics import all_at, find_percentile, ndcg_at, recall_at
from agentic_rag_backend.memory import serve_from_now
from corpora import ingest, rebuild
from report import data, finish, make_settings, quiet
from reranking import reranking

STRATEGIES: Mapping[str, tuple[str, Rerank | None]] = {
    "dense": ("dense", None),
    "sparse": ("sparse", None),
    "hybrid, not reranked": ("hybrid", None),
    "hybrid": ("hybrid", reranking("graph")),
    "graph": ("graph", None),
    "dual_level": ("dual_level", None),
}
"""Strategy and reranking, as a request has by default."""
SETS = ("musique", "hotpotqa")


def ranked_keys(found: Retrieval) -> list[str]:
    """Return the documents' keys in the order of their best chunk."""
    return list(dict.fromkeys(str(hit.visible.document_key) for hit in found.hits))


async def ask_all(services: Container, tenant: TenantId, questions: QuestionSet) -> dict[str, dict[str, float]]:
    """Ask every strategy every question in turn, so that noise affects all alike."""
    current = await services.tenants.get(tenant)
    times: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    scores: dict[str, list[tuple[float, ...]]] = {name: [] for name in STRATEGIES}
    warm = Query(tenant=current, text="a question to warm up with", limit=10, dual_level=True)
    for strategy, rerank in STRATEGIES.values():
        await services.retrievers.get(strategy).retrieve(replace(warm, rerank=rerank))
    serve_from_now()
    for labelled in questions.questions:
        query = Query(tenant=current, text=labelled.question, limit=20, dual_level=True)
        for name, (strategy, rerank) in STRATEGIES.items():
            started = time.perf_counter()
            # Rerankers give scores to the first results only, and a limit of ten needs no more.
            asked = query if rerank is None else replace(query, limit=10, rerank=rerank)
            found = await services.retrievers.get(strategy).retrieve(asked)
            times[name].append((time.perf_counter() - started) * 1000)
            keys = ranked_keys(found)
            gold = labelled.gold
            scores[name].append(
                (
                    recall_at(keys, gold, 2),
                    recall_at(keys, gold, 5),
                    recall_at(keys, gold, 10),
                    all_at(keys, gold, 10),
                    ndcg_at(keys, gold, 10),
                )
            )
    names = ("R@2", "R@5", "R@10", "all@10", "nDCG@10")
    return {
        name: {
            **{metric: round(sum(row[n] for row in scores[name]) / len(scores[name]), 3) for n, metric in enumerate(names)},
            "p50_ms": round(find_percentile(times[name], 0.5), 2),
            "p95_ms": round(find_percentile(times[name], 0.95), 2),
        }
        for name in STRATEGIES
    }


async def measure(folder: Path, name: str) -> dict[str, Any]:
    """Measure one set in a new data folder."""
    questions = load_question_set(folder / name)
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        settings = make_settings(data_dir=Path(data_dir), community_auto_rebuild=False, search_cache_mb=0, embedding_cache_mb=0)
        async with open_container(settings) as services:
            tenant = (await services.tenants.create(name)).id
            ingestion = await ingest(services, tenant, questions.passages)
            print(name, "ingestion", ingestion, flush=True)
            communities = await rebuild(services, tenant)
            print(name, "communities", communities, flush=True)
            strategies = await ask_all(services, tenant, questions)
            for strategy, row in strategies.items():
                print(name, strategy, row, flush=True)
    ratio = strategies["dual_level"]["p95_ms"] / strategies["dense"]["p95_ms"]
    return {
        "ingestion": ingestion,
        "communities": communities,
        "strategies": strategies,
        "dual_level_p95_per_dense_p95": round(ratio, 2),
    }


def failures(results: dict[str, dict[str, Any]]) -> list[str]:
    """Return the asserted ratios that are not met."""
    missed = []
    for name, row in results.items():
        strategies, ingestion = row["strategies"], row["ingestion"]
        if strategies["graph"]["R@5"] <= strategies["hybrid"]["R@5"]:
            missed.append(f"{name}: graph R@5 {strategies['graph']['R@5']} does not beat hybrid {strategies['hybrid']['R@5']}")
        if row["dual_level_p95_per_dense_p95"] > 4:
            missed.append(f"{name}: dual-level p95 ÷ dense p95 is {row['dual_level_p95_per_dense_p95']}, above 4")
        if ingestion["total_per_embedder"] > 1.6:
            missed.append(f"{name}: ingestion ÷ embedder is {ingestion['total_per_embedder']}, above 1.6")
        if ingestion["texts_per_chunk"] > 1.3:
            missed.append(f"{name}: {ingestion['texts_per_chunk']} texts embedded per chunk, above 1.3")
    return missed


def markdown(results: dict[str, dict[str, Any]]) -> str:
    """Return the tables."""
    lines = []
    for name, row in results.items():
        lines += [
            f"## {name}",
            "",
            "| strategy | R@2 | R@5 | R@10 | all@10 | nDCG@10 | p50 ms | p95 ms |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for strategy, figures in row["strategies"].items():
            lines.append(f"| {strategy} | " + " | ".join(str(value) for value in figures.values()) + " |")
        ingestion, communities = row["ingestion"], row["communities"]
        lines += [
            "",
            f"dual-level p95 ÷ dense p95: {row['dual_level_p95_per_dense_p95']}; "
            f"ingestion of {ingestion['documents']} documents: {ingestion['total_s']} s, "
            f"÷ embedder {ingestion['total_per_embedder']}, {ingestion['texts_per_chunk']} texts a chunk; "
            f"communities: {communities['communities']} in {communities['total_s']} s, modularity {communities['modularity']}.",
            "",
        ]
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    results = {name: asyncio.run(measure(folder, name)) for name in chosen.sets}
    return finish("retrieval", results, markdown(results), failures(results))


if __name__ == "__main__":
    raise SystemExit(main())
