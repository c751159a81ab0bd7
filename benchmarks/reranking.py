"""Measures the rerankers that need no further model, over MuSiQue, HotpotQA and the answerable questions of `squad2`.

Writes ``results/reranking.json`` and ``results/reranking.md``. Asserted: the default reranker of `hybrid` loses at most .01 of
R@5 on any set, ``mmr`` does not lower the diversity ratio of any set and stays above `dense`, and `hybrid` with `mmr` and `graph`
reach .80 of the possible ratio. ``--filled FOLDER`` keeps the filled stores for further runs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.query import Query, Rerank, Retrieval
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.evaluation.datasets import LabelledQuestion, QuestionSet, load_passages, load_question_set
from agentic_rag_backend.evaluation.ranking_metrics import find_percentile, ndcg_at, recall_at
from agentic_rag_backend.evaluation.result_diversity import Listing, measure_diversity
from agentic_rag_backend.retrieval.requests.builder import RerankDefaults
from agentic_rag_backend.retrieval.rerank.registry import RERANKERS
from corpora import ingest
from report import data, finish, make_settings, quiet

SETS = ("musique", "hotpotqa", "squad2")
SQUAD_QUESTIONS = 300
"""Answerable questions of `squad2`, at even distances."""


def reranking(name: str, **options: Any) -> Rerank:
    """Return the reranking that a request has for up to ten results."""
    return Rerank(name=name, candidates=RERANKERS[name].least, timeout_s=60, options=options)


RERANKINGS: Mapping[str, Rerank | None] = {
    "none": None,
    "mmr": reranking("mmr"),
    "mmr, lambda 0.5": reranking("mmr", **{"lambda": 0.5}),
    "graph": reranking("graph"),
    "graph by distance": reranking("graph", by="distance"),
    "graph by mentions": reranking("graph", by="mentions"),
    "late_interaction": reranking("late_interaction"),
}
OTHERS: Mapping[str, Sequence[str]] = {"dense": ("none",), "graph": ("none", "mmr")}
"""Rerankings of strategies other than `hybrid`."""
LIMIT = 10
LEAST_DIVERSITY = 0.8
"""Least diversity ratio of `hybrid` with `mmr` and of `graph`, as a share of the greatest possible ratio of the corpus."""


def question_set(folder: Path, name: str) -> QuestionSet:
    """Return a corpus and its questions."""
    if name != "squad2":
        return load_question_set(folder / name)
    rows = [orjson.loads(line) for line in (folder / name / "questions.jsonl").read_bytes().splitlines()]
    answerable = [row for row in rows if row["answerable"]]
    chosen = [answerable[number * len(answerable) // SQUAD_QUESTIONS] for number in range(SQUAD_QUESTIONS)]
    questions = tuple(LabelledQuestion(row["id"], row["question"], row["answers"][0], (row["passage"],)) for row in chosen)
    return QuestionSet(name, load_passages(folder / name / "corpus.jsonl"), questions)


async def filled(services: Container, questions: QuestionSet) -> Tenant:
    """Return the tenant of a set. Fill it if it is new."""
    held = await services.tenants.by_name(questions.name)
    if held is not None:
        return held
    made = await services.tenants.create(questions.name)
    print(questions.name, await ingest(services, made.id, questions.passages), flush=True)
    return await services.tenants.get(made.id)


def keys_of(found: Retrieval) -> list[str]:
    """Return the documents' keys in the order of their best chunk."""
    return list(dict.fromkeys(str(hit.visible.document_key) for hit in found.hits))


def listing(found: Retrieval) -> Listing:
    """Return the first five results."""
    hits = found.hits[:5]
    return Listing(
        ids=tuple(hit.id for hit in hits),
        documents=tuple(hit.visible.chunk.document_id for hit in hits),
        texts=tuple(hit.visible.chunk.text for hit in hits),
    )


async def measure(services: Container, questions: QuestionSet, without: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Ask every question with every reranking in turn, so that noise affects all alike."""
    tenant = await filled(services, questions)
    combinations = [("hybrid", name) for name in RERANKINGS if name not in without] + [
        (strategy, name) for strategy, names in OTHERS.items() for name in names
    ]
    found: dict[tuple[str, str], list[Retrieval]] = {each: [] for each in combinations}
    times: dict[tuple[str, str], list[float]] = {each: [] for each in combinations}
    for labelled in (questions.questions[0], *questions.questions):
        query = Query(tenant=tenant, text=labelled.question, limit=LIMIT)
        for strategy, name in combinations:
            started = time.perf_counter()
            result = await services.retrievers.get(strategy).retrieve(replace(query, rerank=RERANKINGS[name]))
            assert not result.trace.fallback_used or strategy == "graph", result.trace.fallback_reason
            times[strategy, name].append((time.perf_counter() - started) * 1000)
            found[strategy, name].append(result)
    documents = len(questions.passages)
    return {
        f"{strategy} · {name}": row(questions, found[strategy, name][1:], times[strategy, name][1:], documents)
        for strategy, name in combinations
    }


def row(questions: QuestionSet, found: Sequence[Retrieval], times: Sequence[float], documents: int) -> dict[str, Any]:
    """Return the figures of one combination."""
    scores = []
    for labelled, result in zip(questions.questions, found, strict=True):
        keys = keys_of(result)
        scores.append([*(recall_at(keys, labelled.gold, k) for k in (1, 2, 5, 10)), ndcg_at(keys, labelled.gold, 10)])
    names = ("R@1", "R@2", "R@5", "R@10", "nDCG@10")
    varied = measure_diversity([listing(each) for each in found], {"documents": documents})
    return {
        **{name: round(sum(each[number] for each in scores) / len(scores), 3) for number, name in enumerate(names)},
        "diversity": round(varied.ratio, 3),
        "of possible": round(varied.of_bound or 0.0, 3),
        "similarity": round(varied.intra_list_similarity or 0.0, 3),
        "p50_ms": round(find_percentile(times, 0.5), 1),
        "p95_ms": round(find_percentile(times, 0.95), 1),
    }


def failures(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Return the assertions that do not hold."""
    missed = []
    chosen = RerankDefaults().reranker
    for name, rows in results.items():
        plain, default, varied = (rows[f"hybrid · {each}"] for each in ("none", chosen, "mmr"))
        if default["R@5"] < plain["R@5"] - 0.01:
            missed.append(f"{name}: R@5 of {chosen} is {default['R@5']}, without reranking {plain['R@5']}")
        dense, graph = rows["dense · none"], rows["graph · none"]
        if varied["diversity"] < max(plain["diversity"], dense["diversity"]):
            missed.append(
                f"{name}: diversity of mmr is {varied['diversity']}, plain {plain['diversity']}, dense {dense['diversity']}"
            )
        for strategy, figures in (("hybrid with mmr", varied), ("graph", graph)):
            if figures["of possible"] < LEAST_DIVERSITY:
                missed.append(
                    f"{name}: {strategy} has {figures['of possible']} of the possible diversity, below {LEAST_DIVERSITY}"
                )
    return missed


def markdown(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return the tables."""
    lines = []
    for name, rows in results.items():
        columns = list(next(iter(rows.values())))
        lines += [f"## {name}", "", f"| strategy · reranker | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        lines += [f"| {each} | " + " | ".join(str(value) for value in figures.values()) + " |" for each, figures in rows.items()]
        lines.append("")
    return "\n".join(lines)


async def run(folder: Path, sets: Sequence[str], data_dir: Path, without: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Measure the sets, each in its own tenant."""
    settings = make_settings(data_dir=data_dir, community_auto_rebuild=False, search_cache_mb=0, embedding_cache_mb=0)
    results = {}
    async with open_container(settings) as services:
        for name in sets:
            results[name] = await measure(services, question_set(folder, name), without)
            for combination, figures in results[name].items():
                print(name, combination, figures, flush=True)
    return results


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    parser.add_argument("--filled", type=Path, help="folder of the stores")
    parser.add_argument("--without", nargs="*", default=[], choices=sorted(RERANKINGS), help="rerankings to leave out")
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    place = nullcontext(chosen.filled) if chosen.filled else tempfile.TemporaryDirectory(prefix="agentic-rag-bench-")
    with place as data_dir:
        results = asyncio.run(run(folder, chosen.sets, Path(data_dir), chosen.without))
    return finish("reranking", results, markdown(results), failures(results))


if __name__ == "__main__":
    raise SystemExit(main())
