"""Strict parsing of JSON bodies. JSON that two parsers could read differently is refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import orjson
from fastapi import Request, Response

from agentic_rag_backend.api.requests.guard import QUERY_BYTES, GuardedRoute, Handler, LargeBodies
from agentic_rag_backend.errors import InvalidRequest, UnsupportedMediaType

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
