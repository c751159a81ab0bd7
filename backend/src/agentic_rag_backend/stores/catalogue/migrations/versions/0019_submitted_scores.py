"""Scores of answers that callers measured elsewhere."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "submitted_scores",
        *(sa.Column(name, sa.String(), nullable=False) for name in ("tenant_id", "id", "metric")),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("strategy", sa.String(), nullable=False),
        sa.Column("configuration", sa.String(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("computed", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_submitted_scores_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "id", "metric", name=op.f("pk_submitted_scores")),
    )
    op.create_index("ix_submitted_scores_group", "submitted_scores", ["tenant_id", "day", "strategy", "configuration"])


def downgrade() -> None:
    """Drop the table. The scores are forgotten."""
    op.drop_table("submitted_scores")
