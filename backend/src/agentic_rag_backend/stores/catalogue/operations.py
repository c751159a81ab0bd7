"""Operations of the catalogue: plain functions that run as transactions, and the classes that are made of them.

An operation is written once, as a function whose first parameter is the connection of an open transaction::

    def purge(connection: Connection, tenant: TenantId, document_id: str, *, up_to_version: int) -> Mapping[str, int]: ...

Functions call one another on the same connection, so several operations can be one transaction. A class names the
function of each method and the kind of transaction it needs::

    class DocumentCatalogue(CataloguePart):
        purge = write(versions.purge)

Now ``await catalogue.documents.purge(tenant, "id", up_to_version=3)`` runs ``versions.purge`` in a transaction of its own.
The method has the parameters and the documentation of the function, without the connection.

A parameter that is called ``tenant`` is checked by `require_tenant` before the transaction begins. No function checks it again.

Row operations shared by several nouns: locks, counters, and conversion of rows to domain values.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import cache, wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Executable, Table, bindparam, case, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.document import Document, DocumentState
from agentic_rag_backend.domain.job import Job, JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.errors import NotFound, PreconditionFailed
from agentic_rag_backend.stores.catalogue.columns import failures_from_json, utc_now
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.documents.document_values import ANY_REVISION, Expected
from agentic_rag_backend.stores.catalogue.tables import documents, jobs, tenants
from agentic_rag_backend.telemetry.tracing import is_recording, start_span

P = ParamSpec("P")
T = TypeVar("T")

_TENANT = "tenant"


class CataloguePart:
    """A noun of the catalogue on ``database``. Subclasses list its methods."""

    def __init__(self, database: Database) -> None:
        self._database = database


Operation = Callable[Concatenate[Connection, P], T]
Method = Callable[Concatenate[CataloguePart, P], Coroutine[Any, Any, T]]


def read(operation: Operation[P, T]) -> Method[P, T]:
    """Return a method that runs ``operation`` on one snapshot; see `Database.read`."""
    return _make_method(operation, Database.read)


def write(operation: Operation[P, T]) -> Method[P, T]:
    """Return a method that runs ``operation`` as one transaction; see `Database.write`."""
    return _make_method(operation, Database.write)


def write_arriving(operation: Operation[P, T]) -> Method[P, T]:
    """Return a method for an ``operation`` that accepts new work; see `Database.write_arriving`."""
    return _make_method(operation, Database.write_arriving)


def write_soon(operation: Operation[P, T]) -> Method[P, T]:
    """Return a method for an ``operation`` that is worthless later; see `Database.write_soon`."""
    return _make_method(operation, Database.write_soon)


def _make_method(
    operation: Operation[P, T], run: Callable[[Database, Callable[[Connection], T]], Coroutine[Any, Any, T]]
) -> Method[P, T]:
    _, *names = signature(operation).parameters
    position = names.index(_TENANT) if _TENANT in names else None

    @wraps(operation)
    async def method(part: CataloguePart, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if position is not None:
            require_tenant(args[position] if position < len(args) else kwargs.get(_TENANT))
        if not is_recording():
            return await run(part._database, lambda connection: operation(connection, *args, **kwargs))
        with start_span(f"catalogue {operation.__name__}", "client", operation=operation.__name__):
            return await run(part._database, lambda connection: operation(connection, *args, **kwargs))

    return method


BATCH = 500
"""Ids bound in one statement. Both databases allow several times as many."""

_LOCK_TENANT = select(tenants.c.state_version).where(tenants.c.tenant_id == bindparam("tenant")).with_for_update(key_share=True)
_LOCK_DOCUMENT = (
    select(documents)
    .where(documents.c.tenant_id == bindparam("tenant"), documents.c.id == bindparam("document"))
    .with_for_update(key_share=True)
)
_NOW = bindparam("now", type_=tenants.c.created_at.type)
_RAISE = (
    update(tenants)
    .where(tenants.c.tenant_id == bindparam("tenant"))
    .values(
        state_version=tenants.c.state_version + 1,
        content_version=case((bindparam("content"), tenants.c.state_version + 1), else_=tenants.c.content_version),
        content_changed_at=case((bindparam("content"), _NOW), else_=tenants.c.content_changed_at),
        **{
            column.name: case((bindparam("content"), func.coalesce(column, _NOW)), else_=column)
            for column in (tenants.c.stale_since, tenants.c.tree_stale_since)
        },
    )
)


def batches(items: Sequence[T], size: int = BATCH) -> Iterator[Sequence[T]]:
    """Cut ``items`` into slices of at most ``size``."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def lock_tenant(connection: Connection, tenant: TenantId) -> None:
    """Lock the tenant, so that this transaction is its only writer. Take this lock first, so that all locks have one order.

    On SQLite the transaction is already the only writer of the database. There this only checks that the tenant exists.

    Raises:
        NotFound: the tenant does not exist.
    """
    if connection.execute(_LOCK_TENANT, {"tenant": tenant.value}).first() is None:
        raise NotFound(f"there is no tenant {tenant}")


def lock_document(connection: Connection, tenant: TenantId, document_id: str) -> RowMapping | None:
    """Return the document's row, deleted or not, locked until the transaction ends."""
    return connection.execute(_LOCK_DOCUMENT, {"tenant": tenant.value, "document": document_id}).mappings().first()


def find_undeleted(connection: Connection, tenant: TenantId, document_ids: Sequence[str]) -> set[str]:
    """Return those of ``document_ids`` that are documents of the tenant and were not deleted."""
    undeleted: set[str] = set()
    for batch in batches(document_ids):
        of_batch = (documents.c.tenant_id == tenant.value, documents.c.id.in_(batch), documents.c.deleted_at.is_(None))
        undeleted.update(connection.execute(select(documents.c.id).where(*of_batch)).scalars())
    return undeleted


def raise_state_version(connection: Connection, tenant: TenantId, *, content: bool = False) -> None:
    """Count a change that can alter an answer. With ``content``, documents changed, and communities become stale."""
    connection.execute(_RAISE, {"tenant": tenant.value, "content": content, "now": utc_now()})


def upsert(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, keys: Sequence[str], replace: Sequence[str] = ()
) -> None:
    """Insert ``rows``. In existing rows with the same ``keys``, update the ``replace`` columns only."""
    if not rows:
        return
    statement = _upsert_statement(connection.dialect.name, table, tuple(keys), tuple(replace))
    connection.execute(statement, [dict(row) for row in rows])


@cache
def _upsert_statement(dialect: str, table: Table, keys: tuple[str, ...], replace: tuple[str, ...]) -> Executable:
    # Both dialects have these methods, but no common class declares them.
    statement = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    if not replace:
        return statement.on_conflict_do_nothing(index_elements=list(keys))
    return statement.on_conflict_do_update(index_elements=list(keys), set_={name: statement.excluded[name] for name in replace})


def public_key(key: str, content_hash: str) -> str | None:
    """Return the caller's key. None if the content's hash serves as the key."""
    return None if key == content_hash else key


def document_from(row: Mapping[str, Any] | RowMapping) -> Document:
    """Return a row of `documents` as a value."""
    return Document(
        id=row["id"],
        key=public_key(row["key"], row["content_hash"]),
        title=row["title"],
        state=DocumentState(row["state"]),
        current_version=row["current_version"],
        latest_version=row["latest_version"],
        content_hash=row["content_hash"],
        media_type=row["media_type"],
        size_bytes=row["size_bytes"],
        metadata=row["metadata"],
        chunk_count=row["chunk_count"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        failures=failures_from_json(row["failures"]),
        job_id=row["job_id"],
        parent_id=row["parent_id"],
        place=row["place"],
    )


def require_revision(document: RowMapping, expected: Expected) -> None:
    """Compare the revision of a document's row, which this transaction has locked, with the caller's.

    Raises:
        PreconditionFailed: the document has another revision.
    """
    if expected is None or ANY_REVISION in expected:
        return
    revision = document_from(document).revision
    if revision not in expected:
        raise PreconditionFailed(f"document {document['id']!r} was changed in the meantime: its revision is {revision!r} now")


def job_from(row: RowMapping) -> Job:
    """Return a row of `jobs` as a value."""
    fields = {name: row[name] for name in jobs.c.keys() if name != "tenant_id"}  # noqa: SIM118 (a column collection, not a dict)
    fields["kind"] = JobKind(fields["kind"])
    fields["state"] = JobState(fields["state"])
    return Job(**fields)
