"""Measures an embedder: whether its vectors are usable, and how fast it embeds."""

from __future__ import annotations

import time
from dataclasses import dataclass

from agentic_rag_backend.errors import ModelReplyInvalid
from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_backend.models.embedding.base import Embedder

_SAME = 0.98
"""Least cosine of two vectors of one text."""
_DIFFERENT = 0.9999
"""Cosine of two different texts from which the vectors do not depend on the text."""
_PASSAGE = (
    "Lighthouse {number} stands on a rock north of the harbour. Its keeper noted the height of the tide twice a day, in summer "
    "and in winter, and sent the book to the office of the port in December. In the year {number} the lamp was replaced, because "
    "ships had reported that they saw its light too late in fog. The old lamp is kept in the museum of the town."
)


@dataclass(frozen=True, slots=True)
class EmbedderMeasurement:
    """One batch of passages. ``question_s`` is the time of one question."""

    dimensions: int
    batch: int
    batch_s: float
    question_s: float
    tokens: int

    @property
    def passages_per_s(self) -> float:
        """Passages of this size that are embedded in a second."""
        return self.batch / max(self.batch_s, 1e-3)


async def measure_embedder(embedder: Embedder, *, batch: int) -> EmbedderMeasurement:
    """Embed a question and ``batch`` passages (at least 2) of about 80 tokens.

    Raises:
        ModelUnavailable: the embedder failed.
        ModelReplyInvalid: its vectors are not finite, have another length, or do not depend on the text.
    """
    passages = [_PASSAGE.format(number=number) for number in range(1, batch + 1)]
    began = time.perf_counter()
    await embedder.embed_query("When was the lamp of the lighthouse replaced?")
    question_s = time.perf_counter() - began
    began = time.perf_counter()
    vectors = await embedder.embed(passages)
    batch_s = time.perf_counter() - began
    (alone,), (unrelated_vector,) = (
        await embedder.embed(passages[-1:]),
        await embedder.embed(["An invoice for nine kilograms of flour."]),
    )
    if float(alone @ vectors[-1]) < _SAME:
        raise ModelReplyInvalid("a passage has another vector in a batch than alone: the order of the vectors may be wrong")
    if float(alone @ unrelated_vector) > _DIFFERENT:
        raise ModelReplyInvalid("two different texts have the same vector")
    tokens = sum(map(estimate_tokens, passages))
    return EmbedderMeasurement(vectors.shape[1], batch, batch_s, question_s, tokens)
