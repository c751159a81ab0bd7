"""Conversion of rows of `tenants` to domain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import RowMapping

from agentic_rag_backend.domain.experiments import ActiveExperiment, ExperimentMetric, StoppingRule
from agentic_rag_backend.domain.quota import read_values
from agentic_rag_backend.domain.tenant import Tenant, TenantId, TenantState
from agentic_rag_backend.domain.tuning import NOT_TUNED, TunedValues


def tenant_from(row: RowMapping) -> Tenant:
    """Return a row of `tenants` as a value."""
    return Tenant(
        TenantId(row["tenant_id"]),
        row["name"],
        TenantState(row["state"]),
        row["state_version"],
        row["created_at"],
        NOT_TUNED if row["tuned"] is None else TunedValues.read(row["tuned"]),
        None if row["experiment"] is None else experiment_from(row["experiment"]),
        row["labels"] or {},
        read_values(row["quota"]),
    )


def experiment_from(value: Mapping[str, Any]) -> ActiveExperiment:
    """Return the running experiment that a column has."""
    rule = value["rule"]
    return ActiveExperiment(
        **{**value, "configurations": tuple(value["configurations"])}
        | {"rule": StoppingRule(**{**rule, "metric": ExperimentMetric(rule["metric"])})}
    )
