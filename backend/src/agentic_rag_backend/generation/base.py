"""The generator port: turns a model's sentences into an answer. Also the events of a streamed answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agentic_rag_backend.domain.answer import Answer, Citation, Usage
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.generation.claims.base import SupportingSpan
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.context import Passage

CitationStyle = Literal["numeric", "title", "none"]
"""Form of citations in the text: ``[1]``, ``(Title)``, or none. The list of citations is the same."""
EVENT_VERSION = 1
"""The ``v`` of every streamed event."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged claim: ``kept`` is whether it enters the answer, ``supports`` are the passages cited under it."""

    claim: Claim
    kept: bool
    supports: tuple[SupportingSpan, ...]


Judge = Callable[[Claim], Judged]
"""Decides whether a claim enters the answer, and with which citations; called with the claims of one answer in order."""
Generator = Callable[[Sequence[Passage]], Judge]
"""A function that turns a model's text into an answer that rests on passages."""


@dataclass(frozen=True, slots=True)
class RetrievalEvent:
    """The results. Always the first event."""

    retrieval: Retrieval


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """A checked sentence with its markers, and the space before it. All token events together are the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class CitationEvent:
    """A citation whose marker appears for the first time in the next `TokenEvent`."""

    citation: Citation


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """The model's usage."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class DoneEvent:
    """The whole answer. The last event."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """The reason why there is no answer. The last event."""

    error: AgenticRagError


AnswerEvent = RetrievalEvent | TokenEvent | CitationEvent | UsageEvent | DoneEvent | ErrorEvent
