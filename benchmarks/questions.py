"""Compares searches with and without synthetic questions on MuSiQue, HotpotQA and whole articles of SQuAD 2.0.

Each set is ingested twice, without questions and with questions by patterns, one after the other. Both are asked in turn, so that
noise affects all alike. Writes ``results/questions.json`` and ``results/questions.md``. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.document import QuestionOptions
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.evaluation.datasets import load_question_set
from agentic_rag_backend.evaluation.ranking_metrics import find_percentile, recall_at
from agentic_rag_backend.ingestion.accept.uploads import Upload
from chunking import found, load
from corpora import ingest_uploads
from report import data, finish, make_settings, quiet
from retrieval import ranked_keys

METHODS = ("off", "patterns")
RETRIEVERS = ("hybrid", "graph")
FIRST = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the share of its evidence among the first five results."""

    text: str
    recall: Callable[[Retrieval], float]


def passages(folder: Path, name: str) -> tuple[list[Upload], list[Asked]]:
    """Return a set whose passages are documents."""
    held = load_question_set(folder / name)
    uploads = [
        Upload(content=each.text.encode(), media_type="text/plain", title=each.title, key=each.id) for each in held.passages
    ]
    asked = [
        Asked(each.question, lambda result, gold=each.gold: recall_at(ranked_keys(result), gold, FIRST))  # type: ignore[misc]
        for each in held.questions
    ]
    return uploads, asked


def articles(folder: Path, count: int, questions: int) -> tuple[list[Upload], list[Asked]]:
    """Return whole articles, in which the chunk with the answer must be found."""
    texts, chosen = load(folder / "squad2", count, questions)
    uploads = [Upload(content=each.text.encode(), media_type="text/plain", title=each.title, key=each.name) for each in texts]
    asked = [Asked(each.text, lambda result, each=each: float(found(each, result)[0])) for each in chosen]  # type: ignore[misc]
    return uploads, asked


async def measure_one(services: Container, name: str, uploads: Sequence[Upload], asked: Sequence[Asked]) -> dict[str, Any]:
    """Ingest a set with each method into a new tenant, and ask all questions of both."""
    tenants, row = {}, dict[str, Any]({"documents": len(uploads), "questions": len(asked)})
    for method in METHODS:
        tenants[method] = (await services.tenants.create(f"{name}-{method}")).id
        chosen = [
            Upload(
                content=each.content,
                media_type=each.media_type,
                title=each.title,
                key=each.key,
                questions=QuestionOptions(method),
            )
            for each in uploads
        ]
        figures = await ingest_uploads(services, tenants[method], chosen)
        counts = await services.catalogue.documents.counts(tenants[method])
        row[method] = {"ingestion": figures, "chunks": counts["chunks"], "synthetic_questions": counts["questions"]}
        print(name, method, row[method], flush=True)
    owners = {method: await services.tenants.get(tenant) for method, tenant in tenants.items()}
    recalls: dict[tuple[str, str], list[float]] = {(method, leg): [] for method in METHODS for leg in RETRIEVERS}
    times: dict[tuple[str, str], list[float]] = {key: [] for key in recalls}
    for question in asked:
        for method, retriever in recalls:
            query = Query(tenant=owners[method], text=question.text, limit=20, synthetic_questions=method != "off")
            started = time.perf_counter()
            result = await services.retrievers.get(retriever).retrieve(query)
            times[method, retriever].append((time.perf_counter() - started) * 1000)
            recalls[method, retriever].append(question.recall(result))
    for (method, retriever), values in recalls.items():
        row[method][retriever] = {
            "R@5": round(sum(values) / len(values), 3),
            "p50_ms": round(find_percentile(times[method, retriever], 0.5), 2),
        }
        print(name, method, retriever, row[method][retriever], flush=True)
    return row


async def measure(folder: Path, names: Sequence[str], count: int, questions: int) -> dict[str, Any]:
    """Measure each set in a new data folder."""
    results = {}
    for name in names:
        uploads, asked = articles(folder, count, questions) if name == "squad2" else passages(folder, name)
        with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
            settings = make_settings(
                data_dir=Path(data_dir), community_auto_rebuild=False, search_cache_mb=0, embedding_cache_mb=0
            )
            async with open_container(settings) as services:
                results[name] = await measure_one(services, name, uploads, asked)
    return results


def markdown(results: dict[str, Any]) -> str:
    """Return the table."""
    lines = [
        "| set | questions | chunks | synthetic | ingestion s | texts a chunk | hybrid R@5 | p50 ms | graph R@5 | p50 ms |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in results.items():
        for method in METHODS:
            part = row[method]
            figures = [part[retriever][measure] for retriever in RETRIEVERS for measure in ("R@5", "p50_ms")]
            ingestion = [part["ingestion"]["total_s"], part["ingestion"]["texts_per_chunk"]]
            cells = [name, f"`{method}`", part["chunks"], part["synthetic_questions"], *ingestion, *figures]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["musique", "hotpotqa", "squad2"])
    parser.add_argument("--articles", type=int, default=12)
    parser.add_argument("--questions", type=int, default=25, help="of each article")
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    results = asyncio.run(measure(folder, chosen.sets, chosen.articles, chosen.questions))
    return finish("questions", results, markdown(results), [])


if __name__ == "__main__":
    raise SystemExit(main())
