"""Trials: the plan that a prompt gives for a question, and the recall of the search with it. Each is paid for once."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.errors import ModelRefused, ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.plugins.planner_optimizer.planned_search import PlannedSearch, Question
from agentic_rag_backend.prompts import Prompt
from agentic_rag_backend.retrieval.agentic.plan import Planner, plan_of, prompt_values
from agentic_rag_backend.retrieval.rewriting import QueryRewriter
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

ATTEMPTS = 3
"""Calls for a plan before a model that does not answer ends the run."""
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one prompt for one question. ``plan`` is the model's reply, empty if the reply was invalid."""

    plan: Mapping[str, Any]
    recall: float
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Mean recall of a prompt over questions, and its recall of each by row."""

    recall: float
    by_row: Mapping[int, float]


@dataclass(slots=True)
class Trials:
    """Measures prompts. Concurrent calls for the same prompt and question share one trial.

    Attributes:
        search: searches with plans.
        calls: calls of the model that plans, which count against the budget.
        rewriter: gives the plan by rules after an invalid reply, as in the product.
        concurrency: trials at once. The time limit of a call includes its wait for the model, so that it must not wait for long.
    """

    search: PlannedSearch
    calls: StructuredCalls
    rewriter: QueryRewriter
    concurrency: int = 4
    _slots: asyncio.Semaphore = field(init=False)
    _prompts: dict[str, Prompt] = field(default_factory=dict, init=False)
    _trials: dict[_Key, asyncio.Task[Trial]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.concurrency)

    async def run(self, prompt: Prompt, question: Question) -> Trial:
        """Return the outcome for one question.

        Raises:
            BudgetSpent: no call is left.
            ModelRefused: the model refuses every request.
            ModelUnavailable: the model does not answer.
            AgenticRagError: the search failed.
        """
        digest = _digest(prompt)
        self._prompts.setdefault(digest, prompt)
        key = digest, question.example.row
        task = self._trials.get(key)
        if task is None:
            task = self._trials[key] = asyncio.create_task(self._run(prompt, question))
        try:
            return await task
        except BaseException:
            if self._trials.get(key) is task:
                del self._trials[key]
            raise

    async def score(self, prompt: Prompt, questions: Sequence[Question]) -> Score:
        """Return the score over questions, which are tried at the same time. Errors as in `run`."""
        trials = await asyncio.gather(*(self.run(prompt, question) for question in questions))
        return _score(questions, trials)

    def complete(self, prompt: Prompt, questions: Sequence[Question]) -> bool:
        """Return whether a prompt was tried with all of these questions and found everything."""
        digest = _digest(prompt)
        trials = (self._trials.get((digest, question.example.row)) for question in questions)
        return all(task is not None and _has_succeeded_task(task) and task.result().recall >= 1 for task in trials)

    def score_prompts(self, questions: Sequence[Question]) -> list[tuple[Prompt, Score]]:
        """Return the prompts that were tried with all of these questions, in order of their first trial."""
        scores = []
        for digest, prompt in self._prompts.items():
            tasks = [self._trials.get((digest, question.example.row)) for question in questions]
            results = [task.result() for task in tasks if task is not None and _has_succeeded_task(task)]
            if len(results) == len(questions):
                scores.append((prompt, _score(questions, results)))
        return scores

    async def _run(self, prompt: Prompt, question: Question) -> Trial:
        planner = Planner(self.rewriter, self.calls, prompt)
        async with self._slots:
            parsed = await self._plan(planner, question.example.question)
            if parsed:
                plan = plan_of(parsed, question.example.question)
            else:
                plan, _ = await planner.by_rules(await self.search.query(question))
            recall = await self.search.recall(question, planner, plan)
        return Trial(parsed, recall.value, recall.missed)

    async def _plan(self, planner: Planner, question: str) -> Mapping[str, Any]:
        """Return the model's reply, or an empty one if it does not match the schema. That is a fault of the prompt."""
        failure: str | None = None
        for attempt in range(1, ATTEMPTS + 1):
            reply = await planner.ask(question, self.calls)
            if reply.parsed is not None:
                return reply.parsed
            if reply.failure == ModelReplyInvalid.code:
                return {}
            failure = reply.failure
            if failure == ModelRefused.code:
                raise ModelRefused("the model refuses to plan: its key, its name or the account's rights are wrong")
            _log.warning("plan_failed", attempt=attempt, code=failure)
        raise ModelUnavailable(f"the model did not plan after {ATTEMPTS} calls: {failure}")


def _digest(prompt: Prompt) -> str:
    """Return a hash of what the model reads of a prompt."""
    return hashlib.sha256("\n".join(prompt.render(prompt_values(""))).encode()).hexdigest()


def _has_succeeded_task(task: asyncio.Task[Trial]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _score(questions: Sequence[Question], trials: Sequence[Trial]) -> Score:
    by_row = {question.example.row: trial.recall for question, trial in zip(questions, trials, strict=True)}
    return Score(sum(by_row.values()) / len(by_row), by_row)
