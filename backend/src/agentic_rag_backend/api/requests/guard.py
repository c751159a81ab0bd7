"""Checks of the caller and of the body's size, from the headers, before the body is read.

Every route below the base path is a `GuardedRoute`. An endpoint declares its limit with `reads`; without it, the limit is
`QUERY_BYTES`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message, Receive

from agentic_rag_backend.api.dependencies import Operator, Requires, container_of, require_operator
from agentic_rag_backend.domain.tenant import Scope
from agentic_rag_backend.errors import InvalidRequest, NotFound, PayloadTooLarge, RequestIncomplete

QUERY_BYTES = 64 * 1024
"""Maximum bytes of a body on routes without their own limit: questions, changes, options."""
DOCUMENT_BYTES = 12 * 1024 * 1024
"""Maximum bytes of a document as JSON."""
LARGE_BYTES = 256 * 1024
"""Only a few requests of a tenant may have larger bodies in memory at a time."""
_LARGE_PER_TENANT = 4
_PARSED_AT_ONCE = 2

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Limit = Callable[[Request], int]
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
_ATTRIBUTE = "__body_limit__"
_FULL_DISK = "__works_on_full_disk__"
_CREATES = frozenset({"POST", "PUT", "PATCH"})


def reads(limit: Limit) -> Callable[[Endpoint], Endpoint]:
    """Declare the maximum bytes of an endpoint's body; the default is `QUERY_BYTES`."""

    def declare(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _ATTRIBUTE, limit)
        return endpoint

    return declare


def works_on_full_disk(endpoint: Endpoint) -> Endpoint:
    """Declare that an endpoint is called while a disk is full: it creates nothing, or it may free space."""
    setattr(endpoint, _FULL_DISK, True)
    return endpoint


class LargeBodies:
    """Limits how many large bodies are in memory, and how many are parsed at once. An application has one instance."""

    def __init__(self) -> None:
        self._tenants: dict[str, asyncio.Semaphore] = {}
        self._users: Counter[str] = Counter()
        self.parsing = asyncio.Semaphore(_PARSED_AT_ONCE)

    @asynccontextmanager
    async def of(self, tenant: str) -> AsyncIterator[None]:
        """Hold one of the tenant's places. If all are taken, wait; the body is unread meanwhile."""
        slots = self._tenants.setdefault(tenant, asyncio.Semaphore(_LARGE_PER_TENANT))
        self._users[tenant] += 1
        try:
            async with slots:
                yield
        finally:
            self._users[tenant] -= 1
            if not self._users[tenant]:
                del self._users[tenant], self._tenants[tenant]


class GuardedRoute(APIRoute):
    """A route that checks its caller before it reads the body, and limits the body to the declared size.

    A route that creates something requires room on the disks of the stores.
    """

    def get_route_handler(self) -> Handler:
        """Return the handler with the checks before it."""
        handle, admit = self.admitted_handler(), admission(self)
        limit: Limit = getattr(self.endpoint, _ATTRIBUTE, lambda _: QUERY_BYTES)

        async def guarded(request: Request) -> Response:
            await admit(request)
            _require_no_nul(request)
            bytes_allowed = limit(request)
            async with _reserve_memory(request):
                timeout_s = container_of(request).settings.body_timeout_s
                bounded = _bound_body(request, bytes_allowed, timeout_s)
                return await handle(Request(request.scope, bounded))

        return guarded

    def admitted_handler(self) -> Handler:
        """Return the handler of admitted requests; subclasses wrap it."""
        handle = super().get_route_handler()
        if not creates(self):
            return handle

        async def with_room(request: Request) -> Response:
            await container_of(request).disk_space.require()
            return await handle(request)

        return with_room


def creates(route: APIRoute) -> bool:
    """Return whether a route needs free space: it changes something, and is not declared with `works_on_full_disk`."""
    if not _CREATES & (route.methods or set()) or getattr(route.endpoint, _FULL_DISK, False):
        return False
    scope = _scope_of(route)
    return scope is None or scope.scope is not Scope.READ


def admission(route: APIRoute) -> Callable[[Request], Coroutine[Any, Any, Any]]:
    """Return the check of the callers of ``route``: the scope or the operator's key that its endpoint depends on.

    Raises:
        TypeError: the endpoint depends on neither.
    """
    if (scope := _scope_of(route)) is not None:
        return scope.admit
    if Operator.dependency not in _dependencies(route):
        raise TypeError(f"{route.path}: the endpoint must depend on a scope or on the operator")
    return _admit_operator


def _dependencies(route: APIRoute) -> list[Any]:
    return [dependency.call for dependency in route.dependant.dependencies]


def _scope_of(route: APIRoute) -> Requires | None:
    return next((call for call in _dependencies(route) if isinstance(call, Requires)), None)


async def _admit_operator(request: Request) -> None:
    await require_operator(request, None)


def _require_no_nul(request: Request) -> None:
    """Refuse an address with U+0000. No id, key or name has it, and PostgreSQL refuses it.

    Raises:
        NotFound: the path contains it.
        InvalidRequest: the query contains it.
    """
    if "\0" in request.scope["path"]:
        raise NotFound("no address contains the character U+0000")
    for name, value in request.query_params.multi_items():
        if "\0" in name + value:
            raise InvalidRequest(f"the query parameter {name[:80]!r} must not contain U+0000", field=name[:80])


def _reserve_memory(request: Request) -> AbstractAsyncContextManager[None]:
    """Return the place that a request holds while its body is in memory. A small body needs no place."""
    declared = request.headers.get("content-length", "")
    chunked = "transfer-encoding" in request.headers
    if not chunked and not (declared.isdigit() and int(declared) > LARGE_BYTES):
        return nullcontext()
    bodies: LargeBodies = request.app.state.large_bodies
    return bodies.of(getattr(request.state, "tenant", ""))


def _bound_body(request: Request, limit: int, timeout_s: float) -> Receive:
    """Return ``receive`` with a limit. It counts the bytes that arrive, because Content-Length may be wrong or absent."""
    declared = request.headers.get("content-length", "")
    receive, received, complete = request.receive, 0, False

    async def bounded() -> Message:
        nonlocal received, complete
        if complete:
            return await receive()
        if declared.isdigit() and int(declared) > limit:
            raise PayloadTooLarge(f"the body may have at most {limit} bytes; got {declared}")
        request.state.reading_body = True
        try:
            async with asyncio.timeout(timeout_s):
                message = await receive()
        except TimeoutError:
            raise RequestIncomplete(
                f"no byte of the body arrived for {timeout_s:g} s (BODY_TIMEOUT_S); received {received} bytes before"
            ) from None
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > limit:
                raise PayloadTooLarge(f"the body may have at most {limit} bytes; more arrived")
        request.state.reading_body = not complete
        return message

    return bounded
