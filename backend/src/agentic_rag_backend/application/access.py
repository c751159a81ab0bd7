"""The check that every call of the application passes: whether the caller's key has the scope of the call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from agentic_rag_backend.domain.tenant import Principal, Scope, TenantState
from agentic_rag_backend.errors import Forbidden, TenantSuspended

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


def requires(scope: Scope) -> Callable[[Method[Service, Parameters, Returned]], Method[Service, Parameters, Returned]]:
    """Declare the scope of a method whose first argument is the caller. The method is called only if the caller has it."""

    def declare(method: Method[Service, Parameters, Returned]) -> Method[Service, Parameters, Returned]:
        @wraps(method)
        def checked(service: Service, caller: Principal, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
            check_scope(caller, scope)
            return method(service, caller, *args, **kwargs)

        checked.scope = scope  # type: ignore[attr-defined]
        return checked

    return declare
