"""HyDE: searches with the vectors of hypothetical passages that a language model writes (Gao et al., ACL 2023).

A passage that could answer a question is nearer to the passages that do than the question is. As in the paper, the vector that is
searched is the mean of the passages' vectors and the question's own. The passages are invented, so they are used as a search
vector only: they are not shown, BM25 and entity linking read the question, and the relevance of the results is measured on it.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.models.llm.base import TEXT, list_of, object_of, objects_in
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.base import Stores, Strategies
from agentic_rag_backend.retrieval.options.model import RequestOptions
from agentic_rag_backend.retrieval.passages.passage_features import measured_relevance
from agentic_rag_backend.retrieval.scoring import MEASURED
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls, StructuredReply, line_in

PASSAGES = 1
"""Hypothetical passages of requests that do not name a number."""
MAX_CHARACTERS = 1200
"""Characters of a hypothetical passage that are embedded."""
TOKENS_PER_PASSAGE = 300
NO_MODEL = "no language model writes hypothetical passages: the question's own vector is searched"
_SCHEMA = object_of({"passages": list_of(object_of({"text": TEXT}))})


class HydeRequestOptions(RequestOptions):
    passages: int = Field(1, ge=1, le=5, description="hypothetical passages that a language model writes")


class Hyde:
    """Searches ``options.base`` with the mean vector of ``options.passages`` hypothetical passages and the question.

    Args:
        calls: calls of the cheap model.
    """

    def __init__(self, stores: Stores, strategies: Strategies, calls: StructuredCalls) -> None:
        self._stores = stores
        self._strategies = strategies
        self._calls = calls

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the results of the base strategy. Without passages, search the question's own vector and say so."""
        base = str(query.options.get("base", "hybrid"))
        count = int(query.options.get("passages", PASSAGES))
        if not self._calls.possible:
            return _plain(await self._strategies.retrieve(base, query), base, fallback=NO_MODEL)
        reply = await self._write(query.text, count)
        passages = _passages(reply, count)
        vector, failure = await self._stores.encoder.mean_of(query, passages)
        if vector is None:
            failure = failure or f"hypothetical passages failed: {reply.failure or 'the reply has none'}"
            return _plain(await self._strategies.retrieve(base, query), base, failure=failure, usage=reply.usage)
        retrieval = await self._strategies.retrieve(base, replace(query.with_candidates(MEASURED), embedding=vector))
        measured = await measured_relevance(self._stores, query, retrieval.hits) if retrieval.hits else retrieval.relevance
        methods = tuple(dict.fromkeys(("hyde", *retrieval.trace.methods_used)))
        details = {**retrieval.trace.details, "hyde": {"base": base, "passages": len(passages)}}
        trace = replace(retrieval.trace, strategy="hyde", methods_used=methods, details=details)
        return replace(retrieval, relevance=measured, usage=retrieval.usage + reply.usage, trace=trace)

    async def _write(self, question: str, count: int) -> StructuredReply:
        values = {"question": fence("question", question), "most": str(count)}
        return await self._calls.ask(built_in("hypothetical_passages"), values, _SCHEMA, max_tokens=TOKENS_PER_PASSAGE * count)


def _passages(reply: StructuredReply, count: int) -> list[str]:
    texts = (line_in(item, "text", limit=MAX_CHARACTERS) for item in objects_in(reply.parsed or {}, "passages"))
    return list(dict.fromkeys(text for text in texts if text))[:count]


def _plain(
    retrieval: Retrieval, base: str, *, fallback: str | None = None, failure: str | None = None, usage: Usage | None = None
) -> Retrieval:
    """Return the results of the question's own vector, with the reason."""
    trace = replace(
        retrieval.trace,
        strategy="hyde",
        fallbacks=(*retrieval.trace.fallbacks, *([fallback] if fallback else [])),
        failures=(*retrieval.trace.failures, *([failure] if failure else [])),
        details={**retrieval.trace.details, "hyde": {"base": base, "passages": 0}},
    )
    return replace(retrieval, usage=retrieval.usage + (usage or Usage()), trace=trace)
