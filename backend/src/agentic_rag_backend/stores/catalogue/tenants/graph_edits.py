"""Edits of the graph: records that the resolution of names applies to every document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.graph_edits import MAX_GRAPH_EDITS, EditDraft, EditKind, GraphEdit
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.jobs.outbox import Topic, record
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, lock_tenant, raise_state_version, read, write
from agentic_rag_backend.stores.catalogue.pages import Page, check_limit, decode_cursor, encode_cursor
from agentic_rag_backend.stores.catalogue.tables import graph_edits

_SCOPE = "edits"
_COUNT_CHANGES = select(func.count() + func.count(graph_edits.c.undone_at)).where(graph_edits.c.tenant_id == bindparam("tenant"))


def add(connection: Connection, tenant: TenantId, draft: EditDraft) -> GraphEdit:
    """Record an edit, and in the same transaction an outbox entry ``edits`` with its number. Raises ``state_version``.

    Raises:
        InvalidRequest: the tenant has `MAX_GRAPH_EDITS` edits in effect.
    """
    lock_tenant(connection, tenant)
    of_tenant = graph_edits.c.tenant_id == tenant.value
    counts = select(func.count(), func.coalesce(func.max(graph_edits.c.number), 0))
    ((in_effect_count, _),) = connection.execute(counts.where(of_tenant, graph_edits.c.undone_at.is_(None)))
    if in_effect_count >= MAX_GRAPH_EDITS:
        raise InvalidRequest(
            f"the tenant has {in_effect_count} edits of the graph in effect; {MAX_GRAPH_EDITS} are allowed. Undo some first"
        )
    ((_, last_number),) = connection.execute(counts.where(of_tenant))
    edit = GraphEdit(number=last_number + 1, draft=draft, created_at=utc_now())
    insert_edits(connection, tenant, [edit])
    _record_change(connection, tenant, edit.number)
    return edit


def insert_edits(connection: Connection, tenant: TenantId, edits: Iterable[GraphEdit]) -> None:
    """Insert edits with their numbers."""
    rows = [
        {
            "tenant_id": tenant.value,
            "number": edit.number,
            "draft": plain(asdict(edit.draft)),
            "created_at": edit.created_at,
            "undone_at": edit.undone_at,
        }
        for edit in edits
    ]
    if rows:
        connection.execute(insert(graph_edits), rows)


def undo(connection: Connection, tenant: TenantId, number: int) -> GraphEdit:
    """Mark an edit as undone, and in the same transaction record the outbox entry. Idempotent.

    Raises:
        NotFound: the tenant has no edit of this number.
    """
    lock_tenant(connection, tenant)
    edit = read_edit(connection, tenant, number)
    if edit.undone_at is not None:
        return edit
    of_edit = (graph_edits.c.tenant_id == tenant.value, graph_edits.c.number == number)
    connection.execute(update(graph_edits).where(*of_edit).values(undone_at=utc_now()))
    _record_change(connection, tenant, number)
    return read_edit(connection, tenant, number)


def _record_change(connection: Connection, tenant: TenantId, number: int) -> None:
    record(connection, tenant, Topic.EDITS, str(number))
    raise_state_version(connection, tenant, content=True)


def read_edit(connection: Connection, tenant: TenantId, number: int) -> GraphEdit:
    """Return an edit, also one that was undone. Raises `NotFound`."""
    # Larger numbers do not fit into the column.
    of_edit = (graph_edits.c.tenant_id == tenant.value, graph_edits.c.number == number)
    row = connection.execute(select(graph_edits).where(*of_edit)).mappings().first() if 0 < number < 2**31 else None
    if row is None:
        raise NotFound(f"there is no edit {number}")
    return _edit_from(row)


def page(connection: Connection, tenant: TenantId, *, limit: int, cursor: str | None = None) -> Page[GraphEdit]:
    """Return edits, undone ones included, the newest first."""
    statement = select(graph_edits).where(graph_edits.c.tenant_id == tenant.value)
    if cursor is not None:
        (before,) = decode_cursor(_SCOPE, cursor, int)
        statement = statement.where(graph_edits.c.number < before)
    statement = statement.order_by(graph_edits.c.number.desc()).limit(check_limit(limit) + 1)
    edits = [_edit_from(row) for row in connection.execute(statement).mappings()]
    following = encode_cursor(_SCOPE, (edits[limit - 1].number,)) if len(edits) > limit else None
    return Page(tuple(edits[:limit]), following)


def changes(connection: Connection, tenant: TenantId) -> int:
    """Return how often an edit of the tenant was added or undone. Equal numbers mean equal edits."""
    return int(connection.execute(_COUNT_CHANGES, {"tenant": tenant.value}).scalar_one())


def in_effect(connection: Connection, tenant: TenantId) -> Sequence[GraphEdit]:
    """Return the edits that were not undone, by number."""
    of_tenant = (graph_edits.c.tenant_id == tenant.value, graph_edits.c.undone_at.is_(None))
    statement = select(graph_edits).where(*of_tenant).order_by(graph_edits.c.number)
    return [_edit_from(row) for row in connection.execute(statement).mappings()]


def _edit_from(row: RowMapping) -> GraphEdit:
    return GraphEdit(number=row["number"], draft=draft_of(row["draft"]), created_at=row["created_at"], undone_at=row["undone_at"])


def draft_of(values: dict[str, Any]) -> EditDraft:
    """Return a draft that was stored as JSON."""
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return EditDraft(**{**values, **lists, "kind": EditKind(values["kind"])})


class GraphEditCatalogue(CataloguePart):
    """Edits of each tenant, numbered from 1 in the order in which they apply."""

    add = write(add)
    undo = write(undo)
    edit = read(read_edit)
    page = read(page)
    changes = read(changes)
    in_effect = read(in_effect)
