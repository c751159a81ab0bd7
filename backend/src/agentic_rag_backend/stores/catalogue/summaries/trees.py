"""Nodes of trees over passages, their summaries, and the current generation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, delete, insert, select
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.graph import CommunitySummary
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tree import TreeNode
from agentic_rag_backend.errors import Conflict
from agentic_rag_backend.stores.catalogue.jobs.leases import Fence, require_fence
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, batches, lock_tenant, read, write
from agentic_rag_backend.stores.catalogue.summaries.generations import GenerationPointer, GenerationStore
from agentic_rag_backend.stores.catalogue.tables import raptor_links as links
from agentic_rag_backend.stores.catalogue.tables import raptor_nodes, raptor_pointers, raptor_summaries, tenants

SummaryKey = tuple[str, str, str]
"""Fingerprint, prompt version and model."""

TREES = GenerationStore(
    pointers=raptor_pointers,
    summaries=raptor_summaries,
    asked_at=raptor_pointers.c.asked_at,
    build=JobKind.RAPTOR,
    on_request=True,
    stale_since=tenants.c.tree_stale_since,
)


def write_nodes(connection: Connection, tenant: TenantId, generation: int, nodes: Sequence[TreeNode]) -> None:
    """Write nodes of a generation that is not current, in batches of any size. Idempotent.

    `Conflict` if the generation is current or was never allocated.
    """
    lock_tenant(connection, tenant)
    current, last_number = TREES.pointer(connection, tenant).generation, TREES.last_generation(connection, tenant)
    if current >= generation or last_number < generation:
        raise Conflict(f"generation {generation} of the tree cannot be written: it is current, old, or was never allocated")
    _delete_nodes(connection, tenant, generation, [node.id for node in nodes])
    _insert_nodes(connection, tenant, generation, nodes)


def change(
    connection: Connection,
    tenant: TenantId,
    generation: int,
    *,
    written: Sequence[TreeNode],
    removed: Sequence[str],
    built_from: int,
    details: Mapping[str, Any],
    fence: Fence | None = None,
) -> None:
    """Replace and remove nodes of the current generation, and raise ``state_version``, in one transaction.

    Raises:
        Conflict: another generation is current.
        StoreUnavailable: the fence is not the newest.
    """
    lock_tenant(connection, tenant)
    require_fence(connection, tenant, fence)
    if TREES.pointer(connection, tenant).generation != generation:
        raise Conflict(f"generation {generation} of the tree is not current")
    _delete_nodes(connection, tenant, generation, [*removed, *(node.id for node in written)])
    _insert_nodes(connection, tenant, generation, written)
    TREES.rebuild_in_place(connection, tenant, built_from=built_from, details=details)


def _delete_nodes(connection: Connection, tenant: TenantId, generation: int, ids: Sequence[str]) -> None:
    for batch in batches(ids):
        for table, column in ((links, links.c.node_id), (raptor_nodes, raptor_nodes.c.id)):
            connection.execute(
                delete(table).where(table.c.tenant_id == tenant.value, table.c.generation == generation, column.in_(batch))
            )


def _insert_nodes(connection: Connection, tenant: TenantId, generation: int, new_nodes: Sequence[TreeNode]) -> None:
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
        for node in new_nodes
    ]
    if not rows:
        return
    connection.execute(insert(raptor_nodes), rows)
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
            for node in new_nodes
            for ordinal, child in enumerate(node.children)
        ],
    )


def nodes(
    connection: Connection,
    tenant: TenantId,
    generation: int,
    *,
    level: int | None = None,
    ids: Sequence[str] | None = None,
    point_ids: Sequence[str] | None = None,
) -> list[TreeNode]:
    """Return a generation's nodes by level, descending size and id, optionally of one level or of some ids or vectors."""
    of_generation = and_(raptor_nodes.c.tenant_id == tenant.value, raptor_nodes.c.generation == generation)
    if level is not None:
        of_generation = and_(of_generation, raptor_nodes.c.level == level)
    statement = select(raptor_nodes).where(of_generation)
    rows: list[RowMapping] = []
    if ids is None and point_ids is None:
        rows.extend(connection.execute(statement).mappings())
    for column, values in ((raptor_nodes.c.id, ids), (raptor_nodes.c.point_id, point_ids)):
        for batch in batches(list(dict.fromkeys(values or ()))):
            rows.extend(connection.execute(statement.where(column.in_(batch))).mappings())
    children = _read_children(
        connection, tenant, generation, None if ids is None and point_ids is None else [n["id"] for n in rows]
    )
    by_id = {row["id"]: _node_from(row, children.get(row["id"], ())) for row in rows}
    return sorted(by_id.values(), key=lambda node: (node.level, -node.size, node.id))


def _read_children(
    connection: Connection, tenant: TenantId, generation: int, ids: Sequence[str] | None
) -> dict[str, list[tuple[str, str | None]]]:
    statement = (
        select(links.c.node_id, links.c.child_id, links.c.document_id)
        .where(links.c.tenant_id == tenant.value, links.c.generation == generation)
        .order_by(links.c.node_id, links.c.ordinal)
    )
    parts: Iterable[Any] = [statement] if ids is None else (statement.where(links.c.node_id.in_(batch)) for batch in batches(ids))
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


def above(connection: Connection, tenant: TenantId, generation: int, child_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return, for each of the children, the ids of the nodes that contain it. Children without a node are absent."""
    parents: dict[str, list[str]] = {}
    for batch in batches(child_ids):
        statement = (
            select(links.c.child_id, links.c.node_id)
            .where(
                links.c.tenant_id == tenant.value,
                links.c.generation == generation,
                links.c.child_id.in_(batch),
            )
            .order_by(links.c.child_id, links.c.node_id)
        )
        for child, node in connection.execute(statement):
            parents.setdefault(child, []).append(node)
    return {child: tuple(nodes) for child, nodes in parents.items()}


def resting_on(connection: Connection, tenant: TenantId, generation: int, document_id: str) -> list[str]:
    """Return the ids of the nodes of level 1 that contain passages of the document."""
    statement = (
        select(links.c.node_id)
        .where(
            links.c.tenant_id == tenant.value,
            links.c.generation == generation,
            links.c.document_id == document_id,
        )
        .distinct()
        .order_by(links.c.node_id)
    )
    return list(connection.execute(statement).scalars())


def generations(connection: Connection, tenant: TenantId) -> list[int]:
    """Return the generations that have nodes."""
    statement = select(raptor_nodes.c.generation).where(raptor_nodes.c.tenant_id == tenant.value).distinct()
    return sorted(connection.execute(statement).scalars())


def delete_generations(connection: Connection, tenant: TenantId, *, keep: int) -> int:
    """Remove the nodes of all generations except ``keep``. Return their number."""
    lock_tenant(connection, tenant)
    count = 0
    for table in (links, raptor_nodes):
        removal = delete(table).where(table.c.tenant_id == tenant.value, table.c.generation != keep)
        count = connection.execute(removal).rowcount
    return count


def summaries(connection: Connection, tenant: TenantId, keys: Sequence[SummaryKey]) -> dict[SummaryKey, CommunitySummary]:
    """Return the summaries that exist."""
    matches = TREES.find_summaries(connection, tenant, sorted({fingerprint for fingerprint, _, _ in keys}))
    by_key = {(summary.fingerprint, summary.prompt_version, summary.model): summary for summary in matches}
    return {key: by_key[key] for key in keys if key in by_key}


def tree_pointer(connection: Connection, tenant: TenantId) -> GenerationPointer:
    """Return the pointer to the current tree. The scope of a restricted key has none: vectors of nodes are of all documents."""
    pointer = TREES.pointer(connection, tenant)
    return pointer if tenant.access is None else GenerationPointer(generation=0, stale=pointer.stale)


class TreeCatalogue(CataloguePart):
    """Generations of trees. The first tree is built on request, so generation 0 is not stale."""

    pointer = read(tree_pointer)
    next_generation = write(TREES.next_generation)
    write_nodes = write(write_nodes)
    publish = write(TREES.publish)
    change = write(change)
    nodes = read(nodes)
    above = read(above)
    resting_on = read(resting_on)
    generations = read(generations)
    delete_generations = write(delete_generations)
    summaries = read(summaries)
    save_summaries = write(TREES.save_summaries)
    drop_summaries = write(TREES.drop_summaries)
    asked = write(TREES.asked)
    due = read(TREES.due)
