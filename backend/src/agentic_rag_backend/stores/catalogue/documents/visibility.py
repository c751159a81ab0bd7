"""The visible version of each document, and the changes since a ``state_version``."""

from __future__ import annotations

from sqlalchemy import Integer, String, bindparam, delete, insert, select
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.documents.document_values import Visibility
from agentic_rag_backend.stores.catalogue.tables import document_changes as changes
from agentic_rag_backend.stores.catalogue.tables import documents, tenants

CHANGES_KEPT = 10_000
"""Number of ``state_version``s that the change log keeps. A reader with an older state reads everything."""

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
    """Record the visible version (0: none) under the tenant's current ``state_version``.

    Call it after `raise_state_version` in the transaction of the change, so that each change has its own number.
    """
    connection.execute(_RECORD, {"tenant": tenant.value, "document": document_id, "version": visible_version})
    connection.execute(_FORGET, {"tenant": tenant.value})


def visible_versions(connection: Connection, tenant: TenantId) -> dict[str, int]:
    """Return the visible version of every visible document."""
    return {row[0]: row[1] for row in connection.execute(_ALL, {"tenant": tenant.value})}


def visibility(connection: Connection, tenant: TenantId, *, since: int | None = None) -> Visibility:
    """Return the changes after state_version ``since``, at a cost that depends on their number.

    If these changes are no longer recorded, return every visible version. The result is one snapshot: the versions
    visible at ``since``, with the changes applied, are the versions visible now.
    """
    now = connection.execute(_NOW, {"tenant": tenant.value}).scalar_one_or_none() or 0
    if since is None or not now - CHANGES_KEPT <= since <= now:
        return Visibility(now, visible_versions(connection, tenant), whole=True)
    changes = connection.execute(_SINCE, {"tenant": tenant.value, "since": since})
    return Visibility(now, {row[0]: row[1] for row in changes}, whole=False)
