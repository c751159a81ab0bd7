"""The outbox: changes that other stores still have to apply."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import UtcDateTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "outbox",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("recorded_at", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_outbox_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "topic", "subject", name=op.f("pk_outbox")),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("outbox")
