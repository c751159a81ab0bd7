"""The planner as a DSPy program, and DSPy's language model on our port."""

from __future__ import annotations

import asyncio
import copy
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import dspy
import pytest
import pytest_asyncio
from dspy.lm15 import Config, Request
from dspy.lm15 import Message as DspyMessage
from scripted_models import ScriptedModel
from tests.unit.plugins.planner_optimizer.conftest import PLAN

from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.models.llm.base import ModelReply, ModelRequest
from agentic_rag_backend.plugins.planner_optimizer.budget import BudgetedModel, BudgetSpent
from agentic_rag_backend.plugins.planner_optimizer.dspy_adapter.bridge import Bridge, Stopped
from agentic_rag_backend.plugins.planner_optimizer.dspy_adapter.engine import PortEngine, language_model
from agentic_rag_backend.plugins.planner_optimizer.dspy_adapter.program import (
    EverythingFound,
    PlannedSearchProgram,
    Workbench,
    planner_signature,
    recall_metric,
    recall_with_feedback,
)
from agentic_rag_backend.plugins.planner_optimizer.instructions import Instructions
from agentic_rag_backend.plugins.planner_optimizer.planned_search import Question
from agentic_rag_backend.plugins.planner_optimizer.trials import Trials
from agentic_rag_backend.prompts import fence
from agentic_rag_backend.retrieval.agentic.plan import PLAN_SCHEMA, Plan

Questions = Callable[[int], list[Question]]
MakeTrials = Callable[..., tuple[Trials, ScriptedModel, Any]]


@pytest_asyncio.fixture
async def bridge() -> AsyncIterator[Bridge]:
    yield Bridge(asyncio.get_running_loop())


class Writing(ScriptedModel):
    """Writes text, and keeps the requests."""

    def __init__(self, text: str) -> None:
        super().__init__(lambda prompt: {})
        self.text, self.requests = text, list[ModelRequest]()

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        reply = await super().complete(request)
        return ModelReply(self.text, reply.usage, "answering-model")


def test_the_signature_has_the_fields_of_the_plan() -> None:
    signature = planner_signature("Plan.")
    assert signature.instructions == "Plan."
    assert list(signature.input_fields) == ["question"]
    assert list(signature.output_fields) == list(PLAN_SCHEMA["properties"])
    types = {name: field.annotation for name, field in signature.output_fields.items()}
    assert types["search_queries"] == list[str]
    assert types["filter_constraints"] == list[dict[str, Any]]
    assert signature.output_fields["primary_intent"].json_schema_extra["desc"] == "what the question asks for, in a few words."


async def run_program(
    bridge: Bridge, trials: Trials, questions: Sequence[Question], instructions: Instructions, **more: Any
) -> Any:
    known: Mapping[int, Question] = {each.example.row: each for each in questions}
    workbench = Workbench(bridge, instructions, trials, known, more.get("validation", questions))

    def run() -> Any:
        with dspy.context(lm=language_model(bridge, ScriptedModel(lambda prompt: {}))):
            return PlannedSearchProgram(workbench).deepcopy()(question=questions[0].example.question, row=1)

    return await asyncio.to_thread(run)


async def test_the_program_sends_the_prompt_of_the_product(
    bridge: Bridge, trials: MakeTrials, questions: Questions, instructions: Instructions
) -> None:
    made, model, _ = trials(lambda prompt: PLAN, lambda plan: 0.5)
    asked = questions(2)
    prediction = await run_program(bridge, made, asked, instructions)
    values = {"question": fence("question", "Question 1?"), "most": "4"}
    assert (model.systems, model.prompts) == tuple([text] for text in instructions.present.render(values))
    assert prediction.search_queries == ["a query"]
    assert recall_metric(None, prediction) == 0.5
    feedback = recall_with_feedback(None, prediction).feedback
    assert "found 50%" in feedback
    assert "<passage>\nmissed.md\n</passage>" in feedback


async def test_an_invalid_reply_has_no_plan_and_says_so(
    bridge: Bridge, trials: MakeTrials, questions: Questions, instructions: Instructions
) -> None:
    made, _, _ = trials(lambda prompt: {}, lambda plan: 0.0)

    async def rules(query: object) -> tuple[Plan, tuple[str, ...]]:
        return Plan(search_queries=("Question 1?",)), ()

    async def query(question: Question) -> None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made.search, "query", query)
        patch.setattr("agentic_rag_backend.retrieval.agentic.plan.Planner.by_rules", lambda self, query: rules(query))
        prediction = await run_program(bridge, made, questions(1), instructions)
    assert (prediction.search_queries, prediction.primary_intent) == ([], "")
    assert "no valid JSON object" in recall_with_feedback(None, prediction).feedback


async def test_the_optimizer_stops_when_everything_was_found(
    bridge: Bridge, trials: MakeTrials, questions: Questions, instructions: Instructions
) -> None:
    made, _, _ = trials(lambda prompt: PLAN)
    with pytest.raises(Stopped) as stopped:
        await run_program(bridge, made, questions(1), instructions)
    assert isinstance(stopped.value.cause, EverythingFound)


async def test_a_request_of_dspy_becomes_one_of_the_port(bridge: Bridge) -> None:
    model = Writing("The reply.")
    engine = PortEngine(bridge, model)
    request = Request(
        model="m", system="Be brief.", messages=(DspyMessage.user("Hello"),), config=Config(temperature=0.7, max_tokens=99)
    )
    response = await asyncio.to_thread(engine.complete, request)
    assert (response.text, response.model, response.usage.input_tokens) == ("The reply.", "answering-model", 100)
    (sent,) = model.requests
    assert [(each.role, each.content) for each in sent.messages] == [("system", "Be brief."), ("user", "Hello")]
    assert (sent.prompt, sent.temperature, sent.max_tokens, sent.schema) == ("planner_proposal", 0.7, 99, None)


@pytest.mark.filterwarnings("error::DeprecationWarning:dspy")
async def test_modules_of_dspy_use_the_port_and_cache_nothing(bridge: Bridge) -> None:
    model = Writing("[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]")

    def ask() -> Any:
        with dspy.context(lm=language_model(bridge, model)):
            return [dspy.Predict("question -> answer")(question="Is it?").answer for _ in range(2)]

    assert await asyncio.to_thread(ask) == ["yes", "yes"]
    assert len(model.requests) == 2
    assert "litellm" not in sys.modules


async def test_an_error_ends_the_optimizer_and_is_no_exception_that_it_catches(bridge: Bridge) -> None:
    for model, cause in (
        (BudgetedModel(Writing("x"), 0), BudgetSpent),
        (ScriptedModel(lambda prompt: ModelUnavailable("away")), ModelUnavailable),
    ):
        with pytest.raises(Stopped) as stopped:
            await asyncio.to_thread(language_model(bridge, model), "Hello")
        assert isinstance(stopped.value.cause, cause)
        assert not isinstance(stopped.value, Exception)


def test_a_copy_of_a_bridge_is_the_bridge() -> None:
    loop = asyncio.new_event_loop()
    bridge = Bridge(loop)
    assert copy.deepcopy({"bridge": bridge})["bridge"] is bridge
    loop.close()

    async def nothing() -> None:
        return None

    with pytest.raises(Stopped, match="the event loop is closed"):
        bridge.run(nothing())
