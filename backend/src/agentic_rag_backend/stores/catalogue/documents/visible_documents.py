"""The documents that a scope shows: the visible version of each, and the changes since a ``state_version``.

The scope of a restricted key (`domain.tenant.Access`) shows the documents that pass the key's filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from sqlalchemy import Integer, String, bindparam, delete, insert, select
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.filters import Filter, filterable_fields, matches_filter
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.documents.document_values import Visibility
from agentic_rag_backend.stores.catalogue.operations import batches, public_key
from agentic_rag_backend.stores.catalogue.tables import document_changes as changes
from agentic_rag_backend.stores.catalogue.tables import documents, tenants

CHANGES_KEPT = 10_000
"""Number of ``state_version``s that the change log keeps. A reader with an older state reads everything."""

RELABELLED = -1
"""Recorded instead of a version if only title and metadata changed, which can change who may read the document."""

_COMPARED = tuple(
    documents.c[name] for name in ("id", "key", "content_hash", "title", "metadata", "parent_id", "current_version", "deleted_at")
)
"""Columns that a filter compares, and those that decide whether there is anything to show."""

_NOW = select(tenants.c.state_version).where(tenants.c.tenant_id == bindparam("tenant"))
_RECORD = insert(changes).from_select(
    ["tenant_id", "state_version", "document_id", "visible_version"],
    select(
        tenants.c.tenant_id,
        tenants.c.state_version,
        bindparam("document", type_=String),
        bindparam("version", type_=Integer),
    ).where(tenants.c.tenant_id == bindparam("tenant")),
)
_FORGET = delete(changes).where(
    changes.c.tenant_id == bindparam("tenant"), changes.c.state_version <= _NOW.scalar_subquery() - CHANGES_KEPT
)
_SINCE = (
    select(changes.c.document_id, changes.c.visible_version)
    .where(changes.c.tenant_id == bindparam("tenant"), changes.c.state_version > bindparam("since"))
    .order_by(changes.c.state_version)
)
_ALL = select(documents.c.id, documents.c.current_version).where(
    documents.c.tenant_id == bindparam("tenant"), documents.c.deleted_at.is_(None), documents.c.current_version > 0
)


def record_change(connection: Connection, tenant: TenantId, document_id: str, visible_version: int) -> None:
    """Record the visible version (0: none; `RELABELLED`: as before) under the tenant's current ``state_version``.

    Call it after `raise_state_version` in the transaction of the change, so that each change has its own number.
    """
    connection.execute(_RECORD, {"tenant": tenant.value, "document": document_id, "version": visible_version})
    connection.execute(_FORGET, {"tenant": tenant.value})


def visible_versions(connection: Connection, tenant: TenantId) -> dict[str, int]:
    """Return the visible version of every visible document."""
    versions = {row[0]: row[1] for row in connection.execute(_ALL, {"tenant": tenant.value})}
    return _hide_unreadable(connection, tenant, versions, {})


def list_changes(connection: Connection, tenant: TenantId, *, since: int | None = None) -> Visibility:
    """Return the changes after state_version ``since``, at a cost that depends on their number.

    If these changes are no longer recorded, return every visible version. The result is one snapshot: the versions
    visible at ``since``, with the changes applied, are the versions visible now.
    """
    now = connection.execute(_NOW, {"tenant": tenant.value}).scalar_one_or_none() or 0
    if since is None or not now - CHANGES_KEPT <= since <= now:
        return Visibility(now, visible_versions(connection, tenant), whole=True)
    rows = connection.execute(_SINCE, {"tenant": tenant.value, "since": since}).all()
    changed = {row[0]: row[1] for row in rows if row[1] != RELABELLED}
    if tenant.access is not None and (relabelled := {row[0] for row in rows} - changed.keys()):
        changed |= dict(_current_versions(connection, tenant, sorted(relabelled)))
    return Visibility(now, _hide_unreadable(connection, tenant, changed, dict.fromkeys(changed, 0)), whole=False)


def _hide_unreadable(
    connection: Connection, tenant: TenantId, versions: Mapping[str, int], hidden: Mapping[str, int]
) -> dict[str, int]:
    """Return the versions of documents that a scope shows, and ``hidden`` for the others."""
    readable = select_readable(connection, tenant, [id for id, version in versions.items() if version])
    return {**hidden, **{id: version for id, version in versions.items() if id in readable}}


def _current_versions(connection: Connection, tenant: TenantId, document_ids: Sequence[str]) -> Iterator[tuple[str, int]]:
    for batch in batches(document_ids):
        rows = connection.execute(_ALL.where(documents.c.id.in_(batch)), {"tenant": tenant.value})
        yield from ((row[0], row[1]) for row in rows)


def passes_filter(row: RowMapping, filter: Filter) -> bool:
    """Return whether a row of `documents` passes a filter."""
    key = public_key(row["key"], row["content_hash"])
    return matches_filter(filter, filterable_fields(row["metadata"], document_id=row["id"], key=key, title=row["title"]))


def select_readable(connection: Connection, tenant: TenantId, document_ids: Sequence[str]) -> frozenset[str]:
    """Return the ids of the documents among ``document_ids`` that a scope shows. Costs nothing for a whole tenant.

    A restricted scope shows no document before its first version is visible, because its file may change what the filter
    compares. It shows an attachment only together with its message.
    """
    if tenant.access is None:
        return frozenset(document_ids)
    parents, rejected = dict[str, str | None](), set[str]()
    layer = set(document_ids)
    while layer:
        for batch in batches(sorted(layer)):
            statement = select(*_COMPARED).where(documents.c.tenant_id == tenant.value, documents.c.id.in_(batch))
            for row in connection.execute(statement).mappings():
                parents[row["id"]] = row["parent_id"]
                if not (row["current_version"] and row["deleted_at"] is None and passes_filter(row, tenant.access.filter)):
                    rejected.add(row["id"])
        layer = {parent for parent in parents.values() if parent is not None} - parents.keys()
    return frozenset(id for id in document_ids if _is_shown(id, parents, rejected))


def _is_shown(document_id: str | None, parents: Mapping[str, str | None], rejected: Set[str]) -> bool:
    while document_id is not None:
        if document_id in rejected or document_id not in parents:
            return False
        document_id = parents[document_id]
    return True
