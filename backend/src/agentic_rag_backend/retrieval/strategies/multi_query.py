"""Multi-query: searches several wordings of a question at the same time and fuses the results (after RAG-Fusion).

Wordings come from a language model; without one, from other names of the entities that the question names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.retrieval.base import Strategies
from agentic_rag_backend.retrieval.legs import DEFAULT_FUSION, DEPTH, LegOutcome, fused_hits, search_all
from agentic_rag_backend.retrieval.options.model import RequestOptions
from agentic_rag_backend.retrieval.rewriting import QueryRewriter, Rewrites
from agentic_rag_backend.retrieval.structured_calls import Spending

REWRITES = 3
"""Wordings of requests that do not name a number."""
OWN = "question"
REWRITE_WEIGHT = 0.3
"""Weight of all other wordings together, relative to 1.0 for the question."""


class MultiQueryRequestOptions(RequestOptions):
    rewrites: int = Field(3, ge=1, le=5, description="maximum number of other wordings that are searched")
    fusion: Literal["min_max", "rrf", "dbsf"] = Field("min_max", description="fusion of the wordings' results")


class MultiQuery:
    """Searches the question and ``options.rewrites`` other wordings with ``options.base``."""

    def __init__(self, strategies: Strategies, rewriter: QueryRewriter) -> None:
        self._strategies = strategies
        self._rewriter = rewriter

    async def retrieve(self, query: Query) -> Retrieval:
        """Return the fused results. Facts, themes and relevance are those of the question itself.

        Raises:
            AgenticRagError: the searches of all wordings failed.
        """
        base = str(query.options.get("base", "hybrid"))
        fusion = str(query.options.get("fusion", DEFAULT_FUSION))
        spending = Spending(1)
        rewrites = await self._rewriter.rewrite(query, int(query.options.get("rewrites", REWRITES)), spending)
        wider = query.with_candidates(DEPTH) if rewrites.texts else query
        texts = {OWN: query.text, **{f"rewrite_{number}": text for number, text in enumerate(rewrites.texts, 1)}}
        outcome = await search_all(
            query, {name: self._strategies.retrieve(base, replace(wider, text=text)) for name, text in texts.items()}
        )
        first_retrieval = outcome.found.get(OWN) or next(iter(outcome.found.values()))
        shares = {name: 1.0 if name == OWN else REWRITE_WEIGHT / max(1, len(rewrites.texts)) for name in texts}
        hits = fused_hits(outcome.found, shares, fusion, named=False) if len(outcome.found) > 1 else first_retrieval.hits
        usage = spending.usage
        for retrieval in outcome.found.values():
            usage += retrieval.usage
        about = {"base": base, "queries": list(texts.values()), "rewritten_by": rewrites.by}
        return replace(
            _add_trace(
                first_retrieval, outcome, rewrites, fusion if len(outcome.found) > 1 else first_retrieval.trace.fusion, about
            ),
            hits=hits,
            usage=usage,
        )


def _add_trace(
    retrieval: Retrieval, outcome: LegOutcome, rewrites: Rewrites, fusion: str | None, about: Mapping[str, Any]
) -> Retrieval:
    own_trace = retrieval.trace
    lost = tuple(f"the search of {name} failed: {code}" for name, code in outcome.failed.items())
    trace = replace(
        own_trace,
        strategy="multi_query",
        methods_used=tuple(dict.fromkeys(("multi_query", *own_trace.methods_used))),
        fusion=fusion,
        fallbacks=(*own_trace.fallbacks, *([rewrites.missing] if rewrites.missing else [])),
        failures=tuple(dict.fromkeys((*own_trace.failures, *rewrites.failures, *lost))),
        hidden=(*own_trace.hidden, *lost),
        details={**own_trace.details, "multi_query": dict(about)},
    )
    return replace(retrieval, trace=trace)
