"""The port of idempotent requests: stores the response to a request under a key that the caller chose.

`testing.catalogue.idempotency` checks the contract on every adapter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Protocol

from agentic_rag_backend.domain.tenant import TenantId

KEPT = timedelta(hours=24)
"""Time for which a response is kept."""
MAX_KEPT = 10_000
"""Maximum number of stored responses per owner. Beyond it, the oldest are removed early."""


class Operator(Enum):
    """Owner of requests that belong to no tenant."""

    OPERATOR = "operator"


Owner = TenantId | Operator


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A stored response."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class IdempotencyClaim:
    """The right to carry a request out. It ends by `complete`, by `release`, or when its lease expires."""

    token: str


class IdempotencyKeys(Protocol):
    """``digest`` identifies a caller's key on one route, ``fingerprint`` the rest of the request."""

    async def begin(self, owner: Owner, digest: str, *, fingerprint: str, lease_s: float) -> IdempotencyClaim | StoredResponse:
        """Claim a request, or return its stored response. Of several concurrent requests, one gets the claim.

        Args:
            lease_s: seconds without an end after which the process counts as dead and the key is free.

        Raises:
            IdempotencyKeyReused: the key belongs to a request with another fingerprint.
            IdempotencyInProgress: the request is being carried out now.
        """

    async def complete(self, owner: Owner, digest: str, claim: IdempotencyClaim, answer: StoredResponse) -> bool:
        """Store the answer for `KEPT`. Return False if the claim was lost."""

    async def release(self, owner: Owner, digest: str, claim: IdempotencyClaim) -> None:
        """Free the key of a request that changed nothing. No effect if the claim was lost."""

    async def release_all(self) -> int:
        """Free every key of a request in progress, for all owners. Return their number.

        Call it before a process serves that has the catalogue to itself: requests in progress belong to a killed process.
        """

    async def sweep(self) -> int:
        """Remove expired keys of all owners, and return their number."""
