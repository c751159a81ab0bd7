"""Ports made of functions: validation, execution, and the tenant check of every operation."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidScope
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.stores.catalogue.database import Database
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, read, write

A = TenantId("t_" + "a" * 32)


def _label(connection: Connection, prefix: str, tenant: TenantId, *, suffix: str = "") -> str:
    return f"{prefix}{tenant}{suffix}"


class _Port(CataloguePart):
    label = read(_label)
    relabel = write(_label)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 'catalogue.db'}")
    yield database
    await database.close()


async def test_a_method_has_the_functions_parameters_without_the_connection(database: Database) -> None:
    port = _Port(database)
    assert await port.label("of ", A) == f"of {A}"
    assert await port.relabel("of ", tenant=A, suffix="!") == f"of {A}!"


async def test_the_tenant_is_checked_wherever_it_stands(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    port = _Port(database)
    monkeypatch.setattr(database, "_read", None)  # no transaction begins
    for scope in (None, "", A.value):
        with pytest.raises(InvalidScope):
            await port.label("of ", scope)  # type: ignore[arg-type]
        with pytest.raises(InvalidScope):
            await port.label("of ", tenant=scope)  # type: ignore[arg-type]


def _operations() -> dict[str, Callable[..., Any]]:
    assert Catalogue  # type: ignore[truthy-function]  # its import defines every port
    ports = [port for port in CataloguePart.__subclasses__() if port.__module__.startswith("agentic_rag_backend.")]
    return {
        f"{port.__name__}.{name}": method.__wrapped__
        for port in ports
        for name, method in vars(port).items()
        if hasattr(method, "__wrapped__")
    }


def test_no_operation_names_its_tenant_otherwise() -> None:
    operations = _operations()
    assert len(operations) > 100
    unchecked = [
        f"{name}({parameter.name})"
        for name, operation in operations.items()
        for parameter in inspect.signature(operation).parameters.values()
        if parameter.annotation == "TenantId" and parameter.name != "tenant"
    ]
    assert unchecked == []
