"""Questions of answers, of tenants that allow to keep them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, and an index of the rows that have a question."""
    op.add_column("answers", sa.Column("question", sa.Text(), nullable=True))
    kept = sa.text("question IS NOT NULL")
    op.create_index("ix_answers_question", "answers", ["tenant_id", "created_at"], sqlite_where=kept, postgresql_where=kept)


def downgrade() -> None:
    """Drop both. The questions are forgotten."""
    op.drop_index("ix_answers_question", "answers")
    with op.batch_alter_table("answers") as altered:
        altered.drop_column("question")
