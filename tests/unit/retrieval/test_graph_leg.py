"""The graph leg: its questions, and answers despite an engine's failures."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import Tenant, TenantId, TenantState
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.retrieval.base import DIRECT, FINDINGS, GraphLeg, LegAnswer
from agentic_rag_backend.stores.graph.base import GraphFindings, GraphQuestion
from agentic_rag_backend.stores.vector.base import ScoredId

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FOUND = GraphFindings(relationships=(ScoredId("r", 1.0),))
VECTOR = np.ones(3, np.float32)


class Engine:
    name = "engine"

    def __init__(self, failure: Exception | None = None, *, hangs: bool = False) -> None:
        self.asked: list[tuple[TenantId, GraphQuestion]] = []
        self.cancelled = False
        self._failure = failure
        self._hangs = hangs

    async def find(self, tenant: TenantId, question: GraphQuestion) -> GraphFindings:
        self.asked.append((tenant, question))
        if self._failure is not None:
            raise self._failure
        try:
            await asyncio.sleep(3600 if self._hangs else 0)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return FOUND


def query(**named: Any) -> Query:
    tenant = Tenant(id=TenantId.new(), name="acme", state=TenantState.ACTIVE, state_version=1, created_at=NOW)
    return Query(tenant=tenant, text="who?", **named)


async def test_without_an_engine_the_direct_path_answers_and_nothing_failed() -> None:
    leg = GraphLeg()

    assert await leg.ask(query(), VECTOR) == LegAnswer(DIRECT, None, None)
    assert leg.engine is None


async def test_the_engine_is_asked_for_the_tenant_the_time_and_the_filter() -> None:
    engine, asked = Engine(), query(as_of=NOW)

    answer = await GraphLeg(engine).ask(asked, VECTOR)

    assert answer == LegAnswer("engine", FOUND, None)
    ((tenant, question),) = engine.asked
    assert (tenant, question.text, question.moment, question.limit) == (asked.tenant_id, "who?", NOW, FINDINGS)
    assert question.vector is VECTOR


async def test_what_an_engine_raises_is_a_reason_and_tells_nothing_else() -> None:
    for failure, reason in [
        (StoreUnavailable("secret host"), "store_unavailable"),
        (RuntimeError("secret"), "RuntimeError"),
        (KeyError("id"), "KeyError"),
    ]:
        answer = await GraphLeg(Engine(failure)).ask(query(), VECTOR)

        assert answer == LegAnswer(DIRECT, None, f"the graph leg 'engine' failed: {reason}")


async def test_a_slow_engine_is_left_to_itself() -> None:
    engine = Engine(hangs=True)

    answer = await GraphLeg(engine, timeout_s=0.01).ask(query(), VECTOR)

    assert answer == LegAnswer(DIRECT, None, "the graph leg 'engine' failed: no answer within 0.01 s")
    assert engine.cancelled


async def test_a_request_that_ends_ends_the_leg() -> None:
    engine = Engine(hangs=True)
    asking = asyncio.create_task(GraphLeg(engine).ask(query(), VECTOR))
    while not engine.asked:
        await asyncio.sleep(0)
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    assert engine.cancelled
