"""The outbox: changes that the catalogue has committed and another store still has to apply.

An entry is written in the transaction of its change, so neither exists without the other. It names what to check, not what to
write: its handler reads the catalogue again, so that handling is idempotent.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import delete, select
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, raise_state_version, read, upsert, write
from agentic_rag_backend.stores.catalogue.tables import outbox, tenants


class Topic(StrEnum):
    """Topics of entries.

    - ``edits``: resolve the names of the documents that an edit of the graph changes.
    - ``labels``: copy a document's title and metadata to the vectors.
    - ``leftovers``: remove graph and vector data of document versions that will not become visible.
    - ``names``: find the documents in which a normalised name means another entity than it should.
    - ``knowledge``: resolve the names of a document again.
    - ``original``: remove a blob that no version names.
    - ``tenant``: remove all data of a deleted tenant.
    """

    EDITS = "edits"
    LABELS = "labels"
    LEFTOVERS = "leftovers"
    NAMES = "names"
    KNOWLEDGE = "knowledge"
    ORIGINAL = "original"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """An entry to deliver. ``token`` is new each time the same topic and subject are recorded."""

    topic: Topic
    subject: str
    token: str


READ_BY_FILTERS = (Topic.LABELS,)
"""Topics of changes that filters of searches do not see yet."""
SETTLING = (Topic.EDITS, Topic.NAMES, Topic.KNOWLEDGE)
"""Topics of a graph in which some names do not mean the entities yet that they should."""

SEARCHED = frozenset({Topic.LABELS, Topic.LEFTOVERS, Topic.KNOWLEDGE})
"""Topics whose handlers write to stores that searches read."""


def record(connection: Connection, tenant: TenantId, topic: Topic, subject: str) -> None:
    """Write an entry in the transaction of its change."""
    _record_entries(connection, tenant, topic, [subject])


def _record_entries(connection: Connection, tenant: TenantId, topic: Topic, subjects: Sequence[str]) -> None:
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
    """Record an entry in its own transaction. A tenant that does not exist has no entries."""
    add_all(connection, tenant, topic, [subject])


def add_all(connection: Connection, tenant: TenantId, topic: Topic, subjects: Sequence[str]) -> None:
    """Record several entries of a topic in one transaction. A tenant that does not exist has no entries."""
    if connection.execute(select(tenants.c.tenant_id).where(tenants.c.tenant_id == tenant.value)).first() is not None:
        _record_entries(connection, tenant, topic, subjects)


def pending(connection: Connection, tenant: TenantId, *, limit: int, topics: Sequence[Topic] | None = None) -> list[OutboxEntry]:
    """Return the tenant's entries, optionally of some topics, oldest first."""
    conditions = () if topics is None else (outbox.c.topic.in_([topic.value for topic in topics]),)
    statement = (
        select(outbox.c.topic, outbox.c.subject, outbox.c.token)
        .where(outbox.c.tenant_id == tenant.value, *conditions)
        .order_by(outbox.c.recorded_at, outbox.c.topic, outbox.c.subject)
        .limit(limit)
    )
    return [OutboxEntry(Topic(row.topic), row.subject, row.token) for row in connection.execute(statement)]


def holds(connection: Connection, tenant: TenantId, topics: Sequence[Topic]) -> bool:
    """Return whether the tenant has entries of some topics."""
    conditions = (outbox.c.tenant_id == tenant.value, outbox.c.topic.in_([topic.value for topic in topics]))
    return connection.execute(select(outbox.c.subject).where(*conditions).limit(1)).first() is not None


def delivered(connection: Connection, tenant: TenantId, entries: Sequence[OutboxEntry]) -> None:
    """Remove entries, except entries that were recorded again since they were read.

    Raises ``state_version`` if a handler of an entry wrote to stores that searches read. The change itself raised it before
    the handler ran, and a result of the time between must not be used any longer.
    """
    if entries:
        if any(entry.topic in SEARCHED for entry in entries):
            raise_state_version(connection, tenant)
        tokens = [entry.token for entry in entries]
        connection.execute(delete(outbox).where(outbox.c.tenant_id == tenant.value, outbox.c.token.in_(tokens)))


def tenants_with_entries(
    connection: Connection, *, limit: int, topics: Sequence[Topic] | None = None, after: TenantId | None = None
) -> list[TenantId]:
    """Return tenants that have entries, of ``topics`` if given, in the order of their ids and behind ``after``."""
    statement = select(outbox.c.tenant_id).distinct().order_by(outbox.c.tenant_id).limit(limit)
    if topics is not None:
        statement = statement.where(outbox.c.topic.in_([topic.value for topic in topics]))
    if after is not None:
        statement = statement.where(outbox.c.tenant_id > after.value)
    return [TenantId(value) for value in connection.execute(statement).scalars()]


class Outbox(CataloguePart):
    """Entries of each tenant, oldest first."""

    add = write(add)
    add_all = write(add_all)
    pending = read(pending)
    holds = read(holds)
    delivered = write(delivered)
    tenants = read(tenants_with_entries)
