"""The port of writers of synthetic questions, and the recipe by which their results are recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentic_rag_backend.domain.document import MAX_QUESTIONS_PER_CHUNK, QUESTION_METHODS, Chunk, Failure, QuestionOptions
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.model_calls import ResultRecord
from agentic_rag_backend.language.entries.reading import header_text

_SIGNATURE_DIGITS = 16


@dataclass(frozen=True, slots=True)
class WrittenQuestions:
    """The questions of one chunk, each text once. ``failure``: another method had to replace the one that was asked for."""

    texts: tuple[str, ...]
    source: str
    failure: Failure | None = None


class QuestionWriter(Protocol):
    """Writes questions that chunks answer."""

    @property
    def version(self) -> str:
        """Name of the method and its version. Equal versions write equal questions, apart from the randomness of a model."""

    async def write(self, title: str, chunks: Sequence[Chunk], per_chunk: int, record: ResultRecord) -> list[WrittenQuestions]:
        """Return at most ``most`` questions for each chunk of a document whose title is ``title``.

        Args:
            record: keeps the replies of a language model, so that none is paid twice.
        """


def check_options(options: QuestionOptions) -> None:
    """Validate options of requests and settings.

    Raises:
        InvalidRequest: the method is unknown, or the number is out of range.
    """
    if options.method not in QUESTION_METHODS:
        raise InvalidRequest(f"questions.method must be one of {', '.join(QUESTION_METHODS)}; got {options.method[:80]!r}")
    if not 1 <= options.per_chunk <= MAX_QUESTIONS_PER_CHUNK:
        raise InvalidRequest(f"questions.per_chunk must be 1 to {MAX_QUESTIONS_PER_CHUNK}; got {options.per_chunk}")


def recipe_of(embedder: str, writer: str, per_chunk: int, title: str, chunk: Chunk) -> str:
    """Return the recipe of a chunk's questions: a hash of their inputs, and a signature of the embedder of their vectors."""
    made_from = (writer, str(per_chunk), title, *chunk.location.headings, header_text(chunk.location.header), chunk.text)
    return embedded_by(hashlib.sha256("\x1f".join(made_from).encode()).hexdigest(), embedder)


def embedded_by(recipe: str, embedder: str) -> str:
    """Return the recipe of the same questions with vectors of ``embedder``."""
    signature = hashlib.sha256(embedder.encode()).hexdigest()[:_SIGNATURE_DIGITS]
    return f"{recipe.partition('/')[0]}/{signature}"
