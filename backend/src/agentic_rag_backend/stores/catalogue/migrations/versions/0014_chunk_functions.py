"""The functions and classes of source code that a chunk defines."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Chunks of earlier releases have none."""
    op.add_column("chunks", sa.Column("functions", Json(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Drop the column."""
    with op.batch_alter_table("chunks") as table:
        table.drop_column("functions")
