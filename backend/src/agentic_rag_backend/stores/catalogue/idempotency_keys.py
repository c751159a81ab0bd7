"""Idempotent requests: stores the response to a request under a key that the caller chose.

`testing.catalogue.idempotency` checks the contract on both databases.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from functools import cache

from sqlalchemy import ColumnElement, Executable, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import IdempotencyInProgress, IdempotencyKeyReused
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, write
from agentic_rag_backend.stores.catalogue.tables import idempotency_keys

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


_RETRY_AFTER_S = 1.0
_keys = idempotency_keys.c


def _owner_text(owner: Owner) -> str:
    return owner.value if isinstance(owner, Operator) else require_tenant(owner).value


@cache
def _insert_statement(dialect: str) -> Executable:
    # Both dialects have these methods, but no common class declares them.
    statement = postgresql.insert(idempotency_keys) if dialect == "postgresql" else sqlite.insert(idempotency_keys)
    # RETURNING, because not every driver reports the number of inserted rows.
    return statement.on_conflict_do_nothing(index_elements=["tenant_id", "digest"]).returning(_keys.claim)


def begin(
    connection: Connection, owner: Owner, digest: str, *, fingerprint: str, lease_s: float
) -> IdempotencyClaim | StoredResponse:
    """Claim a request, or return its stored response. Of several concurrent requests, one gets the claim.

    Args:
        lease_s: seconds without an end after which the process counts as dead and the key is free.

    Raises:
        IdempotencyKeyReused: the key belongs to a request with another fingerprint.
        IdempotencyInProgress: the request is being carried out now.
    """
    now = utc_now()
    row = {
        "tenant_id": _owner_text(owner),
        "digest": digest,
        "fingerprint": fingerprint,
        "claim": secrets.token_hex(16),
        "created_at": now,
        "expires_at": now + timedelta(seconds=lease_s),
    }
    its = (_keys.tenant_id == row["tenant_id"], _keys.digest == row["digest"])
    connection.execute(delete(idempotency_keys).where(*its, _keys.expires_at <= now))
    # The insertion decides between concurrent requests: the later one waits for the earlier one and finds its row.
    if connection.execute(_insert_statement(connection.dialect.name), row).first() is not None:
        _drop_oldest(connection, row["tenant_id"])
        return IdempotencyClaim(str(row["claim"]))
    key_row = connection.execute(select(idempotency_keys).where(*its)).mappings().first()
    if key_row is not None and key_row["fingerprint"] != row["fingerprint"]:
        raise IdempotencyKeyReused(
            "the Idempotency-Key was used for a request with another body; use a new key for a new request"
        )
    if key_row is None or key_row["claim"] is not None:
        raise IdempotencyInProgress(
            "the request of this Idempotency-Key is in progress; retry in a moment", retry_after_s=_RETRY_AFTER_S
        )
    return StoredResponse(key_row["status"], key_row["headers"], key_row["body"])


def _drop_oldest(connection: Connection, owner: object) -> None:
    newest = select(_keys.created_at).where(_keys.tenant_id == owner).order_by(_keys.created_at.desc(), _keys.digest.desc())
    beyond = newest.offset(MAX_KEPT).limit(1).scalar_subquery()
    connection.execute(
        delete(idempotency_keys).where(_keys.tenant_id == owner, _keys.claim.is_(None), _keys.created_at <= beyond)
    )


def complete(connection: Connection, owner: Owner, digest: str, claim: IdempotencyClaim, answer: StoredResponse) -> bool:
    """Store the answer for `KEPT`. Return False if the claim was lost."""
    values = {"status": answer.status, "headers": dict(answer.headers), "body": answer.body}
    statement = update(idempotency_keys).where(*_of_claim(owner, digest, claim))
    return connection.execute(statement.values(claim=None, expires_at=utc_now() + KEPT, **values)).rowcount == 1


def release(connection: Connection, owner: Owner, digest: str, claim: IdempotencyClaim) -> None:
    """Free the key of a request that changed nothing. No effect if the claim was lost."""
    connection.execute(delete(idempotency_keys).where(*_of_claim(owner, digest, claim)))


def _of_claim(owner: Owner, digest: str, claim: IdempotencyClaim) -> tuple[ColumnElement[bool], ...]:
    return _keys.tenant_id == _owner_text(owner), _keys.digest == digest, _keys.claim == claim.token


def release_all(connection: Connection) -> int:
    """Free every key of a request in progress, for all owners. Return their number.

    Call it before a process serves that has the catalogue to itself: requests in progress belong to a killed process.
    """
    return connection.execute(delete(idempotency_keys).where(_keys.claim.is_not(None))).rowcount


def sweep(connection: Connection) -> int:
    """Remove expired keys of all owners, and return their number."""
    return connection.execute(delete(idempotency_keys).where(_keys.expires_at <= utc_now())).rowcount


class IdempotencyKeys(CataloguePart):
    """``digest`` identifies a caller's key on one route, ``fingerprint`` the rest of the request.

    A key is one row. Its ``expires_at`` is the end of the lease, then the end of the answer.
    """

    begin = write(begin)
    complete = write(complete)
    release = write(release)
    release_all = write(release_all)
    sweep = write(sweep)
