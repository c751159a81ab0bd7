"""The limit of requests to the model."""

from __future__ import annotations

import asyncio

import pytest
from scripted_models import COST, Reply, ScriptedModel

from agentic_rag_backend.domain.usage import Usage, UsageAccount
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.models.llm.base import Message, ModelReply, ModelRequest
from agentic_rag_backend.plugins.planner_optimizer.budget import BudgetedModel, BudgetSpent


def request(account: UsageAccount | None = None) -> ModelRequest:
    return ModelRequest(prompt="p@1", messages=(Message("user", "Hello"),), account=account or UsageAccount())


class Slow(ScriptedModel):
    """Other calls begin before a call ends."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        await asyncio.sleep(0)
        return await super().complete(request)


class Retrying(ScriptedModel):
    """Every call takes three requests."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        request.account.add_usage(Usage(calls=2, failed_calls=2))
        return await super().complete(request)


def nothing(prompt: str) -> Reply:
    return {}


async def test_concurrent_calls_do_not_exceed_the_limit() -> None:
    model = Slow(nothing)
    budgeted = BudgetedModel(model, 5)
    replies = await asyncio.gather(*(budgeted.complete(request()) for _ in range(9)), return_exceptions=True)
    assert sum(isinstance(reply, BudgetSpent) for reply in replies) == 4
    assert (len(model.prompts), budgeted.usage.calls) == (5, 5)


async def test_retries_and_failures_count() -> None:
    budgeted = BudgetedModel(Retrying(nothing), 4)
    account = UsageAccount()
    await budgeted.complete(request(account))
    assert account.usage == budgeted.usage == COST + Usage(calls=2, failed_calls=2)
    await budgeted.complete(request())
    with pytest.raises(BudgetSpent, match="all 4 requests"):
        await budgeted.complete(request())
    failing = BudgetedModel(ScriptedModel(lambda prompt: ModelUnavailable("away")), 1)
    with pytest.raises(ModelUnavailable):
        await failing.complete(request())
    with pytest.raises(BudgetSpent):
        await failing.complete(request())


async def test_an_ended_budget_refuses_every_request() -> None:
    budgeted = BudgetedModel(ScriptedModel(nothing), 5)
    budgeted.end()
    with pytest.raises(BudgetSpent):
        await budgeted.complete(request())
