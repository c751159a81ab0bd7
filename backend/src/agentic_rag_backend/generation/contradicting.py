"""Contradictions of an answer: what other documents state against its cited sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.contradictions import Contradiction, Kind, Side
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.text.questions import AnswerKind
from agentic_rag_backend.generation.answerability.conflicts import StatedValue
from agentic_rag_backend.generation.answerability.judge import Judgement
from agentic_rag_backend.generation.context import Context
from agentic_rag_backend.retrieval.passages.contradictions import MAX_SHOWN, ContradictionsOfResults

DISAGREEING = 0.7
"""Confidence of two values that the passages give for one thing that the question asks for."""


@dataclass(frozen=True, slots=True)
class AnswerContradictions:
    """Adds contradictions to answers."""

    results: ContradictionsOfResults

    async def added(self, query: Query, answer: Answer, conflicts: Sequence[Contradiction] = ()) -> Answer:
        """Return the answer with the contradictions of its cited sentences.

        Args:
            conflicts: those that the answer states itself.
        """
        cited = dict.fromkeys(citation.chunk_id for citation in answer.citations)
        found, warning = await self.results.touching(query, cited)
        if warning is not None:
            trace = answer.retrieval.trace
            trace = replace(trace, warnings=(*trace.warnings, warning))
            answer = replace(answer, retrieval=replace(answer.retrieval, trace=trace))
        kept = [each for each in found if _is_cited(answer, each.a) or _is_cited(answer, each.b)]
        places = {frozenset((each.a.place, each.b.place)) for each in kept}
        stated = [each for each in conflicts if frozenset((each.a.place, each.b.place)) not in places]
        return replace(answer, contradictions=(*kept, *stated)[:MAX_SHOWN])


def stated_conflicts(query: Query, judgement: Judgement, context: Context) -> tuple[Contradiction, ...]:
    """Return the conflicts of values that a judgement found as contradictions: the first value against each other one."""
    kind: Kind = {AnswerKind.TIME: "date", AnswerKind.COLOUR: "exclusive"}.get(judgement.asked, "number")  # type: ignore[assignment]
    return tuple(
        Contradiction(
            kind=kind,
            about=None,
            subject=query.text,
            entity_a=None,
            entity_b=None,
            a=_side(context, conflict.values[0]),
            b=_side(context, other),
            reason=f"documents give {conflict.values[0].value} and {other.value} for what the question asks",
            confidence=DISAGREEING,
        )
        for conflict in judgement.conflicts
        for other in conflict.values[1:]
    )


def _side(context: Context, stated: StatedValue) -> Side:
    passage = context.passages[stated.passage]
    return Side(
        fact=stated.sentence,
        value=stated.value,
        chunk_id=passage.chunk_id,
        document_id=passage.document_id,
        title=passage.title,
        quote=stated.sentence,
        start_char=stated.start_char,
        date=stated.date,
    )


def _is_cited(answer: Answer, side: Side) -> bool:
    """Return whether a citation quotes the side's sentence, or a part of it."""
    quote = " ".join(side.quote.split())
    quotes = (" ".join(each.quote.split()) for each in answer.citations if each.chunk_id == side.chunk_id)
    return any(quote in each or each in quote for each in quotes)
