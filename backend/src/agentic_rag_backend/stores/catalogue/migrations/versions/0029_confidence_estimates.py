"""The confidence of an answer before the tenant's tuned scale."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. No confidence of earlier releases was converted."""
    for table in ("answers", "feedback"):
        op.add_column(table, sa.Column("estimate", sa.Float(), nullable=True))


def downgrade() -> None:
    """Drop them. Confidences that were converted stay so."""
    for table in ("answers", "feedback"):
        with op.batch_alter_table(table) as altered:
            altered.drop_column("estimate")
