"""Search sessions: what agentic retrieval remembers between requests.

`testing.catalogue.search_sessions` checks the contract on both databases.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta

from sqlalchemy import Select, bindparam, delete, select, update
from sqlalchemy.engine import Connection, RowMapping
from sqlalchemy.exc import IntegrityError

from agentic_rag_backend.domain.search_session import MAX_SESSIONS, FactPlace, RememberedConstraint, SessionMemory
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, read, upsert, write
from agentic_rag_backend.stores.catalogue.tables import search_sessions

_sessions = search_sessions.c
_ITS = (_sessions.tenant_id == bindparam("tenant"), _sessions.digest == bindparam("session"))


def recall(connection: Connection, tenant: TenantId, digest: str) -> SessionMemory | None:
    """Return the memory of a session. None: there is no such session, or it has expired."""
    row = _read_row(connection, select(search_sessions).where(*_ITS), tenant, digest)
    return None if row is None or row["expires_at"] <= utc_now() else _memory_from(row)


def remember(connection: Connection, tenant: TenantId, digest: str, new_memory: SessionMemory, *, kept_s: float) -> SessionMemory:
    """Add to the memory of a session, which begins with the first call. Return all of it.

    Concurrent calls lose nothing. Beyond `MAX_SESSIONS` of a tenant, the sessions that were not used for the longest time go.

    Args:
        kept_s: seconds from now after which the session expires.

    Raises:
        NotFound: the tenant does not exist.
    """
    now = utc_now()
    _begin_session(connection, tenant, digest, now)
    row = _read_row(connection, select(search_sessions).where(*_ITS).with_for_update(), tenant, digest)
    if row is None:
        raise NotFound("the search session was removed")
    memory = (_memory_from(row) if row["expires_at"] > now else SessionMemory()).extend_memory(new_memory)
    values = {
        "facts": [asdict(fact) for fact in memory.facts],
        "constraints": [asdict(constraint) for constraint in memory.constraints],
        "used_at": now,
        "expires_at": now + timedelta(seconds=kept_s),
    }
    connection.execute(update(search_sessions).where(*_ITS).values(**values), {"tenant": tenant.value, "session": digest})
    _drop_oldest(connection, tenant)
    return memory


def _begin_session(connection: Connection, tenant: TenantId, digest: str, now: datetime) -> None:
    """Insert an expired session unless there is one. The row's lock then orders concurrent calls."""
    row = {
        "tenant_id": tenant.value,
        "digest": digest,
        "facts": [],
        "constraints": [],
        "used_at": now,
        "expires_at": now,
    }
    try:
        upsert(connection, search_sessions, [row], keys=("tenant_id", "digest"))
    except IntegrityError as error:
        raise NotFound(f"there is no tenant {tenant}") from error


def _drop_oldest(connection: Connection, tenant: TenantId) -> None:
    of_tenant = _sessions.tenant_id == tenant.value
    newest = select(_sessions.used_at).where(of_tenant).order_by(_sessions.used_at.desc(), _sessions.digest.desc())
    beyond = newest.offset(MAX_SESSIONS).limit(1).scalar_subquery()
    connection.execute(delete(search_sessions).where(of_tenant, _sessions.used_at <= beyond))


def sweep(connection: Connection) -> int:
    """Remove expired sessions of all tenants, and return their number."""
    return connection.execute(delete(search_sessions).where(_sessions.expires_at <= utc_now())).rowcount


def _read_row(connection: Connection, statement: Select[tuple[object, ...]], tenant: TenantId, digest: str) -> RowMapping | None:
    return connection.execute(statement, {"tenant": tenant.value, "session": digest}).mappings().first()


def _memory_from(row: RowMapping) -> SessionMemory:
    facts = tuple(FactPlace(**item) for item in row["facts"])
    return SessionMemory(facts, tuple(RememberedConstraint(**item) for item in row["constraints"]))


class SearchSessions(CataloguePart):
    """``digest`` identifies a session of one API key. See `domain.search_session.session_digest`. A session is one row."""

    recall = read(recall)
    remember = write(remember)
    sweep = write(sweep)
