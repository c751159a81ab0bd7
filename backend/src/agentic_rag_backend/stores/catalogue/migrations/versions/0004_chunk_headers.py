"""The header of the table or list within which a chunk begins."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Chunks of earlier releases have no header."""
    op.add_column("chunks", sa.Column("header", sa.String(), nullable=False, server_default=""))


def downgrade() -> None:
    """Drop the column."""
    with op.batch_alter_table("chunks") as table:
        table.drop_column("header")
