"""Search sessions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json, UtcDateTime

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "search_sessions",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("facts", Json(), nullable=False),
        sa.Column("constraints", Json(), nullable=False),
        sa.Column("used_at", UtcDateTime(), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_search_sessions_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "digest", name=op.f("pk_search_sessions")),
    )
    op.create_index("ix_search_sessions_used", "search_sessions", ["tenant_id", "used_at", "digest"])


def downgrade() -> None:
    """Drop the table. Open sessions are forgotten."""
    op.drop_table("search_sessions")
