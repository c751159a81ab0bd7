"""Question sets as JSON Lines: a corpus of passages, questions, and the passages that answer each question."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from agentic_rag_backend.errors import InvalidRequest

ENVIRONMENT_VARIABLE = "AGENTIC_RAG_EVAL_DATA"


@dataclass(frozen=True, slots=True)
class CorpusPassage:
    """One passage of a corpus."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question with the ids of the passages that support its answer."""

    id: str
    question: str
    answer: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A corpus and its questions."""

    name: str
    passages: tuple[CorpusPassage, ...]
    questions: tuple[LabelledQuestion, ...]


def evaluation_data(repository_parent: Path) -> Path | None:
    """Return the folder of evaluation data: from the environment, or ``shared/data`` next to the checkout; None if absent."""
    folder_name = os.environ.get(ENVIRONMENT_VARIABLE)
    folder = Path(folder_name) if folder_name else repository_parent / "shared" / "data"
    return folder if folder.is_dir() else None


def load_question_set(folder: Path) -> QuestionSet:
    """Read ``corpus.jsonl`` and ``questions.jsonl`` of a folder."""
    passages = load_passages(folder / "corpus.jsonl")
    questions = tuple(
        LabelledQuestion(
            id=str(row["id"]), question=row["question"], answer=row.get("answer", ""), gold=tuple(row.get("gold", ()))
        )
        for row in _read_rows(folder / "questions.jsonl")
    )
    return QuestionSet(folder.name, passages, questions)


def load_passages(file: Path) -> tuple[CorpusPassage, ...]:
    """Read the passages of a JSON Lines file. A passage without a title has its id as title."""
    return tuple(CorpusPassage(id=row["id"], title=row.get("title", row["id"]), text=row["text"]) for row in _read_rows(file))


def load_questions(path: Path) -> tuple[str, ...]:
    """Return the questions of a JSON Lines file, or of ``questions.jsonl`` in a folder. Other fields are ignored.

    Raises:
        InvalidRequest: the file does not exist, or a line of it is not a JSON object with a ``question``.
    """
    file = path / "questions.jsonl" if path.is_dir() else path
    try:
        questions = tuple(row["question"] for row in _read_rows(file))
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InvalidRequest(f"{file} does not hold a JSON object with a question on each line: {error!r}") from None
    if not all(isinstance(question, str) and question.strip() for question in questions):
        raise InvalidRequest(f"{file} holds a question that is empty or no text")
    return questions


def _read_rows(path: Path) -> list[dict[str, str]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
