"""The graph leg of the low level: an optional graph search engine, and the direct path as its fallback.

The direct path links names in the tenant's in-memory graph and finds facts by BM25. It is used if no engine is configured, or
if the engine fails or exceeds its time limit.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.stores.graph.base import GraphFindings, GraphQuestion, GraphSearchEngine
from agentic_rag_backend.stores.vector.base import Vector
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

DIRECT = "direct"
FINDINGS = 20
"""Maximum number of entities, and of facts, that the engine returns."""


@dataclass(frozen=True, slots=True)
class LegAnswer:
    """The engine's findings. If there are none because the engine failed, ``failure`` has the reason."""

    leg: str = DIRECT
    findings: GraphFindings | None = None
    failure: str | None = None


class GraphLeg:
    """Queries the engine with a time limit. Never raises an engine's error.

    Args:
        engine: None always uses the direct path.
        timeout_s: time limit in seconds, from when the question's vector is known.
    """

    def __init__(self, engine: GraphSearchEngine | None = None, *, timeout_s: float = 2.0) -> None:
        self._engine = engine
        self._timeout_s = timeout_s

    @property
    def engine(self) -> str | None:
        """The engine's name, or None."""
        return self._engine.name if self._engine is not None else None

    async def ask(self, query: Query, vector: Vector) -> LegAnswer:
        """Return the engine's findings, or the reason to use the direct path."""
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
            # The direct path depends on no part of the engine, so it can answer after any error.
            reason = error.code if isinstance(error, AgenticRagError) else type(error).__name__
            _log.error("graph_leg_failed", leg=engine.name, tenant_id=query.tenant_id.value, code=reason, exc_info=error)
        failure = f"the graph leg {engine.name!r} failed: {reason}"
        _log.warning("graph_leg_fallback", tenant_id=query.tenant_id.value, reason=failure)
        return LegAnswer(failure=failure)
