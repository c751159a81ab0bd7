"""Finds paraphrases by their embeddings, after the checks of words.

An embedding hardly distinguishes "sold to" from "bought by", or 1912 from 1921. It only decides about claims whose words cover
too little of every quote. Names, numbers, denials, hedges and roles must still agree (`lexical`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.generation.claims.base import SupportingSpan, Verdict
from agentic_rag_backend.generation.claims.languages.similarity import AcrossLanguages
from agentic_rag_backend.generation.claims.lexical import LexicalVerifier
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.similarity import RelativeSimilarity
from agentic_rag_backend.models.embedding.base import TextEncoder
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

MIN_OVERLAP = 0.35
"""Least share of a claim's words that a quote must cover to be compared."""
MIN_SIMILARITY = 0.85
"""Least cosine similarity of a claim and a quote that states it in other words."""
MAX_QUOTES = 3
"""Quotes that are compared with one claim."""


class EmbeddingVerifier:
    """A lexical verifier that also accepts paraphrases.

    One call of the encoder for each call of `verify` that needs one, and one of the embedder of several languages.

    Args:
        encoder: knows English.
        similarity: compares claims with passages in another language; None: no encoder knows both, and these claims fail.
    """

    def __init__(self, lexical: LexicalVerifier, encoder: TextEncoder, similarity: RelativeSimilarity | None = None) -> None:
        self._lexical = lexical
        self._encoder = encoder
        self._across = None if similarity is None else AcrossLanguages(similarity)
        self._failures: list[str] = []

    @property
    def failures(self) -> Sequence[str]:
        """Failures of the encoder. Without it, words decide alone."""
        return tuple(self._failures)

    @property
    def usage(self) -> Usage:
        """No language model is called."""
        return Usage()

    async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return the verdict of each claim."""
        verdicts = await self._lexical.verify(claims)
        try:
            await self._accept_paraphrases(verdicts)
            await self._accept_translations(verdicts)
        except ModelUnavailable as error:
            _log.warning("paraphrases_not_checked", code=error.code)
            self._failures.append(f"the encoder did not compare sentences: {error.code}")
        return verdicts

    def may_change(self, verdict: Verdict) -> bool:
        """Words and embeddings decide at once."""
        return False

    async def settle(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Return the verdicts."""
        return list(verdicts)

    async def _accept_paraphrases(self, verdicts: list[Verdict]) -> None:
        """Replace the verdicts of claims that state a quote in other words of its language."""
        open_ones = {
            index: quotes
            for index, verdict in enumerate(verdicts)
            if verdict.reason == "unsupported"
            and (quotes := self._lexical.paraphrased(verdict.claim, least=MIN_OVERLAP, every_word=True)[:MAX_QUOTES])
        }
        if not open_ones:
            return
        nearest = await self._nearest([(verdicts[index].claim.text, quotes) for index, quotes in open_ones.items()])
        for index, found in zip(open_ones, nearest, strict=True):
            if found is not None:
                verdicts[index] = Verdict(verdicts[index].claim, (found,))

    async def _accept_translations(self, verdicts: list[Verdict]) -> None:
        """Replace the verdicts of claims that state a quote in another language."""
        if self._across is None:
            return
        open_ones = {
            index: (verdict, found)
            for index, verdict in enumerate(verdicts)
            if not verdict.holds and (found := self._lexical.across(verdict))
        }
        if open_ones:
            for index, verdict in zip(open_ones, await self._across.verdicts(list(open_ones.values())), strict=True):
                verdicts[index] = verdict

    async def _nearest(self, compared: Sequence[tuple[str, Sequence[SupportingSpan]]]) -> list[SupportingSpan | None]:
        """Return the most similar quote of each text, if it is similar enough."""
        texts = [text for claim, quotes in compared for text in (claim, *(quote.quote for quote in quotes))]
        vectors = await self._encoder.embed(texts)
        found: list[SupportingSpan | None] = []
        at = 0
        for _, quotes in compared:
            similarities = vectors[at + 1 : at + 1 + len(quotes)] @ vectors[at]
            best = int(similarities.argmax())
            close = float(similarities[best])
            found.append(replace(quotes[best], score=min(1.0, close)) if close >= MIN_SIMILARITY else None)
            at += 1 + len(quotes)
        return found
