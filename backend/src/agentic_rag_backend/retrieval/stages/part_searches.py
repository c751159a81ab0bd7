"""Searches a question about two things for each of them, too: few passages are about both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from agentic_rag_backend.domain.query import Hit, Query, Retrieval
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.language.questions.splitting import split_question
from agentic_rag_backend.retrieval.legs import DEPTH, search_all, united_facts

PARTS = "parts"
"""Name in the trace's details of the two questions."""
QUESTION = "question"
NEAREST = 5
"""Best results that are read to see whether one passage is about both things."""


async def search_parts(query: Query, search: Callable[[Query], Awaitable[Retrieval]]) -> Retrieval:
    """Return the results of a question, with those of the two questions that it asks if it is about two things.

    The results of the question itself are returned if a passage says both in its words. Themes and relevance are always those of
    the question itself. ``trace.details.parts`` has the two questions.

    Args:
        search: finds the results of a question.

    Raises:
        AgenticRagError: all searches failed.
    """
    parts = split_question(query.text)
    if parts is None:
        return await search(query)
    wider = query.with_candidates(DEPTH)
    texts = {QUESTION: query.text, "first": parts.first_part, "second": parts.second_part}
    outcome = await search_all(query, {name: search(replace(wider, text=text)) for name, text in texts.items()})
    undivided = outcome.found.get(QUESTION) or next(iter(outcome.found.values()))
    lost = tuple(f"the search of the {name} part failed: {code}" for name, code in outcome.failed.items())
    usage = sum((part.usage for part in outcome.found.values()), start=Usage())
    trace = replace(undivided.trace, failures=(*undivided.trace.failures, *lost), hidden=(*undivided.trace.hidden, *lost))
    if any(parts.are_one_in(hit.visible.chunk.text) for hit in undivided.hits[:NEAREST]):
        return replace(undivided, usage=usage, trace=trace)
    retrievals = list(outcome.found.values())
    trace = replace(trace, details={**trace.details, PARTS: [parts.first_part, parts.second_part]})
    hits = _unite_hits(retrievals)
    facts = united_facts(retrievals)[: max(len(retrieval.facts) for retrieval in retrievals)]
    return replace(undivided, hits=hits, facts=facts, usage=usage, trace=trace)


def _unite_hits(retrievals: Sequence[Retrieval]) -> tuple[Hit, ...]:
    """Return the hits of all searches, each once, best first.

    A hit is worth its best score, relative to the best hit of that search: what answers one part need not match the others.
    """
    hits_by_id: dict[str, Hit] = {}
    total: defaultdict[str, float] = defaultdict(float)
    for retrieval in retrievals:
        top = max((hit.score for hit in retrieval.hits), default=0.0) or 1.0
        for hit in retrieval.hits:
            share = hit.score / top
            total[hit.id] += share
            if hit.id not in hits_by_id or share > hits_by_id[hit.id].score:
                hits_by_id[hit.id] = replace(hit, score=share, scores={**hit.scores, "combined": share})
    return tuple(sorted(hits_by_id.values(), key=lambda hit: (-hit.score, -total[hit.id], hit.id)))
