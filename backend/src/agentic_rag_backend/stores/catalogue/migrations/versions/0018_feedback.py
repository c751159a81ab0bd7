"""Answers that can get feedback, and the feedback."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json, UtcDateTime

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def _tenant_key(table: str) -> tuple[sa.Column[str], sa.ForeignKeyConstraint]:
    key = sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f(f"fk_{table}_tenants"))
    return sa.Column("tenant_id", sa.String(), nullable=False), key


def _answer_columns() -> tuple[sa.Column[object], ...]:
    return (
        sa.Column("strategy", sa.String(), nullable=False),
        sa.Column("generator", sa.String(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("grounded", sa.Boolean(), nullable=False),
    )


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "answers",
        *_tenant_key("answers"),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        *_answer_columns(),
        sa.Column("citations", Json(), nullable=False),
        sa.Column("documents", Json(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_answers")),
    )
    op.create_index("ix_answers_created", "answers", ["tenant_id", "created_at", "id"])
    op.create_table(
        "feedback",
        *_tenant_key("feedback"),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("answer_id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("citation", sa.Integer(), nullable=True),
        sa.Column("result", sa.String(), nullable=True),
        sa.Column("chunk_id", sa.String(), nullable=True),
        *_answer_columns(),
        sa.Column("rating", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("correction", sa.Text(), nullable=True),
        sa.Column("texts_removed", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("updated_at", UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_feedback")),
    )
    op.create_index("ix_feedback_created", "feedback", ["tenant_id", "created_at", "id"])
    op.create_index("ix_feedback_answer", "feedback", ["tenant_id", "answer_id"])
    op.create_table(
        "feedback_documents",
        *_tenant_key("feedback_documents"),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("feedback_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "feedback_id"],
            ["feedback.tenant_id", "feedback.id"],
            name=op.f("fk_feedback_documents_feedback"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "document_id", "feedback_id", name=op.f("pk_feedback_documents")),
    )


def downgrade() -> None:
    """Drop the tables. The feedback is forgotten."""
    for table in ("feedback_documents", "feedback", "answers"):
        op.drop_table(table)
