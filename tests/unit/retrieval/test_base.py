"""The stores of retrievers: results are used once while the calibration is not known."""

from __future__ import annotations

from typing import Any, cast

from squeezed_encoder import Squeezed

from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.calibration import Calibrator
from agentic_rag_backend.retrieval.base import QueryEncoder, Stores
from agentic_rag_backend.retrieval.caching import begin


async def test_results_are_used_once_while_the_calibration_is_not_known() -> None:
    nothing = cast("Any", None)
    encoder = Squeezed(BundledEmbedder(threads=1))
    for away, source in ((True, "default"), (False, "measured")):
        encoder.away = away
        stores = Stores(
            *(nothing, nothing, nothing, nothing, nothing, QueryEncoder(nothing)),
            trees=nothing,
            questions=nothing,
            facts=nothing,
            calibrator=Calibrator(cast("Embedder", encoder)),
        )
        reuse = begin()
        assert (await stores.calibration()).source == source
        assert reuse.forbidden is away
