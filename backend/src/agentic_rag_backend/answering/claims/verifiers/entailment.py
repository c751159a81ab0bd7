"""Has a reader decide whether claims follow from their quotes, after the checks of words and embeddings.

A claim that words show to be false stays false. The others are supported if the reader finds that they follow from a quote.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.answering.claims.base import ClaimVerifier, Reason, SupportingSpan, Verdict
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.language.independence import refers_back
from agentic_rag_backend.language.languages import ENGLISH, language_near
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.models.entailment.base import EntailmentReader, Inference, Label
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

MIN_OVERLAP = 0.35
"""Least share of a claim's words that a quote must cover to be read with it."""
MAX_QUOTES = 3
"""Quotes in other words that are read with one claim."""
MAX_PAIRS = 60
"""Pairs of one answer that are read. The other checks decide about further claims."""
_REASONS: dict[Label, Reason] = {"contradiction": "negated", "neutral": "unsupported"}
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class _Question:
    """Whether claim number ``index`` follows from quotes: from all of them together, which is what the claim cites."""

    index: int
    premise: str
    supports: tuple[SupportingSpan, ...]


class EntailmentVerifier:
    """Checks claims with another verifier, then has a reader read claims with their quotes.

    Not read are copies of a quote, rows of tables, and texts in other languages than English: the other verifier decides about
    them.

    Args:
        before: the other verifier.
        lexical: finds the quotes for claims in other words.
        left_s: seconds from now in which the reader must have read; None: no limit.
    """

    def __init__(
        self, before: ClaimVerifier, lexical: LexicalVerifier, reader: EntailmentReader, left_s: float | None = None
    ) -> None:
        self._before = before
        self._lexical = lexical
        self._reader = reader
        self._ends_at = None if left_s is None else time.monotonic() + left_s
        self._pairs_left = MAX_PAIRS
        self._failures: list[str] = []

    @property
    def failures(self) -> Sequence[str]:
        """Failures of the reader and of the other verifier."""
        return (*self._before.failures, *self._failures)

    @property
    def usage(self) -> Usage:
        """Usage of the other verifier. The reader is in this process."""
        return self._before.usage

    async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return the verdict of each claim. If the reader fails, the other verifier decides, and `failures` says so."""
        verdicts = await self._before.verify(claims)
        questions = await asyncio.to_thread(self._choose_questions, verdicts)
        if not questions:
            return verdicts
        try:
            async with asyncio.timeout(self._seconds_left()):
                inferences = await self._reader.read(
                    [(question.premise, verdicts[question.index].claim.text) for question in questions]
                )
        except TimeoutError:
            self._failures.append("the reader did not read the sentences in time")
            return verdicts
        except ModelUnavailable as error:
            _log.warning("claims_not_read", code=error.code)
            self._failures.append(f"the reader did not read the sentences: {error.code}")
            return verdicts
        answers: dict[int, list[tuple[_Question, Inference]]] = {}
        for question, inference in zip(questions, inferences, strict=True):
            answers.setdefault(question.index, []).append((question, inference))
        for index, answers_of_claim in answers.items():
            verdicts[index] = _decide_claim(verdicts[index], answers_of_claim)
        return verdicts

    def may_change(self, verdict: Verdict) -> bool:
        """Return whether the other verifier may change it; the reader decides at once."""
        return self._before.may_change(verdict)

    async def settle(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Return the other verifier's final verdicts."""
        return await self._before.settle(verdicts)

    def _choose_questions(self, verdicts: Sequence[Verdict]) -> list[_Question]:
        """Return what the reader is asked, as far as `MAX_PAIRS` allows. A claim is read with all of its quotes or not at all."""
        chosen: list[_Question] = []
        for index, verdict in enumerate(verdicts):
            questions = self._questions_about(index, verdict)
            if len(questions) <= self._pairs_left:
                self._pairs_left -= len(questions)
                chosen += questions
        return chosen

    def _questions_about(self, index: int, verdict: Verdict) -> list[_Question]:
        text = verdict.claim.text
        if language_near(text, ENGLISH) != ENGLISH:
            return []
        if verdict.holds:
            supports = verdict.supports
            copied = any(_words_of(support.quote) == _words_of(text) for support in supports)
            readable = not copied and all(map(self._lexical.is_prose, supports))
            return [_Question(index, _join_premise(text, supports), supports)] if readable else []
        if verdict.reason != "unsupported":
            return []
        quotes = [
            quote
            for quote in self._lexical.quotes_for_paraphrase(verdict.claim, least=MIN_OVERLAP)
            if self._lexical.is_prose(quote)
        ]
        return [_Question(index, _join_premise(text, [quote]), (quote,)) for quote in quotes[:MAX_QUOTES]]

    def _seconds_left(self) -> float | None:
        return None if self._ends_at is None else max(0.0, self._ends_at - time.monotonic())


def _decide_claim(verdict: Verdict, inferences: Sequence[tuple[_Question, Inference]]) -> Verdict:
    """Return the verdict of a claim that was read with one or several quotes."""
    question, best = max(inferences, key=lambda pair: pair[1].entailment)
    if best.likeliest == "entailment":
        supports = question.supports
        if not verdict.holds:
            supports = tuple(replace(support, score=best.entailment) for support in supports)
        return Verdict(verdict.claim, supports)
    # A quote for other words is perhaps about something else, so that it contradicts nothing.
    # Without an own quote, the claim stays undecided.
    if not verdict.holds:
        return Verdict(verdict.claim, reason="unsupported")
    return Verdict(verdict.claim, reason=_REASONS[best.likeliest], rejected=True)


def _join_premise(claim: str, supports: Sequence[SupportingSpan]) -> str:
    """Return the quotes as one text."""
    return " ".join(dict.fromkeys(_in_context(claim, support) for support in supports))


def _in_context(claim: str, support: SupportingSpan) -> str:
    """Return a quote with what its words refer to: the title and the sentence before it."""
    title, quote = support.passage.title, support.quote
    before = split_sentences(support.passage.text[: support.start])[-1:] if refers_back(quote) else []
    text = " ".join((*(sentence.text for sentence in before), quote))
    lacking = content_forms(claim) - content_forms(text)
    return f"{title}: {text}" if title and (before or refers_back(quote) or lacking & content_forms(title)) else text


def _words_of(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
