"""Parent–child search: small chunks match a question, and the excerpt around them is read.

An excerpt is the parent around a chunk, if its document was cut with parents, or else the chunk and its neighbours. Documents
need not be cut with parents.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.retrieval.base import Stores, Strategies
from agentic_rag_backend.retrieval.options.model import RequestOptions, optional_field
from agentic_rag_backend.retrieval.passages.excerpts import excerpts, hits_of, match_of, read_excerpts

DEPTH = 200
"""Matched chunks that are divided into excerpts. It does not depend on the request's limit, so that no excerpt moves with it."""
MAX_CHUNKS = 10
"""Chunks of an excerpt, if the request does not set their number."""


class ParentChildRequestOptions(RequestOptions):
    context_window: int = optional_field(
        ge=0,
        le=10,
        description="chunks that are read on each side of a match; default: the whole parent, or 1 without a parent",
    )
    max_chunks: int = Field(10, ge=1, le=50, description="maximum number of chunks that are read together")


class ParentChild:
    """Reads around the chunks that ``options.base`` finds.

    ``options.context_window`` is the number of chunks on each side of a match; without it, a match is read with its whole parent,
    or with one chunk on each side if it has none. An excerpt has at most ``options.max_chunks`` chunks.
    """

    def __init__(self, stores: Stores, strategies: Strategies) -> None:
        self._stores = stores
        self._strategies = strategies

    async def retrieve(self, query: Query) -> Retrieval:
        """Return one hit for each excerpt: its best match, with the excerpt as ``parent`` and its matches in ``matched``."""
        base = str(query.options.get("base", "hybrid"))
        reach, limit = query.options.get("context_window"), int(query.options.get("max_chunks", MAX_CHUNKS))
        retrieval = await self._strategies.retrieve(base, query.with_candidates(DEPTH))
        by_id = {hit.id: hit for hit in retrieval.hits[:DEPTH]}
        found_excerpts = excerpts([match_of(hit) for hit in by_id.values()], reach=reach, limit=limit)[: query.candidates]
        passages = await read_excerpts(self._stores.documents, query.tenant_id, found_excerpts, whole=reach is None, most=limit)
        hits = hits_of([(by_id[excerpt.best.id], excerpt) for excerpt in found_excerpts], passages)
        about = {"base": base, "context_window": reach, "max_chunks": limit}
        trace = replace(
            retrieval.trace,
            strategy="parent_child",
            methods_used=tuple(dict.fromkeys(("parent_child", *retrieval.trace.methods_used))),
            details={**retrieval.trace.details, "parent_child": about},
        )
        return replace(retrieval, hits=hits, trace=trace)
