"""The default strategy: dual-level where it is switched on, its low level alone otherwise."""

from __future__ import annotations

from dataclasses import replace

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.retrieval.base import Retriever


class Auto:
    """Chooses per request, so that a changed flag acts on the next one."""

    def __init__(self, single_level: Retriever, dual_level: Retriever) -> None:
        self._single_level = single_level
        self._dual_level = dual_level

    async def retrieve(self, query: Query) -> Retrieval:
        """Retrieve with the strategy that fits the tenant; the trace names it as a method."""
        chosen = self._dual_level if query.dual_level else self._single_level
        found = await chosen.retrieve(query)
        methods = tuple(dict.fromkeys((found.trace.strategy, *found.trace.methods_used)))
        return replace(found, trace=replace(found.trace, strategy="auto", methods_used=methods))
