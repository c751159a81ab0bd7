"""Measure checks of claims: how many altered sentences are caught, and how many reworded ones are kept.

Each sentence of a passage is altered or reworded (`altered_sentences`) and cites its passage, among four other passages.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentic_rag_backend.answering.claims.base import Verdict
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.evaluation.datasets import load_passages
from altered_sentences import Case, cases
from report import data, finish, quiet

SETS = ("squad2", "hotpotqa", "musique")
MOST = 150
"""Cases of one kind and set."""
SEED = 20260
LEAST_CAUGHT = 0.9
LEAST_KEPT = 0.93


def passages_of(case: Case) -> list[Passage]:
    """Return the passage of a case, marked 1, and the others."""
    return [
        Passage(
            marker=marker, chunk_id=f"c{marker}", document_id=each.id, title=each.title, text=each.text, start_char=0, score=1.0
        )
        for marker, each in enumerate((case.source.passage, *case.source.others), 1)
    ]


def verdict_of(case: Case) -> Verdict:
    """Return the verdict about a case."""
    return LexicalVerifier(passages_of(case)).check(Claim(case.claim, (1,)))


def measure(found: Sequence[Case]) -> dict[str, Any]:
    """Return the shares of right verdicts by kind, the reasons, and the time of one check."""
    right: Counter[str] = Counter()
    count: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {}
    started = time.perf_counter()
    for case in found:
        verdict = verdict_of(case)
        count[case.kind] += 1
        right[case.kind] += verdict.holds is case.holds
        if verdict.reason is not None:
            reasons.setdefault(case.kind, Counter())[verdict.reason] += 1
    elapsed = time.perf_counter() - started
    kinds = {
        kind: {"cases": count[kind], "right": round(right[kind] / count[kind], 4), "reasons": dict(reasons.get(kind, {}))}
        for kind in count
    }
    shares: dict[bool, float] = {}
    for holds in (False, True):
        own = {case.kind for case in found if case.holds is holds}
        shares[holds] = round(sum(right[kind] for kind in own) / sum(count[kind] for kind in own), 4)
    return {"caught": shares[False], "kept": shares[True], "ms_per_claim": round(elapsed / len(found) * 1000, 2), "kinds": kinds}


def failures(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the asserted shares that are not met."""
    missed = [f"{name}: caught {row['caught']}" for name, row in results.items() if row["caught"] < LEAST_CAUGHT]
    return missed + [f"{name}: kept {row['kept']}" for name, row in results.items() if row["kept"] < LEAST_KEPT]


def markdown(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the tables."""
    names = list(results)
    kinds = dict.fromkeys(kind for row in results.values() for kind in row["kinds"])
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    figures = ("caught", "kept", "ms_per_claim")
    lines += [f"| {key} | " + " | ".join(str(results[name][key]) for name in names) + " |" for key in figures]
    lines += ["", "| kind | " + " | ".join(f"{name}, of" for name in names) + " |", "|---" * (len(names) + 1) + "|"]
    for kind in kinds:
        rows = [results[name]["kinds"].get(kind) for name in names]
        cells = ["–" if row is None else f"{row['right']}, {row['cases']}" for row in rows]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def run(folder: Path, sets: Sequence[str]) -> dict[str, Any]:
    """Measure the checks on each set."""
    return {name: measure(cases(load_passages(folder / name / "corpus.jsonl"), most=MOST, seed=SEED)) for name in sets}


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    chosen = parser.parse_args()
    quiet()
    folder = data()
    if folder is None:
        return 0
    results = run(folder, chosen.sets)
    return finish("claims", results, markdown(results), failures(results))


if __name__ == "__main__":
    raise SystemExit(main())
