"""Usage by day, and the key for which a job works."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_COUNTS = ("requests", "calls", "failed_calls", "prompt_tokens", "completion_tokens", "cost_nanos", "unpriced_calls")


def upgrade() -> None:
    """Add the table and the column."""
    op.create_table(
        "usage",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("key_id", "model", "stage")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _COUNTS),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_usage_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "day", "key_id", "model", "stage", name=op.f("pk_usage")),
    )
    op.add_column("jobs", sa.Column("key_id", sa.String(), nullable=True))


def downgrade() -> None:
    """Drop both. The usage is forgotten."""
    with op.batch_alter_table("jobs") as table:
        table.drop_column("key_id")
    op.drop_table("usage")
