"""Bodies of requests: checks from the headers before a body is read, strict JSON, and multipart forms.

Every route below the base path is a `GuardedRoute`. An endpoint declares its limit with `reads`; without it, the limit is
`QUERY_BYTES`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, TypeVar

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from agentic_rag_backend.api.dependencies import Operator, Requires, container_of, require_operator
from agentic_rag_backend.domain.tenant import Scope
from agentic_rag_backend.errors import InvalidRequest, NotFound, PayloadTooLarge, RequestIncomplete, UnsupportedMediaType

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
                bounded = bound_body(request, bytes_allowed, timeout_s)
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


def bound_body(request: Request, limit: int, timeout_s: float) -> Receive:
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


MAX_VALUES = 20_000
"""Maximum values of a body: objects, lists, texts, numbers."""
MAX_DEPTH = 64
"""Maximum depth of nested lists and objects."""
_IN_LOOP_BYTES = QUERY_BYTES
"""Larger bodies are parsed in a thread. `MAX_VALUES` limits how long they hold the interpreter."""


class JsonRoute(GuardedRoute):
    """A route that parses its JSON body with `read_json`, so that an invalid body gets a clear problem."""

    def admitted_handler(self) -> Handler:
        """Return the handler that parses the body first, if the endpoint takes one."""
        handle = super().admitted_handler()
        if self.body_field is None:
            return handle

        async def strict(request: Request) -> Response:
            if await request.body():  # the endpoint decides whether the body is optional
                require_json(request)
                request = _Parsed(request, await request.body(), await read_json(request))
            return await handle(request)

        return strict


class _Parsed(Request):
    """A request with its parsed body."""

    def __init__(self, request: Request, raw: bytes, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._raw = raw
        self._value = value

    async def body(self) -> bytes:
        return self._raw

    async def json(self) -> Any:
        return self._value


def media_type_of(request: Request) -> str:
    """Return the media type of a request's body, lower case, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def require_json(request: Request, *, instead: str = "application/json") -> None:
    """Refuse a body whose Content-Type is not JSON.

    Raises:
        UnsupportedMediaType: the message names ``instead``, the media types of the route.
    """
    media_type = media_type_of(request)
    if media_type != "application/json" and not (media_type.startswith("application/") and media_type.endswith("+json")):
        raise UnsupportedMediaType(f"send {instead}; got {media_type[:80] or 'no Content-Type'}")


async def read_json(request: Request) -> Any:
    """Return the value of a request's JSON body.

    Raises:
        InvalidRequest: see `load_json`.
    """
    raw = await request.body()
    if len(raw) <= _IN_LOOP_BYTES:
        return load_json(raw)
    bodies: LargeBodies = request.app.state.large_bodies
    async with bodies.parsing:
        return await asyncio.to_thread(load_json, raw)


def load_json(raw: bytes | str, *, what: str = "the body") -> Any:
    """Return the value of JSON text, in linear time.

    Raises:
        InvalidRequest: not UTF-8, not JSON (by RFC 8259: no NaN, no half of a surrogate pair), deeper than `MAX_DEPTH`, more
            than `MAX_VALUES` values, or an object with the same key twice.
    """
    _require_moderate(raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw, what)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"{what} is not JSON: {error}") from None
    if isinstance(value, (dict, list)):
        # orjson keeps the last of two equal keys; a proxy in front may have checked the first.
        try:
            json.loads(raw, object_pairs_hook=_once, parse_int=str, parse_float=str)
        except _KeyTwice as error:
            raise InvalidRequest(f"{what} has the key {error.key[:80]!r} twice in one object") from None
    return value


def _require_moderate(raw: bytes, what: str) -> None:
    """Refuse too many or too deeply nested values before they are parsed.

    It searches and counts bytes, which takes milliseconds for megabytes. Text that is not JSON passes.
    """
    # Without escapes, every remaining quote begins or ends a string.
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = (plain.count(b'"') + 1) // 2
    if strings > 2 * MAX_VALUES:  # a key and a value each
        raise InvalidRequest(f"{what} may have at most {MAX_VALUES} values; it has {strings} texts and keys")
    between = b"".join(plain.split(b'"')[::2])
    values = between.count(b",") + between.count(b"{") + between.count(b"[") + 1
    if values > MAX_VALUES:
        raise InvalidRequest(f"{what} may have at most {MAX_VALUES} values; it has about {values}")
    depth = deepest = 0
    for byte in between.translate(None, _NO_BRACKETS):
        depth += 1 if byte in b"{[" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise InvalidRequest(f"{what} may nest lists and objects {MAX_DEPTH} deep; it nests them {deepest} deep")


_NO_BRACKETS = bytes(set(range(256)) - set(b"{[]}"))


class _KeyTwice(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> None:
    names: set[str] = set()
    for key, _ in pairs:
        if key in names:
            raise _KeyTwice(key)
        names.add(key)


MAX_FILES = 50
MAX_FORM_FIELDS = 20
_UTF8 = frozenset({"utf-8", "utf8"})


async def read_form(request: Request) -> FormData:
    """Return a request's form; repeated calls return the same form. The caller closes it.

    Raises:
        InvalidRequest: the form has too many parts, is malformed, or has an encoding other than UTF-8.
    """
    _require_utf8(request)
    try:
        # One more than the limit, so that our message can name the limit.
        return await request.form(max_files=MAX_FILES + 1, max_fields=MAX_FORM_FIELDS)
    except HTTPException as error:
        raise InvalidRequest(
            f"the form cannot be read (at most {MAX_FILES} files and {MAX_FORM_FIELDS} fields): {error.detail}"
        ) from None


def _require_utf8(request: Request) -> None:
    # The parser would decode with any codec that the header names. Punycode takes quadratic time.
    _, options = parse_options_header(request.headers.get("content-type"))
    charset = options.get(b"charset", b"utf-8").decode("latin-1")
    if charset.lower() not in _UTF8:
        raise InvalidRequest(f"the charset of a form must be utf-8 or absent; got {charset[:80]!r}")


def require_fields(form: FormData, allowed: Collection[str]) -> None:
    """Refuse a form with unknown fields.

    Raises:
        InvalidRequest: the message names the first unknown field, and those that are known.
    """
    unknown = sorted(set(form.keys()) - set(allowed))
    if unknown:
        raise InvalidRequest(f"unknown form field {unknown[0][:80]!r}; known are {', '.join(sorted(allowed))}")


def text_field(form: FormData, name: str) -> str | None:
    """Return the text of a field. None if it is absent or empty.

    Raises:
        InvalidRequest: it occurs twice, or is a file.
    """
    values = form.getlist(name)
    if len(values) > 1 or any(not isinstance(value, str) for value in values):
        raise InvalidRequest(f"send the form field {name!r} at most once, as text")
    return str(values[0]) if values and values[0] else None


def json_field(form: FormData, name: str) -> Any:
    """Return the value of a field whose text is JSON. None if it is absent or empty.

    Raises:
        InvalidRequest: it is not JSON.
    """
    text = text_field(form, name)
    return None if text is None else load_json(text, what=f"the form field {name!r}")
