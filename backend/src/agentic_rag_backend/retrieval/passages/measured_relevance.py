"""Measures the relevance of results for the question as the user wrote it.

A strategy that searches other texts or vectors than the question's own is not measured by them: a hypothetical passage is near to
similar passages, whether they answer the question or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.scoring.coverage import best_coverage
from agentic_rag_backend.retrieval.scoring.relevance import MEASURED, relevance
from agentic_rag_backend.stores.vector.base import Collection


async def measured_relevance(stores: Stores, query: Query, hits: Sequence[Hit]) -> float:
    """Return the relevance in [0, 1] of the first `MEASURED` hits for ``query.text``. 0.0 without hits.

    Give at least `MEASURED` candidates if there are as many, or the value depends on the request's limit.
    """
    measured = hits[:MEASURED]
    if not measured:
        return 0.0
    question = await stores.encoder.encode(query.tenant_id, query.text)
    vectors = await stores.vectors.vectors(query.tenant_id, Collection.CHUNKS, [hit.id for hit in measured])
    cosine = max((float(vector @ question) for vector in vectors.values()), default=0.0)
    coverage = best_coverage(stores.vectors.terms, query.text, [hit.visible.chunk.text for hit in measured])
    return relevance(cosine, coverage, await stores.calibration())
