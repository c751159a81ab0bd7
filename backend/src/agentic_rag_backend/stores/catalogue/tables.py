"""The catalogue's tables. Each one's primary key starts with ``tenant_id``, and foreign keys stay within the tenant; only
`workers`, `places`, `deployments`, `removed_tenants`, and what of `leases` has no tenant, is nobody's.

The migrations are the schema's record; a test compares them with this module.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from agentic_rag_backend.stores.catalogue.columns import Json, PackedJson, UtcDateTime

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def _tenant() -> Column[str]:
    return Column("tenant_id", String, ForeignKey("tenants.tenant_id"), primary_key=True)


def _pointer_columns() -> tuple[Column[Any], ...]:
    """Return the columns of a tenant's pointer to the current generation; `stores.catalogue.generations` uses them."""
    return (
        _tenant(),
        Column("generation", Integer, nullable=False),
        Column("last_generation", Integer, nullable=False),
        Column("built_from", Integer, nullable=False),
        Column("built_at", UtcDateTime),
        Column("details", Json, nullable=False),
    )


def _summary_columns() -> tuple[Column[Any], ...]:
    """Return the columns of summaries; `stores.catalogue.generations` uses them."""
    return (
        _tenant(),
        Column("fingerprint", String, primary_key=True),
        Column("prompt_version", String, primary_key=True),
        Column("model", String, primary_key=True),
        # Labels with the passages that say them; the name is the title, if a model gave one, or made of the names.
        Column("title", Json),
        Column("names", Json, nullable=False),
        Column("keywords", Json, nullable=False),
        Column("summary", Text, nullable=False),
        Column("findings", Json, nullable=False),
        Column("sources", Json, nullable=False),
        Column("rating", Float, nullable=False),
        Column("tokens", Integer, nullable=False),
        Column("written_at", UtcDateTime, nullable=False),
    )


tenants = Table(
    "tenants",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("state", String, nullable=False),
    Column("state_version", Integer, nullable=False),
    # The state_version that the last change of documents was given: what makes communities stale, unlike flags.
    Column("content_version", Integer, nullable=False),
    # When documents last changed, since when communities are stale, and when their rebuild was last asked for by itself.
    Column("content_changed_at", UtcDateTime),
    Column("stale_since", UtcDateTime),
    Column("rebuild_asked_at", UtcDateTime),
    Column("flags", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

api_keys = Table(
    "api_keys",
    metadata,
    _tenant(),
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("secret_sha256", String, nullable=False, unique=True),
    Column("scopes", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("revoked_at", UtcDateTime),
)

# The visible face of a document; what is not visible yet is in its versions.
documents = Table(
    "documents",
    metadata,
    _tenant(),
    Column("id", String, primary_key=True),
    Column("key", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("state", String, nullable=False),
    Column("current_version", Integer, nullable=False),
    Column("latest_version", Integer, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("media_type", String, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("failures", Json, nullable=False),
    Column("chunk_count", Integer, nullable=False),
    Column("job_id", String),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("deleted_at", UtcDateTime),
)
# A tombstoned document keeps its key until it is purged, and must not be in the way of a new upload under it.
Index(
    "ix_documents_key",
    documents.c.tenant_id,
    documents.c.key,
    unique=True,
    sqlite_where=text("deleted_at IS NULL"),
    postgresql_where=text("deleted_at IS NULL"),
)
Index("ix_documents_created", documents.c.tenant_id, documents.c.created_at, documents.c.id)

# Which version of a document became visible at which state_version (0: none any more): what keeps caches current at the
# cost of what changed. It outlives the document, and is cut behind the last 10,000.
document_changes = Table(
    "document_changes",
    metadata,
    _tenant(),
    Column("state_version", Integer, primary_key=True),
    Column("document_id", String, nullable=False),
    Column("visible_version", Integer, nullable=False),
)

document_versions = Table(
    "document_versions",
    metadata,
    _tenant(),
    Column("document_id", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("state", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("submitted_title", Text, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("media_type", String, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("blob_key", String, nullable=False),
    Column("options", Json, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("submitted_metadata", Json, nullable=False),
    Column("failures", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("text", Text),  # last: it may be megabytes, and most reads stop before it
    ForeignKeyConstraint(["tenant_id", "document_id"], ["documents.tenant_id", "documents.id"]),
)
Index("ix_document_versions_blob", document_versions.c.tenant_id, document_versions.c.blob_key)

chunk_texts = Table(
    "chunk_texts",
    metadata,
    _tenant(),
    Column("chunk_id", String, primary_key=True),
    Column("document_id", String, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("size_tokens", Integer, nullable=False),
    Column("text", Text, nullable=False),
    ForeignKeyConstraint(["tenant_id", "document_id"], ["documents.tenant_id", "documents.id"]),
)
Index("ix_chunk_texts_document", chunk_texts.c.tenant_id, chunk_texts.c.document_id)

# Where a chunk stands in one version; an edit above it moves it without changing its text or id.
chunks = Table(
    "chunks",
    metadata,
    _tenant(),
    Column("document_id", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("chunk_id", String, nullable=False),
    Column("start_char", Integer, nullable=False),
    Column("end_char", Integer, nullable=False),
    Column("start_line", Integer, nullable=False),
    Column("end_line", Integer, nullable=False),
    Column("headings", Json, nullable=False),
    UniqueConstraint("tenant_id", "chunk_id", "version"),
    ForeignKeyConstraint(
        ["tenant_id", "document_id", "version"],
        ["document_versions.tenant_id", "document_versions.document_id", "document_versions.version"],
    ),
    ForeignKeyConstraint(["tenant_id", "chunk_id"], ["chunk_texts.tenant_id", "chunk_texts.chunk_id"]),
)

# What was computed at a price, kept while its version is the visible one or newer, so that nothing is paid twice.
prepared_chunks = Table(
    "prepared_chunks",
    metadata,
    _tenant(),
    Column("document_id", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    # What it was computed from and with (SHA-256, hex); null where something failed, which is never reused.
    Column("recipe", String),
    Column("reused", Boolean, nullable=False),
    Column("failure", Json),
    Column("extraction", PackedJson, nullable=False),
    Column("vector", LargeBinary),  # null: the embedder refused the chunk
    ForeignKeyConstraint(
        ["tenant_id", "document_id", "version", "ordinal"],
        ["chunks.tenant_id", "chunks.document_id", "chunks.version", "chunks.ordinal"],
    ),
)

jobs = Table(
    "jobs",
    metadata,
    _tenant(),
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("state", String, nullable=False),
    # No foreign key: a delete job is the receipt of a document that is gone.
    Column("document_id", String),
    Column("version", Integer),
    Column("stage", String, nullable=False),
    Column("done", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("message", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("arguments", Json, nullable=False),
    Column("error", Json),
    Column("result", Json),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
)
Index("ix_jobs_created", jobs.c.tenant_id, jobs.c.created_at, jobs.c.id)
Index("ix_jobs_kind", jobs.c.tenant_id, jobs.c.kind, jobs.c.created_at)
Index("ix_jobs_document", jobs.c.tenant_id, jobs.c.document_id)

community_pointers = Table(
    "community_pointers",
    metadata,
    *_pointer_columns(),
)

community_summaries = Table("community_summaries", metadata, *_summary_columns())

# The tree over a tenant's passages: generations beside one another, of which the pointer names one.
raptor_pointers = Table(
    "raptor_pointers",
    metadata,
    *_pointer_columns(),
    # When it was last asked by itself to take in what changed.
    Column("asked_at", UtcDateTime),
)

raptor_nodes = Table(
    "raptor_nodes",
    metadata,
    _tenant(),
    Column("generation", Integer, primary_key=True),
    Column("id", String, primary_key=True),
    Column("level", Integer, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("size", Integer, nullable=False),
    # Which of the summaries of the fingerprint is the node's.
    Column("prompt_version", String, nullable=False),
    Column("model", String, nullable=False),
    # Its vector's id; another one as soon as children or summary are.
    Column("point_id", String, nullable=False),
)
Index("ix_raptor_nodes_point", raptor_nodes.c.tenant_id, raptor_nodes.c.point_id)

# A node's children: passages at level 1, with their documents, and nodes above.
raptor_links = Table(
    "raptor_links",
    metadata,
    _tenant(),
    Column("generation", Integer, primary_key=True),
    Column("node_id", String, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("child_id", String, nullable=False),
    Column("document_id", String),
)
Index("ix_raptor_links_child", raptor_links.c.tenant_id, raptor_links.c.child_id)
Index("ix_raptor_links_document", raptor_links.c.tenant_id, raptor_links.c.document_id)

raptor_summaries = Table("raptor_summaries", metadata, *_summary_columns())

# Processes that work on jobs, where there may be several; silence is what another process observes of `beats`.
workers = Table(
    "workers",
    metadata,
    Column("executor_id", String, primary_key=True),
    Column("beats", Integer, nullable=False),
    Column("workflows", Json, nullable=False),
    Column("joined_at", UtcDateTime, nullable=False),
    Column("beaten_at", UtcDateTime, nullable=False),  # by the database's clock
)

# What one worker does at a time: a tenant's commits, its rebuilds; under no tenant, what is done once for all of them.
leases = Table(
    "leases",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("holder", String),  # an executor; null, or no worker any more: it is free
    Column("fence", Integer, nullable=False),  # grows with every holding
    Column("wanted", Boolean, nullable=False),  # another worker has asked for it since it was taken
)

# What other stores still have to follow; see `stores.catalogue.ports.outbox`.
outbox = Table(
    "outbox",
    metadata,
    _tenant(),
    Column("topic", String, primary_key=True),
    Column("subject", String, primary_key=True),
    Column("token", String, nullable=False),  # another one each time that it is recorded
    Column("recorded_at", UtcDateTime, nullable=False),
)

# Where what belongs to this catalogue lies outside of databases: one folder each, by the setting that says so.
places = Table(
    "places",
    metadata,
    Column("name", String, primary_key=True),
    Column("place_id", String, nullable=False),  # as it is written in the folder
    Column("described", String, nullable=False),  # to people: host and path
)

# This deployment: one row, in slot 1. What it has on servers that others may share carries its id.
deployments = Table(
    "deployments",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("deployment_id", String, nullable=False),
    Column("name", String, nullable=False),  # the setting DEPLOYMENT under which the vectors were written
    Column("created_at", UtcDateTime, nullable=False),
)

# Tenants that were removed. Only what stores still hold of these is certainly nobody's.
removed_tenants = Table(
    "removed_tenants",
    metadata,
    Column("removed_id", String, primary_key=True),  # not `tenant_id`: the row outlives the tenant's own
    Column("removed_at", UtcDateTime, nullable=False),
)

# Workflows that are running, and those that were running when a worker fell silent. No foreign key: a workflow may outlive
# its tenant by a moment.
workflow_runs = Table(
    "workflow_runs",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("workflow_id", String, primary_key=True),
    Column("executor_id", String),  # null: it runs nowhere now
    Column("kills", Integer, nullable=False),
)

# What was answered under an Idempotency-Key. The tenant is `operator` for the operator's own routes, so no foreign key.
idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("digest", String, primary_key=True),
    Column("fingerprint", String, nullable=False),
    Column("claim", String),  # of the request that is being carried out; null once it has been
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("status", Integer),
    Column("headers", Json),
    Column("body", LargeBinary),
)
Index("ix_idempotency_keys_created", idempotency_keys.c.tenant_id, idempotency_keys.c.created_at, idempotency_keys.c.digest)
