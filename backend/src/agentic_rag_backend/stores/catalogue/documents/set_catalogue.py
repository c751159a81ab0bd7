"""Sets of documents. `tests.fixtures.catalogue_checks.document_sets` checks the contract on both databases."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, delete, func, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.document import DocumentState
from agentic_rag_backend.domain.document_sets import MAX_MEMBERS, MAX_SETS, DocumentSet, MemberBatch, StateCounts
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import Conflict, NotFound
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.documents.visible_documents import passes_filter
from agentic_rag_backend.stores.catalogue.operations import (
    CataloguePart,
    batches,
    find_undeleted,
    lock_tenant,
    read,
    upsert,
    write,
)
from agentic_rag_backend.stores.catalogue.pages import Page, beyond, check_limit, time_cursor
from agentic_rag_backend.stores.catalogue.tables import document_set_members as members
from agentic_rag_backend.stores.catalogue.tables import document_sets as sets
from agentic_rag_backend.stores.catalogue.tables import documents

_SCOPE = "document sets"
_NAMES = tuple(item.name for item in fields(DocumentSet))
_COUNTED_AT_ONCE = 500


def create(connection: Connection, tenant: TenantId, document_set: DocumentSet, document_ids: Sequence[str] = ()) -> None:
    """Record a set with its first members.

    Raises:
        NotFound, Conflict: see `add_members`. No set is recorded.
        Conflict: the tenant has `MAX_SETS` sets.
    """
    lock_tenant(connection, tenant)
    count = connection.execute(select(func.count()).select_from(sets).where(sets.c.tenant_id == tenant.value)).scalar_one()
    if count >= MAX_SETS:
        raise Conflict(f"a tenant may have at most {MAX_SETS} sets of documents; delete one before you create another")
    row = {"tenant_id": tenant.value, **{name: getattr(document_set, name) for name in _NAMES}}
    connection.execute(sets.insert().values(row))
    if document_ids:
        add_members(connection, tenant, document_set.id, document_ids)


def read_set(connection: Connection, tenant: TenantId, set_id: str) -> DocumentSet:
    """Return a set, or raise `NotFound`."""
    row = connection.execute(select(sets).where(*_is_set(tenant, set_id))).mappings().first()
    if row is None:
        raise NotFound(f"there is no set of documents {set_id[:80]!r}")
    return _set_from(row)


def page(
    connection: Connection, tenant: TenantId, *, limit: int, after: str | None = None, oldest_first: bool = False
) -> Page[DocumentSet]:
    """List sets, newest first. ``after`` is the id of the set before the page; `NotFound` if there is none."""
    statement = select(sets).where(sets.c.tenant_id == tenant.value)
    if after is not None:
        cursor = time_cursor(_SCOPE, read_set(connection, tenant, after).created_at, after)
        statement = statement.where(beyond(sets, _SCOPE, cursor, newest_first=not oldest_first))
    order = (sets.c.created_at, sets.c.id)
    statement = statement.order_by(*(order if oldest_first else (column.desc() for column in order)))
    items = [_set_from(row) for row in connection.execute(statement.limit(check_limit(limit) + 1)).mappings()]
    last_item = items[limit - 1] if len(items) > limit else None
    return Page(tuple(items[:limit]), time_cursor(_SCOPE, last_item.created_at, last_item.id) if last_item else None)


def change(connection: Connection, tenant: TenantId, set_id: str, values: Mapping[str, Any]) -> DocumentSet:
    """Change name, description, labels or filter. `NotFound` if there is no such set."""
    if values:
        connection.execute(update(sets).where(*_is_set(tenant, set_id)).values(**values))
    return read_set(connection, tenant, set_id)


def remove(connection: Connection, tenant: TenantId, set_id: str) -> None:
    """Delete a set. Its documents stay. `NotFound` if there is no such set."""
    lock_tenant(connection, tenant)
    read_set(connection, tenant, set_id)
    connection.execute(delete(members).where(members.c.tenant_id == tenant.value, members.c.set_id == set_id))
    connection.execute(delete(sets).where(*_is_set(tenant, set_id)))


def add_members(
    connection: Connection, tenant: TenantId, set_id: str, document_ids: Sequence[str], *, batch_id: str | None = None
) -> None:
    """Add documents. Members that are added again belong to the new batch.

    Raises:
        NotFound: the set or a document does not exist. No document is added.
        Conflict: the set has a filter, or would have more than `MAX_MEMBERS` members.
    """
    lock_tenant(connection, tenant)  # a deletion of a document waits, so that no member without a document remains
    distinct_ids = check_members(connection, tenant, set_id, document_ids)
    shared = {"tenant_id": tenant.value, "set_id": set_id, "batch_id": batch_id, "added_at": utc_now()}
    for batch in batches(distinct_ids):
        rows = [{**shared, "document_id": document_id} for document_id in batch]
        upsert(connection, members, rows, keys=("tenant_id", "set_id", "document_id"), replace=("batch_id", "added_at"))


def check_members(connection: Connection, tenant: TenantId, set_id: str, document_ids: Sequence[str]) -> list[str]:
    """Return the distinct ids of documents that can be added to a set. Raises the errors of `add_members`."""
    if not read_set(connection, tenant, set_id).has_members:
        raise Conflict("the documents of this set are those that pass its filter; none can be added")
    distinct_ids = list(dict.fromkeys(document_ids))
    present = find_undeleted(connection, tenant, distinct_ids)
    for document_id in distinct_ids:
        if document_id not in present:
            raise NotFound(f"there is no document {document_id!r}")
    count = len(member_ids(connection, tenant, [set_id]).union(distinct_ids))
    if count > MAX_MEMBERS:
        raise Conflict(f"a set may have at most {MAX_MEMBERS} documents; it would have {count}. Use a set with a filter")
    return distinct_ids


def remove_member(connection: Connection, tenant: TenantId, set_id: str, document_id: str) -> None:
    """Remove a document from a set. `NotFound` if it is no member."""
    member = (members.c.tenant_id == tenant.value, members.c.set_id == set_id, members.c.document_id == document_id)
    if connection.execute(delete(members).where(*member)).rowcount == 0:
        raise NotFound(f"document {document_id!r} is not in the set {set_id!r}")


def member_ids(connection: Connection, tenant: TenantId, set_ids: Sequence[str]) -> frozenset[str]:
    """Return the ids of the documents that are in any of some sets."""
    statement = select(members.c.document_id).where(members.c.tenant_id == tenant.value, members.c.set_id.in_(set_ids))
    return frozenset(connection.execute(statement).scalars())


def batch(connection: Connection, tenant: TenantId, set_id: str, batch_id: str) -> MemberBatch:
    """Return the documents that one request added. `NotFound` if none of them is in the set any more."""
    its = (members.c.tenant_id == tenant.value, members.c.set_id == set_id, members.c.batch_id == batch_id)
    added_at = connection.execute(select(members.c.added_at).where(*its).limit(1)).scalar_one_or_none()
    if added_at is None:
        raise NotFound(f"there is no batch {batch_id[:80]!r}")
    counts = _count_members(connection, tenant, and_(*its))
    return MemberBatch(batch_id, added_at, counts.get(set_id, StateCounts()))


def count_members(connection: Connection, tenant: TenantId, set_ids: Sequence[str]) -> dict[str, StateCounts]:
    """Return the documents of sets with members, by the id of the set. An empty set is left out."""
    return _count_members(connection, tenant, members.c.set_id.in_(set_ids))


def count_matching(connection: Connection, tenant: TenantId, filters: Mapping[str, Filter | None]) -> dict[str, StateCounts]:
    """Return the documents that pass filters, by the key of each filter. None passes every document.

    Metadata has no index, so this reads each document of the tenant once, unless there is no filter at all.
    """
    undeleted = (documents.c.tenant_id == tenant.value, documents.c.deleted_at.is_(None))
    if not any(filters.values()):
        by_state = select(documents.c.state, *_SIZES).where(*undeleted).group_by(documents.c.state)
        total = _read_counts((None, *row) for row in connection.execute(by_state)).get(None, StateCounts())
        return dict.fromkeys(filters, total)
    states: dict[str, Counter[DocumentState]] = {key: Counter() for key in filters}
    sizes: Counter[str] = Counter()
    columns = (documents.c[name] for name in ("id", "key", "title", "content_hash", "metadata", "state", "size_bytes"))
    statement = select(*columns).where(*undeleted).execution_options(yield_per=_COUNTED_AT_ONCE)
    for row in connection.execute(statement).mappings():
        for key, filter in filters.items():
            if filter is None or passes_filter(row, filter):
                states[key][DocumentState(row["state"])] += 1
                sizes[key] += row["size_bytes"]
    return {key: StateCounts(states[key], sizes[key]) for key in filters}


_SIZES = (func.count(), func.coalesce(func.sum(documents.c.size_bytes), 0))


def _count_members(connection: Connection, tenant: TenantId, condition: ColumnElement[bool]) -> dict[str, StateCounts]:
    of_document = and_(documents.c.tenant_id == members.c.tenant_id, documents.c.id == members.c.document_id)
    statement: Select[Any] = (
        select(members.c.set_id, documents.c.state, *_SIZES)
        .select_from(members.join(documents, of_document))
        .where(members.c.tenant_id == tenant.value, documents.c.deleted_at.is_(None), condition)
        .group_by(members.c.set_id, documents.c.state)
    )
    return _read_counts(connection.execute(statement))


def _read_counts(rows: Any) -> dict[Any, StateCounts]:
    """Return the counts in rows of a key, a state, a number and a sum of bytes."""
    states: dict[Any, dict[DocumentState, int]] = defaultdict(dict)
    sizes: Counter[Any] = Counter()
    for key, state, count, size_bytes in rows:
        states[key][DocumentState(state)] = count
        sizes[key] += int(size_bytes)
    return {key: StateCounts(states[key], sizes[key]) for key in states}


def _is_set(tenant: TenantId, set_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return sets.c.tenant_id == tenant.value, sets.c.id == set_id


def _set_from(row: RowMapping) -> DocumentSet:
    return DocumentSet(**{name: row[name] for name in _NAMES})


class DocumentSetCatalogue(CataloguePart):
    """Sets of documents."""

    create = write(create)
    document_set = read(read_set)
    page = read(page)
    change = write(change)
    remove = write(remove)
    add_members = write(add_members)
    check_members = read(check_members)
    remove_member = write(remove_member)
    member_ids = read(member_ids)
    batch = read(batch)
    count_members = read(count_members)
    count_matching = read(count_matching)
