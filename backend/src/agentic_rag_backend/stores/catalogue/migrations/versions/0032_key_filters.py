"""Filters of keys."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json, UtcDateTime, utc_now

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Existing keys read all documents."""
    op.add_column("api_keys", sa.Column("filter", Json(), nullable=True))


def downgrade() -> None:
    """Drop it. Keys with a filter are revoked, because an earlier release would let them read all documents."""
    keys_table = sa.table("api_keys", sa.column("revoked_at", UtcDateTime()), sa.column("filter"))
    filtered = (keys_table.c.filter.is_not(None), keys_table.c.revoked_at.is_(None))
    op.execute(sa.update(keys_table).where(*filtered).values(revoked_at=utc_now()))
    op.execute(sa.text("DELETE FROM document_changes WHERE visible_version < 0"))
    with op.batch_alter_table("api_keys") as keys:
        keys.drop_column("filter")
