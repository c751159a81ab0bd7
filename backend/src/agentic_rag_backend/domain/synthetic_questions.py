"""Synthetic questions: questions that a chunk answers, made during ingestion and embedded apart from it."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.domain.document import stable_id

MAX_QUESTION_CHARACTERS = 300
"""Length of a synthetic question."""


def question_id(chunk_id: str, text: str) -> str:
    """Return the id of a chunk's question with this text. Versions share the id, as they share the chunk's."""
    return stable_id("question", chunk_id, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticQuestion:
    """A question that a chunk answers. ``source`` is the method that made it: ``patterns`` or ``model``."""

    id: str
    chunk_id: str
    text: str
    source: str
