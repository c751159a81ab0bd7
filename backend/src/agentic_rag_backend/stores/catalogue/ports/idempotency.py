"""The port of requests that are carried out once: what was answered under a key that the caller chose.

`testing.idempotency` checks the contract on every adapter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Protocol

from agentic_rag_backend.domain.tenant import TenantId

KEPT = timedelta(hours=24)
"""How long an answer is kept."""
MAX_KEPT = 10_000
"""Answers kept for each owner; beyond, the oldest go before their time."""


class Operator(Enum):
    """Who owns what no tenant does."""

    OPERATOR = "operator"


Owner = TenantId | Operator


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as it was given."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to carry a request out; it ends by `complete`, by `release`, or when its lease does."""

    token: str


class IdempotencyKeys(Protocol):
    """``digest`` stands for a caller's key on one route, ``fingerprint`` for all else that the request says."""

    async def begin(self, owner: Owner, digest: str, *, fingerprint: str, lease_s: float) -> Claim | Answer:
        """Claim a request, or return how it was answered; of several at once one gets the claim.

        Args:
            lease_s: after so many seconds without an end the process is taken for dead and the key for free.

        Raises:
            IdempotencyKeyReused: the key belongs to a request with another fingerprint.
            IdempotencyInProgress: the request is being carried out now.
        """

    async def complete(self, owner: Owner, digest: str, claim: Claim, answer: Answer) -> bool:
        """Keep the answer for `KEPT` from now on; return False if the claim was lost."""

    async def release(self, owner: Owner, digest: str, claim: Claim) -> None:
        """Free the key: nothing was carried out. Nothing happens if the claim was lost."""

    async def release_all(self) -> int:
        """Free every key whose request is being carried out, of everybody; return how many that were.

        For a process that has the catalogue to itself, before it serves: a killed one carries nothing out.
        """

    async def sweep(self) -> int:
        """Remove what is over, of everybody; return how many keys that were."""
