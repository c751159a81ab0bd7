"""Experiments, the outcomes of their questions, and sums over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import ColumnElement, Float, Select, case, cast, delete, func, insert, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.experiments import (
    MAX_EXPERIMENTS,
    ActiveExperiment,
    Experiment,
    ExperimentMetric,
    ExperimentOutcome,
    MeasureSums,
    Sums,
)
from agentic_rag_backend.domain.feedback import Rating
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import Conflict, InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.columns import plain, utc_now
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, lock_tenant, raise_state_version, read, upsert, write
from agentic_rag_backend.stores.catalogue.pages import Page, beyond, check_limit, time_cursor
from agentic_rag_backend.stores.catalogue.tables import experiment_outcomes, experiments, feedback, tenants
from agentic_rag_backend.stores.catalogue.tenants.tenant_directory import read_tenant
from agentic_rag_backend.stores.catalogue.tenants.tenant_rows import experiment_from

_SCOPE = "experiments"
_experiments, _outcomes = experiments.c, experiment_outcomes.c


def start_experiment(connection: Connection, tenant: TenantId, active: ActiveExperiment, key_id: str) -> Experiment:
    """Record an experiment, and use it for the tenant's requests from now on.

    Raises:
        Conflict: another experiment runs.
        InvalidRequest: the tenant has `MAX_EXPERIMENTS` experiments.
    """
    lock_tenant(connection, tenant)
    running = read_tenant(connection, tenant).experiment
    if running is not None:
        raise Conflict(f"experiment {running.id!r} ({running.name!r}) runs; stop it first")
    of_tenant = select(func.count()).select_from(experiments).where(_experiments.tenant_id == tenant.value)
    count = connection.execute(of_tenant).scalar_one()
    if count >= MAX_EXPERIMENTS:
        raise InvalidRequest(f"a tenant may have at most {MAX_EXPERIMENTS} experiments; it has {count}. Delete some first")
    content = plain(asdict(active))
    row = {"tenant_id": tenant.value, "id": active.id, "content": content, "created_at": utc_now(), "created_by": key_id}
    connection.execute(insert(experiments), row)
    _set_running(connection, tenant, content)
    return read_experiment(connection, tenant, active.id)


def _set_running(connection: Connection, tenant: TenantId, content: dict[str, Any] | None) -> None:
    connection.execute(update(tenants).where(tenants.c.tenant_id == tenant.value).values(experiment=content))
    raise_state_version(connection, tenant)


def read_experiment(connection: Connection, tenant: TenantId, experiment_id: str) -> Experiment:
    """Return an experiment, or raise `NotFound`."""
    statement = select(experiments).where(_experiments.tenant_id == tenant.value, _experiments.id == experiment_id)
    row = connection.execute(statement).mappings().first()
    if row is None:
        raise NotFound(f"there is no experiment {experiment_id!r}")
    return _experiment_from(row)


def list_experiments(connection: Connection, tenant: TenantId, *, limit: int, cursor: str | None = None) -> Page[Experiment]:
    """List experiments, newest first."""
    statement = select(experiments).where(_experiments.tenant_id == tenant.value)
    if cursor is not None:
        statement = statement.where(beyond(experiments, _SCOPE, cursor, newest_first=True))
    statement = statement.order_by(_experiments.created_at.desc(), _experiments.id.desc()).limit(check_limit(limit) + 1)
    items = [_experiment_from(row) for row in connection.execute(statement).mappings()]
    last_item = items[limit - 1] if len(items) > limit else None
    return Page(tuple(items[:limit]), time_cursor(_SCOPE, last_item.created_at, last_item.active.id) if last_item else None)


def _experiment_from(row: RowMapping) -> Experiment:
    names = ("created_at", "created_by", "stopped_at", "stopped_because", "stopped_by")
    return Experiment(active=experiment_from(row["content"]), **{name: row[name] for name in names})


def save_outcomes(connection: Connection, tenant: TenantId, outcomes: Sequence[ExperimentOutcome]) -> None:
    """Record outcomes. The first one of a question stays. Those of experiments that do not run any more are left out."""
    lock_tenant(connection, tenant)
    running = read_tenant(connection, tenant).experiment
    rows = [
        {
            "tenant_id": tenant.value,
            "experiment_id": outcome.experiment_id,
            "unit": outcome.unit,
            "configuration": outcome.configuration,
            "log_latency": math.log(max(outcome.latency_ms, 0.01)),
            "log_tokens": math.log1p(outcome.tokens),
            "refused": None if outcome.refused is None else float(outcome.refused),
            "answer_id": outcome.answer_id,
            "created_at": outcome.created_at,
        }
        for outcome in outcomes
        if running is not None and outcome.experiment_id == running.id
    ]
    upsert(connection, experiment_outcomes, rows, keys=("tenant_id", "experiment_id", "unit"))


def read_sums(connection: Connection, tenant: TenantId, experiment_id: str) -> MeasureSums:
    """Return sums of each measure by configuration. `NotFound` if there is no such experiment.

    An answer is as good as the mean of the ratings that keys gave it as a whole.
    """
    experiment = read_experiment(connection, tenant, experiment_id)
    its = (_outcomes.tenant_id == tenant.value, _outcomes.experiment_id == experiment_id)
    measures = {
        ExperimentMetric.LATENCY: _outcomes.log_latency,
        ExperimentMetric.TOKENS: _outcomes.log_tokens,
        ExperimentMetric.REFUSED: _outcomes.refused,
    }
    plain_sums = (part for column in measures.values() for part in _sum_columns(column))
    statement = select(_outcomes.configuration, *plain_sums).where(*its).group_by(_outcomes.configuration)
    sums: dict[str, dict[ExperimentMetric, Sums]] = {of["name"]: {} for of in experiment.active.configurations}
    for name, *numbers in connection.execute(statement):
        for position, metric in enumerate(measures):
            sums[name][metric] = _sums_from(numbers[3 * position : 3 * position + 3])
    for name, *numbers in connection.execute(_select_ratings(tenant, experiment_id)):
        sums[name][ExperimentMetric.GOOD] = _sums_from(numbers)
    return sums


def _select_ratings(tenant: TenantId, experiment_id: str) -> Select[Any]:
    good = cast(case((feedback.c.rating == Rating.GOOD.value, 1.0), else_=0.0), Float)
    rated = (
        select(feedback.c.answer_id, func.avg(good).label("good"))
        .where(feedback.c.tenant_id == tenant.value, feedback.c.chunk_id.is_(None))
        .group_by(feedback.c.answer_id)
        .subquery()
    )
    joined = experiment_outcomes.join(rated, rated.c.answer_id == _outcomes.answer_id)
    return (
        select(_outcomes.configuration, *_sum_columns(rated.c.good))
        .select_from(joined)
        .where(_outcomes.tenant_id == tenant.value, _outcomes.experiment_id == experiment_id)
        .group_by(_outcomes.configuration)
    )


def _sum_columns(column: ColumnElement[Any]) -> tuple[ColumnElement[Any], ...]:
    return func.count(column), func.sum(column), func.sum(column * column)


def _sums_from(numbers: Sequence[Any]) -> Sums:
    count, total, squares = numbers
    return Sums(count=int(count), total=float(total or 0.0), squares=float(squares or 0.0))


def stop_experiment(
    connection: Connection, tenant: TenantId, experiment_id: str, *, because: str, key_id: str | None = None
) -> Experiment:
    """End an experiment. A repetition changes nothing. `NotFound` if there is no such experiment."""
    lock_tenant(connection, tenant)
    experiment = read_experiment(connection, tenant, experiment_id)
    if experiment.stopped_at is not None:
        return experiment
    stopped = replace(experiment, stopped_at=utc_now(), stopped_because=because, stopped_by=key_id)
    its = (_experiments.tenant_id == tenant.value, _experiments.id == experiment_id)
    names = ("stopped_at", "stopped_because", "stopped_by")
    connection.execute(update(experiments).where(*its).values({name: getattr(stopped, name) for name in names}))
    _set_running(connection, tenant, None)
    return read_experiment(connection, tenant, experiment_id)


def delete_experiment(connection: Connection, tenant: TenantId, experiment_id: str) -> None:
    """Delete an experiment with its outcomes.

    Raises:
        NotFound: there is no such experiment.
        Conflict: it runs.
    """
    lock_tenant(connection, tenant)
    if read_experiment(connection, tenant, experiment_id).stopped_at is None:
        raise Conflict(f"experiment {experiment_id!r} runs; stop it first")
    of_outcomes = (_outcomes.tenant_id == tenant.value, _outcomes.experiment_id == experiment_id)
    connection.execute(delete(experiment_outcomes).where(*of_outcomes))
    connection.execute(delete(experiments).where(_experiments.tenant_id == tenant.value, _experiments.id == experiment_id))


class ExperimentCatalogue(CataloguePart):
    """Experiments with one outcome for each question. The tenant's column has the one that runs."""

    start_experiment = write(start_experiment)
    experiment = read(read_experiment)
    experiments = read(list_experiments)
    save_outcomes = write(save_outcomes)
    sums = read(read_sums)
    stop_experiment = write(stop_experiment)
    delete = write(delete_experiment)
