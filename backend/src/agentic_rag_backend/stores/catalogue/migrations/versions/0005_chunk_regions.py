"""The places of a chunk in the file from which its text was made: pages, boxes, sheets and cells."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Chunks of earlier releases have no regions."""
    op.add_column("chunks", sa.Column("regions", Json(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Drop the column."""
    with op.batch_alter_table("chunks") as table:
        table.drop_column("regions")
