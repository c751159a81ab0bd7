"""The events of a streamed answer, and the form of its citations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agentic_rag_backend.domain.answer import Answer, Citation, ClaimStatus, Usage
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.errors import AgenticRagError

CitationStyle = Literal["numeric", "title", "none"]
"""Form of citations in the text: ``[1]``, ``(Title)``, or none. The list of citations is the same."""
CitationPolicy = Literal["strict", "checked", "mark"]
"""Sentences that are not supported: ``strict`` leaves them out, ``checked`` leaves out the contradicted ones and marks the
unverified ones that share words with a passage, ``mark`` marks all. The marks are `MARKS`."""
MARKS: Mapping[ClaimStatus, str] = {"supported": "", "unverified": " [unverified]", "contradicted": " [unsupported]"}
"""Text after a sentence by its status. `CheckedClaim` has the same as data."""
EVENT_VERSION = 1
"""The ``v`` of every streamed event."""


@dataclass(frozen=True, slots=True)
class RetrievalEvent:
    """The results. Always the first event."""

    retrieval: Retrieval


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """A checked sentence with its markers and the space before it, or the introduction of an answer.

    All token events together are the answer's text.

    ``supported`` is false for a sentence that no passage states, and for a refusal. ``reason`` is that of `CheckedClaim`.
    """

    text: str
    supported: bool = True
    reason: str | None = None


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
