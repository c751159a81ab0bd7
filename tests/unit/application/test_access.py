"""Every call of the application requires a scope."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentic_rag_backend.application import Application
from agentic_rag_backend.application.access import requires
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.tenant import Principal, Scope, Tenant, TenantId, TenantState
from agentic_rag_backend.errors import Forbidden


def calls(application: Application) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, member in inspect.getmembers(type(application)):
        if isinstance(member, property):
            service = getattr(application, name)
            for method, call in inspect.getmembers(service, inspect.ismethod):
                if not method.startswith("_"):
                    yield f"{name}.{method}", call


def caller(*scopes: Scope) -> Principal:
    tenant = Tenant(
        id=TenantId("t_" + "0" * 32), name="harbour", state=TenantState.ACTIVE, state_version=1, created_at=datetime.now(UTC)
    )
    return Principal(tenant=tenant, scopes=frozenset(scopes), key_id="k")


def test_every_call_refuses_a_caller_without_its_scope() -> None:
    weaker = {Scope.READ: (), Scope.WRITE: (Scope.READ,), Scope.ADMIN: (Scope.WRITE,)}
    checked = 0
    for name, call in calls(Application(cast(Container, SimpleNamespace()))):
        scope = getattr(call, "scope", None)
        assert isinstance(scope, Scope), f"{name} declares no scope"
        with pytest.raises(Forbidden, match=f"scope '{scope.value}'"):
            call(caller(*weaker[scope]))
        checked += 1
    assert checked > 50


async def test_a_caller_with_a_higher_scope_is_admitted() -> None:
    @dataclass
    class Service:
        @requires(Scope.WRITE)
        async def greet(self, caller: Principal, name: str) -> str:
            return f"{caller.key_id} {name}"

    assert await Service().greet(caller(Scope.ADMIN), "harbour") == "k harbour"
