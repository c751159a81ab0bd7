"""Rates and places of one or several processes on a catalogue in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.quota import ALL_KEYS, QuotaScope
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import QuotaExceeded, StoreUnavailable
from agentic_rag_backend.stores.catalogue.quota_catalogue import GrantedRequests
from agentic_rag_backend.tenancy.rates import IDLE_S, Bucket, RequestPlaces, RequestRates

BUCKET = Bucket(TenantId.new(), ALL_KEYS, QuotaScope.TENANT)


class Catalogue:
    """One bucket of the catalogue. Time passes only when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.taken: dict[int, int] = {}
        self.places: dict[str, int] = {}
        self.calls = 0
        self.fails = False

    async def take_requests(self, tenant: TenantId, key_id: str, *, count: int, limit: int) -> GrantedRequests:
        self.calls += 1
        await asyncio.sleep(0)
        window = int(self.now_s // 60)
        granted = min(count, max(0, limit - self.taken.get(window, 0)))
        self.taken[window] = self.taken.get(window, 0) + granted
        return GrantedRequests(granted, self.taken[window], (window + 1) * 60 - self.now_s)

    async def hold_places(self, tenant: TenantId, key_id: str, process: str, *, count: int, running: int, limit: int) -> int:
        self.calls += 1
        await asyncio.sleep(0)
        if self.fails:
            raise StoreUnavailable("away")
        other_places = sum(number for name, number in self.places.items() if name != process)
        self.places[process] = max(running, min(count, limit - other_places), 0)
        return self.places[process]


def _rates(catalogue: Any, share: float = 0.1) -> RequestRates:
    return RequestRates(catalogue, leased_share=share, clock=lambda: catalogue.now_s)


async def _admitted(rates: RequestRates, limit: int, count: int) -> int:
    results = await asyncio.gather(*(rates.take_request(BUCKET, limit) for _ in range(count)), return_exceptions=True)
    assert all(not isinstance(result, BaseException) or isinstance(result, QuotaExceeded) for result in results)
    return sum(not isinstance(result, BaseException) for result in results)


@given(
    limit=st.integers(0, 300),
    share=st.sampled_from([0.001, 0.1]),
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 60), st.sampled_from([0.0, 5.0, 61.0])), max_size=20),
)
def test_no_window_admits_more_than_its_limit(limit: int, share: float, steps: list[tuple[int, int, float]]) -> None:
    async def run() -> None:
        catalogue = Catalogue()
        processes = [_rates(catalogue, share) for _ in range(3)]
        admitted: dict[int, int] = {}
        asked: dict[int, int] = {}
        for process, count, pause_s in steps:
            catalogue.now_s += pause_s
            window = int(catalogue.now_s // 60)
            admitted[window] = admitted.get(window, 0) + await _admitted(processes[process], limit, count)
            asked[window] = asked.get(window, 0) + count
        for window, count in admitted.items():
            assert count <= limit
            assert count >= min(asked[window], limit - len(processes) * max(1, int(limit * share)))

    asyncio.run(run())


async def test_a_share_saves_statements_and_a_refusal_costs_none() -> None:
    catalogue = Catalogue()
    rates = _rates(catalogue)
    assert [await _admitted(rates, 100, 1) for _ in range(100)] == [1] * 100
    assert catalogue.calls == 10
    assert await _admitted(rates, 100, 50) == 0
    assert catalogue.calls <= 11
    with pytest.raises(QuotaExceeded, match="limit is 100") as refused:
        await rates.take_request(BUCKET, 100)
    assert refused.value.retry_after_s == pytest.approx(60)
    assert await _admitted(rates, 200, 1) == 1, "a changed limit is asked for"
    catalogue.now_s = 60
    assert await _admitted(rates, 100, 1) == 1
    rates.return_request(BUCKET)
    state = rates.find_state(BUCKET)
    assert state is not None
    assert (state.limit, state.remaining) == (100, 100)


async def test_places_are_kept_while_they_are_used_and_returned_when_idle() -> None:
    catalogue: Any = Catalogue()
    one, two = (RequestPlaces(catalogue, name, clock=lambda: catalogue.now_s) for name in ("one", "two"))
    for _ in range(5):
        await one.enter(BUCKET, 1)
        one.leave(BUCKET)
    assert catalogue.calls == 1, "requests that follow one another write nothing"
    with pytest.raises(QuotaExceeded):
        await two.enter(BUCKET, 1)
    catalogue.now_s += IDLE_S
    catalogue.fails = True
    await one.return_places()
    catalogue.fails = False
    catalogue.now_s += IDLE_S
    await one.enter(BUCKET, 1)
    one.leave(BUCKET)
    catalogue.now_s += IDLE_S
    await one.return_places()
    assert catalogue.places == {"one": 0, "two": 0}
    await two.enter(BUCKET, 1)
    assert two.count_requests(BUCKET) == 1


@given(st.lists(st.tuples(st.sampled_from(["enter", "leave", "return"]), st.integers(0, 1)), max_size=40), st.integers(0, 4))
def test_processes_never_run_more_than_the_limit(steps: list[tuple[str, int]], limit: int) -> None:
    async def run() -> None:
        catalogue: Any = Catalogue()
        processes = [RequestPlaces(catalogue, f"{number}", clock=lambda: catalogue.now_s) for number in range(2)]
        pending: list[asyncio.Task[None]] = []
        for action, number in steps:
            places = processes[number]
            if action == "enter":
                pending.append(asyncio.create_task(places.enter(BUCKET, limit)))
            elif action == "leave" and places.count_requests(BUCKET):
                places.leave(BUCKET)
            elif action == "return":
                catalogue.now_s += IDLE_S
                pending.append(asyncio.create_task(places.return_places()))
            await asyncio.sleep(0)
            assert sum(process.count_requests(BUCKET) for process in processes) <= limit
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    asyncio.run(run())


async def test_a_sole_process_writes_nothing() -> None:
    catalogue: Any = Catalogue()
    places = RequestPlaces(catalogue, None)
    await places.enter(BUCKET, 1)
    with pytest.raises(QuotaExceeded, match="one more request at a time"):
        await places.enter(BUCKET, 1)
    places.leave(BUCKET)
    await places.enter(BUCKET, 1)
    await places.return_places()
    assert catalogue.calls == 0
