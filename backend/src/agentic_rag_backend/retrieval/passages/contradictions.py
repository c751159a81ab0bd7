"""Contradictions of which a result, or a citation of an answer, is one side."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from agentic_rag_backend.domain.contradictions import Contradiction
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.contradictions.contradiction_finder import ContradictionFinder
from agentic_rag_backend.retrieval.passages.hydration import passes
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

OPTION = "contradictions"
MAX_SHOWN = 20
"""Contradictions of one response, the likeliest ones."""


@dataclass(frozen=True, slots=True)
class ContradictionsOfResults:
    """Finds contradictions with passages that a query may show."""

    finder: ContradictionFinder

    async def attach_contradictions(self, query: Query, retrieval: Retrieval) -> Retrieval:
        """Return the results with their contradictions, if the request asks for them."""
        if not query.options.get(OPTION):
            return retrieval
        chunks = dict.fromkeys((*(hit.id for hit in retrieval.hits), *(fact.chunk_id for fact in retrieval.facts)))
        contradictions, warning = await self.touching(query, chunks)
        retrieval = replace(retrieval, contradictions=contradictions)
        return (
            retrieval
            if warning is None
            else replace(retrieval, trace=replace(retrieval.trace, warnings=(*retrieval.trace.warnings, warning)))
        )

    async def touching(self, query: Query, chunk_ids: Collection[str]) -> tuple[tuple[Contradiction, ...], str | None]:
        """Return the contradictions of which one side is in a chunk, and a warning if they cannot be read."""
        if not chunk_ids:
            return (), None
        try:
            contradictions = await self.finder.touching(query.tenant, chunk_ids, passes=partial(passes, query))
        except StoreUnavailable as error:
            _log.warning("contradictions_left_out", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
            return (), f"contradictions are left out: {error.code}"
        return tuple(contradictions[:MAX_SHOWN]), None
