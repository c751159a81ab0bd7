"""The deployment's id, and the removed tenants."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import UtcDateTime

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables. The next start creates the id."""
    op.create_table(
        "deployments",
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("deployment_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("slot", name=op.f("pk_deployments")),
    )
    op.create_table(
        "removed_tenants",
        sa.Column("removed_id", sa.String(), nullable=False),
        sa.Column("removed_at", UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("removed_id", name=op.f("pk_removed_tenants")),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("removed_tenants")
    op.drop_table("deployments")
