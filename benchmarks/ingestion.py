"""Measures the cost of one document in corpora of growing size: added, updated, deleted, from the call to the end of its job.

Two processes, one with a corpus and one without, are measured in turn; the ratio of the medians is asserted to be ≤ 1.5. Then,
traced: SQLite's own count of steps, statements, and time by store method and by stage, at each size. Steps are asserted not to
grow with it. The first filling gives the throughput: total ÷ embedder ≤ 1.4 is the goal, ≤ 1.6 the limit; ≤ 1.3 embedded texts
per chunk.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentic_rag_backend.evaluation.datasets import CorpusPassage, load_question_set
from report import data, finish, quiet
from single_document import OPERATIONS, STAGES, WHOLE, Corpus, compare, costs, growing

SIZES = (100, 1000, 1890)
MAX_RATIO = 1.5
MAX_PER_EMBEDDER = 1.6
MAX_TEXTS = 1.3
MAX_STEPS = 1.5
"""Limit of SQLite's steps for one document in the largest corpus ÷ in an empty one. A scan of 1,890 rows would be ten times."""
_ROUNDS_TRACED = 7
_WARM = 2
Costs = Mapping[str, Mapping[str, Mapping[str, float]]]


def measure(
    corpus: Sequence[CorpusPassage], others: Sequence[CorpusPassage], *, runs: int, sizes: Sequence[int]
) -> dict[str, Any]:
    """Fill a corpus step by step and compare it with an empty one."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as name:
        large_folder, small_folder = Path(name) / "large", Path(name) / "small"
        with Corpus(large_folder) as large, Corpus(small_folder) as small:
            results["throughput"] = large.fill(corpus[: sizes[-1]])
            print("throughput", results["throughput"], flush=True)
            compare(large, small, others[:_WARM])
            results["single"] = compare(large, small, others[_WARM : _WARM + runs])
            print("single", results["single"], flush=True)
        traced: dict[int, Costs] = {}
        with Corpus(small_folder, traced=True) as small:
            held = 0
            for size in (0, *sizes[:-1]):
                if size > held:
                    small.fill(corpus[held:size])
                held = size
                traced[size] = costs(small, others[-_ROUNDS_TRACED:])
        with Corpus(large_folder, traced=True) as large:
            traced[sizes[-1]] = costs(large, others[-_ROUNDS_TRACED:])
    results["by_size"] = {size: _sums(cost) for size, cost in traced.items()}
    results["stages_ms"] = {size: _stages(cost) for size, cost in traced.items()}
    results["growing"] = {
        operation: growing(
            traced[0][operation], traced[sizes[-1]][operation], factor=1.5, least={"ms": 2.0, "steps": 200, "statements": 0}
        )
        for operation in OPERATIONS
    }
    return results


def _sums(cost: Costs) -> dict[str, dict[str, float]]:
    return {
        operation: {
            "steps": sum(counts["steps"].values()),
            "statements": sum(counts["statements"].values()),
            "store_ms": round(sum(counts["ms"].values()), 1),
            "flush_ms": counts["ms"].get("vectors.flush", 0.0),
            "embedder_ms": counts["ms"].get("embedder.embed", 0.0),
        }
        for operation, counts in cost.items()
    }


def _stages(cost: Costs) -> dict[str, float]:
    """Return the median milliseconds of each stage of an added document."""
    return {stage: round(cost["add"]["stages"][stage], 1) for stage in (*STAGES, WHOLE)}


def failures(results: Mapping[str, Any]) -> list[str]:
    """Return the asserted ratios that are not met."""
    throughput = results["throughput"]
    missed = []
    if throughput["total_per_embedder"] > MAX_PER_EMBEDDER:
        missed.append(f"ingestion ÷ embedder is {throughput['total_per_embedder']}, above {MAX_PER_EMBEDDER}")
    if throughput["texts_per_chunk"] > MAX_TEXTS:
        missed.append(f"{throughput['texts_per_chunk']} texts embedded a chunk, above {MAX_TEXTS}")
    for operation, row in results["single"].items():
        if row["ratio"] > MAX_RATIO:
            missed.append(f"{operation}: {row['ratio']} times as long in the corpus as in an empty one, above {MAX_RATIO}")
    by_size = results["by_size"]
    smallest, largest = min(by_size), max(by_size)
    for operation in OPERATIONS:
        ratio = by_size[largest][operation]["steps"] / by_size[smallest][operation]["steps"]
        if ratio > MAX_STEPS:
            missed.append(f"{operation}: {ratio:.2f} times the steps in SQLite at {largest} documents, above {MAX_STEPS}")
    return missed


def table(results: Mapping[str, Any]) -> str:
    """Return the tables."""
    throughput = results["throughput"]
    lines = [
        f"{results['machine']}, {results['date']}",
        "",
        f"{throughput['documents']} documents, {throughput['chunks']} chunks: {throughput['total_s']} s, "
        f"÷ embedder {throughput['total_per_embedder']}, {throughput['texts_per_chunk']} texts a chunk.",
        "",
        "| one document | in the corpus, ms | in an empty one, ms | ratio |",
        "|---|---|---|---|",
        *(f"| {name} | {row['large_ms']} | {row['small_ms']} | {row['ratio']} |" for name, row in results["single"].items()),
        "",
        "| documents there | operation | SQLite steps | statements | in stores and embedder, ms | of it flush | of it embedder |",
        "|---|---|---|---|---|---|---|",
    ]
    for size, by_operation in results["by_size"].items():
        for name, row in by_operation.items():
            lines.append(f"| {size} | {name} | " + " | ".join(f"{value:g}" for value in row.values()) + " |")
    sizes = list(results["stages_ms"])
    lines += [
        "",
        f"| one document added, median ms | {' | '.join(f'in {size}' for size in sizes)} |",
        "|---" * (len(sizes) + 1) + "|",
        *(
            f"| {stage} | " + " | ".join(f"{results['stages_ms'][size][stage]}" for size in sizes) + " |"
            for stage in (*STAGES, WHOLE)
        ),
        "",
        "What costs 1.5 times as much in the corpus as in an empty one:",
    ]
    for operation, rows in results["growing"].items():
        lines += [f"- {operation}: {name[:120]}: {before:g} → {after:g} {kind}" for kind, name, before, after in rows]
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    others = [replace(passage, id=f"other-{passage.id}") for passage in load_question_set(folder / "hotpotqa").passages]
    results = measure(load_question_set(folder / "musique").passages, others, runs=chosen.runs, sizes=sorted(chosen.sizes))
    results |= {"machine": f"{os.cpu_count()} cores, {platform.machine()}", "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    return finish("ingestion", results, table(results), failures(results))


if __name__ == "__main__":
    raise SystemExit(main())
