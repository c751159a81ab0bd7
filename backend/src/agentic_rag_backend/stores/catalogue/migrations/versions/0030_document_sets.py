"""Sets of documents, and their members."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json, UtcDateTime

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "document_sets",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("labels", Json(), nullable=False),
        sa.Column("filter", Json(), nullable=True),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_document_sets_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_document_sets")),
    )
    op.create_index("ix_document_sets_created", "document_sets", ["tenant_id", "created_at", "id"])
    op.create_table(
        "document_set_members",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("set_id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("batch_id", sa.String(), nullable=True),
        sa.Column("added_at", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_document_set_members_tenants")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "set_id"],
            ["document_sets.tenant_id", "document_sets.id"],
            name=op.f("fk_document_set_members_document_sets"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "set_id", "document_id", name=op.f("pk_document_set_members")),
    )
    op.create_index("ix_document_set_members_document", "document_set_members", ["tenant_id", "document_id"])


def downgrade() -> None:
    """Drop the tables. The sets are forgotten, and their documents stay."""
    for table in ("document_set_members", "document_sets"):
        op.drop_table(table)
