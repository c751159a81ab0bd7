"""Usage between a call and the catalogue: nothing is lost or counted twice while the catalogue fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.prices import PriceTable
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage_report import DEFAULT_DAYS, MAX_DAYS, Period, UsageCount
from agentic_rag_backend.errors import InvalidRequest, StoreUnavailable
from agentic_rag_backend.telemetry.metrics import ModelCall
from agentic_rag_backend.telemetry.usage_ledger import UsageLedger, UsageSlot
from agentic_rag_backend.tenancy.usage import UsageService

TENANT = TenantId(f"t_{'0' * 32}")
TODAY = date(2026, 5, 31)


class _Rows:
    """Rows of usage, behind a connection that can fail or wait."""

    def __init__(self) -> None:
        self.rows: dict[UsageSlot, UsageCount] = {}
        self.fails = False
        self.open = asyncio.Event()
        self.open.set()

    async def add(self, counts: Mapping[UsageSlot, UsageCount]) -> int:
        await self.open.wait()
        if self.fails:
            raise StoreUnavailable("the catalogue does not answer")
        for slot, count in counts.items():
            self.rows[slot] = self.rows.get(slot, UsageCount()) + count
        return len(counts)


def _service(rows: Any) -> UsageService:
    return UsageService(rows, PriceTable())


def _call(service: UsageService, purpose: str = "answer", *, job: bool = False) -> None:
    service.ledger.record_call(TENANT, "k", ModelCall(model="m", purpose=purpose, outcome="ok", input_tokens=7), job=job)


def _calls(rows: _Rows) -> int:
    return sum(count.usage.calls for count in rows.rows.values())


@given(st.lists(st.sampled_from(["call", "write", "fail"]), max_size=30))
def test_failed_writes_lose_and_repeat_nothing(events: list[str]) -> None:
    async def play() -> None:
        rows = _Rows()
        service, calls = _service(rows), 0
        for event in events:
            if event == "call":
                _call(service)
                calls += 1
                continue
            rows.fails = event == "fail"
            await service.write_ledger()
        rows.fails = False
        assert await service.write_ledger()
        assert _calls(rows) == calls

    asyncio.run(play())


async def test_a_cancelled_request_loses_nothing() -> None:
    rows = _Rows()
    service = _service(rows)
    for fails in (False, True):
        _call(service)
        rows.open.clear()
        rows.fails = fails
        writing = asyncio.create_task(service.write_ledger())
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        rows.open.set()
        await asyncio.sleep(0.01)
    rows.fails = False
    await service.write_ledger()
    assert _calls(rows) == 2


def test_a_day_ends_at_midnight_and_embeddings_have_two_stages() -> None:
    days = iter([TODAY, TODAY, TODAY + timedelta(days=1)])
    ledger = UsageLedger(PriceTable(), lambda: next(days))
    for job in (True, False, False):
        ledger.record_call(TENANT, None, ModelCall(model="e", purpose="embedding", outcome="ok"), job=job)
    assert sorted((slot.day, slot.stage) for slot in ledger.take()) == [
        (TODAY, "document_embedding"),
        (TODAY, "question_embedding"),
        (TODAY + timedelta(days=1), "question_embedding"),
    ]
    assert ledger.take() == {}


def test_periods() -> None:
    assert Period.of_request(None, None, TODAY) == Period(TODAY - timedelta(days=DEFAULT_DAYS - 1), TODAY)
    assert Period.of_request(TODAY, None, TODAY) == Period(TODAY, TODAY)
    future = TODAY + timedelta(days=3)
    assert Period.of_request(future, None, TODAY) == Period(future, future)
    assert Period.of_request(None, date.min, TODAY) == Period(date.min, date.min)
    Period(TODAY - timedelta(days=MAX_DAYS - 1), TODAY)
    for first in (TODAY - timedelta(days=MAX_DAYS), TODAY + timedelta(days=1)):
        with pytest.raises(InvalidRequest, match=f"1 to {MAX_DAYS} days"):
            Period(first, TODAY)
