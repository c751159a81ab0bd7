"""Maximal marginal relevance: relevance, and difference from the results before.

Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering documents and producing summaries", SIGIR 1998.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.models.embedding.calibration import CosineScale


def similarities(vectors: Sequence[NDArray[np.float32] | None], scale: CosineScale) -> NDArray[np.float64]:
    """Return the cosines of all pairs, shape (vectors, vectors), converted with ``scale``. Pairs with a missing vector have 0."""
    size = next((len(vector) for vector in vectors if vector is not None), 1)
    rows = np.stack([np.zeros(size) if vector is None else vector.astype(np.float64) for vector in vectors])
    # Not a matrix product: its rounding may depend on the position of a row.
    cosines = np.einsum("id,jd->ij", rows, rows)
    lacks_vector = np.array([vector is None for vector in vectors])
    converted = np.asarray(np.clip(scale.converted_all(cosines), 0.0, 1.0))
    converted[lacks_vector | lacks_vector[:, None]] = 0.0
    return converted


def marginal_relevances(
    ids: Sequence[str], relevance: Sequence[float], similar: NDArray[np.float64], share: float
) -> dict[str, float]:
    """Return ``share`` × relevance + (1 − ``share``) × (1 − similarity to the nearest chosen one) at the choice of each id.

    The greatest value is chosen first, and the first of equal values in ``ids``. Values fall from choice to choice,
    because each choice can only lower the others.

    Args:
        relevance: in [0, 1].
        similar: shape (ids, ids), in [0, 1].
    """
    closest = np.zeros(len(ids))
    chosen: dict[str, float] = {}
    remaining = list(range(len(ids)))
    while remaining:
        values = {number: share * relevance[number] + (1 - share) * (1 - float(closest[number])) for number in remaining}
        best = max(remaining, key=lambda number: values[number])
        chosen[ids[best]] = min(1.0, max(0.0, values[best]))
        closest = np.maximum(closest, similar[best])
        remaining = [number for number in remaining if number != best]
    return chosen
