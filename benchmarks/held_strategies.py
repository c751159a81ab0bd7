"""Compares the strategies that hold others with `hybrid`, without a language model, on MuSiQue, HotpotQA and SQuAD 2.0.

Every set is ingested once, with synthetic questions by patterns. Each difference from `hybrid` has its 95 % interval by paired
bootstrap over the questions. Writes ``results/held_strategies.json`` and ``results/held_strategies.md``. Asserted: `parent_child`
and `multi_query` find at most .01 less than `hybrid` on every set.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.document import QuestionOptions
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.evaluation.ranking_metrics import find_percentile
from corpora import ingest_uploads
from questions import Asked, articles, passages
from report import data, finish, make_settings, quiet

CASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "hybrid": ("hybrid", {}),
    "graph": ("graph", {}),
    "question": ("question", {}),
    "multi_query": ("multi_query", {}),
    "multi_query, rrf": ("multi_query", {"fusion": "rrf"}),
    "multi_query, graph": ("multi_query", {"base": "graph"}),
    "parent_child": ("parent_child", {}),
    "fusion": ("fusion", {}),
    "fusion, hybrid and graph equally": ("fusion", {"methods": ["hybrid", "graph"]}),
    "fusion, exploratory": ("fusion", {"preset": "exploratory"}),
    "fusion, exploratory, rrf": ("fusion", {"preset": "exploratory", "fusion": "rrf"}),
    "fusion, exploratory, dbsf": ("fusion", {"preset": "exploratory", "fusion": "dbsf"}),
    "fusion, factual": ("fusion", {"preset": "factual"}),
    "fusion, question": ("fusion", {"preset": "question"}),
    "corrective": ("corrective", {}),
    "agentic": ("agentic", {}),
    "agentic, the question as it is": ("agentic", {"query_planning": False}),
}
"""Strategies and options by the name in the table."""
SAMPLES = 2000
LOSS = 0.01


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean difference, by bootstrap over the questions."""
    chosen = random.Random(0)
    means = sorted(sum(chosen.choices(differences, k=len(differences))) / len(differences) for _ in range(SAMPLES))
    return means[int(0.025 * SAMPLES)], means[int(0.975 * SAMPLES) - 1]


async def ask_all(services: Container, tenant: TenantId, asked: Sequence[Asked]) -> dict[str, dict[str, Any]]:
    """Ask every strategy every question in turn, so that noise affects all alike."""
    owner = await services.tenants.get(tenant)
    recalls: dict[str, list[float]] = {name: [] for name in CASES}
    times: dict[str, list[float]] = {name: [] for name in CASES}
    fallbacks = dict.fromkeys(CASES, 0)
    for question in asked:
        for name, (strategy, options) in CASES.items():
            started = time.perf_counter()
            query = Query(tenant=owner, text=question.text, limit=20, options=options)
            found = await services.retrievers.get(strategy).retrieve(query)
            times[name].append((time.perf_counter() - started) * 1000)
            recalls[name].append(question.recall(found))
            fallbacks[name] += found.trace.fallback_used
    rows = {}
    for name, values in recalls.items():
        differences = [value - base for value, base in zip(values, recalls["hybrid"], strict=True)]
        low, high = interval(differences)
        rows[name] = {
            "R@5": round(sum(values) / len(values), 3),
            "difference": round(sum(differences) / len(differences), 3),
            "interval": [round(low, 3), round(high, 3)],
            "fallbacks": fallbacks[name],
            "p50_ms": round(find_percentile(times[name], 0.5), 1),
        }
    return rows


async def measure(folder: Path, name: str) -> dict[str, Any]:
    """Measure one set in a new data folder."""
    uploads, asked = articles(folder, 12, 25) if name == "squad2" else passages(folder, name)
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        settings = make_settings(data_dir=Path(data_dir), community_auto_rebuild=False, search_cache_mb=0, embedding_cache_mb=0)
        async with open_container(settings) as services:
            tenant = (await services.tenants.create(name)).id
            with_questions = [replace(upload, questions=QuestionOptions("patterns")) for upload in uploads]
            print(name, await ingest_uploads(services, tenant, with_questions), flush=True)
            rows = await ask_all(services, tenant, asked)
    for strategy, row in rows.items():
        print(name, strategy, row, flush=True)
    return {"questions": len(asked), "strategies": rows}


def failures(results: Mapping[str, Any]) -> list[str]:
    """Return the strategies that lose to `hybrid`."""
    return [
        f"{name}: {strategy} finds {-result['strategies'][strategy]['difference']} less than hybrid"
        for name, result in results.items()
        for strategy in ("parent_child", "multi_query")
        if result["strategies"][strategy]["difference"] < -LOSS
    ]


def markdown(results: Mapping[str, Any]) -> str:
    """Return the table."""
    lines = ["| set | strategy | R@5 | difference | 95 % interval | fallbacks | p50 ms |", "|---|---|---|---|---|---|---|"]
    for name, result in results.items():
        for strategy, row in result["strategies"].items():
            low, high = row["interval"]
            cells = [
                name,
                strategy,
                row["R@5"],
                f"{row['difference']:+}",
                f"{low:+} to {high:+}",
                row["fallbacks"],
                row["p50_ms"],
            ]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=["musique", "hotpotqa", "squad2"])
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    results = {name: asyncio.run(measure(folder, name)) for name in chosen.sets}
    return finish("held_strategies", results, markdown(results), failures(results))


if __name__ == "__main__":
    raise SystemExit(main())
