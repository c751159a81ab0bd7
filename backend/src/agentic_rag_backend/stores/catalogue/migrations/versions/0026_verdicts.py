"""Verdicts of a judge on pairs of answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "evaluation_verdicts",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("case_id", sa.String(), nullable=False),
        sa.Column("configuration", sa.String(), nullable=False),
        sa.Column("content", Json(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_evaluation_verdicts_tenants")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "run_id"],
            ["evaluation_runs.tenant_id", "evaluation_runs.id"],
            name=op.f("fk_evaluation_verdicts_evaluation_runs"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "run_id", "case_id", "configuration", name=op.f("pk_evaluation_verdicts")),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("evaluation_verdicts")
