"""The parent around a chunk, which is read when the chunk is found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. Chunks of earlier releases have no parent."""
    op.add_column("chunks", sa.Column("parent_start", sa.Integer()))
    op.add_column("chunks", sa.Column("parent_end", sa.Integer()))


def downgrade() -> None:
    """Drop the columns."""
    with op.batch_alter_table("chunks") as table:
        table.drop_column("parent_end")
        table.drop_column("parent_start")
