"""Accepts claims that a quote in another language states, by an embedder that knows both languages.

An embedder hardly distinguishes 1912 from 1921, or a denial. Numbers, names, denials and hedges must agree first (`across`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.generation.claims.base import Verdict
from agentic_rag_backend.generation.claims.languages.across import Candidate
from agentic_rag_backend.generation.similarity import RelativeSimilarity, relative_to

MIN_RELATIVE = 0.28
"""Least similarity of a claim and a quote, relative to unrelated sentences. Of right claims, nearly all have more."""


MIN_UNCITED_RELATIVE = 0.45
"""The same for a passage that the claim does not cite."""
NEARLY = 0.85
"""Share of the nearest quote's similarity that another one must have to be chosen instead."""


class AcrossLanguages:
    """Compares claims with quotes in other languages. One call of the embedder for each call of `verdicts`."""

    def __init__(self, similarity: RelativeSimilarity) -> None:
        self._similarity = similarity
        self._vectors: dict[str, NDArray[np.float32]] = {}

    async def verdicts(self, compared: Sequence[tuple[Verdict, Sequence[Candidate]]]) -> list[Verdict]:
        """Return the verdicts of claims, each with the quotes in other languages that may state it.

        All new texts are embedded in one call: each claim, and up to `across.MAX_QUOTES` quotes of each, which claims of one
        answer have in common.

        Raises:
            ModelUnavailable: the embedder did not answer, or not with finite vectors.
        """
        await self._embed(
            text for verdict, found in compared for text in (verdict.claim.text, *(each.support.quote for each in found))
        )
        return [await self._verdict(verdict, found) for verdict, found in compared]

    async def _verdict(self, verdict: Verdict, found: Sequence[Candidate]) -> Verdict:
        """Return the verdict of a claim by its nearest quote in another language.

        Of the nearest passage, the nearest quote that the claim contradicts in nothing states it if it is near enough. Otherwise
        the reason is the contradiction to the nearest quote. A claim that is near no quote keeps its verdict.
        """
        claim = self._vectors[verdict.claim.text]
        cosines = np.stack([self._vectors[each.support.quote] for each in found]) @ claim
        reason, least = verdict.reason, MIN_RELATIVE
        nearest: Candidate | None = None
        for number in (int(number) for number in np.argsort(-cosines, kind="stable")):
            candidate = found[number]
            cohort = await self._similarity.cohort(candidate.language)
            near = float(relative_to((cohort @ claim).mean(), cosines[number]))
            # Written so that a value that is no number refuses.
            if not near >= least:
                break
            if not (candidate.support.passage.marker in verdict.claim.markers or near >= MIN_UNCITED_RELATIVE):
                continue
            nearest = nearest or candidate
            least = max(least, NEARLY * near)
            if candidate.support.passage is not nearest.support.passage:
                continue
            if candidate.reason is None:
                return Verdict(verdict.claim, (replace(candidate.support, score=min(1.0, near)),))
            reason = candidate.reason if reason in ("language", verdict.reason) else reason
        reason = "unsupported" if reason == "language" else reason
        return Verdict(verdict.claim, reason=reason)

    async def _embed(self, texts: Iterable[str]) -> None:
        """Keep the vectors of texts. Claims of one answer have the same quotes, which are embedded once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            vectors = await self._similarity.embed(new)
            self._vectors.update(zip(new, vectors, strict=True))
