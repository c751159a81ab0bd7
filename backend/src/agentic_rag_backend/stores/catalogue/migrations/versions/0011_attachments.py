"""Attachments of messages as documents of their own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and their indexes. Documents of earlier releases are attached to nothing."""
    op.add_column("documents", sa.Column("parent_id", sa.String(), nullable=True))
    op.add_column("documents", sa.Column("place", sa.String(), nullable=True))
    attached = sa.text("deleted_at IS NULL AND parent_id IS NOT NULL")
    op.create_index(
        "ix_documents_parent",
        "documents",
        ["tenant_id", "parent_id", "place"],
        unique=True,
        sqlite_where=attached,
        postgresql_where=attached,
    )
    op.create_index(
        "ix_documents_parent_created",
        "documents",
        ["tenant_id", "parent_id", "created_at", "id"],
        sqlite_where=attached,
        postgresql_where=attached,
    )


def downgrade() -> None:
    """Drop the indexes and the columns. Attachments become documents that were uploaded by themselves."""
    op.drop_index("ix_documents_parent_created", "documents")
    op.drop_index("ix_documents_parent", "documents")
    with op.batch_alter_table("documents") as table:
        table.drop_column("place")
        table.drop_column("parent_id")
