"""Turns off each flag of `agentic` in turn, without a language model, on MuSiQue and on authors who share a name.

``name_collisions`` is the set ``kind`` of `same_name`: of the results about people of one name, the share that is about the
person a question means. ``musique`` asks a sample of the questions over all passages: R@5. Every question is asked with each
case in turn, so that noise affects all alike. Differences from `agentic` have their 95 % interval by paired bootstrap over the
questions. Writes ``results/ablation_agentic.json`` and ``results/ablation_agentic.md``. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.evaluation.ranking_metrics import find_percentile
from corpora import ingest, ingest_uploads
from held_strategies import interval
from questions import passages
from report import data, finish, make_settings, quiet
from same_name import with_professions

LIMIT = 5
WHOLE = "agentic"
CASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    WHOLE: ("agentic", {}),
    "without query_planning": ("agentic", {"query_planning": False}),
    "without novelty_circuit": ("agentic", {"novelty_circuit": False}),
    "without negative_memory": ("agentic", {"negative_memory": False}),
    "without cascade_recall": ("agentic", {"cascade_recall": False}),
    "hybrid": ("hybrid", {}),
    "graph": ("graph", {}),
}
"""Strategies and options by the name in the table."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its measure, in [0, 1]. The measure is None if the results say nothing about it."""

    text: str
    measure: Callable[[Retrieval], float | None]


async def ask_all(services: Container, tenant: TenantId, asked: Sequence[Asked]) -> dict[str, dict[str, Any]]:
    """Return the row of each case."""
    owner = await services.tenants.get(tenant)
    values: dict[str, list[float | None]] = {name: [] for name in CASES}
    times: dict[str, list[float]] = {name: [] for name in CASES}
    rounds: dict[str, list[int]] = {name: [] for name in CASES}
    for question in asked:
        for name, (strategy, options) in CASES.items():
            started = time.perf_counter()
            query = Query(tenant=owner, text=question.text, limit=LIMIT, options=options)
            found = await services.retrievers.get(strategy).retrieve(query)
            times[name].append((time.perf_counter() - started) * 1000)
            values[name].append(question.measure(found))
            about = found.trace.details.get("agentic")
            rounds[name].append(len(about["rounds"]) if isinstance(about, Mapping) else 1)
    rows = {}
    for name, measured in values.items():
        both = [
            (value, base) for value, base in zip(measured, values[WHOLE], strict=True) if value is not None and base is not None
        ]
        low, high = interval([value - base for value, base in both])
        rows[name] = {
            "value": round(statistics.fmean(value for value in measured if value is not None), 3),
            "difference": round(statistics.fmean(value - base for value, base in both), 3),
            "interval": [round(low, 3), round(high, 3)],
            "rounds": round(statistics.fmean(rounds[name]), 2),
            "p50_ms": round(find_percentile(times[name], 0.5), 1),
            "p95_ms": round(find_percentile(times[name], 0.95), 1),
        }
    return rows


async def name_collisions(services: Container, folder: Path, _most: int) -> tuple[TenantId, list[Asked]]:
    """Ingest the publications, and return the questions about their authors."""
    lines = (folder / "name_collisions/signatures.jsonl").read_text(encoding="utf-8").splitlines()
    signatures = [json.loads(line) for line in lines]
    owner = {str(each["id"]): (str(each["name"]), str(each["person"])) for each in signatures}
    documents, questions = with_professions(signatures)

    def precision(found: Retrieval, name: str, person: str) -> float | None:
        people = [owner[str(hit.visible.document_key)] for hit in found.hits]
        of_name = [held for called, held in people if called == name]
        return sum(held == person for held in of_name) / len(of_name) if of_name else None

    tenant = (await services.tenants.create("name_collisions")).id
    print("name_collisions", await ingest(services, tenant, documents), flush=True)
    measures = [
        Asked(text, lambda found, name=name, person=person: precision(found, name, person))  # type: ignore[misc]
        for text, name, person in questions
    ]
    return tenant, measures


async def musique(services: Container, folder: Path, most: int) -> tuple[TenantId, list[Asked]]:
    """Ingest all passages, and return at most ``most`` questions."""
    uploads, questions = passages(folder, "musique")
    tenant = (await services.tenants.create("musique")).id
    print("musique", await ingest_uploads(services, tenant, uploads), flush=True)
    chosen = random.Random(0).sample(questions, min(most, len(questions)))
    return tenant, [Asked(each.text, each.recall) for each in chosen]


SETS = {"name_collisions": name_collisions, "musique": musique}


async def measure(folder: Path, sets: Sequence[str], most: int) -> dict[str, Any]:
    """Measure the sets in a new data folder."""
    results = {}
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        settings = make_settings(data_dir=Path(data_dir), community_auto_rebuild=False, search_cache_mb=0, embedding_cache_mb=0)
        async with open_container(settings) as services:
            for name in sets:
                tenant, asked = await SETS[name](services, folder, most)
                results[name] = {"questions": len(asked), "cases": await ask_all(services, tenant, asked)}
                print(name, results[name], flush=True)
    return results


def markdown(results: Mapping[str, Any]) -> str:
    """Return the table."""
    head = ["set", "questions", "case", "precision or R@5", "difference", "95 % interval", "rounds", "p50 ms", "p95 ms"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, result in results.items():
        for case, row in result["cases"].items():
            low, high = row["interval"]
            cells = [name, result["questions"], case, row["value"], f"{row['difference']:+}", f"{low:+} to {high:+}"]
            lines.append(f"| {' | '.join(map(str, [*cells, row['rounds'], row['p50_ms'], row['p95_ms']]))} |")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--questions", type=int, default=100, help="maximum number of MuSiQue questions")
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    results = asyncio.run(measure(folder, chosen.sets, chosen.questions))
    return finish("ablation_agentic", results, markdown(results), [])


if __name__ == "__main__":
    raise SystemExit(main())
