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
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import require_tenant
from agentic_rag_backend.stores.catalogue.database import Database

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
        return await run(part._database, lambda connection: operation(connection, *args, **kwargs))

    return method
