"""JSON bodies, read strictly: what two parsers could understand differently is refused before anything acts on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute

from agentic_rag_backend.errors import InvalidRequest, UnsupportedMediaType

_IN_LOOP_BYTES = 256 * 1024
"""Larger bodies are parsed beside the loop, which serves others meanwhile."""


class JsonRoute(APIRoute):
    """A route whose JSON body is read by `read_json`, so that a bad one is a problem that says what is wrong with it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler that reads the body first, where the endpoint takes one."""
        handle = super().get_route_handler()
        if self.body_field is None:
            return handle

        async def strict(request: Request) -> Response:
            raw = await request.body()
            if not raw:
                return await handle(request)  # whether the body may be left out is the endpoint's to say
            require_json(request)
            return await handle(_Parsed(request, raw, await read_json(raw)))

        return strict


class _Parsed(Request):
    """A request whose body was read and parsed."""

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
    """Refuse a body that is not said to be JSON.

    Raises:
        UnsupportedMediaType: naming ``instead``, what the route takes.
    """
    given = media_type_of(request)
    if given != "application/json" and not (given.startswith("application/") and given.endswith("+json")):
        raise UnsupportedMediaType(f"send {instead}; got {given[:80] or 'no Content-Type'}")


async def read_json(raw: bytes) -> Any:
    """Return the value of a JSON body.

    Raises:
        InvalidRequest: not UTF-8, not JSON (as RFC 8259 has it: no NaN, no half of a surrogate pair), too deep, or an
            object with the same key twice.
    """
    return loaded(raw) if len(raw) <= _IN_LOOP_BYTES else await asyncio.to_thread(loaded, raw)


def loaded(raw: bytes | str, *, what: str = "the body") -> Any:
    """Return the value of JSON; see `read_json`."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"{what} is not JSON: {error}") from None
    if isinstance(value, (dict, list)):
        # orjson keeps the last of two equal keys; a proxy in front may have judged by the first.
        try:
            json.loads(raw, object_pairs_hook=_once, parse_int=str)
        except RecursionError:
            raise InvalidRequest(f"{what} is nested too deep") from None
        except _KeyTwice as error:
            raise InvalidRequest(f"{what} has the key {error.key[:80]!r} twice in one object") from None
    return value


class _KeyTwice(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _KeyTwice(key)
        seen.add(key)
