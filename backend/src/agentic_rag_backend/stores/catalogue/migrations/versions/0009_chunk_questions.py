"""Synthetic questions of chunks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, and the record of how a chunk's questions were made. Chunks of earlier releases have no questions."""
    op.add_column("prepared_chunks", sa.Column("question_recipe", sa.String(), nullable=True))
    op.add_column("prepared_chunks", sa.Column("question_failure", Json(), nullable=True))
    op.create_table(
        "chunk_questions",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("question_id", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "document_id", "version", "ordinal"],
            [
                "prepared_chunks.tenant_id",
                "prepared_chunks.document_id",
                "prepared_chunks.version",
                "prepared_chunks.ordinal",
            ],
            name=op.f("fk_chunk_questions_prepared_chunks"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_chunk_questions_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "document_id", "version", "ordinal", "number", name=op.f("pk_chunk_questions")),
    )
    op.create_index("ix_chunk_questions_question", "chunk_questions", ["tenant_id", "question_id"])


def downgrade() -> None:
    """Drop the table and the columns."""
    op.drop_table("chunk_questions")
    with op.batch_alter_table("prepared_chunks") as table:
        table.drop_column("question_failure")
        table.drop_column("question_recipe")
