"""Sections of `same` that need no index: extraction by rules, and checks of claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentic_rag_backend.answering.claims.base import Verdict
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.evaluation.datasets import load_passages
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from altered_sentences import cases
from claims import verdict_of
from extraction import chunk, measure_names, read
from own_words import lines
from same_results import Canon

EXTRACTED = ("redocred", "musique", "hotpotqa", "squad2")
CLAIMS = ("squad2", "hotpotqa", "musique", "own words")
MOST = 25
"""Cases of one kind and set."""
SEED = 33
Part = tuple[dict[str, dict[str, Any]], dict[str, dict[str, float]]]


def extract_corpus(name: str, folder: Path) -> Part:
    """Extract the knowledge of each document alone."""
    extractor, canon = RuleExtractor(), Canon()
    results: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    for id_, title, text in _documents(name, folder):
        (extraction,) = extractor.extract_document(title, [chunk(text)])
        results[f"{name}: {id_}"] = canon.clean(asdict(extraction))
        counts["names"] += len(extraction.mentions)
        counts["relationships"] += len(extraction.relationships)
    metrics: dict[str, float] = {f"{name} {kind}": count for kind, count in counts.items()}
    if name == "redocred":
        figures = measure_names(read(folder / name / "dev.jsonl"))
        metrics |= {f"{name} {kind}": figures[kind] for kind in ("recall", "precision")}
    return {"extraction": results}, {"extraction": metrics}


def _documents(name: str, folder: Path) -> Iterable[tuple[str, str, str]]:
    if name == "redocred":
        rows = read(folder / name / "dev.jsonl")
        return [(f"{number} {row['title']}", row["title"], " ".join(row["sentences"])) for number, row in enumerate(rows)]
    return [(passage.id, passage.title, passage.text) for passage in load_passages(folder / name / "corpus.jsonl")]


def check_claims(name: str, folder: Path) -> Part:
    """Check sentences by words."""
    results: dict[str, Any] = {}
    right: Counter[bool] = Counter()
    counts: Counter[bool] = Counter()
    if name == "own words":
        return _check_own_words()
    for number, case in enumerate(cases(load_passages(folder / name / "corpus.jsonl"), most=MOST, seed=SEED)):
        verdict = verdict_of(case)
        results[f"{name}: {case.kind} {number}"] = {"claim": case.claim, **_verdict(verdict)}
        counts[case.holds] += 1
        right[case.holds] += verdict.holds is case.holds
    metrics = {f"{name} {kind}": round(right[holds] / counts[holds], 4) for holds, kind in ((True, "kept"), (False, "caught"))}
    return {"claims": results}, {"claims": metrics}


def _check_own_words() -> Part:
    results: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    for half in ("dev", "kept"):
        for number, row in enumerate(lines(f"paraphrases-{half}")):
            title = row["file"].removesuffix(".md").replace("-", " ")
            passage = Passage(
                marker=1, chunk_id="c1", document_id="d1", title=title, text=row["passage"], start_char=0, score=1.0
            )
            verdict = LexicalVerifier([passage]).check(Claim(row["claim"], (1,)))
            results[f"own words: {half} {number}"] = _verdict(verdict)
            counts[f"own words {'true' if row['holds'] else 'false'} {verdict.status}"] += 1
    return {"claims": results}, {"claims": dict(counts)}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    supports = [[each.passage.marker, each.start, each.end, round(each.score, 6)] for each in verdict.supports]
    return {"status": verdict.status, "reason": verdict.reason, "supports": supports}
