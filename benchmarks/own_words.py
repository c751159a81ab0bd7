"""Measure checks on sentences and refusals in a model's own words.

The sentences are about passages of `examples/`, the refusals are in eight languages. One author wrote both without knowledge of
the checks, and each set was divided at random. Words were chosen on the `dev` half only.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.answering.writing import refuses
from report import finish, quiet

FOLDER = Path(__file__).parent / "own_words"
HALVES = ("dev", "kept")
LEAST = {"true kept": 0.9, "false not supported": 0.8, "refusals recognised": 0.9}
_MARKER = re.compile(r"\[[\d,\s–-]+\]")


def lines(name: str) -> list[dict[str, Any]]:
    """Return the objects of a file."""
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def sentences(half: str) -> dict[str, Any]:
    """Return the counts of verdicts about true and false sentences."""
    counts: Counter[tuple[bool, str]] = Counter()
    for row in lines(f"paraphrases-{half}"):
        title = row["file"].removesuffix(".md").replace("-", " ")
        passage = Passage(marker=1, chunk_id="c1", document_id="d1", title=title, text=row["passage"], start_char=0, score=1.0)
        verdict = LexicalVerifier([passage]).check(Claim(row["claim"], (1,)))
        counts[row["holds"], verdict.status] += 1
    return {f"{'true' if holds else 'false'} {status}": count for (holds, status), count in sorted(counts.items())}


def refusals(half: str) -> dict[str, Any]:
    """Return the shares of recognised refusals, and of answers that look like refusals, if no sentence of them is supported."""
    counts: Counter[tuple[bool, bool]] = Counter()
    for row in lines(f"refusals-{half}"):
        cites = _MARKER.search(row["reply"]) is not None
        counts[row["refusal"], refuses(_MARKER.sub("", row["reply"]), cites=cites)] += 1
    return {f"{'refusal' if is_one else 'answer'} {'refuses' if read else 'answers'}": n for (is_one, read), n in counts.items()}


def failures(results: dict[str, dict[str, Any]]) -> list[str]:
    """Return the asserted shares that the `kept` half does not reach."""
    row = results["kept"]
    true, false = (
        sum(row.get(f"{holds} {status}", 0) for status in ("supported", "unverified", "contradicted"))
        for holds in ("true", "false")
    )
    shares = {
        "true kept": 1.0 - row.get("true contradicted", 0) / true,
        "false not supported": 1.0 - row.get("false supported", 0) / false,
        "refusals recognised": row["refusal refuses"] / (row["refusal refuses"] + row.get("refusal answers", 0)),
    }
    return [f"{name}: {share:.3f}" for name, share in shares.items() if share < LEAST[name]]


def main() -> int:
    """Run the benchmark."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    quiet()
    results = {half: {**sentences(half), **refusals(half)} for half in HALVES}
    names = sorted({name for row in results.values() for name in row})
    table = ["| | " + " | ".join(HALVES) + " |", "|---" * (len(HALVES) + 1) + "|"]
    table += [f"| {name} | {' | '.join(str(results[half].get(name, 0)) for half in HALVES)} |" for name in names]
    return finish("own_words", results, "\n".join(table), failures(results))


if __name__ == "__main__":
    raise SystemExit(main())
