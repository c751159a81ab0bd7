"""The input of the writing step, the events of a streamed answer, and the form of its citations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from agentic_rag_backend.answering.claims.base import Verdict
from agentic_rag_backend.answering.evidence.context import Context
from agentic_rag_backend.domain.answer import Answer, Citation, ClaimStatus
from agentic_rag_backend.domain.query import Retrieval, Trace
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.models.llm.base import ModelRequest

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


Refusal = Literal["nothing_found", "below_confidence", "model_refused", "no_claim_held"]
"""Reasons for refusing an answer, in ``Answer.details["refusal"]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """The instructions for writing an answer.

    Args:
        retrieval: the passages found, with the trace of all steps.
        context: the numbered passages, the only support of the answer.
        question: that the answer answers, in its self-contained form.
        answerable: probability in [0, 1] that they answer the question.
        refusal: the reason for writing no answer.
        request: the request to the model; None: ``text`` or ``quotations`` are the answer.
        shorter: makes a request with fewer passages, for a model to which the prompt is too long; None: there is none.
        text: sentences with markers, written without the model. With a request, it replaces a model that fails before its
            first word.
        quotations: windows of the passages that answer best, best first. Without a ``text``, they are the answer or replace the
            model.
        quotable: whether they answer with enough confidence to replace a model that fails.
        introduction: sentences before the quoted ones, if no model writes. They are not quoted, and so have no citation.
        usage: usage of the model so far.
    """

    retrieval: Retrieval
    context: Context
    answerable: float
    question: str = ""
    refusal: Refusal | None = None
    request: ModelRequest | None = None
    shorter: Callable[[], ModelRequest] | None = None
    text: str = ""
    quotations: tuple[Verdict, ...] = ()
    quotable: bool = True
    introduction: str = ""
    usage: Usage = field(default_factory=Usage)


def with_failures(retrieval: Retrieval, *reasons: str) -> Retrieval:
    """Return the retrieval with further reasons in its trace."""
    if not reasons:
        return retrieval
    return replace(retrieval, trace=replace(retrieval.trace, failures=(*retrieval.trace.failures, *reasons)))


def with_details(trace: Trace, **details: object) -> Trace:
    """Return the trace with further details."""
    return replace(trace, details={**trace.details, **details})
