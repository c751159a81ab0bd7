"""Trials of prompts, and the run that chooses among them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_models import ScriptedModel
from tests.unit.plugins.planner_optimizer.conftest import PLAN

from agentic_rag_backend.errors import InvalidRequest, ModelRefused, ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.plugins.planner_optimizer.budget import BudgetedModel, BudgetSpent
from agentic_rag_backend.plugins.planner_optimizer.instructions import Instructions
from agentic_rag_backend.plugins.planner_optimizer.planned_search import Question
from agentic_rag_backend.plugins.planner_optimizer.service import Work, optimize, plan_budget
from agentic_rag_backend.plugins.planner_optimizer.trials import ATTEMPTS, Trials
from agentic_rag_backend.prompts import built_in
from agentic_rag_backend.retrieval.agentic.plan import Plan

Questions = Callable[[int], list[Question]]
MakeTrials = Callable[..., tuple[Trials, ScriptedModel, Any]]


async def test_a_trial_is_paid_for_once(trials: MakeTrials, questions: Questions, instructions: Instructions) -> None:
    made, model, searches = trials(lambda prompt: PLAN)
    first, second = questions(2)
    prompt = instructions.prompt("Plan.")
    await asyncio.gather(*(made.run(prompt, first) for _ in range(5)), made.run(replace(prompt, version="other"), first))
    assert (len(model.prompts), len(searches.plans)) == (1, 1)
    await made.run(prompt, second)
    await made.run(instructions.prompt("Plan well."), first)
    assert len(model.prompts) == 3
    assert searches.plans[0].search_queries == ("Question 1?", "a query")


async def test_after_an_invalid_reply_rules_plan(trials: MakeTrials, questions: Questions, instructions: Instructions) -> None:
    """As in the product, and without another call: the reply is a fault of the prompt. Here, rules have no query."""
    made, model, _ = trials(lambda prompt: ModelReplyInvalid("no JSON"))
    with pytest.raises(InvalidRequest, match="no query"):
        await made.run(instructions.prompt("Plan."), questions(1)[0])
    assert len(model.prompts) == 1


async def test_a_model_that_does_not_answer_ends_the_trial(
    trials: MakeTrials, questions: Questions, instructions: Instructions
) -> None:
    """It is no fault of the prompt, so it must not lower its score."""
    replies = iter([ModelUnavailable("away"), PLAN, *[ModelUnavailable("away")] * ATTEMPTS, PLAN])
    made, _, _ = trials(lambda prompt: next(replies))
    (question, other), prompt = questions(2), instructions.prompt("Plan.")
    assert (await made.run(prompt, question)).recall == 1
    with pytest.raises(ModelUnavailable, match="after 3 calls: model_unavailable"):
        await made.run(prompt, other)
    assert made.score_prompts([question, other]) == []
    await made.run(prompt, other)
    assert [score.recall for _, score in made.score_prompts([question, other])] == [1]


async def test_a_refused_key_is_tried_once(trials: MakeTrials, questions: Questions, instructions: Instructions) -> None:
    made, model, _ = trials(lambda prompt: ModelRefused("key"))
    with pytest.raises(ModelRefused, match="its key, its name"):
        await made.run(instructions.prompt("Plan."), questions(1)[0])
    assert len(model.prompts) == 1


def recall_by_intent(plan: Plan) -> float:
    """Return the recall that a plan names as its intent."""
    return float(plan.primary_intent)


def by_instruction(prompt: str) -> dict[str, Any]:
    raise AssertionError("the user turn is not read")


class Intent(ScriptedModel):
    """Writes a plan with the recall in the first line of the instruction, or 0.5 for the built-in one."""

    async def complete(self, request: Any) -> Any:
        first = request.messages[0].content.splitlines()[0]
        number = request.messages[-1].content.split()[2].rstrip("?")
        recall = dict(re.findall(r"(\d)=(\S+)", first)).get(number, "0.5")
        self.write = lambda prompt: {**PLAN, "primary_intent": recall}
        return await super().complete(request)


def work_of(trials: MakeTrials, questions: Questions, instructions: Instructions, max_calls: int) -> tuple[Work, BudgetedModel]:
    held: list[BudgetedModel] = []

    def budgeted(model: LanguageModel) -> BudgetedModel:
        held.append(BudgetedModel(Intent(by_instruction), max_calls))
        return held[0]

    made, _, _ = trials(by_instruction, recall_by_intent, budgeted)
    asked = questions(4)
    work = Work(
        instructions=instructions,
        trials=made,
        model=held[0],
        training=asked[:2],
        validation=asked[2:],
        candidates=2,
        max_calls=max_calls,
        seed=0,
    )
    return work, held[0]


def trying(*instructions: str) -> Callable[[Work], Any]:
    """Return an optimizer that tries these instructions with the validation questions until the budget is spent."""

    async def run(work: Work) -> str | None:
        try:
            for text in instructions:
                await work.trials.score(work.instructions.prompt(text), work.validation)
        except BudgetSpent:
            return "spent"
        return None

    return run


async def test_the_best_prompt_is_chosen(trials: MakeTrials, questions: Questions, instructions: Instructions) -> None:
    work, model = work_of(trials, questions, instructions, 50)
    outcome = await optimize(work, model, trying("3=0 4=0", "3=1 4=0.2", "3=1 4=0.2 same", "3=0.6 4=0.5"))
    assert (outcome.before.recall, outcome.after and outcome.after.recall) == (0.5, 0.6)
    assert outcome.best is not None
    assert outcome.best.system.startswith("3=1 4=0.2\n")
    assert (outcome.improved, outcome.changed, outcome.tried, outcome.stopped) == (True, (1, 1), 4, None)
    with pytest.raises(BudgetSpent):
        await work.model.complete(Any)


async def test_a_prompt_that_is_not_better_is_no_improvement(
    trials: MakeTrials, questions: Questions, instructions: Instructions
) -> None:
    work, model = work_of(trials, questions, instructions, 50)
    outcome = await optimize(work, model, trying("3=0.5 4=0.5", instructions.first()))
    assert (outcome.improved, outcome.tried) == (False, 1)


async def test_a_spent_budget_keeps_the_best_so_far(trials: MakeTrials, questions: Questions, instructions: Instructions) -> None:
    """Seven calls: two for the present prompt, two for each of two others, and one for the half of a perfect one."""
    work, model = work_of(trials, questions, instructions, 7)
    outcome = await optimize(work, model, trying("3=0.9 4=0.9", "3=0.8 4=0.8", "3=1 4=1"))
    assert (outcome.after and outcome.after.recall, outcome.stopped, outcome.tried) == (0.9, "spent", 2)
    assert model.usage.calls == 7


async def test_nothing_is_proposed_if_the_present_prompt_finds_everything(
    trials: MakeTrials, questions: Questions, instructions: Instructions
) -> None:
    perfect = replace(instructions, present=replace(instructions.present, system="3=1 4=1"))
    work, model = work_of(trials, questions, perfect, 50)
    outcome = await optimize(work, model, trying("3=0 4=0"))
    assert (outcome.before.recall, outcome.best, outcome.improved) == (1, None, False)
    assert model.usage.calls == 2


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 5_000))
def test_the_expected_cost_is_within_the_budget(training: int, validation: int, max_calls: int) -> None:
    texts = ["Who?"] * training, ["Who leads?"] * validation
    if max_calls < 2 * validation + 15:
        with pytest.raises(InvalidRequest, match=f"--max-calls is {max_calls}; {validation} questions"):
            plan_budget(built_in("agentic_plan"), *texts, max_calls)
        return
    plan = plan_budget(built_in("agentic_plan"), *texts, max_calls)
    assert plan.candidates >= 1
    assert 1 <= plan.training <= training
    # One prompt can be measured in any case.
    assert 2 * validation < plan.calls <= max_calls
    assert plan.tokens_read > 100 * plan.calls
