"""Names of the ways in, for metrics and logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from starlette.types import Scope

API = "api"
_BY_PATH: Mapping[str, str] = {
    "/openai/": "openai",
    "/mcp": "mcp",
    "/retrieval": "dify",
    "/v1/rerank": "rerank",
    "/v2/rerank": "rerank",
    "/console/": "console",
}
"""The name by the beginning of an address. All others are of the product's own API."""
IN_PROCESS = "agentic_rag.in_process"
"""Extension of the scope of requests that `InProcessTransport` sends."""
_CALLING_DOOR: ContextVar[str | None] = ContextVar("calling_door", default=None)


def name_door(path: str) -> str:
    """Return the name of the way in of a request: of the door that calls the API in process, or of its address."""
    calling_door = _CALLING_DOOR.get()
    if calling_door is not None:
        return calling_door
    return next((name for beginning, name in _BY_PATH.items() if path.startswith(beginning)), API)


def is_called_by_door() -> bool:
    """Return whether a door, which admitted the request before, calls the API in process."""
    return _CALLING_DOOR.get() is not None


@contextmanager
def call_as(door: str) -> Iterator[None]:
    """Name the door of requests that the block sends to the application in process."""
    token = _CALLING_DOOR.set(door)
    try:
        yield
    finally:
        _CALLING_DOOR.reset(token)


def is_in_process(scope: Scope) -> bool:
    """Return whether a request came through `InProcessTransport`. Its address leads nowhere."""
    return IN_PROCESS in scope.get("extensions", ())
