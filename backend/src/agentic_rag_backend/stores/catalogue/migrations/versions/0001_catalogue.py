"""The tables of the first release: tenants and keys, documents and chunks, jobs, communities."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from agentic_rag_backend.stores.catalogue.columns import Json, PackedJson, UtcDateTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "tenants",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("state_version", sa.Integer(), nullable=False),
        sa.Column("content_version", sa.Integer(), nullable=False),
        sa.Column("content_changed_at", UtcDateTime(timezone=True), nullable=True),
        sa.Column("stale_since", UtcDateTime(timezone=True), nullable=True),
        sa.Column("rebuild_asked_at", UtcDateTime(timezone=True), nullable=True),
        sa.Column("flags", Json(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_tenants")),
        sa.UniqueConstraint("name", name=op.f("uq_tenants_name")),
    )
    op.create_table(
        "api_keys",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("secret_sha256", sa.String(), nullable=False),
        sa.Column("scopes", Json(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_api_keys_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("secret_sha256", name=op.f("uq_api_keys_secret_sha256")),
    )
    op.create_table(
        "community_pointers",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("last_generation", sa.Integer(), nullable=False),
        sa.Column("built_from", sa.Integer(), nullable=False),
        sa.Column("built_at", UtcDateTime(timezone=True), nullable=True),
        sa.Column("details", Json(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_community_pointers_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_community_pointers")),
    )
    op.create_table(
        "community_summaries",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("prompt_version", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("title", Json(), nullable=True),
        sa.Column("names", Json(), nullable=False),
        sa.Column("keywords", Json(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("findings", Json(), nullable=False),
        sa.Column("sources", Json(), nullable=False),
        sa.Column("rating", sa.Float(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("written_at", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_community_summaries_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "fingerprint", "prompt_version", "model", name=op.f("pk_community_summaries")),
    )
    op.create_table(
        "document_changes",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("state_version", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("visible_version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_document_changes_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "state_version", name=op.f("pk_document_changes")),
    )
    op.create_table(
        "documents",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("current_version", sa.Integer(), nullable=False),
        sa.Column("latest_version", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("media_type", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("metadata", Json(), nullable=False),
        sa.Column("failures", Json(), nullable=False),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=True),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("updated_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("deleted_at", UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_documents_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_documents")),
    )
    op.create_index("ix_documents_created", "documents", ["tenant_id", "created_at", "id"], unique=False)
    op.create_index(
        "ix_documents_key",
        "documents",
        ["tenant_id", "key"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_table(
        "jobs",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("arguments", Json(), nullable=False),
        sa.Column("error", Json(), nullable=True),
        sa.Column("result", Json(), nullable=True),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("updated_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("started_at", UtcDateTime(timezone=True), nullable=True),
        sa.Column("finished_at", UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_jobs_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_jobs")),
    )
    op.create_index("ix_jobs_created", "jobs", ["tenant_id", "created_at", "id"], unique=False)
    op.create_index("ix_jobs_document", "jobs", ["tenant_id", "document_id"], unique=False)
    op.create_index("ix_jobs_kind", "jobs", ["tenant_id", "kind", "created_at"], unique=False)
    op.create_table(
        "chunk_texts",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("chunk_id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("size_tokens", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "document_id"], ["documents.tenant_id", "documents.id"], name=op.f("fk_chunk_texts_documents")
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_chunk_texts_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "chunk_id", name=op.f("pk_chunk_texts")),
    )
    op.create_index("ix_chunk_texts_document", "chunk_texts", ["tenant_id", "document_id"], unique=False)
    op.create_table(
        "document_versions",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("submitted_title", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("media_type", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("blob_key", sa.String(), nullable=False),
        sa.Column("options", Json(), nullable=False),
        sa.Column("metadata", Json(), nullable=False),
        sa.Column("submitted_metadata", Json(), nullable=False),
        sa.Column("failures", Json(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "document_id"], ["documents.tenant_id", "documents.id"], name=op.f("fk_document_versions_documents")
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_document_versions_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "document_id", "version", name=op.f("pk_document_versions")),
    )
    op.create_index("ix_document_versions_blob", "document_versions", ["tenant_id", "blob_key"], unique=False)
    op.create_table(
        "chunks",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("chunk_id", sa.String(), nullable=False),
        sa.Column("start_char", sa.Integer(), nullable=False),
        sa.Column("end_char", sa.Integer(), nullable=False),
        sa.Column("start_line", sa.Integer(), nullable=False),
        sa.Column("end_line", sa.Integer(), nullable=False),
        sa.Column("headings", Json(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "chunk_id"], ["chunk_texts.tenant_id", "chunk_texts.chunk_id"], name=op.f("fk_chunks_chunk_texts")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "document_id", "version"],
            ["document_versions.tenant_id", "document_versions.document_id", "document_versions.version"],
            name=op.f("fk_chunks_document_versions"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_chunks_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "document_id", "version", "ordinal", name=op.f("pk_chunks")),
        sa.UniqueConstraint("tenant_id", "chunk_id", "version", name=op.f("uq_chunks_tenant_id_chunk_id_version")),
    )
    op.create_table(
        "prepared_chunks",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("recipe", sa.String(), nullable=True),
        sa.Column("reused", sa.Boolean(), nullable=False),
        sa.Column("failure", Json(), nullable=True),
        sa.Column("extraction", PackedJson(), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "document_id", "version", "ordinal"],
            ["chunks.tenant_id", "chunks.document_id", "chunks.version", "chunks.ordinal"],
            name=op.f("fk_prepared_chunks_chunks"),
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_prepared_chunks_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "document_id", "version", "ordinal", name=op.f("pk_prepared_chunks")),
    )
    op.create_table(
        "raptor_pointers",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("last_generation", sa.Integer(), nullable=False),
        sa.Column("built_from", sa.Integer(), nullable=False),
        sa.Column("built_at", UtcDateTime(timezone=True), nullable=True),
        sa.Column("details", Json(), nullable=False),
        sa.Column("asked_at", UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_raptor_pointers_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_raptor_pointers")),
    )
    op.create_table(
        "raptor_nodes",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("prompt_version", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("point_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_raptor_nodes_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "generation", "id", name=op.f("pk_raptor_nodes")),
    )
    op.create_index("ix_raptor_nodes_point", "raptor_nodes", ["tenant_id", "point_id"], unique=False)
    op.create_table(
        "raptor_links",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("node_id", sa.String(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("child_id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_raptor_links_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "generation", "node_id", "ordinal", name=op.f("pk_raptor_links")),
    )
    op.create_index("ix_raptor_links_child", "raptor_links", ["tenant_id", "child_id"], unique=False)
    op.create_index("ix_raptor_links_document", "raptor_links", ["tenant_id", "document_id"], unique=False)
    op.create_table(
        "raptor_summaries",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("prompt_version", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("title", Json(), nullable=True),
        sa.Column("names", Json(), nullable=False),
        sa.Column("keywords", Json(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("findings", Json(), nullable=False),
        sa.Column("sources", Json(), nullable=False),
        sa.Column("rating", sa.Float(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("written_at", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_raptor_summaries_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "fingerprint", "prompt_version", "model", name=op.f("pk_raptor_summaries")),
    )
    op.create_table(
        "workers",
        sa.Column("executor_id", sa.String(), nullable=False),
        sa.Column("beats", sa.Integer(), nullable=False),
        sa.Column("workflows", Json(), nullable=False),
        sa.Column("joined_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("beaten_at", UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("executor_id", name=op.f("pk_workers")),
    )
    op.create_table(
        "leases",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=True),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("wanted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "name", name=op.f("pk_leases")),
    )
    op.create_table(
        "places",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("place_id", sa.String(), nullable=False),
        sa.Column("described", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_places")),
    )
    op.create_table(
        "workflow_runs",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("workflow_id", sa.String(), nullable=False),
        sa.Column("executor_id", sa.String(), nullable=True),
        sa.Column("kills", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "workflow_id", name=op.f("pk_workflow_runs")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant_id", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("claim", sa.String(), nullable=True),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("expires_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("headers", Json(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "digest", name=op.f("pk_idempotency_keys")),
    )
    op.create_index("ix_idempotency_keys_created", "idempotency_keys", ["tenant_id", "created_at", "digest"], unique=False)


def downgrade() -> None:
    """Drop the tables."""
    op.drop_index("ix_idempotency_keys_created", table_name="idempotency_keys")
    op.drop_table("idempotency_keys")
    op.drop_table("workflow_runs")
    op.drop_table("places")
    op.drop_table("leases")
    op.drop_table("workers")
    op.drop_table("raptor_summaries")
    op.drop_table("raptor_links")
    op.drop_table("raptor_nodes")
    op.drop_table("raptor_pointers")
    op.drop_table("prepared_chunks")
    op.drop_table("chunks")
    op.drop_index("ix_document_versions_blob", table_name="document_versions")
    op.drop_table("document_versions")
    op.drop_table("chunk_texts")
    op.drop_table("jobs")
    op.drop_table("documents")
    op.drop_table("document_changes")
    op.drop_table("community_summaries")
    op.drop_table("community_pointers")
    op.drop_table("api_keys")
    op.drop_table("tenants")
