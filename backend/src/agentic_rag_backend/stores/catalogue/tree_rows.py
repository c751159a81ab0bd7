"""The port of trees on SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import TenantId, TenantState, require_tenant
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.errors import Conflict
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.communities import summary_from
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.job_rows import OPEN
from agentic_rag_backend.stores.catalogue.leases import require_fence
from agentic_rag_backend.stores.catalogue.liveness import Fence
from agentic_rag_backend.stores.catalogue.rows import batches, lock_tenant, raise_state_version, upsert
from agentic_rag_backend.stores.catalogue.tables import jobs, tenants
from agentic_rag_backend.stores.catalogue.tables import raptor_links as links
from agentic_rag_backend.stores.catalogue.tables import raptor_nodes as nodes_table
from agentic_rag_backend.stores.catalogue.tables import raptor_pointers as pointers
from agentic_rag_backend.stores.catalogue.tables import raptor_summaries as summaries_table
from agentic_rag_backend.stores.catalogue.trees import SummaryKey, TreePointer

_SUMMARY_KEYS = ("tenant_id", "fingerprint", "prompt_version", "model")
_SUMMARY_VALUES = ("title", "names", "keywords", "summary", "findings", "sources", "rating", "tokens", "written_at")


class SqlTrees:
    """Implements `TreeCatalogue`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def pointer(self, tenant: TenantId) -> TreePointer:
        """Return the current generation."""
        return await self._database.read(current_tree, require_tenant(tenant))

    async def next_generation(self, tenant: TenantId) -> int:
        """Return a generation number that was never used."""
        return await self._database.write(_next_generation, require_tenant(tenant))

    async def write_nodes(self, tenant: TenantId, generation: int, nodes: Sequence[TreeNode]) -> None:
        """Write nodes beside the current generation."""
        await self._database.write(_write_nodes, require_tenant(tenant), generation, nodes)

    async def publish(
        self, tenant: TenantId, generation: int, *, built_from: int, details: Mapping[str, Any], fence: Fence | None = None
    ) -> None:
        """Make ``generation`` current."""
        await self._database.write(_publish, require_tenant(tenant), generation, built_from, details, fence)

    async def change(
        self,
        tenant: TenantId,
        generation: int,
        *,
        written: Sequence[TreeNode],
        removed: Sequence[str],
        built_from: int,
        details: Mapping[str, Any],
        fence: Fence | None = None,
    ) -> None:
        """Replace and remove nodes of the current generation."""

        def work(connection: Connection) -> None:
            lock_tenant(connection, tenant)
            require_fence(connection, tenant, fence)
            if current_tree(connection, tenant).generation != generation:
                raise Conflict(f"generation {generation} of the tree is not current")
            _delete_nodes(connection, tenant, generation, [*removed, *(node.id for node in written)])
            _insert_nodes(connection, tenant, generation, written)
            values = {"built_from": built_from, "built_at": utc_now(), "details": plain(details)}
            connection.execute(update(pointers).where(pointers.c.tenant_id == tenant.value).values(**values))
            raise_state_version(connection, tenant)

        require_tenant(tenant)
        await self._database.write(work)

    async def nodes(
        self,
        tenant: TenantId,
        generation: int,
        *,
        level: int | None = None,
        ids: Sequence[str] | None = None,
        point_ids: Sequence[str] | None = None,
    ) -> list[TreeNode]:
        """Return nodes."""
        return await self._database.read(_nodes, require_tenant(tenant), generation, level, ids, point_ids)

    async def above(self, tenant: TenantId, generation: int, child_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the parents of children."""
        return await self._database.read(_above, require_tenant(tenant), generation, child_ids)

    async def resting_on(self, tenant: TenantId, generation: int, document_id: str) -> list[str]:
        """Return the nodes that have passages of a document."""
        statement = (
            select(links.c.node_id)
            .where(
                links.c.tenant_id == require_tenant(tenant).value,
                links.c.generation == generation,
                links.c.document_id == document_id,
            )
            .distinct()
            .order_by(links.c.node_id)
        )
        return await self._database.read(lambda connection: list(connection.execute(statement).scalars()))

    async def generations(self, tenant: TenantId) -> list[int]:
        """Return the generations that nodes are held of."""
        statement = select(nodes_table.c.generation).where(nodes_table.c.tenant_id == require_tenant(tenant).value).distinct()
        return await self._database.read(lambda connection: sorted(connection.execute(statement).scalars()))

    async def delete_generations(self, tenant: TenantId, *, keep: int) -> int:
        """Remove the nodes of every other generation."""
        require_tenant(tenant)

        def work(connection: Connection) -> int:
            lock_tenant(connection, tenant)
            count = 0
            for table in (links, nodes_table):
                gone = delete(table).where(table.c.tenant_id == tenant.value, table.c.generation != keep)
                count = connection.execute(gone).rowcount
            return count

        return await self._database.write(work)

    async def summaries(self, tenant: TenantId, keys: Sequence[SummaryKey]) -> dict[SummaryKey, CommunitySummary]:
        """Return those of the summaries that exist."""
        return await self._database.read(_summaries, require_tenant(tenant), keys)

    async def save_summaries(self, tenant: TenantId, summaries: Sequence[CommunitySummary]) -> None:
        """Record summaries."""
        require_tenant(tenant)

        def work(connection: Connection) -> None:
            lock_tenant(connection, tenant)
            now = utc_now()
            rows = [{"tenant_id": tenant.value, "written_at": now, **asdict(summary)} for summary in summaries]
            upsert(connection, summaries_table, rows, keys=_SUMMARY_KEYS, replace=_SUMMARY_VALUES)

        await self._database.write(work)

    async def drop_summaries(self, tenant: TenantId, *, keep: Sequence[str]) -> int:
        """Remove summaries of no node."""
        return await self._database.write(_drop_summaries, require_tenant(tenant), keep)

    async def due(self, quiet_since: datetime, asked_before: datetime, *, limit: int) -> list[TenantId]:
        """Return tenants whose tree is stale."""
        changed = func.coalesce(tenants.c.content_changed_at, tenants.c.created_at)
        building = exists().where(
            jobs.c.tenant_id == tenants.c.tenant_id, jobs.c.kind == JobKind.RAPTOR.value, jobs.c.state.in_(OPEN)
        )
        asked = pointers.c.asked_at
        statement = (
            select(tenants.c.tenant_id)
            .join(pointers, pointers.c.tenant_id == tenants.c.tenant_id)
            .where(
                pointers.c.generation > 0,
                tenants.c.content_version > pointers.c.built_from,
                tenants.c.state == TenantState.ACTIVE.value,
                changed <= quiet_since,
                or_(asked.is_(None), asked < changed, asked <= asked_before),
                ~building,
            )
            .order_by(changed, tenants.c.tenant_id)
            .limit(limit)
        )
        return await self._database.read(lambda connection: [TenantId(id) for id in connection.execute(statement).scalars()])

    async def asked(self, tenant: TenantId) -> None:
        """Note that a build was asked for."""
        statement = update(pointers).where(pointers.c.tenant_id == require_tenant(tenant).value).values(asked_at=utc_now())

        def note(connection: Connection) -> None:
            connection.execute(statement)

        await self._database.write(note)


def current_tree(connection: Connection, tenant: TenantId) -> TreePointer:
    """See `TreeCatalogue.pointer`."""
    statement = (
        select(tenants.c.content_version, pointers.c.generation, pointers.c.built_from, pointers.c.built_at, pointers.c.details)
        .join(pointers, pointers.c.tenant_id == tenants.c.tenant_id)
        .where(tenants.c.tenant_id == tenant.value)
    )
    row = connection.execute(statement).mappings().first()
    if row is None or row["generation"] == 0:
        return TreePointer(generation=0, stale=False)
    return TreePointer(
        generation=row["generation"],
        stale=row["content_version"] > row["built_from"],
        built_at=row["built_at"],
        built_from=row["built_from"],
        details=row["details"] or {},
    )


def last_tree_generation(connection: Connection, tenant: TenantId) -> int:
    """Return the newest generation that was ever handed out, 0 if none was."""
    statement = select(pointers.c.last_generation).where(pointers.c.tenant_id == tenant.value)
    return connection.execute(statement).scalar_one_or_none() or 0


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


def _write_nodes(connection: Connection, tenant: TenantId, generation: int, written: Sequence[TreeNode]) -> None:
    lock_tenant(connection, tenant)
    if current_tree(connection, tenant).generation >= generation or last_tree_generation(connection, tenant) < generation:
        raise Conflict(f"generation {generation} of the tree cannot be written: it is current, old, or was never handed out")
    _delete_nodes(connection, tenant, generation, [node.id for node in written])
    _insert_nodes(connection, tenant, generation, written)


def _publish(
    connection: Connection, tenant: TenantId, generation: int, built_from: int, details: Mapping[str, Any], fence: Fence | None
) -> None:
    lock_tenant(connection, tenant)
    require_fence(connection, tenant, fence)
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
        raise_state_version(connection, tenant)
        return
    current = current_tree(connection, tenant).generation
    if current != generation:
        raise Conflict(f"generation {generation} cannot become current: {current} is, or it was never handed out")


def _delete_nodes(connection: Connection, tenant: TenantId, generation: int, ids: Sequence[str]) -> None:
    for batch in batches(ids):
        for table, column in ((links, links.c.node_id), (nodes_table, nodes_table.c.id)):
            connection.execute(
                delete(table).where(table.c.tenant_id == tenant.value, table.c.generation == generation, column.in_(batch))
            )


def _insert_nodes(connection: Connection, tenant: TenantId, generation: int, written: Sequence[TreeNode]) -> None:
    common = {"tenant_id": tenant.value, "generation": generation}
    rows = [
        {
            **common,
            "id": node.id,
            "level": node.level,
            "fingerprint": node.fingerprint,
            "size": node.size,
            "prompt_version": node.prompt_version,
            "model": node.model,
            "point_id": node.point_id(tenant),
        }
        for node in written
    ]
    if not rows:
        return
    connection.execute(insert(nodes_table), rows)
    connection.execute(
        insert(links),
        [
            {
                **common,
                "node_id": node.id,
                "ordinal": ordinal,
                "child_id": child,
                "document_id": node.documents[ordinal] if node.documents else None,
            }
            for node in written
            for ordinal, child in enumerate(node.children)
        ],
    )


def _nodes(
    connection: Connection,
    tenant: TenantId,
    generation: int,
    level: int | None,
    ids: Sequence[str] | None,
    point_ids: Sequence[str] | None,
) -> list[TreeNode]:
    own = and_(nodes_table.c.tenant_id == tenant.value, nodes_table.c.generation == generation)
    if level is not None:
        own = and_(own, nodes_table.c.level == level)
    statement = select(nodes_table).where(own)
    found: list[RowMapping] = []
    if ids is None and point_ids is None:
        found.extend(connection.execute(statement).mappings())
    for column, wanted in ((nodes_table.c.id, ids), (nodes_table.c.point_id, point_ids)):
        for batch in batches(list(dict.fromkeys(wanted or ()))):
            found.extend(connection.execute(statement.where(column.in_(batch))).mappings())
    children = _children(connection, tenant, generation, None if ids is None and point_ids is None else [n["id"] for n in found])
    nodes = {row["id"]: _node_from(row, children.get(row["id"], ())) for row in found}
    return sorted(nodes.values(), key=lambda node: (node.level, -node.size, node.id))


def _children(
    connection: Connection, tenant: TenantId, generation: int, ids: Sequence[str] | None
) -> dict[str, list[tuple[str, str | None]]]:
    statement = (
        select(links.c.node_id, links.c.child_id, links.c.document_id)
        .where(links.c.tenant_id == tenant.value, links.c.generation == generation)
        .order_by(links.c.node_id, links.c.ordinal)
    )
    parts: Iterable[Any] = [statement] if ids is None else (statement.where(links.c.node_id.in_(some)) for some in batches(ids))
    children: dict[str, list[tuple[str, str | None]]] = {}
    for part in parts:
        for node_id, child_id, document_id in connection.execute(part):
            children.setdefault(node_id, []).append((child_id, document_id))
    return children


def _node_from(row: RowMapping, children: Sequence[tuple[str, str | None]]) -> TreeNode:
    return TreeNode(
        id=row["id"],
        level=row["level"],
        children=tuple(child for child, _ in children),
        documents=tuple(document for _, document in children if document is not None),
        fingerprint=row["fingerprint"],
        size=row["size"],
        prompt_version=row["prompt_version"],
        model=row["model"],
    )


def _above(connection: Connection, tenant: TenantId, generation: int, child_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for batch in batches(child_ids):
        statement = (
            select(links.c.child_id, links.c.node_id)
            .where(links.c.tenant_id == tenant.value, links.c.generation == generation, links.c.child_id.in_(batch))
            .order_by(links.c.child_id, links.c.node_id)
        )
        for child, node in connection.execute(statement):
            found.setdefault(child, []).append(node)
    return {child: tuple(nodes) for child, nodes in found.items()}


def _summaries(connection: Connection, tenant: TenantId, keys: Sequence[SummaryKey]) -> dict[SummaryKey, CommunitySummary]:
    wanted = set(keys)
    found = {}
    for batch in batches(sorted({fingerprint for fingerprint, _, _ in wanted})):
        statement = select(summaries_table).where(
            summaries_table.c.tenant_id == tenant.value, summaries_table.c.fingerprint.in_(batch)
        )
        for row in connection.execute(statement).mappings():
            key = (row["fingerprint"], row["prompt_version"], row["model"])
            if key in wanted:
                found[key] = summary_from(row)
    return found


def _drop_summaries(connection: Connection, tenant: TenantId, keep: Sequence[str]) -> int:
    lock_tenant(connection, tenant)
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
