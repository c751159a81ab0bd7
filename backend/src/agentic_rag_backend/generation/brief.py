"""The input of the writing step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from agentic_rag_backend.domain.query import Retrieval, Trace
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.generation.claims.base import Verdict
from agentic_rag_backend.generation.evidence.context import Context
from agentic_rag_backend.models.llm.base import ModelRequest

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
