"""Evaluation runs, the outcomes of their questions, and the verdicts of a judge."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Select, Table, and_, delete, func, insert, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.evaluation import MAX_RUNS, CaseOutcome, EvaluationRun, PairChoice, PairVerdict, RunPlan
from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import Conflict, InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.documents.document_values import Enqueue
from agentic_rag_backend.stores.catalogue.evaluation.dataset_catalogue import read_dataset
from agentic_rag_backend.stores.catalogue.jobs.job_rows import new_job
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, lock_tenant, read, upsert, write
from agentic_rag_backend.stores.catalogue.pages import Page, beyond, check_limit, decode_cursor, encode_cursor, time_cursor
from agentic_rag_backend.stores.catalogue.tables import evaluation_outcomes, evaluation_runs, evaluation_verdicts, jobs

_RUNS, _OUTCOMES, _VERDICTS = "runs", "outcomes", "verdicts"
_runs = evaluation_runs.c
_JOB_FIELDS = ("state", "done", "total", "error", "finished_at")


def create_run(connection: Connection, tenant: TenantId, plan: RunPlan, enqueue: Enqueue) -> EvaluationRun:
    """Record a run and its job, which ``enqueue`` adds to the queue, in one transaction.

    Raises:
        NotFound: there is no such dataset.
        InvalidRequest: the tenant has `MAX_RUNS` runs.
    """
    lock_tenant(connection, tenant)
    read_dataset(connection, tenant, plan.dataset_id)
    count = connection.execute(
        select(func.count()).select_from(evaluation_runs).where(_runs.tenant_id == tenant.value)
    ).scalar_one()
    if count >= MAX_RUNS:
        raise InvalidRequest(f"a tenant may have at most {MAX_RUNS} runs; it has {count}. Delete some first")
    run_id = str(uuid.uuid4())
    job = new_job(connection, tenant, JobKind.EVALUATE, arguments={"run_id": run_id})
    row = {
        "tenant_id": tenant.value,
        "id": run_id,
        "dataset_id": plan.dataset_id,
        "job_id": job.id,
        "plan": plain(asdict(plan)),
        "created_at": utc_now(),
    }
    connection.execute(insert(evaluation_runs), row)
    enqueue(connection, tenant, job)
    return read_run(connection, tenant, run_id)


def _select_runs(tenant: TenantId) -> Select[Any]:
    """Select runs without their results, which may have megabytes."""
    of_job = and_(jobs.c.tenant_id == _runs.tenant_id, jobs.c.id == _runs.job_id)
    return (
        select(*(column for column in _runs if column is not _runs.result), *(jobs.c[name] for name in _JOB_FIELDS))
        .select_from(evaluation_runs.join(jobs, of_job))
        .where(_runs.tenant_id == tenant.value)
    )


def read_run(connection: Connection, tenant: TenantId, run_id: str, *, with_result: bool = True) -> EvaluationRun:
    """Return a run with the state of its job, or raise `NotFound`."""
    statement = _select_runs(tenant).where(_runs.id == run_id)
    row = connection.execute(statement.add_columns(_runs.result) if with_result else statement).mappings().first()
    if row is None:
        raise NotFound(f"there is no run {run_id!r}")
    return _run_from(row)


def list_runs(
    connection: Connection, tenant: TenantId, *, limit: int, cursor: str | None = None, dataset_id: str | None = None
) -> Page[EvaluationRun]:
    """List runs without their results, newest first, of one dataset or of all."""
    statement = _select_runs(tenant)
    if dataset_id is not None:
        statement = statement.where(_runs.dataset_id == dataset_id)
    if cursor is not None:
        statement = statement.where(beyond(evaluation_runs, _RUNS, cursor, newest_first=True))
    statement = statement.order_by(_runs.created_at.desc(), _runs.id.desc()).limit(check_limit(limit) + 1)
    runs = [_run_from(row) for row in connection.execute(statement).mappings()]
    last_run = runs[limit - 1] if len(runs) > limit else None
    return Page(tuple(runs[:limit]), time_cursor(_RUNS, last_run.created_at, last_run.id) if last_run else None)


def _run_from(row: RowMapping) -> EvaluationRun:
    plan = dict(row["plan"])
    return EvaluationRun(
        id=row["id"],
        plan=RunPlan(**{**plan, "configurations": tuple(plan["configurations"])}),
        job_id=row["job_id"],
        state=JobState(row["state"]),
        done=row["done"],
        total=row["total"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
        error=row["error"],
        result=row.get("result"),
    )


def save_outcome(connection: Connection, tenant: TenantId, run_id: str, outcome: CaseOutcome) -> None:
    """Record the outcome of one question. The first outcome of a case and configuration stays.

    Raises:
        NotFound: the run was deleted.
    """
    _save_part(connection, tenant, run_id, evaluation_outcomes, outcome)


def save_verdict(connection: Connection, tenant: TenantId, run_id: str, verdict: PairVerdict) -> None:
    """Record the verdict on one pair of answers. The first verdict on a case and configuration stays.

    Raises:
        NotFound: the run was deleted.
    """
    _save_part(connection, tenant, run_id, evaluation_verdicts, verdict)


def _save_part(connection: Connection, tenant: TenantId, run_id: str, table: Table, part: CaseOutcome | PairVerdict) -> None:
    lock_tenant(connection, tenant)
    read_run(connection, tenant, run_id, with_result=False)
    row = {
        "tenant_id": tenant.value,
        "run_id": run_id,
        "case_id": part.case_id,
        "configuration": part.configuration,
        "content": plain(asdict(part)),
    }
    upsert(connection, table, [row], keys=("tenant_id", "run_id", "case_id", "configuration"))


def list_outcomes(
    connection: Connection, tenant: TenantId, run_id: str, *, limit: int, cursor: str | None = None
) -> Page[CaseOutcome]:
    """List the outcomes of a run by case and configuration. `NotFound` if there is no such run."""
    rows, next_cursor = _page_of(connection, tenant, run_id, evaluation_outcomes, _OUTCOMES, limit=limit, cursor=cursor)
    return Page(tuple(map(_outcome_from, rows)), next_cursor)


def list_verdicts(
    connection: Connection, tenant: TenantId, run_id: str, *, limit: int, cursor: str | None = None
) -> Page[PairVerdict]:
    """List the verdicts of a run by case and configuration. `NotFound` if there is no such run."""
    rows, next_cursor = _page_of(connection, tenant, run_id, evaluation_verdicts, _VERDICTS, limit=limit, cursor=cursor)
    return Page(tuple(map(_verdict_from, rows)), next_cursor)


def _page_of(
    connection: Connection, tenant: TenantId, run_id: str, table: Table, scope: str, *, limit: int, cursor: str | None
) -> tuple[list[Mapping[str, Any]], str | None]:
    """Return the contents of a page of a run's outcomes or verdicts, and the cursor of the next page."""
    read_run(connection, tenant, run_id, with_result=False)
    case_id, configuration = table.c.case_id, table.c.configuration
    statement = select(table).where(table.c.tenant_id == tenant.value, table.c.run_id == run_id)
    if cursor is not None:
        last_case, last_name = decode_cursor(scope, cursor, str, str)
        statement = statement.where((case_id > last_case) | and_(case_id == last_case, configuration > last_name))
    statement = statement.order_by(case_id, configuration).limit(check_limit(limit) + 1)
    rows = connection.execute(statement).mappings().all()
    last_row = rows[limit - 1] if len(rows) > limit else None
    next_cursor = encode_cursor(scope, (last_row["case_id"], last_row["configuration"])) if last_row is not None else None
    return [row["content"] for row in rows[:limit]], next_cursor


def _outcome_from(content: Mapping[str, Any]) -> CaseOutcome:
    lists = {name: tuple(content[name]) for name in ("tags", "documents", "chunks")}
    return CaseOutcome(**{**content, **lists})


def _verdict_from(content: Mapping[str, Any]) -> PairVerdict:
    forward, backward = (PairChoice(choice) if choice is not None else None for choice in content["choices"])
    return PairVerdict(**{**content, "choices": (forward, backward)})


def save_result(connection: Connection, tenant: TenantId, run_id: str, result: Mapping[str, Any]) -> None:
    """Record the summary of a run. `NotFound` if the run was deleted."""
    its = (_runs.tenant_id == tenant.value, _runs.id == run_id)
    if connection.execute(update(evaluation_runs).where(*its).values(result=plain(result))).rowcount == 0:
        raise NotFound(f"there is no run {run_id!r}")


def delete_run(connection: Connection, tenant: TenantId, run_id: str) -> None:
    """Delete a run with its outcomes.

    Raises:
        NotFound: there is no such run.
        Conflict: its job has not ended.
    """
    lock_tenant(connection, tenant)
    run = read_run(connection, tenant, run_id, with_result=False)
    if not run.state.ended:
        raise Conflict(f"run {run_id!r} is {run.state.value}; cancel its job {run.job_id!r} first")
    for table in (evaluation_outcomes, evaluation_verdicts):
        connection.execute(delete(table).where(table.c.tenant_id == tenant.value, table.c.run_id == run_id))
    connection.execute(delete(evaluation_runs).where(_runs.tenant_id == tenant.value, _runs.id == run_id))


class RunCatalogue(CataloguePart):
    """Evaluation runs, an outcome for each case and configuration, and verdicts. Jobs have the state and the progress."""

    create = write(create_run)
    run = read(read_run)
    runs = read(list_runs)
    save_outcome = write(save_outcome)
    outcomes = read(list_outcomes)
    save_verdict = write(save_verdict)
    verdicts = read(list_verdicts)
    save_result = write(save_result)
    delete = write(delete_run)
