"""The outbox on SQL."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.outbox import Entry, Topic
from agentic_rag_backend.stores.catalogue.rows import upsert
from agentic_rag_backend.stores.catalogue.tables import outbox, tenants


class SqlOutbox:
    """Implements `Outbox`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, tenant: TenantId, topic: Topic, subject: str) -> None:
        """Record an entry in a transaction of its own."""
        await self._database.write(_add, require_tenant(tenant), topic, subject)

    async def pending(self, tenant: TenantId, *, limit: int) -> list[Entry]:
        """Return the tenant's entries, oldest first."""
        statement = (
            select(outbox.c.topic, outbox.c.subject, outbox.c.token)
            .where(outbox.c.tenant_id == require_tenant(tenant).value)
            .order_by(outbox.c.recorded_at, outbox.c.topic, outbox.c.subject)
            .limit(limit)
        )

        def find(connection: Connection) -> list[Entry]:
            return [Entry(Topic(row.topic), row.subject, row.token) for row in connection.execute(statement)]

        return await self._database.read(find)

    async def delivered(self, tenant: TenantId, entries: Sequence[Entry]) -> None:
        """Remove entries, except those that were recorded again meanwhile."""
        if not entries:
            return
        tokens = [entry.token for entry in entries]
        statement = delete(outbox).where(outbox.c.tenant_id == require_tenant(tenant).value, outbox.c.token.in_(tokens))

        def remove(connection: Connection) -> None:
            connection.execute(statement)

        await self._database.write(remove)

    async def tenants(self, *, limit: int) -> list[TenantId]:
        """Return tenants that have entries."""
        statement = select(outbox.c.tenant_id).distinct().order_by(outbox.c.tenant_id).limit(limit)

        def find(connection: Connection) -> list[TenantId]:
            return [TenantId(value) for value in connection.execute(statement).scalars()]

        return await self._database.read(find)


def record(connection: Connection, tenant: TenantId, topic: Topic, subject: str) -> None:
    """Write an entry in the transaction of the change that calls for it."""
    row = {
        "tenant_id": tenant.value,
        "topic": topic.value,
        "subject": subject,
        "token": uuid.uuid4().hex,
        "recorded_at": utc_now(),
    }
    # One that was there keeps its place in the order: it waits for the same look at the catalogue.
    upsert(connection, outbox, [row], keys=("tenant_id", "topic", "subject"), replace=("token",))


def _add(connection: Connection, tenant: TenantId, topic: Topic, subject: str) -> None:
    if connection.execute(select(tenants.c.tenant_id).where(tenants.c.tenant_id == tenant.value)).first() is not None:
        record(connection, tenant, topic, subject)
