"""Has a language model judge claims about which words and embeddings could not decide, all of one answer in one call.

The model reads each claim with its quotes. Its word supports a claim only if it says so of that number: a claim that the reply
leaves out stays undecided. A claim that seems to contradict a quote can be rejected by the model, but never become supported, so
that neither a model that judges wrongly nor a document that manipulates it lets a false sentence pass.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.generation.claims.base import ClaimVerifier, Reason, SupportingSpan, Verdict
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.models.llm.base import BOOLEAN, INTEGER, list_of, object_of, objects_in, one_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls, number_in

MAX_JUDGED = 30
"""Claims of one answer that the model judges. The other checks decide about more."""
MAX_QUOTES = 3
"""Quotes that the model reads for one claim."""
_REPLY_TOKENS = 100
_TOKENS_A_CLAIM = 30
_REASONS: tuple[Reason, ...] = get_args(Reason)
_BY_WORDS = ("quote", "language")
"""Reasons that words decide."""
_UNSUSPECTED = ("unsupported", "language")
"""Reasons without a suspicion. About others, the model can confirm a suspicion, but not remove it."""
_SCHEMA = object_of(
    {
        "verdicts": list_of(
            object_of(
                {
                    "number": INTEGER,
                    "stated": BOOLEAN,
                    "reason": one_of(["", *(reason for reason in _REASONS if reason not in _BY_WORDS)]),
                }
            ),
            MAX_JUDGED,
        )
    }
)


class ModelVerifier:
    """Checks claims with another verifier, then has a model judge the undecided ones.

    Args:
        before: the other verifier.
        lexical: finds the quotes of undecided claims, and claims that are copies.
        left_s: seconds from now in which the model must have judged; None: the limit of ``calls``.
        supported_too: whether the model also judges supported claims that are no copies of a passage. It can reject them.
    """

    def __init__(
        self,
        before: ClaimVerifier,
        lexical: LexicalVerifier,
        calls: StructuredCalls,
        left_s: float | None = None,
        *,
        supported_too: bool = False,
    ) -> None:
        self._before = before
        self._lexical = lexical
        self._calls = calls
        self._ends_at = None if left_s is None else time.monotonic() + left_s
        self._supported_too = supported_too
        self._usage = Usage()
        self._failures: list[str] = []

    @property
    def failures(self) -> Sequence[str]:
        """Failures of the model and of the other verifier."""
        return (*self._before.failures, *self._failures)

    @property
    def usage(self) -> Usage:
        """Usage of the judging model."""
        return self._before.usage + self._usage

    async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return the verdicts of the other verifier."""
        return await self._before.verify(claims)

    def may_change(self, verdict: Verdict) -> bool:
        """Return whether the model is asked about a claim."""
        if verdict.holds:
            return self._supported_too and not self._lexical.quotes_copied_by(verdict.claim)
        return verdict.status == "unverified" or self._before.may_change(verdict)

    async def settle(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Return the final verdicts. If the model fails, the other verifier's stay, and `failures` says so."""
        settled = await self._before.settle(verdicts)
        quotes = {index: self._quotes_of(verdict) for index, verdict in enumerate(settled) if self.may_change(verdict)}
        judged = [index for index, spans in quotes.items() if spans][:MAX_JUDGED]
        if not judged:
            return settled
        parts = "\n".join(_write_part(number, settled[index], quotes[index]) for number, index in enumerate(judged, 1))
        limit = _REPLY_TOKENS + _TOKENS_A_CLAIM * len(judged)
        reply = await self._timed_calls().ask(
            built_in("claim_check"), {"parts": fence("parts", parts)}, _SCHEMA, max_tokens=limit
        )
        self._usage += reply.usage
        if reply.parsed is None:
            self._failures.append(f"the model did not check the sentences: {reply.failure}")
            return settled
        for item in objects_in(reply.parsed, "verdicts"):
            number = number_in(item, "number", low=0, high=len(judged) + 1)
            if number is None or not 1 <= number <= len(judged):
                continue
            index = judged[int(number) - 1]
            if item.get("stated") is True and settled[index].reason in _UNSUSPECTED:
                settled[index] = Verdict(settled[index].claim, tuple(quotes[index]))
            elif item.get("stated") is False and item.get("reason"):
                # Weak models fill in a schema. A rejection without a reason is none.
                settled[index] = Verdict(settled[index].claim, reason=_read_reason(item["reason"]), rejected=True)
        return settled

    def _quotes_of(self, verdict: Verdict) -> list[SupportingSpan]:
        """Return the quotes of a claim; of an undecided one, those that share most words with it."""
        if verdict.holds:
            return list(verdict.supports)
        spans = self._lexical.nearest_quotes(verdict.claim)
        cited = [span for span in spans if span.passage.marker in verdict.claim.markers]
        return (cited or spans)[:MAX_QUOTES]

    def _timed_calls(self) -> StructuredCalls:
        if self._ends_at is None:
            return self._calls
        return replace(self._calls, timeout_s=min(self._calls.timeout_s, max(0.0, self._ends_at - time.monotonic())))


def _write_part(number: int, verdict: Verdict, quotes: Sequence[SupportingSpan]) -> str:
    lines = "\n".join(f"Quote {number}: {quote.passage.title}: {quote.quote}" for quote in quotes)
    return f"Sentence {number}: {verdict.claim.text}\n{lines}"


def _read_reason(value: object) -> Reason:
    return next((reason for reason in _REASONS if reason == value), "unsupported")
