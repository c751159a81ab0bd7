"""The ontology of a tenant."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Tenants of earlier releases use the default."""
    op.add_column("tenants", sa.Column("ontology", Json()))


def downgrade() -> None:
    """Drop the column."""
    with op.batch_alter_table("tenants") as table:
        table.drop_column("ontology")
