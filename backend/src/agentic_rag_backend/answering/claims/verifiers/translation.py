"""Compares a claim with passages in another language: an embedder that knows both decides, if words contradict nothing.

An embedder hardly distinguishes 1912 from 1921, or a denial. So numbers, months, names, denials and hedges must agree first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.answering.claims.base import Reason, SupportingSpan, Verdict
from agentic_rag_backend.answering.claims.comparison.conflicts import misquotes
from agentic_rag_backend.answering.claims.comparison.polarity import find_denials, find_hedges
from agentic_rag_backend.answering.claims.passages import IndexedPassage, QuoteWindow
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.tokens import Token, mentions_in, read_tokens
from agentic_rag_backend.answering.claims.verifiers.lexical import MAX_CLAIM_CHARACTERS, LexicalVerifier
from agentic_rag_backend.answering.similarity import RelativeSimilarity, relative_to
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.language.languages import ENGLISH, is_mostly_latin
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code, plain_form
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

MAX_QUOTES = 40
"""Quotes in other languages that are compared with one claim."""
MIN_RELATIVE = 0.28
"""Least similarity of a claim and a quote, relative to unrelated sentences. Of right claims, nearly all have more."""
MIN_UNCITED_RELATIVE = 0.45
"""The same for a passage that the claim does not cite."""
NEARLY = 0.85
"""Share of the nearest quote's similarity that another one must have to be chosen instead."""
_FOREIGN_NAME = re.compile(f"[{''.join(sorted(language_of_code('zh').transliteration))}]{{3,}}")
"""Characters with which Chinese writes a foreign name by its sounds."""
_UNDECIDED = ("unsupported", "language")
"""Reasons that are no contradictions."""
_DATES = ("month:", "day:")
"""Marks that every language has."""
_NAME_ENDING = 2
"""Letters by which two forms of a name may differ at the end: "Petersen", "Petersens"."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible quote of a passage in another language, and the reason why the claim contradicts it; None if it does not."""

    support: SupportingSpan
    language: str
    reason: Reason | None


class EmbeddingVerifier:
    """A lexical verifier that also accepts claims in another language than their passage.

    One call of the embedder for each call of `verify` that needs one.

    Args:
        similarity: compares claims with passages in another language; None: no embedder knows both, and these claims fail.
    """

    def __init__(self, lexical: LexicalVerifier, similarity: RelativeSimilarity | None = None) -> None:
        self._lexical = lexical
        self._similarity = similarity
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._failures: list[str] = []

    @property
    def failures(self) -> Sequence[str]:
        """Failures of the embedder. Without it, words decide alone."""
        return tuple(self._failures)

    @property
    def usage(self) -> Usage:
        """No language model is called."""
        return Usage()

    async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return the verdict of each claim."""
        verdicts = await self._lexical.verify(claims)
        if self._similarity is None:
            return verdicts
        try:
            await self._accept_translations(verdicts, self._similarity)
        except ModelUnavailable as error:
            _log.warning("translations_not_checked", code=error.code)
            self._failures.append(f"the encoder did not compare sentences: {error.code}")
        return verdicts

    def may_change(self, verdict: Verdict) -> bool:
        """Words and embeddings decide at once."""
        return False

    async def settle(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Return the verdicts."""
        return list(verdicts)

    async def _accept_translations(self, verdicts: list[Verdict], similarity: RelativeSimilarity) -> None:
        """Replace the verdicts of claims that state a quote in another language. All new texts are embedded in one call."""
        candidates = {
            index: quotes
            for index, verdict in enumerate(verdicts)
            if not verdict.holds and (quotes := list_candidates(verdict, self._lexical))
        }
        texts = [
            text
            for index, quotes in candidates.items()
            for text in (verdicts[index].claim.text, *(candidate.support.quote for candidate in quotes))
        ]
        fresh = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if fresh:
            vectors = await similarity.embed(fresh)
            self._vectors.update(zip(fresh, vectors, strict=True))
        for index, quotes in candidates.items():
            verdicts[index] = await self._decide_claim(verdicts[index], quotes, similarity)

    async def _decide_claim(self, verdict: Verdict, candidates: Sequence[Candidate], similarity: RelativeSimilarity) -> Verdict:
        """Return the verdict of a claim by its nearest quote in another language.

        Of the nearest passage, the nearest quote that the claim contradicts in nothing states it if it is near enough. Otherwise
        the reason is the contradiction to the nearest quote. A claim that is near no quote keeps its verdict.
        """
        claim = self._vectors[verdict.claim.text]
        cosines = np.stack([self._vectors[candidate.support.quote] for candidate in candidates]) @ claim
        reason, least = verdict.reason, MIN_RELATIVE
        best: Candidate | None = None
        for number in map(int, np.argsort(-cosines, kind="stable")):
            candidate = candidates[number]
            cohort = await similarity.cohort(candidate.language)
            relative = float(relative_to((cohort @ claim).mean(), cosines[number]))
            # Written so that a value that is no number refuses.
            if not relative >= least:
                break
            if not (candidate.support.passage.marker in verdict.claim.markers or relative >= MIN_UNCITED_RELATIVE):
                continue
            best = best or candidate
            least = max(least, NEARLY * relative)
            if candidate.support.passage is not best.support.passage:
                continue
            if candidate.reason is None:
                return Verdict(verdict.claim, (replace(candidate.support, score=min(1.0, relative)),))
            reason = candidate.reason if reason in ("language", verdict.reason) else reason
        return Verdict(verdict.claim, reason="unsupported" if reason == "language" else reason)


def list_candidates(verdict: Verdict, lexical: LexicalVerifier) -> list[Candidate]:
    """Return the quotes in another language than the claim's, of cited passages first; `MAX_QUOTES` at most.

    None for a claim that contradicts a passage in its own language: an embedder does not see that names changed places.
    """
    claim = verdict.claim
    if len(claim.text) > MAX_CLAIM_CHARACTERS:
        return []
    passages = lexical.passages
    languages = {marker: lexical.language_of(claim, passage) for marker, passage in passages.items()}
    compared = [
        marker
        for marker, passage in sorted(passages.items(), key=lambda item: (item[0] not in claim.markers, item[0]))
        if languages[marker] is not passage.language
        and not (passage.language.code == ENGLISH and lexical.is_covered_by(claim, passage))
    ]
    cited = [marker for marker in claim.markers if marker in passages] or list(passages)
    if verdict.reason not in _UNDECIDED and any(marker not in compared for marker in cited):
        return []
    quotes_nothing = misquotes(claim.text, [passage.passage.text for passage in passages.values()])
    candidates: list[Candidate] = []
    for marker in compared:
        passage, language = passages[marker], languages[marker]
        text = _ReadClaim(claim.text, read_tokens(claim.text, language), language)
        for window in sorted(passage.windows, key=lambda window: (window.double, window.start))[:MAX_QUOTES]:
            reason = "quote" if quotes_nothing else _find_contradiction(text, passage, window)
            support = SupportingSpan(passage.passage, window.start, window.end, 0.0, frozenset())
            candidates.append(Candidate(support, passage.language.code, reason))
    return candidates[:MAX_QUOTES]


@dataclass(frozen=True, slots=True)
class _ReadClaim:
    text: str
    tokens: Sequence[Token]
    language: Language


def _find_contradiction(claim: _ReadClaim, passage: IndexedPassage, window: QuoteWindow) -> Reason | None:
    quote = passage.within(window.start, window.end)
    evidence = [*quote, *passage.title]
    if not _values_of(claim.tokens, claim.language) <= _values_of(evidence, passage.language):
        return "number"
    if not _has_names(claim, passage, window.start, evidence):
        return "name"
    if bool(find_denials(claim.tokens, claim.language)) is not bool(find_denials(quote, passage.language)):
        return "negated"
    return "modality" if find_hedges(quote, passage.language) and not find_hedges(claim.tokens, claim.language) else None


def _values_of(tokens: Sequence[Token], language: Language) -> set[str]:
    """Return the values of numbers, months and weekdays: "1.2 million" is 1200000 in every language."""
    values: set[str] = set()
    for index, token in enumerate(tokens):
        mark = language.marks.get(plain_form(token.raw), token.form)
        if mark.startswith(_DATES) and token.raw != "may":
            values.add(mark)
        elif token.form[:1].isdigit():
            following = tokens[index + 1].form if index + 1 < len(tokens) else ""
            values.add(_scale_number(token.form, language.scales.get(following, 1)))
    return values


def _scale_number(form: str, scale: int) -> str:
    try:
        value = float(form) * scale
    except ValueError:
        return form
    return str(int(value)) if value == int(value) else repr(round(value, 6))


def _has_names(claim: _ReadClaim, passage: IndexedPassage, start: int, evidence: Sequence[Token]) -> bool:
    """Return whether the quote, the title, or, for a pronoun, the text before the quote contains the claim's names.

    A name in other letters cannot be compared, so that a claim with such a name does not hold.
    """
    names = list(_names_of(claim.tokens, claim.language))
    if not (is_mostly_latin(passage.passage.text) and is_mostly_latin(claim.text)):
        return not names and not _FOREIGN_NAME.search(claim.text)
    pronoun = any(token.form in passage.language.pronouns for token in evidence)
    words = {plain_form(token.raw) for token in (*evidence, *(passage.within(0, start) if pronoun else ()))}
    return all(any(_is_same_name(name, word) for word in words) for name in names)


def _names_of(tokens: Sequence[Token], language: Language) -> Iterator[str]:
    """Yield the words of names that both languages write alike."""
    for mention in mentions_in(tokens, ()):
        for token in () if mention.number else tokens[mention.first : mention.last + 1]:
            name = plain_form(token.raw.removesuffix("'s").removesuffix("’s"))
            if token.content and token.form not in language.translated_titles and name not in language.marks:
                yield name


def _is_same_name(name: str, word: str) -> bool:
    shorter, longer = sorted((name, word), key=len)
    return longer.startswith(shorter) and len(longer) - len(shorter) <= _NAME_ENDING and len(shorter) > 1
