"""Generations: the pointer to the current generation, and summaries of its parts. Communities and trees use both.

A tenant's row in ``pointers`` names the current generation and the state that it was built from. `GenerationStore.publish`
changes it in one transaction, so a reader sees either the old or the new generation. A generation is built from a tenant's
documents. It is written next to the current generation.

Summaries of communities, and the current generation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Table, Text, and_, case, cast, delete, exists, func, or_, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.graph import CommunitySummary, Finding, Label, Support
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import TenantId, TenantState
from agentic_rag_backend.errors import Conflict
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.jobs.job_rows import AWAITED, OPEN
from agentic_rag_backend.stores.catalogue.jobs.leases import Fence, require_fence
from agentic_rag_backend.stores.catalogue.operations import (
    CataloguePart,
    batches,
    lock_tenant,
    raise_state_version,
    read,
    upsert,
    write,
)
from agentic_rag_backend.stores.catalogue.tables import community_pointers, community_summaries, jobs, tenants


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPointer:
    """The current generation (0: none yet), and whether documents changed since it was built."""

    generation: int
    stale: bool
    built_at: datetime | None = None
    built_from: int = 0
    """The tenant's state_version that the generation was built from."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Counts of the build by name, and the numbers of summaries written and reused."""

    @property
    def levels(self) -> frozenset[int]:
        """The levels of the generation. Empty before the first one, and for a build without this count."""
        return frozenset(int(level) for level in self.details.get("levels", {}))


_SUMMARY_KEYS = ("tenant_id", "fingerprint", "prompt_version", "model")
_SUMMARY_VALUES = ("title", "names", "keywords", "summary", "findings", "sources", "rating", "tokens", "written_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStore:
    """Operations on one kind of generations. `operations.read` and `operations.write` make methods of them.

    Args:
        pointers: one row per tenant that has begun a build.
        summaries: summaries of the parts, by fingerprint, prompt and model.
        asked_at: column with the time of the schedule's last request for a build; its table has one row per tenant.
        build: the kind of the job that builds a generation.
        on_request: the first generation is built on request only; the schedule builds later ones.
        stale_since: column of `tenants` with the time since when the current generation has been stale.
    """

    pointers: Table
    summaries: Table
    asked_at: Column[datetime]
    build: JobKind
    on_request: bool
    stale_since: Column[datetime]

    def pointer(self, connection: Connection, tenant: TenantId) -> GenerationPointer:
        """Return the current generation. Generation 0 before the first build."""
        columns = self.pointers.c
        statement = (
            select(
                tenants.c.content_version,
                func.coalesce(columns.generation, 0).label("generation"),
                func.coalesce(columns.built_from, 0).label("built_from"),
                columns.built_at,
                columns.details,
            )
            .outerjoin(self.pointers, columns.tenant_id == tenants.c.tenant_id)
            .where(tenants.c.tenant_id == tenant.value)
        )
        row = connection.execute(statement).mappings().first()
        if row is None:
            return GenerationPointer(generation=0, stale=False)
        return GenerationPointer(
            generation=row["generation"],
            stale=row["content_version"] > row["built_from"],
            built_at=row["built_at"],
            built_from=row["built_from"],
            details=row["details"] or {},
        )

    def last_generation(self, connection: Connection, tenant: TenantId) -> int:
        """Return the highest generation number that was allocated. 0 if there is none."""
        statement = select(self.pointers.c.last_generation).where(self.pointers.c.tenant_id == tenant.value)
        return connection.execute(statement).scalar_one_or_none() or 0

    def next_generation(self, connection: Connection, tenant: TenantId) -> int:
        """Return a generation number that was never used."""
        lock_tenant(connection, tenant)
        first_row = {"tenant_id": tenant.value, "generation": 0, "last_generation": 0, "built_from": 0, "details": {}}
        upsert(connection, self.pointers, [first_row], keys=("tenant_id",))
        statement = (
            update(self.pointers)
            .where(self.pointers.c.tenant_id == tenant.value)
            .values(last_generation=self.pointers.c.last_generation + 1)
            .returning(self.pointers.c.last_generation)
        )
        return int(connection.execute(statement).scalar_one())

    def publish(
        self,
        connection: Connection,
        tenant: TenantId,
        generation: int,
        *,
        built_from: int,
        details: Mapping[str, Any],
        fence: Fence | None = None,
    ) -> None:
        """Make ``generation`` current and raise ``state_version``. Idempotent.

        ``built_from`` is the state_version from before the documents were read. If documents changed since, the pointer is stale
        at once. Flags and generations do not make it stale.

        Raises:
            Conflict: a newer generation is current, or this one was never allocated.
            StoreUnavailable: the fence is not the newest.
        """
        lock_tenant(connection, tenant)
        require_fence(connection, tenant, fence)
        changed = connection.execute(
            update(self.pointers)
            .where(
                self.pointers.c.tenant_id == tenant.value,
                self.pointers.c.generation < generation,
                self.pointers.c.last_generation >= generation,
            )
            .values(generation=generation, built_from=built_from, built_at=utc_now(), details=plain(details))
        )
        if changed.rowcount:
            self._record_staleness(connection, tenant, built_from)
            raise_state_version(connection, tenant)
            return
        current = self.pointer(connection, tenant).generation
        if current != generation:
            raise Conflict(f"generation {generation} cannot become current: {current} is, or it was never allocated")

    def rebuild_in_place(self, connection: Connection, tenant: TenantId, *, built_from: int, details: Mapping[str, Any]) -> None:
        """Record a change of the current generation. The caller has changed its rows in this transaction."""
        values = {"built_from": built_from, "built_at": utc_now(), "details": plain(details)}
        connection.execute(update(self.pointers).where(self.pointers.c.tenant_id == tenant.value).values(**values))
        self._record_staleness(connection, tenant, built_from)
        raise_state_version(connection, tenant)

    def _record_staleness(self, connection: Connection, tenant: TenantId, built_from: int) -> None:
        """Record since when the generation that became current is stale: the last change of documents during its build."""
        since = case((tenants.c.content_version > built_from, tenants.c.content_changed_at), else_=None)
        connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values({self.stale_since: since}))

    def asked(self, connection: Connection, tenant: TenantId) -> None:
        """Record that the schedule requested a build now."""
        table = self.asked_at.table
        connection.execute(update(table).where(table.c.tenant_id == tenant.value).values({self.asked_at: utc_now()}))

    def due(
        self,
        connection: Connection,
        quiet_since: datetime,
        asked_before: datetime,
        *,
        stale_since: datetime,
        limit: int,
    ) -> list[TenantId]:
        """Return active tenants whose generation is stale and due for a build, the longest stale first.

        It is due if no document is queued, in processing or being deleted and documents last changed at ``quiet_since`` or
        earlier, or if the generation has been stale since ``stale_since`` or earlier. Tenants with a queued or running build are
        left out, and tenants for which a build was requested both after the last change and after ``asked_before``.
        """
        changed = func.coalesce(tenants.c.content_changed_at, tenants.c.created_at)
        processing = (
            AWAITED.with_only_columns(jobs.c.id).where(jobs.c.tenant_id == tenants.c.tenant_id).correlate(tenants).exists()
        )
        deleting, building = (
            exists().where(jobs.c.tenant_id == tenants.c.tenant_id, jobs.c.kind == kind.value, jobs.c.state.in_(OPEN))
            for kind in (JobKind.DELETE, self.build)
        )
        statement = (
            select(tenants.c.tenant_id)
            .outerjoin(self.pointers, self.pointers.c.tenant_id == tenants.c.tenant_id)
            .where(
                tenants.c.content_version > func.coalesce(self.pointers.c.built_from, 0),
                tenants.c.state == TenantState.ACTIVE.value,
                or_(self.stale_since <= stale_since, and_(changed <= quiet_since, ~processing, ~deleting)),
                or_(self.asked_at.is_(None), self.asked_at < changed, self.asked_at <= asked_before),
                ~building,
            )
            .order_by(self.stale_since, tenants.c.tenant_id)
            .limit(limit)
        )
        if self.on_request:
            statement = statement.where(self.pointers.c.generation > 0)
        return [TenantId(value) for value in connection.execute(statement).scalars()]

    def find_summaries(
        self,
        connection: Connection,
        tenant: TenantId,
        fingerprints: Sequence[str],
        *,
        prompt_version: str | None = None,
        model: str | None = None,
    ) -> list[CommunitySummary]:
        """Return the summaries of ``fingerprints``. Those of one fingerprint are in the order of writing.

        Args:
            prompt_version: only summaries made with this prompt; None: any.
            model: only summaries made by this model; None: any.
        """
        columns = self.summaries.c
        matches: list[CommunitySummary] = []
        for batch in batches(fingerprints):
            statement = select(self.summaries).where(columns.tenant_id == tenant.value, columns.fingerprint.in_(batch))
            for column, value in ((columns.prompt_version, prompt_version), (columns.model, model)):
                if value is not None:
                    statement = statement.where(column == value)
            statement = statement.order_by(columns.written_at, columns.prompt_version, columns.model)
            matches.extend(summary_from(row) for row in connection.execute(statement).mappings())
        return matches

    def save_summaries(self, connection: Connection, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries. An existing summary of the same fingerprint, prompt and model is replaced."""
        lock_tenant(connection, tenant)
        now = utc_now()
        rows = [{"tenant_id": tenant.value, "written_at": now, **asdict(summary)} for summary in summaries]
        upsert(connection, self.summaries, rows, keys=_SUMMARY_KEYS, replace=_SUMMARY_VALUES)

    def drop_summaries(self, connection: Connection, tenant: TenantId, *, keep: Sequence[str]) -> int:
        """Remove summaries whose fingerprint is not in ``keep``, and raise ``state_version``. Return their number.

        It is the last step of a rebuild, after the removal of what other stores held of older generations.
        """
        lock_tenant(connection, tenant)
        of_tenant = self.summaries.c.tenant_id == tenant.value
        recorded = connection.execute(select(self.summaries.c.fingerprint).where(of_tenant).distinct()).scalars()
        raise_state_version(connection, tenant)
        return self.delete_summaries(connection, tenant, sorted(set(recorded) - set(keep)))

    def delete_summaries(self, connection: Connection, tenant: TenantId, fingerprints: Sequence[str]) -> int:
        """Remove all summaries of ``fingerprints``. Return their number."""
        columns, count = self.summaries.c, 0
        for batch in batches(fingerprints):
            removal = delete(self.summaries).where(columns.tenant_id == tenant.value, columns.fingerprint.in_(batch))
            count += connection.execute(removal).rowcount
        return count


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


COMMUNITIES = GenerationStore(
    pointers=community_pointers,
    summaries=community_summaries,
    asked_at=tenants.c.rebuild_asked_at,
    build=JobKind.REBUILD,
    on_request=False,
    stale_since=tenants.c.stale_since,
)
_RESTING = ("title", "names", "keywords", "findings", "sources")
"""Columns of a summary that contain the passages that support it."""


def summaries(
    connection: Connection,
    tenant: TenantId,
    fingerprints: Sequence[str],
    *,
    prompt_version: str | None = None,
    model: str | None = None,
) -> dict[str, CommunitySummary]:
    """Return the existing summaries of those fingerprints with that prompt and model.

    Without prompt and model, return the last written summary of each fingerprint.
    """
    matches = COMMUNITIES.find_summaries(connection, tenant, fingerprints, prompt_version=prompt_version, model=model)
    # The mapping keeps the last summary written.
    return {summary.fingerprint: summary for summary in matches}


def summaries_resting_on(connection: Connection, tenant: TenantId, document_id: str) -> list[CommunitySummary]:
    """Return the summaries with a part that passages of the document support, in the order of writing."""
    # Reads all summaries of the tenant. They are few: a millisecond for some hundreds. The id is a uuid, so a text that
    # contains it refers to the document.
    columns = community_summaries.c
    statement = (
        select(community_summaries)
        .where(
            columns.tenant_id == tenant.value,
            or_(*(cast(columns[name], Text).contains(document_id, autoescape=True) for name in _RESTING)),
        )
        .order_by(columns.written_at, columns.prompt_version, columns.model)
    )
    return [summary_from(row) for row in connection.execute(statement).mappings()]


def replace_summaries(connection: Connection, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
    """Record summaries, and remove all other summaries of their fingerprints."""
    COMMUNITIES.delete_summaries(connection, tenant, [summary.fingerprint for summary in summaries])
    COMMUNITIES.save_summaries(connection, tenant, summaries)


class CommunityCatalogue(CataloguePart):
    """Generations of communities. The pointer of a tenant with documents is stale before the first build."""

    pointer = read(COMMUNITIES.pointer)
    next_generation = write(COMMUNITIES.next_generation)
    publish = write(COMMUNITIES.publish)
    asked = write(COMMUNITIES.asked)
    due = read(COMMUNITIES.due)
    summaries = read(summaries)
    summaries_resting_on = read(summaries_resting_on)
    save_summaries = write(COMMUNITIES.save_summaries)
    replace_summaries = write(replace_summaries)
    drop_summaries = write(COMMUNITIES.drop_summaries)
