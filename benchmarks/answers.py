"""Measures answers without a language model on ``examples/``, MuSiQue and HotpotQA, with the real embedded stores.

Every corpus is asked its own questions (answerable, except those of type ``unanswerable``) and the other corpora's (foreign: to
be refused). Writes ``results/answers.json`` and ``results/answers.md``. Absolute times are reported. Asserted: every quote is
verbatim at its offsets, every marker resolves, and at least .9 of the answerable questions are answered and .9 of the foreign
ones refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.evaluation.answer_metrics import contains_answer
from agentic_rag_backend.evaluation.datasets import CorpusPassage, QuestionSet, load_question_set
from agentic_rag_backend.evaluation.ranking_metrics import find_percentile
from corpora import ingest, rebuild
from report import ROOT, data, finish, make_settings, quiet

EXAMPLES = "examples"
SETS = (EXAMPLES, "musique", "hotpotqa")
FOREIGN, UNANSWERABLE, THEME = "foreign", "unanswerable", "theme"
LEAST_ANSWERED = LEAST_REFUSED = 0.9
_MARKER = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its kind. ``answers`` are accepted strings; empty if none is known."""

    text: str
    kind: str
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one question."""

    answered: bool
    contains: bool
    citations: int
    verbatim: int
    markers_resolve: bool
    documents: int
    characters: int
    synthesis_ms: float


def examples() -> tuple[QuestionSet, list[Asked]]:
    """Return the corpus of ``examples/`` as files, front matter included, and its questions."""
    folder = ROOT / EXAMPLES
    passages = [CorpusPassage(path.stem, "", path.read_text()) for path in sorted((folder / "corpus").iterdir())]
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    asked = [Asked(row["question"], row["type"], () if row["type"] == THEME else _some(row["answer"])) for row in rows]
    return QuestionSet(EXAMPLES, tuple(passages), ()), asked


def labelled(folder: Path) -> tuple[QuestionSet, list[Asked]]:
    """Return one of the evaluation sets."""
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    asked = [Asked(row["question"], "answerable", (*_some(row["answer"]), *row.get("aliases", ()))) for row in rows]
    return load_question_set(folder), asked


def _some(answer: str) -> tuple[str, ...]:
    return (answer,) if answer else ()


async def verbatim(services: Container, tenant: Tenant, answer: Answer) -> int:
    """Return the number of quotes that equal the visible text at their offsets."""
    visible = await services.catalogue.documents.hydrate(tenant.id, [citation.chunk_id for citation in answer.citations])
    found = 0
    for citation in answer.citations:
        chunk = visible[citation.chunk_id].chunk
        found += (
            chunk.text[citation.start_char - chunk.location.start_char : citation.end_char - chunk.location.start_char]
            == citation.quote
        )
    return found


async def outcome(services: Container, tenant: Tenant, asked: Asked) -> Outcome:
    """Ask both levels one question."""
    query = Query(tenant=tenant, text=asked.text, limit=10, dual_level=True)
    retrieval = await services.retrievers.get("dual_level").retrieve(query)
    started = time.perf_counter()
    answer = await services.answers.synthesise(query, retrieval)
    elapsed = (time.perf_counter() - started) * 1000
    markers = {int(number) for number in _MARKER.findall(answer.text)}
    return Outcome(
        answered=answer.grounded,
        contains=answer.grounded and contains_answer(answer.text, asked.answers),
        citations=len(answer.citations),
        verbatim=await verbatim(services, tenant, answer),
        markers_resolve=markers == {citation.marker for citation in answer.citations},
        documents=len({citation.document_id for citation in answer.citations}),
        characters=len(answer.text),
        synthesis_ms=elapsed,
    )


def summary(outcomes: Sequence[Outcome], *, judged: bool) -> dict[str, Any]:
    """Return the figures of one kind of question; ``judged`` if expected answers are known."""
    count, answered = len(outcomes), [each for each in outcomes if each.answered]
    citations = sum(each.citations for each in outcomes)
    return {
        "questions": count,
        "answered": round(len(answered) / count, 3),
        "answer_contained": round(sum(each.contains for each in outcomes) / count, 3) if judged else None,
        "quotes_verbatim": round(sum(each.verbatim for each in outcomes) / citations, 4) if citations else None,
        "markers_resolve": round(sum(each.markers_resolve for each in outcomes) / count, 4),
        "documents_cited": round(sum(each.documents for each in answered) / len(answered), 2) if answered else None,
        "characters": round(sum(each.characters for each in answered) / len(answered)) if answered else None,
        "p50_ms": round(find_percentile([each.synthesis_ms for each in answered], 0.5), 1) if answered else None,
        "p95_ms": round(find_percentile([each.synthesis_ms for each in answered], 0.95), 1) if answered else None,
    }


async def measure(corpus: QuestionSet, asked: Sequence[Asked]) -> dict[str, dict[str, Any]]:
    """Ingest one corpus into a new data folder and ask it all questions."""
    by_kind: defaultdict[str, list[Outcome]] = defaultdict(list)
    judged = {each.kind for each in asked if each.answers}
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        settings = make_settings(
            data_dir=Path(data_dir),
            dual_level_retrieval_enabled=True,
            community_auto_rebuild=False,
        )
        async with open_container(settings) as services:
            tenant = await services.tenants.create(corpus.name)
            media_type = "text/markdown" if corpus.name == EXAMPLES else "text/plain"
            print(corpus.name, "ingestion", await ingest(services, tenant.id, corpus.passages, media_type=media_type), flush=True)
            print(corpus.name, "communities", await rebuild(services, tenant.id), flush=True)
            current = await services.tenants.get(tenant.id)
            for each in asked:
                by_kind[each.kind].append(await outcome(services, current, each))
    return {kind: summary(outcomes, judged=kind in judged) for kind, outcomes in sorted(by_kind.items())}


def failures(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Return the asserted shares that are not met."""
    missed = []
    for name, kinds in results.items():
        for kind, row in kinds.items():
            missed += [
                f"{name} {kind}: {key} is {row[key]}" for key in ("quotes_verbatim", "markers_resolve") if (row[key] or 1) < 1
            ]
            if kind == FOREIGN and 1 - row["answered"] < LEAST_REFUSED:
                missed.append(f"{name}: only {1 - row['answered']:.2f} of foreign questions refused")
        own = [row for kind, row in kinds.items() if kind not in (FOREIGN, UNANSWERABLE)]
        share = sum(row["answered"] * row["questions"] for row in own) / sum(row["questions"] for row in own)
        if share < LEAST_ANSWERED:
            missed.append(f"{name}: only {share:.2f} of answerable questions answered")
    return missed


def markdown(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return the table."""
    lines: list[str] = []
    for name, kinds in results.items():
        columns = list(next(iter(kinds.values())))
        lines += [f"## {name}", "", "| kind | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
        for kind, row in kinds.items():
            lines.append(
                f"| {kind} | " + " | ".join("–" if row[column] is None else str(row[column]) for column in columns) + " |"
            )
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    chosen = parser.parse_args()
    quiet()
    folder = data(instead="examples only")
    sets = {EXAMPLES: examples()}
    if folder is not None:
        sets |= {name: labelled(folder / name) for name in SETS if name != EXAMPLES}
    results = {}
    for name in chosen.sets:
        if name in sets:
            corpus, own = sets[name]
            foreign = [Asked(each.text, FOREIGN) for other, (_, questions) in sets.items() if other != name for each in questions]
            results[name] = asyncio.run(measure(corpus, [*own, *foreign]))
    return finish("answers", results, markdown(results), failures(results))


if __name__ == "__main__":
    raise SystemExit(main())
