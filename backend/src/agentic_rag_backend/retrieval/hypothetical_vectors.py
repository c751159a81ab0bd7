"""The vector of a question and hypothetical passages, for searches by them (HyDE, Gao et al., ACL 2023)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.errors import ModelInputRefused, ModelUnavailable
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.stores.vector.base import Vector


async def mean_vector(stores: Stores, query: Query, passages: Sequence[str]) -> tuple[Vector | None, str | None]:
    """Return the mean of the vectors of the passages and the query, of length 1; None with the reason if there is none."""
    if not passages:
        return None, None
    own = await stores.encoder.of(query)
    try:
        # As questions: `Embedder.embed` would wait behind the passages of ingestion.
        written = await asyncio.gather(*(stores.encoder.encode(query.tenant_id, text) for text in passages))
    except (ModelUnavailable, ModelInputRefused) as error:
        return None, f"hypothetical passages could not be embedded: {error.code}"
    total = np.mean([own, *written], axis=0)
    length = float(np.linalg.norm(total))
    return (None, "hypothetical passages cancel the question out") if length == 0 else (np.float32(1 / length) * total, None)
