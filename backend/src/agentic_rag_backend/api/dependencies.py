"""Dependencies of endpoints: the container, and the caller with its scope.

Every dependency is a coroutine function: FastAPI runs a plain function on a thread of its pool, which costs more than the
function itself, and makes a request wait for a thread.

Identity of the client of a request, for limits per client.
"""

from __future__ import annotations

import asyncio
import ipaddress
from dataclasses import dataclass
from typing import Annotated

import structlog
from fastapi import Depends, Header, Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute

from agentic_rag_backend.answering.service import FALLBACK_SHARE
from agentic_rag_backend.api.doors.door_names import is_called_by_door
from agentic_rag_backend.api.doors.permalinks import use_links
from agentic_rag_backend.application import Application
from agentic_rag_backend.application.access import check_scope
from agentic_rag_backend.container.services import Container
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.errors import Forbidden, InvalidRequest, Unauthenticated
from agentic_rag_backend.fairness import act_for, charge_to, limit_actor

_IPV6_NETWORK = 64
"""Size of the IPv6 network that one client usually has."""
_MAX_CHARACTERS = 64


def client_of(address: str) -> str:
    """Return the identity of a client: its IPv4 address, or its IPv6 network."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:_MAX_CHARACTERS]  # a Unix socket has no IP address, and a proxy may send any text
    if parsed.version == 6 and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, _IPV6_NETWORK), strict=False))
    return str(parsed.ipv4_mapped if parsed.version == 6 else parsed)


def client_of_request(request: Request) -> str | None:
    """Return the identity of a request's client, None if it is unknown. A proxy of TRUSTED_PROXIES names the client."""
    return client_of(request.client.host) if request.client is not None else None


def container_of(request: Request) -> Container:
    """Return the container that the application serves."""
    container: Container = request.app.state.container
    return container


async def _application(request: Request) -> Application:
    return Application(container_of(request))


Services = Annotated[Application, Depends(_application)]
"""What callers can do."""


async def _process(request: Request) -> Container:
    return container_of(request)


Process = Annotated[Container, Depends(_process)]
"""The stores, models and settings of this process, for probes and for the operator."""


async def _secret(
    authorization: Annotated[str | None, Header(description="`Bearer KEY`, or `Bearer TOKEN` of the OpenID provider")] = None,
    x_api_key: Annotated[str | None, Header(description="the key, instead of Authorization")] = None,
) -> str | None:
    return _key(authorization, x_api_key)


def _key(authorization: str | None, x_api_key: str | None) -> str | None:
    if authorization is not None:
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() != "bearer" or not value.strip():
            raise Unauthenticated("Authorization must be 'Bearer KEY'")
        return value.strip()
    return x_api_key


Secret = Annotated[str | None, Depends(_secret)]


def credential_of(request: Request) -> str | None:
    """Return the key that a request's headers carry."""
    return _key(request.headers.get("authorization"), request.headers.get("x-api-key"))


def _acting_for(request: Request) -> str | None:
    """Return the name or id in X-Tenant-Id. Clients send names in UTF-8, and the framework decodes headers as Latin-1."""
    value = request.headers.get("x-tenant-id")
    try:
        return None if value is None else value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value


@dataclass(frozen=True, slots=True)
class Requires:
    """Dependency that admits callers whose key has a scope."""

    scope: Scope

    async def __call__(
        self,
        request: Request,
        _secret: Secret,
        x_tenant_id: Annotated[str | None, Header(description="operator only: name or id of the tenant to act for")] = None,
    ) -> Principal:
        """Return the caller."""
        return await self.admit(request)

    async def admit(self, request: Request) -> Principal:
        """Return the caller, from the headers alone. The result is kept for the request.

        From here on, log events carry the tenant, and the request uses the tenant's share of the process.
        """
        principal: Principal | None = getattr(request.state, "principal", None)
        if principal is not None:
            return principal
        secret, acting_for = credential_of(request), _acting_for(request)
        caller = await container_of(request).authenticator.authenticate(
            secret, acting_for=acting_for, client=client_of_request(request)
        )
        request.state.tenant = caller.tenant.id.value
        now, deadline = asyncio.get_running_loop().time(), request.state.deadline.at
        # The rest of the time is for an answer without the model.
        act_for(caller.tenant.id.whole, ends_at=now + FALLBACK_SHARE * (deadline - now))
        ledger = container_of(request).usage.ledger
        charge_to(caller.key_id, ledger)
        ledger.record_request(caller.tenant.id.whole, caller.key_id)
        structlog.contextvars.bind_contextvars(tenant=caller.tenant.id.value)
        check_scope(caller, self.scope)
        await _admit_within_quota(request, caller)
        request.state.principal = caller
        use_links(request)
        return caller


async def _admit_within_quota(request: Request, caller: Principal) -> None:
    """Count a request against the limits of its tenant and its key. A door that calls the API in process has counted it."""
    quotas = container_of(request).quotas
    limits = quotas.limits_of(caller)
    if limits is None:
        return
    limit_actor(limits, container_of(request).budgets.admit_call)
    if is_called_by_door():
        return
    request.state.admission = quotas.begin_admission()
    await quotas.admit_request(request.state.admission, caller, limits)


Reader = Annotated[Principal, Depends(Requires(Scope.READ))]
Writer = Annotated[Principal, Depends(Requires(Scope.WRITE))]
Administrator = Annotated[Principal, Depends(Requires(Scope.ADMIN))]


async def require_operator(request: Request, _secret: Secret) -> None:
    """Admit only the operator."""
    name = container_of(request).authenticator.find_operator(credential_of(request), client=client_of_request(request))
    if name is None:
        await _refuse(request, "the operator's key")
    structlog.contextvars.bind_contextvars(operator=name)


async def _refuse(request: Request, required: str) -> None:
    """Raise the error of a caller whose key is not the required one. A valid key of a tenant gets 403, any other 401."""
    secret = credential_of(request)
    if secret is None:
        raise Unauthenticated(f"a key is required: {required}")
    await container_of(request).authenticator.authenticate(secret, client=client_of_request(request))
    raise Forbidden(f"this route requires {required}; got a tenant's key")


Operator = Depends(require_operator)


async def require_metrics_key(request: Request, _secret: Secret) -> None:
    """Admit the holders of METRICS_KEY and the operator. METRICS_PUBLIC admits everybody."""
    services = container_of(request)
    if services.settings.metrics_public:
        return
    if not services.authenticator.may_read_metrics(credential_of(request), client=client_of_request(request)):
        await _refuse(request, "METRICS_KEY or the operator's key")


def query_parameters(route: APIRoute) -> frozenset[str]:
    """Return the names of the query parameters that a route documents.

    They come from the route, because building the whole OpenAPI document takes half a second of CPU.
    """
    declared = {field.alias for field in get_flat_params(route.dependant) if isinstance(field.field_info, params.Query)}
    documented = (route.openapi_extra or {}).get("parameters", ())
    return frozenset(declared | {item["name"] for item in documented if item["in"] == "query"})


async def refuse_unknown_parameters(request: Request) -> None:
    """Refuse query parameters that the route does not document. A misspelt filter must not return more documents.

    A documented name that ends in ``.NAME`` stands for every name with that beginning.
    """
    if request.query_params:
        parameters = query_parameters(request.scope["route"])
        for name in request.query_params:
            if name not in parameters and f"{name.partition('.')[0]}.NAME" not in parameters:
                raise InvalidRequest(
                    f"unknown query parameter {name[:80]!r}; known are {', '.join(sorted(parameters)) or 'none'}"
                )
