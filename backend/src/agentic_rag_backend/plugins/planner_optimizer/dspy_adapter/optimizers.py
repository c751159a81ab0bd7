"""DSPy's optimizers on the planner: MIPROv2 (arXiv:2406.11695) and GEPA (arXiv:2507.19457)."""

from __future__ import annotations

import asyncio
import contextlib
import io
import math
from collections.abc import Callable, Mapping
from typing import Any

import dspy
from dspy.teleprompt.gepa import InstructionProposer

from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.plugins.planner_optimizer.budget import BudgetSpent
from agentic_rag_backend.plugins.planner_optimizer.dspy_adapter.bridge import Bridge, Stopped
from agentic_rag_backend.plugins.planner_optimizer.dspy_adapter.engine import language_model
from agentic_rag_backend.plugins.planner_optimizer.dspy_adapter.program import (
    EverythingFound,
    PlannedSearchProgram,
    Workbench,
    examples_of,
    recall_metric,
    recall_with_feedback,
)
from agentic_rag_backend.plugins.planner_optimizer.instructions import MAX_INSTRUCTION
from agentic_rag_backend.plugins.planner_optimizer.service import Optimizer, Work
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)
GENERAL = (
    "The instruction serves other questions, other documents and other readers. It describes how to plan searches. It repeats no "
    "name, question or text of the examples."
)
"""DSPy's own prompt asks for facts from the examples."""
_Compile = Callable[[Work, Any, Any], None]
TRIALS_OF_A_CALL = 4
"""Trials that GEPA may count for each call of the budget. A repeated trial costs no call."""


def _mipro(work: Work, lm: Any, program: Any) -> None:
    """Propose instructions at once, from the questions and from plans that found everything, and choose among them."""
    candidates = work.candidates + 1
    optimizer = dspy.MIPROv2(
        metric=recall_metric,
        prompt_model=lm,
        task_model=lm,
        max_bootstrapped_demos=0,
        max_labeled_demos=0,
        auto=None,
        num_candidates=candidates,
        num_threads=work.trials.concurrency,
        max_errors=1,
        metric_threshold=1.0,
        seed=work.seed,
    )
    optimizer.compile(
        program,
        trainset=examples_of(work.training),
        valset=examples_of(work.validation),
        # The number that MIPROv2 recommends. A candidate that is drawn again costs no call.
        num_trials=max(2 * math.ceil(math.log2(candidates)), math.ceil(1.5 * candidates)),
        minibatch=False,
        # The instruction describes the program: its source says nothing more.
        program_aware_proposer=False,
    )


def _gepa(work: Work, lm: Any, program: Any) -> None:
    """Rewrite the instruction again and again, from what its searches missed, and keep what is best for some questions."""
    optimizer = dspy.GEPA(
        metric=recall_with_feedback,
        max_metric_calls=work.max_calls * TRIALS_OF_A_CALL,
        reflection_lm=lm,
        instruction_proposer=InstructionProposer(additional_instructions=GENERAL, max_chars=MAX_INSTRUCTION),
        use_merge=False,
        num_threads=work.trials.concurrency,
        seed=work.seed,
    )
    optimizer.compile(program, trainset=examples_of(work.training), valset=examples_of(work.validation))


class _Discarded(io.TextIOBase):
    """A stream that nobody reads."""

    def write(self, text: str) -> int:
        return len(text)


COMPILE: Mapping[str, _Compile] = {"mipro": _mipro, "gepa": _gepa}


def optimizer(name: str) -> Optimizer:
    """Return the optimizer of a name of `COMPILE`."""

    async def run(work: Work) -> str | None:
        bridge = Bridge(asyncio.get_running_loop())
        questions = {question.example.row: question for question in (*work.training, *work.validation)}
        workbench = Workbench(bridge, work.instructions, work.trials, questions, work.validation)
        return await asyncio.to_thread(_compile, COMPILE[name], work, bridge, workbench)

    return run


def _compile(compile: _Compile, work: Work, bridge: Bridge, workbench: Workbench) -> str | None:
    """Run an optimizer in this thread. Return why it stopped early, or None."""
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    dspy.disable_logging()
    lm = language_model(bridge, work.model)
    try:
        # DSPy prints and shows progress there; stdout has the command's result.
        with contextlib.redirect_stdout(_Discarded()), dspy.context(lm=lm, disable_history=True):
            compile(work, lm, PlannedSearchProgram(workbench))
    except Stopped as stopped:
        if isinstance(stopped.cause, EverythingFound):
            return None
        if isinstance(stopped.cause, BudgetSpent):
            return "the budget of calls was spent"
        if isinstance(stopped.cause, AgenticRagError):
            return stopped.cause.message
        raise stopped.cause from stopped
    except Exception as error:  # noqa: BLE001 - of DSPy, whose errors must not cost what was paid for
        _log.warning("optimizer_failed", error=type(error).__name__, reason=str(error))
        return f"the optimizer failed with {type(error).__name__}: {error}"
    return None
