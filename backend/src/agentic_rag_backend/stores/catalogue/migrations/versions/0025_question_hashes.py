"""Hashes of the questions of answers, feedback and cases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.domain.asked_questions import hash_question
from agentic_rag_backend.stores.catalogue.columns import Json

revision = "0025"
down_revision = "0021"
branch_labels = None
depends_on = None

_BATCH = 500


def upgrade() -> None:
    """Add the columns, and compute the hashes of cases. Questions of earlier answers are not known."""
    for table in ("answers", "feedback"):
        op.add_column(table, sa.Column("question_hash", sa.String(), nullable=True))
    op.create_index("ix_feedback_question", "feedback", ["tenant_id", "question_hash"])
    op.add_column("evaluation_cases", sa.Column("question_hash", sa.String(), nullable=False, server_default=""))
    _hash_cases(op.get_bind())


def _hash_cases(connection: sa.Connection) -> None:
    names = ("tenant_id", "id", "question_hash")
    cases = sa.table("evaluation_cases", *(sa.column(name, sa.String()) for name in names), sa.column("content", Json()))
    of_case = (cases.c.tenant_id == sa.bindparam("tenant"), cases.c.id == sa.bindparam("case"))
    hashed = sa.update(cases).where(*of_case).values(question_hash=sa.bindparam("hash"))
    while rows := connection.execute(sa.select(cases).where(cases.c.question_hash == "").limit(_BATCH)).mappings().all():
        values = [
            {"tenant": row["tenant_id"], "case": row["id"], "hash": hash_question(row["content"]["question"])} for row in rows
        ]
        connection.execute(hashed, values)


def downgrade() -> None:
    """Drop the columns."""
    op.drop_index("ix_feedback_question", "feedback")
    for table in ("answers", "feedback", "evaluation_cases"):
        with op.batch_alter_table(table) as altered:
            altered.drop_column("question_hash")
