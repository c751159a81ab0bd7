"""Plans the first round: by the cheap model, or by rules without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.prompts import Prompt, built_in, fence
from agentic_rag_backend.retrieval.agentic.plan import MAX_QUERIES, PLAN_SCHEMA, Plan, plan_by_rules, plan_of
from agentic_rag_backend.retrieval.agentic.stopping import Meter
from agentic_rag_backend.retrieval.rewriting.query_rewriter import QueryRewriter
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls, StructuredReply

REQUIRED_PLACEHOLDERS = ("question",)
PLACEHOLDERS = (*REQUIRED_PLACEHOLDERS, "most")
"""Placeholders of a planner's prompt, and the required ones among them. ``most`` is the maximum number of queries."""
NO_MODEL = "no language model plans and reflects: rules do"


class FirstPlans(Protocol):
    """Makes the plan of the first round, and says why a model's plan failed."""

    @property
    def prompt(self) -> Prompt:
        """The prompt of the model."""

    async def plan(self, query: Query, meter: Meter) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan, and what failed."""


@dataclass(frozen=True, slots=True)
class FixedPlan:
    """Returns one plan for every question: it measures a plan that was made before."""

    prompt: Prompt
    fixed: Plan

    async def plan(self, query: Query, meter: Meter) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan."""
        return self.fixed, ()


class Planner:
    """Writes plans.

    Args:
        rewriter: gives other names of the question's entities, for plans by rules.
        calls: calls of the cheap model.
        prompt: None: the built-in prompt.
    """

    def __init__(self, rewriter: QueryRewriter, calls: StructuredCalls, prompt: Prompt | None = None) -> None:
        self._rewriter = rewriter
        self._calls = calls
        self.prompt = prompt or built_in("agentic_plan")

    async def plan(self, query: Query, meter: Meter) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan, and what failed. Without a model, after its failure, or without budget, rules make the plan."""
        failures: tuple[str, ...] = ()
        if meter.may_call(self._calls):
            meter.spending.begin()
            reply = await self.ask(query.text, meter.within_time(self._calls))
            meter.spending.add_call(reply)
            if reply.parsed is not None:
                return plan_of(reply.parsed, query.text), ()
            failures = (f"planning by the model failed: {reply.failure}",)
        plan, unnamed = await self.by_rules(query)
        return plan, (*failures, *unnamed)

    async def ask(self, question: str, calls: StructuredCalls) -> StructuredReply:
        """Return the model's reply. `plan_of` reads it."""
        return await calls.ask(self.prompt, prompt_values(question), PLAN_SCHEMA)

    async def by_rules(self, query: Query) -> tuple[Plan, tuple[str, ...]]:
        """Return the plan by rules, and what failed."""
        # No call is left for it, so that the rewriter uses names.
        rewrites = await self._rewriter.rewrite(query, MAX_QUERIES - 1, Spending(0))
        return plan_by_rules(query.text, rewrites.texts), tuple(rewrites.failures)


def prompt_values(question: str) -> dict[str, str]:
    """Return the values of a planner prompt's placeholders."""
    return {"question": fence("question", question), "most": str(MAX_QUERIES)}
