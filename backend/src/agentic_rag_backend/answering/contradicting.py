"""Contradictions of an answer: what other documents state against its cited sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.contradictions import Side
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.retrieval.passages.contradictions import MAX_SHOWN, ContradictionsOfResults


@dataclass(frozen=True, slots=True)
class AnswerContradictions:
    """Adds contradictions to answers."""

    results: ContradictionsOfResults

    async def add_contradictions(self, query: Query, answer: Answer) -> Answer:
        """Return the answer with the contradictions of its cited sentences."""
        cited = dict.fromkeys(citation.chunk_id for citation in answer.citations)
        contradictions, warning = await self.results.touching(query, cited)
        if warning is not None:
            trace = answer.retrieval.trace
            trace = replace(trace, warnings=(*trace.warnings, warning))
            answer = replace(answer, retrieval=replace(answer.retrieval, trace=trace))
        cited_ones = [
            contradiction
            for contradiction in contradictions
            if _quotes_side(answer, contradiction.a) or _quotes_side(answer, contradiction.b)
        ]
        return replace(answer, contradictions=tuple(cited_ones[:MAX_SHOWN]))


def _quotes_side(answer: Answer, side: Side) -> bool:
    """Return whether a citation quotes the side's sentence, or a part of it."""
    quote = " ".join(side.quote.split())
    quotes = (" ".join(cited_quote.quote.split()) for cited_quote in answer.citations if cited_quote.chunk_id == side.chunk_id)
    return any(quote in cited_quote or cited_quote in quote for cited_quote in quotes)
