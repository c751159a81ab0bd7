"""The statements by which a chunk is found, in place of its own text."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Chunks of earlier releases are found by their text."""
    op.add_column("chunks", sa.Column("statements", Json(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Drop the column."""
    with op.batch_alter_table("chunks") as table:
        table.drop_column("statements")
