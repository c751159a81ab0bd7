"""The end of an answer: a written answer or a refusal becomes the answer of the service."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.answering.base import AnswerEvent, DoneEvent, Refusal, TokenEvent, UsageEvent, with_details
from agentic_rag_backend.answering.claims.base import Verdict
from agentic_rag_backend.answering.draft import AnswerDraft
from agentic_rag_backend.answering.generators.base import Generated
from agentic_rag_backend.domain.answer import Answer, Citation
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tuning import ConfidenceScale
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.models.llm.base import NOT_ANSWERED
from agentic_rag_backend.telemetry.metrics import observe_first_sentence


@dataclass(frozen=True, slots=True)
class Ending:
    """The result of one question.

    ``generator`` is the requested one, and ``started`` its `time.perf_counter`. ``refusal`` is the reason if there is no answer.
    ``written`` None: the question was refused before a model was asked. ``nearest`` are then the quotations that do not answer.
    ``scale`` converts ``confidence``; None: it stays.
    """

    generator: str
    started: float
    retrieval: Retrieval
    usage: Usage
    confidence: float
    refusal: Refusal | None
    written: Generated | None = None
    nearest: tuple[Verdict, ...] = ()
    scale: ConfidenceScale | None = None


def refusal_events(ending: Ending) -> list[AnswerEvent]:
    """Return the events of a refusal.

    Raises:
        StoreUnavailable: a failed store may hide the answer; names the parts that were not read.
    """
    hidden = ending.retrieval.trace.hidden
    if hidden:
        reasons = "; ".join(dict.fromkeys(hidden))
        raise StoreUnavailable(f"the data that could be read does not answer the question, and some could not be read: {reasons}")
    answer = answer_of(ending)
    return [TokenEvent(answer.text, supported=False), UsageEvent(ending.usage), DoneEvent(answer)]


def with_first_sentence(retrieval: Retrieval, model: str, first_s: float) -> Retrieval:
    """Record the time to the first checked sentence, in the metrics and in the trace."""
    observe_first_sentence(model, first_s)
    times = {**retrieval.trace.processing_time_ms, "first_sentence": first_s * 1000}
    return replace(retrieval, trace=replace(retrieval.trace, processing_time_ms=times))


def answer_of(ending: Ending) -> Answer:
    """Return the answer. A refusal has a plain text and no citations, but the sentences that were left out."""
    details: dict[str, object] = {"synthesis_ms": round((time.perf_counter() - ending.started) * 1000, 3)}
    generated, refused = ending.written, ending.refusal is not None
    if refused:
        details["refusal"] = ending.refusal
    confidence, scale, retrieval = round(ending.confidence, 4), ending.scale, ending.retrieval
    if scale is not None:
        retrieval = replace(
            retrieval, trace=with_details(retrieval.trace, confidence_by="tuning", estimated_confidence=confidence)
        )
    citations = () if refused or generated is None else generated.citations
    return Answer(
        text=NOT_ANSWERED if refused or generated is None else generated.text,
        introduction="" if refused or generated is None else generated.introduction,
        citations=citations,
        nearest=cite_quotations(ending.nearest),
        confidence=confidence if scale is None else scale.convert_confidence(confidence),
        estimate=None if scale is None else confidence,
        grounded=generated is not None and not refused and generated.supported > 0,
        retrieval=retrieval,
        usage=ending.usage,
        generator=generated.generator if generated is not None else ending.generator,
        model=generated.model if generated is not None else "",
        claims=generated.claims if generated is not None else (),
        verification=generated.verification if generated is not None else None,
        details=details,
    )


def cite_quotations(quotations: Sequence[Verdict]) -> tuple[Citation, ...]:
    """Return quotations as citations, numbered from 1."""
    draft = AnswerDraft()
    draft.add(quotations)
    return tuple(draft.citations)
