"""Quotas of tenants and keys, counters of requests, and chunks that versions reserve."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

_COLUMNS = {"tenants": ("quota", Json()), "api_keys": ("quota", Json()), "document_versions": ("reserved_chunks", sa.Integer())}


def upgrade() -> None:
    """Add the columns and the table. No tenant has a quota until an operator sets one."""
    for table, (name, kind) in _COLUMNS.items():
        op.add_column(table, sa.Column(name, kind, nullable=True))
    op.create_table(
        "quota_counters",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("minute", sa.BigInteger(), nullable=False),
        sa.Column("taken", sa.BigInteger(), nullable=False),
        sa.Column("granted", sa.BigInteger(), nullable=False),
        sa.Column("places", Json(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_quota_counters_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "key_id", name=op.f("pk_quota_counters")),
    )


def downgrade() -> None:
    """Drop them. An earlier release limits nothing."""
    op.drop_table("quota_counters")
    for table, (name, _) in _COLUMNS.items():
        with op.batch_alter_table(table) as altered:
            altered.drop_column(name)
