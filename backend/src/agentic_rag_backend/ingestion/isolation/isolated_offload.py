"""Runs computations of `calls` in child processes: the adapter of `knowledge.offload`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation
from agentic_rag_backend.knowledge.offload import SMALL_ITEMS

T = TypeVar("T")

_ITEM_BYTES = 100
"""Bytes of a document's text per item. Limits of time depend on bytes."""


class IsolatedOffload:
    """`Offload` in child processes, within the limits of time and memory that reading has."""

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation

    async def __call__(self, function: Callable[..., T], *arguments: object, items: int) -> T:
        """Return ``function(*arguments)``. A small call runs in place."""
        if items <= SMALL_ITEMS:
            return function(*arguments)
        size_bytes = items * _ITEM_BYTES
        return cast(T, await self._isolation.call_worker("compute", function.__name__, arguments, size_bytes=size_bytes))
