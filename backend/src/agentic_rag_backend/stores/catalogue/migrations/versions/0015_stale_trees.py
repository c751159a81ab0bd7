"""The time since when a tenant's tree has been stale."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import UtcDateTime

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. The next change of documents sets it for a tree that is already stale."""
    op.add_column("tenants", sa.Column("tree_stale_since", UtcDateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    with op.batch_alter_table("tenants") as table:
        table.drop_column("tree_stale_since")
