"""The passages behind themes: they support an answer when no passages were found otherwise.

A theme's score measures how near its summary is to a question, which is less than how near its best passage is. The
passages, measured as in other searches, therefore decide whether the documents answer a question.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.domain.query import Backing, Hit, Query, ThemeHit
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.passages.hydration import visible_chunks
from agentic_rag_backend.retrieval.scoring.coverage import best_coverage
from agentic_rag_backend.retrieval.scoring.rank_fusion import rank_scores
from agentic_rag_backend.retrieval.scoring.relevance import relevance
from agentic_rag_backend.stores.vector.base import Collection

MAX_EXAMINED = 200
"""Passages whose vectors are compared with the question, starting with those of the best themes."""
NEAREST = 10
"""Maximum number of passages that support an answer."""


class PassagesBehind:
    """Finds the passages behind the findings of themes that are nearest to a question."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def find(self, query: Query, themes: Sequence[ThemeHit]) -> Backing | None:
        """Return the nearest visible passages. None if there are none."""
        sources = (source.chunk_id for theme in themes for finding in theme.findings for source in finding.sources)
        ids = list(dict.fromkeys(sources))[:MAX_EXAMINED]
        if not ids:
            return None
        vector = await self._stores.encoder.of(query)
        vectors = await self._stores.vectors.vectors(query.tenant_id, Collection.CHUNKS, ids)
        order = rank_scores((id, float(chunk_vector @ vector)) for id, chunk_vector in vectors.items())
        visible = await visible_chunks(self._stores.documents, query, [item.id for item in order])
        items = [item for item in order if item.id in visible][:NEAREST]
        if not items:
            return None
        hits = tuple(
            Hit(visible=visible[item.id], score=max(0.0, min(1.0, item.score)), scores={"dense": item.score}) for item in items
        )
        coverage = best_coverage(self._stores.vectors.terms, query.text, [hit.visible.chunk.text for hit in hits])
        return Backing(hits=hits, relevance=relevance(items[0].score, coverage, await self._stores.calibration()))
