"""The graph leg of the low level: a search engine's own way into the graph, where there is one, else the direct path.

The direct path needs no engine: names are linked in the tenant's graph in memory, facts found by BM25. It is what answers
where none is configured, and what answers instead where one fails or is slow.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.graph.base import GraphFindings, GraphQuestion, GraphSearch
from agentic_rag_backend.stores.vector.base import Vector

_log = structlog.get_logger(__name__)

DIRECT = "direct"
FINDINGS = 20
"""Entities and facts that are asked for, each."""


@dataclass(frozen=True, slots=True)
class LegAnswer:
    """What the engine found, or None and, if there is an engine, why it did not answer."""

    leg: str = DIRECT
    findings: GraphFindings | None = None
    failure: str | None = None


class GraphLeg:
    """Asks the engine within a time; never fails.

    Args:
        engine: None leaves everything to the direct path.
        timeout_s: seconds from the question's vector to the answer.
    """

    def __init__(self, engine: GraphSearch | None = None, *, timeout_s: float = 2.0) -> None:
        self._engine = engine
        self._timeout_s = timeout_s

    @property
    def engine(self) -> str | None:
        """The engine's name, if there is one."""
        return self._engine.name if self._engine is not None else None

    async def ask(self, query: Query, vector: Vector) -> LegAnswer:
        """Return what the engine finds, or why the direct path has to answer."""
        engine = self._engine
        if engine is None:
            return LegAnswer()
        question = GraphQuestion(text=query.text, vector=vector, limit=FINDINGS, moment=query.moment, filter=query.filters)
        try:
            async with asyncio.timeout(self._timeout_s):
                return LegAnswer(engine.name, await engine.find(query.tenant_id, question))
        except TimeoutError:
            reason = f"no answer within {self._timeout_s:g} s"
        except Exception as error:  # noqa: BLE001 - logged, and shown as the failure of this leg
            # Whatever goes wrong in there, the direct path needs none of it.
            reason = error.code if isinstance(error, AgenticRagError) else type(error).__name__
            _log.error("graph_leg_failed", leg=engine.name, tenant_id=query.tenant_id.value, code=reason, exc_info=error)
        failure = f"the graph leg {engine.name!r} failed: {reason}"
        _log.warning("graph_leg_fallback", tenant_id=query.tenant_id.value, reason=failure)
        return LegAnswer(failure=failure)
