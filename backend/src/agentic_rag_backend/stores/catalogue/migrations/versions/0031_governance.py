"""Prefix, expiry, last use and successor of keys, and labels of tenants."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json, UtcDateTime

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_TEXTS, _TIMES = ("prefix", "replaced_by"), ("expires_at", "last_used_at")


def upgrade() -> None:
    """Add the columns. Existing keys have no prefix, because their secrets are not stored, and do not expire."""
    for name in _TEXTS:
        op.add_column("api_keys", sa.Column(name, sa.String(), nullable=True))
    for name in _TIMES:
        op.add_column("api_keys", sa.Column(name, UtcDateTime(timezone=True), nullable=True))
    op.add_column("tenants", sa.Column("labels", Json(), nullable=True))


def downgrade() -> None:
    """Drop them. Keys with an expiry are revoked, because an earlier release would accept them for ever."""
    keys_table = sa.table("api_keys", sa.column("revoked_at"), sa.column("expires_at"))
    limited = (keys_table.c.expires_at.is_not(None), keys_table.c.revoked_at.is_(None))
    op.execute(sa.update(keys_table).where(*limited).values(revoked_at=keys_table.c.expires_at))
    with op.batch_alter_table("api_keys") as keys:
        for name in (*_TEXTS, *_TIMES):
            keys.drop_column(name)
    with op.batch_alter_table("tenants") as tenants:
        tenants.drop_column("labels")
