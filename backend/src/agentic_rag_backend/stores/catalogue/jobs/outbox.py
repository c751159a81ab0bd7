"""The outbox on SQL."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.operations import SqlPort, read, write
from agentic_rag_backend.stores.catalogue.ports.outbox import Entry, Topic
from agentic_rag_backend.stores.catalogue.rows import raise_state_version, upsert
from agentic_rag_backend.stores.catalogue.tables import outbox, tenants

SEARCHED = frozenset({Topic.LABELS, Topic.LEFTOVERS, Topic.KNOWLEDGE})
"""Topics whose handlers write to stores that searches read."""


def record(connection: Connection, tenant: TenantId, topic: Topic, subject: str) -> None:
    """Write an entry in the transaction of its change."""
    _record(connection, tenant, topic, [subject])


def _record(connection: Connection, tenant: TenantId, topic: Topic, subjects: Sequence[str]) -> None:
    now = utc_now()
    rows = [
        {
            "tenant_id": tenant.value,
            "topic": topic.value,
            "subject": subject,
            "token": uuid.uuid4().hex,
            "recorded_at": now,
        }
        for subject in subjects
    ]
    # An existing entry keeps its position, because its handler reads the catalogue when it runs.
    upsert(connection, outbox, rows, keys=("tenant_id", "topic", "subject"), replace=("token",))


def add(connection: Connection, tenant: TenantId, topic: Topic, subject: str) -> None:
    """See `Outbox.add`."""
    add_all(connection, tenant, topic, [subject])


def add_all(connection: Connection, tenant: TenantId, topic: Topic, subjects: Sequence[str]) -> None:
    """See `Outbox.add_all`."""
    if connection.execute(select(tenants.c.tenant_id).where(tenants.c.tenant_id == tenant.value)).first() is not None:
        _record(connection, tenant, topic, subjects)


def pending(connection: Connection, tenant: TenantId, *, limit: int, topics: Sequence[Topic] | None = None) -> list[Entry]:
    """See `Outbox.pending`."""
    wanted = () if topics is None else (outbox.c.topic.in_([topic.value for topic in topics]),)
    statement = (
        select(outbox.c.topic, outbox.c.subject, outbox.c.token)
        .where(outbox.c.tenant_id == tenant.value, *wanted)
        .order_by(outbox.c.recorded_at, outbox.c.topic, outbox.c.subject)
        .limit(limit)
    )
    return [Entry(Topic(row.topic), row.subject, row.token) for row in connection.execute(statement)]


def holds(connection: Connection, tenant: TenantId, topics: Sequence[Topic]) -> bool:
    """See `Outbox.holds`."""
    wanted = (outbox.c.tenant_id == tenant.value, outbox.c.topic.in_([topic.value for topic in topics]))
    return connection.execute(select(outbox.c.subject).where(*wanted).limit(1)).first() is not None


def delivered(connection: Connection, tenant: TenantId, entries: Sequence[Entry]) -> None:
    """See `Outbox.delivered`."""
    if entries:
        if any(entry.topic in SEARCHED for entry in entries):
            raise_state_version(connection, tenant)
        tokens = [entry.token for entry in entries]
        connection.execute(delete(outbox).where(outbox.c.tenant_id == tenant.value, outbox.c.token.in_(tokens)))


def tenants_with_entries(
    connection: Connection, *, limit: int, topics: Sequence[Topic] | None = None, after: TenantId | None = None
) -> list[TenantId]:
    """See `Outbox.tenants`."""
    statement = select(outbox.c.tenant_id).distinct().order_by(outbox.c.tenant_id).limit(limit)
    if topics is not None:
        statement = statement.where(outbox.c.topic.in_([topic.value for topic in topics]))
    if after is not None:
        statement = statement.where(outbox.c.tenant_id > after.value)
    return [TenantId(value) for value in connection.execute(statement).scalars()]


class SqlOutbox(SqlPort):
    """Implements `Outbox`."""

    add = write(add)
    add_all = write(add_all)
    pending = read(pending)
    holds = read(holds)
    delivered = write(delivered)
    tenants = read(tenants_with_entries)
