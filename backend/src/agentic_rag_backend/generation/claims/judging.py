"""Has a language model judge claims that passed the other checks. It can only reject a claim.

A model's word never makes a claim supported: a model that judges wrongly, or that a document manipulates, cannot let a false
sentence pass that words show to be false.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.generation.claims.base import ClaimVerifier, Reason, Verdict
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.models.llm.schemas import INTEGER, TEXT, list_of, object_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls, number_in, objects_in

MAX_JUDGED = 30
"""Claims of one answer that the model judges. The other checks decide about more."""
_REASONS: tuple[Reason, ...] = get_args(Reason)
_BY_WORDS = ("quote", "language")
"""Reasons that words decide."""
_SCHEMA = object_of(
    {
        "not_stated": list_of(
            object_of({"number": INTEGER, "reason": {**TEXT, "enum": [reason for reason in _REASONS if reason not in _BY_WORDS]}})
        )
    }
)


class ModelVerifier:
    """Checks claims with another verifier, then has a model judge the claims that hold, in one call.

    Args:
        left_s: seconds from now in which the model must have judged; None: the limit of ``calls``.
    """

    def __init__(self, before: ClaimVerifier, calls: StructuredCalls, left_s: float | None = None) -> None:
        self._before = before
        self._calls = calls
        self._ends_at = None if left_s is None else time.monotonic() + left_s
        self._usage = Usage()
        self._failures: list[str] = []

    @property
    def whole(self) -> bool:
        """All claims are judged in one call, which costs less than a call for each."""
        return True

    @property
    def failures(self) -> Sequence[str]:
        """Failures of the model and of the other verifier."""
        return (*self._before.failures, *self._failures)

    @property
    def usage(self) -> Usage:
        """Usage of the judging model."""
        return self._before.usage + self._usage

    async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return the verdict of each claim. If the model fails, the other verifier decides, and `failures` says so."""
        verdicts = await self._before.verify(claims)
        judged = [index for index, verdict in enumerate(verdicts) if verdict.holds][:MAX_JUDGED]
        if not judged:
            return verdicts
        parts = "\n".join(_part(number, verdicts[index]) for number, index in enumerate(judged, 1))
        reply = await self._timed_calls().ask(built_in("claim_check"), {"parts": fence("parts", parts)}, _SCHEMA, max_tokens=400)
        self._usage += reply.usage
        if reply.parsed is None:
            self._failures.append(f"the model did not check the sentences: {reply.failure}")
            return verdicts
        for item in objects_in(reply.parsed, "not_stated"):
            number = number_in(item, "number", low=0, high=len(judged) + 1)
            if number is not None and 1 <= number <= len(judged):
                index = judged[int(number) - 1]
                verdicts[index] = Verdict(claims[index], reason=_reason(item.get("reason")))
        return verdicts

    def _timed_calls(self) -> StructuredCalls:
        if self._ends_at is None:
            return self._calls
        return replace(self._calls, timeout_s=min(self._calls.timeout_s, max(0.0, self._ends_at - time.monotonic())))


def _part(number: int, verdict: Verdict) -> str:
    quotes = "\n".join(f"Quote {number}: {support.passage.title}: {support.quote}" for support in verdict.supports)
    return f"Sentence {number}: {verdict.claim.text}\n{quotes}"


def _reason(given: object) -> Reason:
    return next((reason for reason in _REASONS if reason == given), "unsupported")
