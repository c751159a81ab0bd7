"""The communities port on SQL: cached summaries, and the pointer to the current generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Text, bindparam, case, cast, delete, exists, func, or_, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.graph import CommunitySummary, Finding, Label, Support
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import TenantId, TenantState, require_tenant
from agentic_rag_backend.errors import Conflict
from agentic_rag_backend.stores.catalogue.base import CommunityPointer
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.job_rows import OPEN
from agentic_rag_backend.stores.catalogue.rows import batches, lock_tenant, raise_state_version, upsert
from agentic_rag_backend.stores.catalogue.tables import community_pointers as pointers
from agentic_rag_backend.stores.catalogue.tables import community_summaries as summaries_table
from agentic_rag_backend.stores.catalogue.tables import jobs, tenants

_SUMMARY_KEYS = ("tenant_id", "fingerprint", "prompt_version", "model")
_RESTING = ("title", "names", "keywords", "findings", "sources")
"""What of a summary names the passages that it rests on."""
_SUMMARY_VALUES = ("title", "names", "keywords", "summary", "findings", "sources", "rating", "tokens", "written_at")


_FRESH = (
    update(tenants)
    .where(tenants.c.tenant_id == bindparam("tenant"))
    .values(stale_since=case((tenants.c.content_version > bindparam("built_from"), tenants.c.content_changed_at), else_=None))
)


class SqlCommunities:
    """Implements `CommunityCatalogue`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def pointer(self, tenant: TenantId) -> CommunityPointer:
        """Return the current generation; stale if documents changed after the state_version it was built from."""
        return await self._database.read(current_pointer, require_tenant(tenant))

    async def rebuild_asked(self, tenant: TenantId) -> None:
        """Note that a rebuild was asked for."""
        statement = update(tenants).where(tenants.c.tenant_id == require_tenant(tenant).value).values(rebuild_asked_at=utc_now())

        def note(connection: Connection) -> None:
            connection.execute(statement)

        await self._database.write(note)

    async def next_generation(self, tenant: TenantId) -> int:
        """Return a generation number that was never used."""
        return await self._database.write(_next_generation, require_tenant(tenant))

    async def publish_generation(self, tenant: TenantId, generation: int, *, built_from: int, details: Mapping[str, Any]) -> None:
        """Make ``generation`` current; repeatable. `Conflict` if a newer one is, or if it was never handed out."""
        await self._database.write(_publish_generation, require_tenant(tenant), generation, built_from, details)

    async def summaries(
        self, tenant: TenantId, fingerprints: Sequence[str], *, prompt_version: str | None = None, model: str | None = None
    ) -> dict[str, CommunitySummary]:
        """Return the summaries that exist; the last written one where prompt and model are not named."""
        return await self._database.read(_summaries, require_tenant(tenant), fingerprints, prompt_version, model)

    async def save_summaries(self, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries."""
        await self._database.write(_save_summaries, require_tenant(tenant), summaries)

    async def summaries_resting_on(self, tenant: TenantId, document_id: str) -> list[CommunitySummary]:
        """Return the summaries of which anything rests on passages of the document."""
        return await self._database.read(_summaries_resting_on, require_tenant(tenant), document_id)

    async def replace_summaries(self, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries in the place of all there are of their fingerprints."""
        await self._database.write(_replace_summaries, require_tenant(tenant), summaries)

    async def drop_summaries(self, tenant: TenantId, *, keep: Sequence[str]) -> int:
        """Remove summaries whose fingerprint is not among ``keep``."""
        return await self._database.write(_drop_summaries, require_tenant(tenant), keep)


def current_pointer(connection: Connection, tenant: TenantId) -> CommunityPointer:
    """See `CommunityCatalogue.pointer`."""
    statement = (
        select(
            tenants.c.content_version,
            func.coalesce(pointers.c.generation, 0).label("generation"),
            func.coalesce(pointers.c.built_from, 0).label("built_from"),
            pointers.c.built_at,
            pointers.c.details,
        )
        .outerjoin(pointers, pointers.c.tenant_id == tenants.c.tenant_id)
        .where(tenants.c.tenant_id == tenant.value)
    )
    row = connection.execute(statement).mappings().first()
    if row is None:
        return CommunityPointer(generation=0, stale=False)
    return CommunityPointer(
        generation=row["generation"],
        stale=row["content_version"] > row["built_from"],
        built_at=row["built_at"],
        state_version=row["built_from"],
        details=row["details"] or {},
    )


def rebuilds_due(
    connection: Connection, quiet_since: datetime, stale_since: datetime, asked_before: datetime, limit: int
) -> list[TenantId]:
    """See `TenantDirectory.rebuilds_due`."""
    changed = func.coalesce(tenants.c.content_changed_at, tenants.c.created_at)
    asked = tenants.c.rebuild_asked_at
    rebuilding = exists().where(
        jobs.c.tenant_id == tenants.c.tenant_id, jobs.c.kind == JobKind.REBUILD.value, jobs.c.state.in_(OPEN)
    )
    statement = (
        select(tenants.c.tenant_id)
        .outerjoin(pointers, pointers.c.tenant_id == tenants.c.tenant_id)
        .where(
            tenants.c.content_version > func.coalesce(pointers.c.built_from, 0),
            tenants.c.state == TenantState.ACTIVE.value,
            or_(changed <= quiet_since, tenants.c.stale_since <= stale_since),
            or_(asked.is_(None), asked < changed, asked <= asked_before),
            ~rebuilding,
        )
        .order_by(tenants.c.stale_since, tenants.c.tenant_id)
        .limit(limit)
    )
    return [TenantId(value) for value in connection.execute(statement).scalars()]


def _next_generation(connection: Connection, tenant: TenantId) -> int:
    lock_tenant(connection, tenant)
    first = {"tenant_id": tenant.value, "generation": 0, "last_generation": 0, "built_from": 0, "details": {}}
    upsert(connection, pointers, [first], keys=("tenant_id",))
    statement = (
        update(pointers)
        .where(pointers.c.tenant_id == tenant.value)
        .values(last_generation=pointers.c.last_generation + 1)
        .returning(pointers.c.last_generation)
    )
    return int(connection.execute(statement).scalar_one())


def _publish_generation(
    connection: Connection, tenant: TenantId, generation: int, built_from: int, details: Mapping[str, Any]
) -> None:
    lock_tenant(connection, tenant)
    changed = connection.execute(
        update(pointers)
        .where(
            pointers.c.tenant_id == tenant.value,
            pointers.c.generation < generation,
            pointers.c.last_generation >= generation,
        )
        .values(generation=generation, built_from=built_from, built_at=utc_now(), details=plain(details))
    )
    if changed.rowcount:
        connection.execute(_FRESH, {"tenant": tenant.value, "built_from": built_from})
        raise_state_version(connection, tenant)
        return
    current = current_pointer(connection, tenant).generation
    if current != generation:
        raise Conflict(f"generation {generation} cannot become current: {current} is, or it was never handed out")


def _summaries(
    connection: Connection, tenant: TenantId, fingerprints: Sequence[str], prompt_version: str | None, model: str | None
) -> dict[str, CommunitySummary]:
    found = {}
    for batch in batches(fingerprints):
        statement = select(summaries_table).where(
            summaries_table.c.tenant_id == tenant.value, summaries_table.c.fingerprint.in_(batch)
        )
        for column, value in ((summaries_table.c.prompt_version, prompt_version), (summaries_table.c.model, model)):
            if value is not None:
                statement = statement.where(column == value)
        # the last one written stays in the mapping
        statement = statement.order_by(summaries_table.c.written_at, summaries_table.c.prompt_version, summaries_table.c.model)
        for row in connection.execute(statement).mappings():
            found[row["fingerprint"]] = summary_from(row)
    return found


def summary_from(row: RowMapping) -> CommunitySummary:
    """Return the summary of a row."""
    return CommunitySummary(
        fingerprint=row["fingerprint"],
        names=tuple(map(_label_from, row["names"])),
        summary=row["summary"],
        keywords=tuple(map(_label_from, row["keywords"])),
        findings=tuple(Finding(item["statement"], _supports_from(item["sources"])) for item in row["findings"]),
        rating=row["rating"],
        model=row["model"],
        prompt_version=row["prompt_version"],
        tokens=row["tokens"],
        sources=_supports_from(row["sources"]),
        title=None if row["title"] is None else _label_from(row["title"]),
    )


def _label_from(item: Mapping[str, Any]) -> Label:
    return Label(item["text"], _supports_from(item["sources"]))


def _supports_from(items: Sequence[Mapping[str, Any]]) -> tuple[Support, ...]:
    return tuple(Support(**item) for item in items)


def _save_summaries(connection: Connection, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
    lock_tenant(connection, tenant)
    now = utc_now()
    rows = [{"tenant_id": tenant.value, "written_at": now, **asdict(summary)} for summary in summaries]
    upsert(connection, summaries_table, rows, keys=_SUMMARY_KEYS, replace=_SUMMARY_VALUES)


def _summaries_resting_on(connection: Connection, tenant: TenantId, document_id: str) -> list[CommunitySummary]:
    # Reads all of the tenant's, of which there are few: a millisecond for some hundreds. The id is a uuid, so that text that
    # holds it names it.
    columns = (summaries_table.c[name] for name in _RESTING)
    statement = (
        select(summaries_table)
        .where(
            summaries_table.c.tenant_id == tenant.value,
            or_(*(cast(column, Text).contains(document_id, autoescape=True) for column in columns)),
        )
        .order_by(summaries_table.c.written_at, summaries_table.c.prompt_version, summaries_table.c.model)
    )
    return [summary_from(row) for row in connection.execute(statement).mappings()]


def _replace_summaries(connection: Connection, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
    for batch in batches([each.fingerprint for each in summaries]):
        connection.execute(
            delete(summaries_table).where(summaries_table.c.tenant_id == tenant.value, summaries_table.c.fingerprint.in_(batch))
        )
    _save_summaries(connection, tenant, summaries)


def _drop_summaries(connection: Connection, tenant: TenantId, keep: Sequence[str]) -> int:
    held = connection.execute(
        select(summaries_table.c.fingerprint).where(summaries_table.c.tenant_id == tenant.value).distinct()
    ).scalars()
    gone = sorted(set(held) - set(keep))
    return sum(
        connection.execute(
            delete(summaries_table).where(summaries_table.c.tenant_id == tenant.value, summaries_table.c.fingerprint.in_(batch))
        ).rowcount
        for batch in batches(gone)
    )
