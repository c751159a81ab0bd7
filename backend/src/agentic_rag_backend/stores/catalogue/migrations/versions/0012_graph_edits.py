"""Edits of the graph."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json, UtcDateTime

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "graph_edits",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("draft", Json(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("undone_at", UtcDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_graph_edits_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "number", name=op.f("pk_graph_edits")),
    )


def downgrade() -> None:
    """Drop the table. Entities stay as they were edited until their documents are processed again."""
    op.drop_table("graph_edits")
