"""A run of the optimization: measure the present prompt, let an optimizer propose others, and choose the best one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.language.tokens import text_tokens
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.plugins.planner_optimizer.budget import BudgetedModel
from agentic_rag_backend.plugins.planner_optimizer.instructions import Instructions
from agentic_rag_backend.plugins.planner_optimizer.planned_search import Question
from agentic_rag_backend.plugins.planner_optimizer.trials import Score, Trials
from agentic_rag_backend.prompts import Prompt

MOST_CANDIDATES = 12
_PROPOSAL_CALLS = 14
"""Calls of an optimizer that are not about one candidate, at most: it summarises the questions first."""
_PLAN_TOKENS = 350
"""Tokens of a usual plan."""
_PROPOSAL_READ, _PROPOSAL_WRITTEN = 3_000, 700
"""Tokens of a usual proposal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an optimizer works with.

    Attributes:
        model: writes proposals, within the budget.
        candidates: number of prompts that the budget allows to measure, in addition to the present one.
        max_calls: the budget.
    """

    instructions: Instructions
    trials: Trials
    model: LanguageModel
    training: Sequence[Question]
    validation: Sequence[Question]
    candidates: int
    max_calls: int
    seed: int


Optimizer = Callable[[Work], Awaitable[str | None]]
"""Proposes prompts and tries them. Returns why it stopped early, or None. What it tried is in `Trials`."""


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """How a budget is used.

    Attributes:
        calls: expected requests to the model, at most the budget.
    """

    training: int
    validation: int
    candidates: int
    calls: int
    tokens_read: int
    tokens_written: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run. ``best`` None: no other prompt was tried with all validation questions."""

    before: Score
    best: Prompt | None
    after: Score | None
    tried: int
    stopped: str | None

    @property
    def improved(self) -> bool:
        """Whether the best prompt finds more than the present one."""
        return self.after is not None and self.after.recall > self.before.recall

    @property
    def changed(self) -> tuple[int, int]:
        """The numbers of validation questions with a higher and with a lower recall."""
        after = self.after.by_row if self.after is not None else self.before.by_row
        rows = self.before.by_row
        return sum(after[row] > rows[row] for row in rows), sum(after[row] < rows[row] for row in rows)


def plan_budget(present: Prompt, training: Sequence[str], validation: Sequence[str], max_calls: int) -> BudgetPlan:
    """Return how many candidates a budget allows, and the expected cost.

    Raises:
        InvalidRequest: it does not allow one candidate.
    """
    count = len(validation)
    # The present prompt, a proposal, and the proposed prompt.
    least = 2 * count + _PROPOSAL_CALLS + 1
    if max_calls < least:
        raise InvalidRequest(
            f"--max-calls is {max_calls}; {count} questions for validation need at least {least}: {count} to measure the present "
            f"prompt, {count} to measure another, and {_PROPOSAL_CALLS + 1} to propose it; "
            "allow more calls or give fewer questions"
        )
    # At most a quarter of what is left is for questions from which proposals learn.
    used = min(len(training), max(1, (max_calls - least) // 4))
    spare = max_calls - count - _PROPOSAL_CALLS - used
    candidates = max(1, min(MOST_CANDIDATES, spare // (count + 1)))
    plans = min(max_calls, (candidates + 1) * count + used)
    proposals = min(max_calls - plans, _PROPOSAL_CALLS + candidates)
    question = text_tokens([*training, *validation]) // (len(training) + count)
    prompt = text_tokens([present.system, present.user]) + question
    return BudgetPlan(
        training=used,
        validation=count,
        candidates=candidates,
        calls=plans + proposals,
        tokens_read=plans * prompt + proposals * _PROPOSAL_READ,
        tokens_written=plans * _PLAN_TOKENS + proposals * _PROPOSAL_WRITTEN,
    )


async def optimize(work: Work, model: BudgetedModel, optimizer: Optimizer) -> Outcome:
    """Run the optimization.

    Args:
        model: the one that ``work`` asks; it is refused further requests at the end.

    Raises:
        ModelUnavailable: the model does not answer for the present prompt.
        AgenticRagError: a search for the present prompt failed.
    """
    present = work.instructions.present
    try:
        before = await work.trials.score(present, work.validation)
        stopped = None if before.recall >= 1 else await optimizer(work)
    finally:
        model.end()
    measured = work.trials.score_prompts(work.validation)
    rivals = [(prompt, score) for prompt, score in measured if prompt is not present]
    # Of equal scores, the first one.
    best, after = max(rivals, key=lambda rival: rival[1].recall, default=(None, None))
    return Outcome(before, best, after, len(rivals), stopped)
