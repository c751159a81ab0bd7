"""Alembic's entry point: migrates the given connection. The caller ends the transaction."""

from __future__ import annotations

from alembic import context

from agentic_rag_backend.stores.catalogue.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
