"""The default strategy: dual-level if the tenant has it switched on, otherwise its low level alone."""

from __future__ import annotations

from dataclasses import replace

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.retrieval.base import Retriever


class Auto:
    """Chooses a strategy for each request, so that a changed flag applies to the next request."""

    def __init__(self, single_level: Retriever, dual_level: Retriever) -> None:
        self._single_level = single_level
        self._dual_level = dual_level

    async def retrieve(self, query: Query) -> Retrieval:
        """Retrieve with the strategy for the tenant. The trace lists it under its methods."""
        chosen = self._dual_level if query.dual_level else self._single_level
        found = await chosen.retrieve(query)
        methods = tuple(dict.fromkeys((found.trace.strategy, *found.trace.methods_used)))
        return replace(found, trace=replace(found.trace, strategy="auto", methods_used=methods))
