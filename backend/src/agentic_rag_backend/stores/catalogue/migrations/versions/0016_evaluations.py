"""Datasets of questions, evaluation runs, and their outcomes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json, PackedJson, UtcDateTime

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    _create_datasets()
    _create_runs()


def _create_datasets() -> None:
    op.create_table(
        "evaluation_datasets",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_evaluation_datasets_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_evaluation_datasets")),
    )
    op.create_index("ix_evaluation_datasets_created", "evaluation_datasets", ["tenant_id", "created_at", "id"])
    op.create_table(
        "evaluation_cases",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("added_in", sa.Integer(), nullable=False),
        sa.Column("removed_in", sa.Integer(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("content", Json(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_evaluation_cases_tenants")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "dataset_id"],
            ["evaluation_datasets.tenant_id", "evaluation_datasets.id"],
            name=op.f("fk_evaluation_cases_evaluation_datasets"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "dataset_id", "number", name=op.f("pk_evaluation_cases")),
        sa.UniqueConstraint("tenant_id", "id", name=op.f("uq_evaluation_cases_tenant_id_id")),
    )
    op.create_table(
        "evaluation_case_documents",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_evaluation_case_documents_tenants")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "dataset_id", "number"],
            ["evaluation_cases.tenant_id", "evaluation_cases.dataset_id", "evaluation_cases.number"],
            name=op.f("fk_evaluation_case_documents_evaluation_cases"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "document_id", "dataset_id", "number", name=op.f("pk_evaluation_case_documents")),
    )
    op.create_index("ix_evaluation_case_documents_case", "evaluation_case_documents", ["tenant_id", "dataset_id", "number"])


def _create_runs() -> None:
    op.create_table(
        "evaluation_runs",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("dataset_id", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("plan", Json(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("result", PackedJson(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_evaluation_runs_tenants")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "dataset_id"],
            ["evaluation_datasets.tenant_id", "evaluation_datasets.id"],
            name=op.f("fk_evaluation_runs_evaluation_datasets"),
        ),
        sa.ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"], name=op.f("fk_evaluation_runs_jobs")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_evaluation_runs")),
    )
    op.create_index("ix_evaluation_runs_created", "evaluation_runs", ["tenant_id", "created_at", "id"])
    op.create_index("ix_evaluation_runs_dataset", "evaluation_runs", ["tenant_id", "dataset_id"])
    op.create_table(
        "evaluation_outcomes",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("case_id", sa.String(), nullable=False),
        sa.Column("configuration", sa.String(), nullable=False),
        sa.Column("content", Json(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_evaluation_outcomes_tenants")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "run_id"],
            ["evaluation_runs.tenant_id", "evaluation_runs.id"],
            name=op.f("fk_evaluation_outcomes_evaluation_runs"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "run_id", "case_id", "configuration", name=op.f("pk_evaluation_outcomes")),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in (
        "evaluation_outcomes",
        "evaluation_runs",
        "evaluation_case_documents",
        "evaluation_cases",
        "evaluation_datasets",
    ):
        op.drop_table(table)
