"""The checks that every call of the application passes: the scope of the caller's key, and the documents that it may read."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from agentic_rag_backend.domain.tenant import Principal, Scope, TenantState
from agentic_rag_backend.errors import Forbidden, KeyRestricted, TenantSuspended

Service = TypeVar("Service")
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
Method = Callable[Concatenate[Service, Principal, Parameters], Returned]


def check_scope(caller: Principal, scope: Scope) -> None:
    """Return if the caller's key has a scope.

    Raises:
        TenantSuspended: the tenant is suspended, and the scope is more than reading.
        Forbidden: it does not.
    """
    if caller.may_use(scope):
        return
    if caller.tenant.state is TenantState.SUSPENDED:
        raise TenantSuspended("the tenant is suspended: nothing changes it until the operator resumes it")
    raise Forbidden(f"this route requires a key with scope '{scope.value}'")


def check_access(caller: Principal) -> None:
    """Return if the caller's key reads all documents.

    Raises:
        KeyRestricted: it has a filter.
    """
    if caller.tenant.id.access is not None:
        raise KeyRestricted("this key reads only the documents that pass its filter, and this operation concerns all documents")


def requires(
    scope: Scope, *, filtered: bool = False
) -> Callable[[Method[Service, Parameters, Returned]], Method[Service, Parameters, Returned]]:
    """Declare the scope of a method whose first argument is the caller. The method is called only if the caller has it.

    Args:
        filtered: whether the method shows only what the caller's documents say. Keys with a filter may call no other method.
    """

    def declare(method: Method[Service, Parameters, Returned]) -> Method[Service, Parameters, Returned]:
        @wraps(method)
        def checked(service: Service, caller: Principal, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
            check_scope(caller, scope)
            if not filtered:
                check_access(caller)
            return method(service, caller, *args, **kwargs)

        checked.scope, checked.filtered = scope, filtered  # type: ignore[attr-defined]
        return checked

    return declare
