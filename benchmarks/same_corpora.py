"""Corpora and questions of `same`: a part of every evaluation set, so that everything runs within minutes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import ROOT

Row = Mapping[str, Any]
PASSAGES: Mapping[str, int] = {"musique": 450, "hotpotqa": 350, "squad2": 350}
"""Passages of the sets that are taken in part."""
SEARCHED: Mapping[str, int] = {"realdocs": 28, "musique": 32, "squad2": 32, "hotpotqa": 32, "examples": 20}
"""Questions that every strategy searches. The set that takes longest is the first one."""
ANSWERED: Mapping[str, int] = {"musique": 90, "hotpotqa": 90, "squad2": 150, "realdocs": 122, "examples": 40}
"""Questions that are answered."""
NAMES = tuple(SEARCHED)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its gold documents and accepted answers. ``history`` is the conversation before it, oldest turn first."""

    id: str
    text: str
    gold: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    answerable: bool = True
    history: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class File:
    """A document to upload."""

    key: str
    name: str
    content: bytes
    title: str = ""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents with the questions that are searched and answered."""

    name: str
    files: Sequence[File]
    searched: Sequence[Question]
    answered: Sequence[Question]


def read_rows(path: Path) -> list[Row]:
    """Return the objects of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def load_corpus(name: str, data: Path) -> Corpus:
    """Return a corpus with its questions."""
    folder = ROOT / "examples" if name == "examples" else data / name
    questions = [_question(row) for row in read_rows(folder / "questions.jsonl")]
    searched, answered = (_spread(questions, counts[name]) for counts in (SEARCHED, ANSWERED))
    if name == "examples":
        answered += [_follow_up(row) for row in read_rows(folder / "conversations.jsonl")]
    files = _passages(name, folder, [*searched, *answered]) if name in PASSAGES else _files(folder / "corpus")
    return Corpus(name, files, searched, answered)


def _spread(questions: Sequence[Question], count: int) -> list[Question]:
    """Return ``count`` questions at equal distances."""
    return [questions[number * len(questions) // count] for number in range(min(count, len(questions)))]


def _question(row: Row) -> Question:
    gold = [
        item["file"] if isinstance(item, dict) else item for item in row.get("gold", [row["passage"]] if "passage" in row else [])
    ]
    answers = row["answers"] if "answers" in row else [row.get("answer", ""), *row.get("aliases", ())]
    return Question(
        id=str(row["id"]),
        text=row["question"].strip(),
        gold=tuple(dict.fromkeys(map(str, gold))),
        answers=tuple(answer for item in answers for answer in _alternatives(item)),
        answerable=row.get("answerable", row.get("type") != "unanswerable"),
    )


def _alternatives(item: Any) -> list[str]:
    """Return the accepted texts of one answer; a list holds several items, and ``a|b`` are two forms of an item."""
    if isinstance(item, list):
        return [text for part in item for text in _alternatives(part)]
    return [text for text in str(item).split("|") if text and not text.startswith("^")]


def _follow_up(row: Row) -> Question:
    return Question(id=row["id"], text=row["question"], gold=tuple(row["gold"]), history=tuple(row["history"]))


def _passages(name: str, folder: Path, questions: Sequence[Question]) -> list[File]:
    """Return the gold passages of the questions and, in the order of the file, others up to the limit."""
    rows = read_rows(folder / "corpus.jsonl")
    gold = {key for question in questions for key in question.gold}
    others = [row["id"] for row in rows if row["id"] not in gold]
    chosen = gold | set(others[: max(0, PASSAGES[name] - len(gold))])
    return [File(row["id"], "", row["text"].encode(), row.get("title", "")) for row in rows if row["id"] in chosen]


def _files(folder: Path) -> list[File]:
    """Return the files of a folder. The key of an example is its name without the suffix, as in its questions."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    nested = any(path.parent != folder for path in paths)
    return [File(str(path.relative_to(folder)) if nested else path.stem, path.name, path.read_bytes()) for path in paths]
