"""Experiments with two configurations, and the outcomes of their questions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json, UtcDateTime

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables, and the column for the experiment that runs."""
    op.add_column("tenants", sa.Column("experiment", Json()))
    op.create_table(
        "experiments",
        *(sa.Column(name, sa.String(), nullable=False) for name in ("tenant_id", "id")),
        sa.Column("content", Json(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("stopped_at", UtcDateTime(), nullable=True),
        sa.Column("stopped_because", sa.String(), nullable=True),
        sa.Column("stopped_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_experiments_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_experiments")),
    )
    op.create_index("ix_experiments_created", "experiments", ["tenant_id", "created_at", "id"])
    op.create_table(
        "experiment_outcomes",
        *(sa.Column(name, sa.String(), nullable=False) for name in ("tenant_id", "experiment_id", "unit", "configuration")),
        *(sa.Column(name, sa.Float(), nullable=False) for name in ("log_latency", "log_tokens")),
        sa.Column("refused", sa.Float(), nullable=True),
        sa.Column("answer_id", sa.String(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_experiment_outcomes_tenants")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "experiment_id"],
            ["experiments.tenant_id", "experiments.id"],
            name=op.f("fk_experiment_outcomes_experiments"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "experiment_id", "unit", name=op.f("pk_experiment_outcomes")),
    )


def downgrade() -> None:
    """Drop tables and column. Experiments end."""
    for table in ("experiment_outcomes", "experiments"):
        op.drop_table(table)
    with op.batch_alter_table("tenants") as tenants:
        tenants.drop_column("experiment")
