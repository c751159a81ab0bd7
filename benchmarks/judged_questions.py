"""Questions with the passages that retrieval found for them: the input for fitting and measuring the confidence of answers.

Each answerable question is also asked without its gold passages (``removed``), for `squad2` without its article (``off``), and of
another corpus (``foreign``). Unanswerable ones are as their set has them (``adversarial``).
"""

from __future__ import annotations

import asyncio
import json
import pickle
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentic_rag_backend.answering.answerability.evidence import PassageText
from agentic_rag_backend.container import open_container
from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.evaluation.datasets import CorpusPassage
from agentic_rag_backend.language.questions.kinds import AnswerKind, asked_for
from corpora import ingest, rebuild
from report import ROOT, make_settings

EXAMPLES, PODCASTS = "examples", "podcasts"
SETS = ("squad2", "hotpotqa", "musique", PODCASTS, EXAMPLES)
ANSWERABLE, ADVERSARIAL, REMOVED, OFF, FOREIGN = "answerable", "adversarial", "removed", "off", "foreign"
PODCASTS_OF = 3
"""Every third passage of the podcasts is enough for questions about all of them."""
REMOVED_OF, OFF_OF = 2, 4
"""Of the questions of `squad2`, every second is asked without its passage, and every fourth without its article."""


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A question with its evidence. ``variant`` is one of the five above; ``keys`` are the documents of the passages."""

    corpus: str
    variant: str
    question: str
    answers: tuple[str, ...]
    gold: frozenset[str]
    article: str
    passages: tuple[PassageText, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def answerable(self) -> bool:
        """Whether the evidence may hold the answer."""
        return self.variant == ANSWERABLE


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def corpus(folder: Path, name: str) -> list[CorpusPassage]:
    """Return the passages of a set."""
    if name == EXAMPLES:
        return [CorpusPassage(path.stem, "", path.read_text()) for path in sorted((ROOT / EXAMPLES / "corpus").iterdir())]
    rows = lines(folder / name / "corpus.jsonl")[:: PODCASTS_OF if name == PODCASTS else 1]
    return [CorpusPassage(row["id"], row.get("title", ""), row["text"]) for row in rows]


def own_questions(folder: Path, name: str) -> list[JudgedQuestion]:
    """Return the questions of a set. Those that ask for an account have no answer text: all of the podcasts, some examples."""
    path = ROOT / EXAMPLES / "questions.jsonl" if name == EXAMPLES else folder / name / "questions.jsonl"
    return [_own(name, row) for row in lines(path)]


def _own(name: str, row: Mapping[str, Any]) -> JudgedQuestion:
    answerable = row.get("answerable", row.get("type") != "unanswerable")
    account = name == PODCASTS or row.get("type") == "theme"
    answers = row["answers"] if "answers" in row else [row.get("answer", ""), *row.get("aliases", ())]
    gold = row.get("gold", [row["passage"]] if "passage" in row else [])
    return JudgedQuestion(
        corpus=name,
        variant=ANSWERABLE if answerable else ADVERSARIAL,
        question=row["question"].strip(),
        answers=() if account else tuple(answer for answer in answers if answer),
        gold=frozenset(gold),
        article=row.get("article", ""),
    )


def without_evidence(folder: Path, name: str, own: Sequence[JudgedQuestion]) -> Iterator[tuple[JudgedQuestion, list[str]]]:
    """Yield the questions that lose their evidence, with the keys of the documents that are left out."""
    articles: defaultdict[str, list[str]] = defaultdict(list)
    if name == "squad2":
        for passage in corpus(folder, name):
            articles[_article(passage.id)].append(passage.id)
    answerable = [each for each in own if each.answerable and each.gold]
    for number, each in enumerate(answerable):
        if name != "squad2" or number % REMOVED_OF == 0:
            yield replace(each, variant=REMOVED), sorted(each.gold)
        if name == "squad2" and number % OFF_OF == 0:
            yield replace(each, variant=OFF), articles[_article(min(each.gold))]


def _article(passage: str) -> str:
    return passage.rpartition("-")[0]


def _foreign(name: str, other: JudgedQuestion) -> bool:
    """Return whether a question of another set is asked of ``name``: accounts of the podcasts, and all but accounts of SQuAD."""
    if name == PODCASTS:
        return asked_for(other.question) is AnswerKind.THEME
    return other.corpus != "squad2"


async def collect(folder: Path, name: str) -> list[JudgedQuestion]:
    """Ingest a set into a new data folder, and return its questions with the passages that ``auto`` finds."""
    own = own_questions(folder, name)
    asked: list[tuple[JudgedQuestion, list[str]]] = [(each, []) for each in own]
    asked += without_evidence(folder, name, own)
    if name != "squad2":
        others = [each for other in SETS if other != name for each in own_questions(folder, other) if _foreign(name, each)]
        asked += [(replace(each, corpus=name, variant=FOREIGN, answers=(), gold=frozenset()), []) for each in others]
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as data_dir:
        settings = make_settings(data_dir=Path(data_dir), community_auto_rebuild=False)
        async with open_container(settings) as services:
            tenant = await services.tenants.create(name)
            media_type = "text/markdown" if name == EXAMPLES else "text/plain"
            await ingest(services, tenant.id, corpus(folder, name), media_type=media_type)
            if name != PODCASTS:  # Its graph would take half an hour, and says little about accounts.
                await rebuild(services, tenant.id)
            current = await services.tenants.get(tenant.id)
            found = []
            for each, excluded in asked:
                filters = parse_filter({"key": {"nin": excluded[:100]}}) if excluded else None
                query = Query(tenant=current, text=each.question, limit=10, filters=filters)
                hits = (await services.retrievers.get("auto").retrieve(query)).hits
                top = max((hit.score for hit in hits), default=0.0) or 1.0
                passages = tuple(PassageText(hit.visible.document_title, hit.visible.chunk.text, hit.score / top) for hit in hits)
                found.append(replace(each, passages=passages, keys=tuple(str(hit.visible.document_key) for hit in hits)))
    return found


def collected(folder: Path, names: Sequence[str], cache: Path | None) -> dict[str, list[JudgedQuestion]]:
    """Return the questions of each set. With a ``cache`` folder, a set that it holds is not ingested again."""
    found: dict[str, list[JudgedQuestion]] = {}
    for name in names:
        stored = cache / f"{name}.pickle" if cache is not None else None
        if stored is not None and stored.exists():
            found[name] = pickle.loads(stored.read_bytes())
            continue
        found[name] = asyncio.run(collect(folder, name))
        if stored is not None:
            stored.parent.mkdir(parents=True, exist_ok=True)
            stored.write_bytes(pickle.dumps(found[name]))
    return found
