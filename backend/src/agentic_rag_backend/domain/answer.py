"""An answer and its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.usage import Usage as Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A checked reference: ``quote`` equals the document's visible text at ``[start_char, end_char)``, character by character."""

    marker: int
    chunk_id: str
    document_id: str
    title: str
    quote: str
    start_char: int
    end_char: int
    page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``text`` carries markers ``[n]``, each with a citation. ``grounded`` is false for a refusal.

    ``confidence`` in [0, 1] estimates the chance that the answer is supported.
    """

    text: str
    citations: tuple[Citation, ...]
    confidence: float
    grounded: bool
    retrieval: Retrieval
    usage: Usage = field(default_factory=Usage)
    generator: str = "attributed"
    model: str = "extractive"
    dropped: tuple[str, ...] = ()
    """Sentences of the model whose citations failed the check. They are not in ``text``."""
    details: Mapping[str, Any] = field(default_factory=dict)
