"""Proposals of tuning, the tuned values of tenants, and questions of feedback."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json, PackedJson, UtcDateTime

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add tables and columns. Nothing is tuned for tenants of earlier releases, and their feedback has no questions."""
    op.add_column("tenants", sa.Column("tuned", Json()))
    op.add_column("feedback", sa.Column("question", sa.Text()))
    op.create_table(
        "tuning_proposals",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("plan", Json(), nullable=False),
        sa.Column("base", Json(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("content_version", sa.Integer(), nullable=False),
        sa.Column("proposed", Json(), nullable=True),
        sa.Column("result", PackedJson(), nullable=True),
        sa.Column("previous", Json(), nullable=True),
        sa.Column("accepted_at", UtcDateTime(), nullable=True),
        sa.Column("accepted_by", sa.String(), nullable=True),
        sa.Column("rolled_back_at", UtcDateTime(), nullable=True),
        sa.Column("rolled_back_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_tuning_proposals_tenants")),
        sa.ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"], name=op.f("fk_tuning_proposals_jobs")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_tuning_proposals")),
    )
    op.create_index("ix_tuning_proposals_created", "tuning_proposals", ["tenant_id", "created_at", "id"])
    op.create_table(
        "tuning_scores",
        *(sa.Column(name, sa.String(), nullable=False) for name in ("tenant_id", "proposal_id", "case_id", "parameter")),
        sa.Column("scores", Json(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_tuning_scores_tenants")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "proposal_id"],
            ["tuning_proposals.tenant_id", "tuning_proposals.id"],
            name=op.f("fk_tuning_scores_tuning_proposals"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "proposal_id", "case_id", "parameter", name=op.f("pk_tuning_scores")),
    )


def downgrade() -> None:
    """Drop tables and columns. Tuned values are forgotten."""
    for table in ("tuning_scores", "tuning_proposals"):
        op.drop_table(table)
    with op.batch_alter_table("feedback") as feedback:
        feedback.drop_column("question")
    with op.batch_alter_table("tenants") as tenants:
        tenants.drop_column("tuned")
