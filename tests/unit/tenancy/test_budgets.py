"""Limits on tokens and cost, with the usage of this and of other processes."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime
from typing import Any

import pytest

from agentic_rag_backend.domain.quota import CallerLimits, QuotaName, SpentAmounts, TenantAmounts
from agentic_rag_backend.domain.tenant import OPERATOR_KEY_ID, TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import QuotaExceeded
from agentic_rag_backend.fairness import Actor, QuotaWait
from agentic_rag_backend.tenancy import budgets as module
from agentic_rag_backend.tenancy.budgets import READ_EVERY_S, ModelBudgets

TENANT, OTHER = TenantId.new(), TenantId.new()
TODAY = date(2026, 12, 31)


class Catalogue:
    """Sums of the catalogue."""

    def __init__(self) -> None:
        self.spent = TenantAmounts(TODAY)
        self.reads = 0

    async def spending(self, tenant: TenantId, key_id: str | None, day: date) -> TenantAmounts:
        self.reads += 1
        return self.spent


class Site:
    """Budgets whose clock a test sets."""

    def __init__(self) -> None:
        self.now_s, self.catalogue = 0.0, Catalogue()
        catalogue: Any = self.catalogue
        self.budgets = ModelBudgets(catalogue, {}, self._write, clock=lambda: self.now_s, today=lambda: TODAY)

    async def _write(self) -> None:
        """Write no usage."""

    async def call(self, limits: dict[QuotaName, float], *, key: str = "k", of_key: bool = False, tokens: int = 10) -> None:
        """Call a model as a request."""
        of = CallerLimits({}, limits) if of_key else CallerLimits(limits)
        await Actor(TENANT, key_id=key, limits=of, admit_call=self.budgets.admit_call).admit_model_call()
        self.budgets.note_call(TENANT, key, Usage(tokens - 1, 1, 1, 0, 500_000_000))


async def test_own_calls_count_at_once_and_those_of_others_at_the_next_read() -> None:
    site, limits = Site(), {QuotaName.TOKENS_PER_DAY: 30.0}
    for _ in range(3):
        await site.call(limits)
    with pytest.raises(QuotaExceeded, match="limit is 30, and 30 are used; it starts again at 2027-01-01") as refused:
        await site.call(limits)
    assert refused.value.members["quota"]["resets_at"] == "2027-01-01T00:00:00Z"
    assert site.catalogue.reads == 1
    await site.call({QuotaName.TOKENS_PER_DAY: 31.0})
    site.now_s, site.catalogue.spent = READ_EVERY_S, TenantAmounts(TODAY, SpentAmounts(40, 0, 900, 0))
    await site.call({QuotaName.TOKENS_PER_DAY: 41.0})
    with pytest.raises(QuotaExceeded):
        await site.call({QuotaName.TOKENS_PER_DAY: 41.0})
    with pytest.raises(QuotaExceeded, match="tokens_per_month"):
        await site.call({QuotaName.TOKENS_PER_MONTH: 900.0})


async def test_cost_and_keys() -> None:
    site = Site()
    for key in ("k", "l", "k"):
        await site.call({QuotaName.COST_PER_MONTH: 1.0}, key=key, of_key=True)
    with pytest.raises(QuotaExceeded, match="of the key: the limit is 1, and 1 are used"):
        await site.call({QuotaName.COST_PER_MONTH: 1.0}, key="k", of_key=True)
    await site.call({QuotaName.COST_PER_MONTH: 1.0}, key="l", of_key=True)
    site.budgets.note_call(OTHER, "k", Usage(10**6, 1, 1, 0, 10**12))
    await site.call({QuotaName.COST_PER_DAY: 2.1})
    with pytest.raises(QuotaExceeded, match="cost_per_day of the tenant"):
        await site.call({QuotaName.COST_PER_DAY: 2.0})


async def test_nothing_is_read_without_a_limit_or_for_an_operator() -> None:
    site = Site()
    await site.call({QuotaName.DOCUMENTS: 0})
    await site.call({QuotaName.TOKENS_PER_DAY: 0}, key=OPERATOR_KEY_ID)
    await site.call({QuotaName.TOKENS_PER_DAY: 0}, key=f"{OPERATOR_KEY_ID}:anna")
    assert site.catalogue.reads == 0


async def test_a_job_waits_until_the_limit_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOKED_AT_EVERY_S", 0)
    site, wait = Site(), QuotaWait()
    site.catalogue.spent = TenantAmounts(TODAY, SpentAmounts(5, 0, 5, 0), tenant_values={QuotaName.TOKENS_PER_MONTH: 5})
    job = Actor(TENANT, job=True, key_id="k", admit_call=site.budgets.admit_call, quota_wait=wait)
    waiting = asyncio.create_task(job.admit_model_call())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    assert wait.is_still_full is not None
    assert await wait.is_still_full()
    assert (wait.until, wait.reason) == (
        datetime(2027, 1, 1, tzinfo=UTC),
        "the quota tokens_per_month of the tenant, 5, is used up",
    )
    site.catalogue.spent = TenantAmounts(TODAY, SpentAmounts(5, 0, 5, 0), tenant_values={QuotaName.TOKENS_PER_MONTH: 6})
    assert not await wait.is_still_full(), "it reads anew"
    await waiting
    assert wait.until is None
