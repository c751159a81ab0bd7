"""Questions of the optimization, and searches that find what a function of the plan says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from scripted_models import Reply, ScriptedModel

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.plugins.planner_optimizer.examples import Example
from agentic_rag_backend.plugins.planner_optimizer.instructions import Instructions, TrainingWords
from agentic_rag_backend.plugins.planner_optimizer.planned_search import Question, Recall
from agentic_rag_backend.plugins.planner_optimizer.trials import Trials
from agentic_rag_backend.prompts import built_in
from agentic_rag_backend.retrieval.agentic.plan import Plan
from agentic_rag_backend.retrieval.rewriting import QueryRewriter
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls

PLAN = {
    "primary_intent": "",
    "hyde_passage": "",
    "search_queries": ["a query"],
    "filter_constraints": [],
    "negative_constraints": [],
}


@dataclass
class PlannedSearches:
    """Recall by a function of the plan. ``plans`` lists the plans of all searches."""

    recall_of: Callable[[Plan], float]
    plans: list[Plan] = field(default_factory=list)

    async def query(self, question: Question) -> Any:
        raise InvalidRequest("no query")

    async def recall(self, question: Question, planner: object, plan: Plan) -> Recall:
        self.plans.append(plan)
        value = self.recall_of(plan)
        return Recall(value, () if value == 1 else ("missed.md",))


@pytest.fixture
def questions() -> Callable[[int], list[Question]]:
    """Return a function that creates questions, with rows from 1."""
    caller = cast("Any", None)
    return lambda count: [
        Question(Example(row=row, question=f"Question {row}?", documents=("a",)), caller, {"a": frozenset(["a"])})
        for row in range(1, count + 1)
    ]


@pytest.fixture
def instructions() -> Instructions:
    """Return the instructions of the built-in prompt."""
    return Instructions(built_in("agentic_plan"), TrainingWords.of(()))


@pytest.fixture
def trials() -> Callable[..., tuple[Trials, ScriptedModel, PlannedSearches]]:
    """Return a function that creates trials with a model, and searches whose recall is a function of the plan."""

    def make(
        write: Callable[[str], Reply], recall_of: Callable[[Plan], float] = lambda plan: 1.0, model: Any = None
    ) -> tuple[Trials, ScriptedModel, PlannedSearches]:
        scripted, searches = ScriptedModel(write), PlannedSearches(recall_of)
        calls = StructuredCalls(model(scripted) if model else scripted)
        rewriter = QueryRewriter(cast("Any", None), calls)
        return Trials(cast("Any", searches), calls, rewriter), scripted, searches

    return make
