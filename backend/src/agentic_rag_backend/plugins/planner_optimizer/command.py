"""``optimize-planner``: writes a better prompt for the planner of agentic searches, found by DSPy."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.command import AsJson, DataDir, TenantOption, quiet_logging
from agentic_rag_backend.cli.configuration import load_settings
from agentic_rag_backend.cli.output import Output, console, fields
from agentic_rag_backend.cli.progress import leaving, run_async
from agentic_rag_backend.domain.usage import calls_and_tokens
from agentic_rag_backend.errors import ConfigurationError, InvalidRequest
from agentic_rag_backend.plugins import missing_extra

if TYPE_CHECKING:
    from agentic_rag_backend.container import Container
    from agentic_rag_backend.domain.tenant import Principal
    from agentic_rag_backend.plugins.planner_optimizer.budget import BudgetedModel
    from agentic_rag_backend.plugins.planner_optimizer.instructions import Instructions
    from agentic_rag_backend.plugins.planner_optimizer.planned_search import Question
    from agentic_rag_backend.plugins.planner_optimizer.service import BudgetPlan, Outcome
    from agentic_rag_backend.settings import Settings

MOST_AT_ONCE = 8
"""Searches at the same time."""
FEW = 20
"""Questions for validation below which a difference may be chance."""


class OptimizerName(StrEnum):
    """The optimizers."""

    MIPRO = "mipro"
    GEPA = "gepa"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    training: Path
    optimizer: OptimizerName
    max_calls: int
    output: Path | None
    validation_share: float
    limit: int
    seed: int
    force: bool
    dry_run: bool
    tenant: str | None


@dataclass(frozen=True, slots=True)
class _Parts:
    training: Sequence[Question]
    validation: Sequence[Question]


def optimize_planner(
    training: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON Lines: question, documents or passages, and optionally tenant and group.")
    ],
    optimizer: Annotated[
        OptimizerName, typer.Option("--optimizer", help="mipro: propose, then choose; gepa: rewrite from what was missed.")
    ] = OptimizerName.MIPRO,
    max_calls: Annotated[int, typer.Option("--max-calls", min=1, max=100_000, help="Requests to the model, at most.")] = 300,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: agentic_plan-VERSION.md in this folder.")
    ] = None,
    validation_share: Annotated[
        float, typer.Option("--validation-share", min=0.1, max=0.9, help="Share of questions that choose the prompt.")
    ] = 0.5,
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Results of a search that count.")] = 10,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of the split and of the optimizer.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write the best other prompt even if it is not better.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the file and estimate the cost; ask no model.")] = False,
    tenant: TenantOption = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> None:
    """Optimize the prompt that plans agentic searches, with questions whose documents are known.

    It is written only if its searches find more than those of the present prompt. AGENTIC_PLANNER_PROMPT_FILE loads it.
    """
    settings = load_settings(data_dir=data_dir)
    quiet_logging(settings)
    options = _Options(
        training=training,
        optimizer=optimizer,
        max_calls=max_calls,
        output=output,
        validation_share=validation_share,
        limit=limit,
        seed=seed,
        force=force,
        dry_run=dry_run,
        tenant=tenant,
    )
    _require_model(settings)
    _require_dspy()
    if output is not None and output.exists():
        raise InvalidRequest(f"--output {output} exists; name another file")
    display = Output(as_json=json)
    result = run_async(_run(settings, options, display))
    display.result(result) if json else display.show(fields(result, title="planner"))


def _require_model(settings: Settings) -> None:
    if settings.llm == "extractive":
        raise ConfigurationError("optimize-planner needs a language model; set LLM=openai, LLM_MODEL and OPENAI_API_KEY")


def _require_dspy() -> None:
    missing_packages = [name for name in ("dspy", "optuna") if importlib.util.find_spec(name) is None]
    if missing_packages:
        raise missing_extra("optimize-planner", "dspy", f"{' and '.join(missing_packages)} cannot be imported")
    # Read when they are imported: no progress bars on stdout, and no look-up of model prices on the internet.
    os.environ["TQDM_DISABLE"] = "1"
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"


async def _run(settings: Settings, options: _Options, output: Output) -> dict[str, Any]:
    from agentic_rag_backend.cli.session.local import open_stores
    from agentic_rag_backend.plugins.planner_optimizer.examples import read_examples, split
    from agentic_rag_backend.plugins.planner_optimizer.questions import resolve
    from agentic_rag_backend.plugins.planner_optimizer.service import plan_budget

    examples = read_examples(options.training)
    parts = split(examples, options.validation_share, options.seed)
    async with open_stores(settings, work=False) as container:
        questions = {
            question.example.row: question
            for question in await resolve(examples, _callers(container, options.tenant), container.catalogue.documents)
        }
        instructions = _instructions(container, questions.values())
        training, validation = ([part_question.question for part_question in part] for part in (parts.training, parts.validation))
        budget = plan_budget(instructions.present, training, validation, options.max_calls)
        _announce(output, settings, budget, options)
        if options.dry_run:
            return {"planned": asdict(budget)}
        used = _Parts(*([questions[part_question.row] for part_question in part] for part in (parts.training, parts.validation)))
        model, outcome = await _optimize(container, options, instructions, used, budget)
        return _report(options, instructions, model, outcome)


def _callers(container: Container, tenant: str | None) -> Callable[[str | None], Awaitable[Principal]]:
    """Return the function that returns the caller for a row's tenant. Each tenant is read once."""
    from agentic_rag_backend.library import choose_tenant

    principals: dict[str | None, Principal] = {}

    async def caller(name: str | None) -> Principal:
        tenant_name = name or tenant
        if tenant_name not in principals:
            chosen = await choose_tenant(container, tenant_name)
            principals[tenant_name] = await container.authenticator.local_principal(chosen.id)
        return principals[tenant_name]

    return caller


def _instructions(container: Container, questions: Iterable[Question]) -> Instructions:
    from agentic_rag_backend.plugins.planner_optimizer.instructions import NAME, Instructions, TrainingWords
    from agentic_rag_backend.prompts import built_in

    texts = [
        text
        for question in questions
        for text in (question.example.question, *question.example.documents, *question.example.passages)
    ]
    present = container.retrieval_parts.agentic_options.planner_prompt or built_in(NAME)
    return Instructions(present, TrainingWords.of(texts))


def _announce(output: Output, settings: Settings, budget: BudgetPlan, options: _Options) -> None:
    from agentic_rag_backend.container.options import fast_model

    output.note(
        f"{fast_model(settings)} plans for {budget.training} questions for training and {budget.validation} for validation, and "
        f"{settings.llm_model} proposes up to {budget.candidates} other prompts: about {budget.calls:,} calls (at most "
        f"{options.max_calls:,}), which read about {budget.tokens_read:,} and write about {budget.tokens_written:,} tokens"
    )
    if budget.validation < FEW:
        output.note(f"warning: {budget.validation} questions for validation are few: a difference may be chance")


async def _optimize(
    container: Container, options: _Options, instructions: Instructions, parts: _Parts, budget: BudgetPlan
) -> tuple[BudgetedModel, Outcome]:
    from agentic_rag_backend.plugins.planner_optimizer.budget import BudgetedModel
    from agentic_rag_backend.plugins.planner_optimizer.dspy_adapter.optimizers import optimizer
    from agentic_rag_backend.plugins.planner_optimizer.planned_search import PlannedSearch
    from agentic_rag_backend.plugins.planner_optimizer.service import Work, optimize
    from agentic_rag_backend.plugins.planner_optimizer.trials import Trials

    model = BudgetedModel(container.model, options.max_calls)
    agentic = container.retrieval_parts.agentic_parts
    agentic = replace(agentic, calls=replace(agentic.calls, model=model))
    work = Work(
        instructions=instructions,
        trials=Trials(
            PlannedSearch(agentic, container.queries, options.limit),
            agentic.calls,
            agentic.rewriter,
            # One tenant gets at most three quarters of the model's places.
            max(1, min(MOST_AT_ONCE, container.settings.llm_max_concurrency * 3 // 4)),
        ),
        model=model,
        training=parts.training[: budget.training],
        validation=parts.validation,
        candidates=budget.candidates,
        max_calls=options.max_calls,
        seed=options.seed,
    )
    with leaving("interrupted; no prompt was written"):
        async with _progress(model, options.max_calls):
            return model, await optimize(work, model, optimizer(options.optimizer.value))


@asynccontextmanager
async def _progress(model: BudgetedModel, max_calls: int) -> AsyncIterator[None]:
    """Show the requests to the model that were made."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("calls of the model", total=max_calls)

        async def show() -> None:
            while True:
                progress.update(task, completed=model.usage.calls)
                await asyncio.sleep(0.5)

        showing = asyncio.create_task(show())
        try:
            yield
        finally:
            showing.cancel()
            with suppress(asyncio.CancelledError):
                await showing


def _report(options: _Options, instructions: Instructions, model: BudgetedModel, outcome: Outcome) -> dict[str, Any]:
    """Write the prompt if it is to be written, and return what happened."""
    better, worse = outcome.changed
    path = _write(options, instructions, model, outcome) if outcome.improved or options.force else None
    after = outcome.after
    return {
        "written": None if path is None else str(path),
        "reason": _reason(outcome, path),
        "optimizer": options.optimizer.value,
        "recall_before": round(outcome.before.recall, 4),
        "recall_after": None if after is None else round(after.recall, 4),
        "questions": len(outcome.before.by_row),
        "questions_better": better,
        "questions_worse": worse,
        "prompts_tried": outcome.tried,
        "stopped": outcome.stopped,
        **calls_and_tokens(model.usage),
    }


def _reason(outcome: Outcome, path: Path | None) -> str:
    if outcome.before.recall >= 1:
        return "nothing was written: the present prompt finds everything"
    if outcome.best is None:
        return "nothing was written: no other prompt was tried with all questions for validation"
    if path is None:
        return "nothing was written: no other prompt finds more than the present one"
    if not outcome.improved:
        return "written by --force, although it does not find more than the present one"
    return f"AGENTIC_PLANNER_PROMPT_FILE={path} loads it"


def _write(options: _Options, instructions: Instructions, model: BudgetedModel, outcome: Outcome) -> Path | None:
    from agentic_rag_backend.plugins.planner_optimizer.instructions import version_of, write_prompt

    if outcome.best is None or outcome.after is None:
        return None
    date = datetime.now(UTC).date().isoformat()
    version = version_of(outcome.best, options.optimizer.value, date)
    path = options.output or Path(f"{outcome.best.name}-{version}.md")
    described = f"Plans the searches for a question. Found by {options.optimizer.value} from {instructions.present.id}."
    header = {
        "optimizer": options.optimizer.value,
        "date": date,
        "seed": options.seed,
        "questions": len(outcome.before.by_row),
        "results": options.limit,
        "recall_before": f"{outcome.before.recall:.4f}",
        "recall_after": f"{outcome.after.recall:.4f}",
    }
    write_prompt(path, replace(outcome.best, version=version, description=described), header)
    return path
