"""The catalogue's tables. Primary keys start with ``tenant_id``, and foreign keys stay within the tenant.

The exceptions belong to no tenant: `workers`, `places`, `deployments`, `removed_tenants`, and the `leases` without a
tenant.

The migrations are the record of the schema. A test compares them with this module.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
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

from agentic_rag_backend.domain.location import LOCATION_TABLE, FieldKind, LocationField
from agentic_rag_backend.stores.catalogue.columns import Json, PackedJson, UtcDateTime

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def _tenant_column() -> Column[str]:
    return Column("tenant_id", String, ForeignKey("tenants.tenant_id"), primary_key=True)


def _pointer_columns() -> tuple[Column[Any], ...]:
    """Return the columns of a tenant's pointer to the current generation, used by `stores.catalogue.summaries.generations`."""
    return (
        _tenant_column(),
        Column("generation", Integer, nullable=False),
        Column("last_generation", Integer, nullable=False),
        Column("built_from", Integer, nullable=False),
        Column("built_at", UtcDateTime),
        Column("details", Json, nullable=False),
    )


def _summary_columns() -> tuple[Column[Any], ...]:
    """Return the columns of summaries, used by `stores.catalogue.summaries.generations`."""
    return (
        _tenant_column(),
        Column("fingerprint", String, primary_key=True),
        Column("prompt_version", String, primary_key=True),
        Column("model", String, primary_key=True),
        # Labels with the passages that contain them. The name is the model's title, if there is one, or a list of the
        # names.
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
    # The state_version of the last change of documents. It determines whether communities are stale; flags do not.
    Column("content_version", Integer, nullable=False),
    # Times of the last document change, of the first change that made communities (and the tree) stale, and of the last
    # automatic rebuild request.
    Column("content_changed_at", UtcDateTime),
    Column("stale_since", UtcDateTime),
    Column("tree_stale_since", UtcDateTime),
    Column("rebuild_asked_at", UtcDateTime),
    Column("flags", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    # None: the deployment's ontology.
    Column("ontology", Json),
    # Values that accepted proposals of tuning set. None: there are none.
    Column("tuned", Json),
    # The experiment that runs. None: none does.
    Column("experiment", Json),
    # None: there are none.
    Column("labels", Json),
    # Limits that the operator set, by name. None: all have their defaults.
    Column("quota", Json),
)

api_keys = Table(
    "api_keys",
    metadata,
    _tenant_column(),
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("secret_sha256", String, nullable=False, unique=True),
    Column("scopes", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("revoked_at", UtcDateTime),
    # The beginning of the secret. None: an earlier release issued the key.
    Column("prefix", String),
    Column("expires_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
    # Id of the key that a rotation issued instead.
    Column("replaced_by", String),
    # Filter, as written, of the documents that the key may read. None: all.
    Column("filter", Json),
    # Limits of the key, by name. None: there are none.
    Column("quota", Json),
)

# The visible state of a document. Versions that are not visible yet have their own rows.
documents = Table(
    "documents",
    metadata,
    _tenant_column(),
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
    # The message that the document is attached to, and its place there. No foreign key: they are purged in any order.
    Column("parent_id", String),
    Column("place", String),
)
# A tombstoned document keeps its key until it is purged, but does not block a new upload under this key.
Index(
    "ix_documents_key",
    documents.c.tenant_id,
    documents.c.key,
    unique=True,
    sqlite_where=text("deleted_at IS NULL"),
    postgresql_where=text("deleted_at IS NULL"),
)
Index(
    "ix_documents_parent",
    documents.c.tenant_id,
    documents.c.parent_id,
    documents.c.place,
    unique=True,
    sqlite_where=text("deleted_at IS NULL AND parent_id IS NOT NULL"),
    postgresql_where=text("deleted_at IS NULL AND parent_id IS NOT NULL"),
)
# Otherwise a list of a message's attachments would read all documents of the tenant in order of time.
Index(
    "ix_documents_parent_created",
    documents.c.tenant_id,
    documents.c.parent_id,
    documents.c.created_at,
    documents.c.id,
    sqlite_where=text("deleted_at IS NULL AND parent_id IS NOT NULL"),
    postgresql_where=text("deleted_at IS NULL AND parent_id IS NOT NULL"),
)
Index("ix_documents_created", documents.c.tenant_id, documents.c.created_at, documents.c.id)

# The version of a document that became visible at each state_version (0: no longer visible). Caches read only these
# changes. Rows outlive their document; only the last 10,000 are kept.
document_changes = Table(
    "document_changes",
    metadata,
    _tenant_column(),
    Column("state_version", Integer, primary_key=True),
    Column("document_id", String, nullable=False),
    Column("visible_version", Integer, nullable=False),
)

document_versions = Table(
    "document_versions",
    metadata,
    _tenant_column(),
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
    # Chunks that the version will have, if a quota limits them. None: not known yet, or there was no such quota.
    Column("reserved_chunks", Integer),
    Column("text", Text),  # last: it may have megabytes, and most reads do not need it
    ForeignKeyConstraint(["tenant_id", "document_id"], ["documents.tenant_id", "documents.id"]),
)
Index("ix_document_versions_blob", document_versions.c.tenant_id, document_versions.c.blob_key)

chunk_texts = Table(
    "chunk_texts",
    metadata,
    _tenant_column(),
    Column("chunk_id", String, primary_key=True),
    Column("document_id", String, nullable=False),
    Column("content_hash", String, nullable=False),
    Column("size_tokens", Integer, nullable=False),
    Column("text", Text, nullable=False),
    ForeignKeyConstraint(["tenant_id", "document_id"], ["documents.tenant_id", "documents.id"]),
)
Index("ix_chunk_texts_document", chunk_texts.c.tenant_id, chunk_texts.c.document_id)


def _location_column(row: LocationField) -> Column[Any]:
    match row.kind:
        case FieldKind.COUNT:
            return Column(row.name, Integer, nullable=False)
        case FieldKind.OPTIONAL_COUNT:
            return Column(row.name, Integer)
        case FieldKind.TEXT:
            return Column(row.name, String, nullable=False, server_default="")
        case FieldKind.TEXTS | FieldKind.REGIONS:
            return Column(row.name, Json, nullable=False, server_default="[]")


# Position of a chunk in one version. An edit above a chunk moves it without changing its text or id.
chunks = Table(
    "chunks",
    metadata,
    _tenant_column(),
    Column("document_id", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("chunk_id", String, nullable=False),
    *map(_location_column, LOCATION_TABLE),
    UniqueConstraint("tenant_id", "chunk_id", "version"),
    ForeignKeyConstraint(
        ["tenant_id", "document_id", "version"],
        ["document_versions.tenant_id", "document_versions.document_id", "document_versions.version"],
    ),
    ForeignKeyConstraint(["tenant_id", "chunk_id"], ["chunk_texts.tenant_id", "chunk_texts.chunk_id"]),
)

# Expensive results, kept while their version is visible or newer, so that nothing is computed twice.
prepared_chunks = Table(
    "prepared_chunks",
    metadata,
    _tenant_column(),
    Column("document_id", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    # SHA-256 (hex) of the inputs and models. Null after a failure: such a result is never reused.
    Column("recipe", String),
    Column("reused", Boolean, nullable=False),
    Column("failure", Json),
    Column("extraction", PackedJson, nullable=False),
    Column("vector", LargeBinary),  # null: the embedder refused the chunk
    # How its synthetic questions were made. Null if none were asked for.
    Column("question_recipe", String),
    Column("question_failure", Json),
    ForeignKeyConstraint(
        ["tenant_id", "document_id", "version", "ordinal"],
        ["chunks.tenant_id", "chunks.document_id", "chunks.version", "chunks.ordinal"],
    ),
)

chunk_questions = Table(
    "chunk_questions",
    metadata,
    _tenant_column(),
    Column("document_id", String, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("ordinal", Integer, primary_key=True),  # of the chunk
    Column("number", Integer, primary_key=True),  # of the question, from 0
    Column("question_id", String, nullable=False),  # of its vector; versions share it
    Column("source", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("vector", LargeBinary),  # null: the embedder refused the question
    ForeignKeyConstraint(
        ["tenant_id", "document_id", "version", "ordinal"],
        ["prepared_chunks.tenant_id", "prepared_chunks.document_id", "prepared_chunks.version", "prepared_chunks.ordinal"],
    ),
)
Index("ix_chunk_questions_question", chunk_questions.c.tenant_id, chunk_questions.c.question_id)

# What models returned for a document before it had chunks, such as their boundaries. It stays while a version uses it.
model_results = Table(
    "model_results",
    metadata,
    _tenant_column(),
    Column("document_id", String, primary_key=True),
    # SHA-256 (hex) of the inputs and the model.
    Column("recipe", String, primary_key=True),
    Column("version", Integer, nullable=False),  # the last version that used it
    Column("paid_version", Integer, nullable=False),
    Column("value", PackedJson),  # null: the call failed, but was paid
    Column("prompt_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("failed_calls", Integer, nullable=False),
    ForeignKeyConstraint(["tenant_id", "document_id"], ["documents.tenant_id", "documents.id"]),
)

jobs = Table(
    "jobs",
    metadata,
    _tenant_column(),
    Column("id", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("state", String, nullable=False),
    # No foreign key: a delete job remains as a receipt after its document is purged.
    Column("document_id", String),
    Column("version", Integer),
    Column("stage", String, nullable=False),
    Column("done", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("message", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("arguments", Json, nullable=False),
    # The key of the request that began the job. Null if none did. Its usage is counted for the key.
    Column("key_id", String),
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

# The tree over a tenant's passages. Several generations can exist; the pointer names the current one.
raptor_pointers = Table(
    "raptor_pointers",
    metadata,
    *_pointer_columns(),
    # Time of the last automatic request to update the tree.
    Column("asked_at", UtcDateTime),
)

raptor_nodes = Table(
    "raptor_nodes",
    metadata,
    _tenant_column(),
    Column("generation", Integer, primary_key=True),
    Column("id", String, primary_key=True),
    Column("level", Integer, nullable=False),
    Column("fingerprint", String, nullable=False),
    Column("size", Integer, nullable=False),
    # Prompt and model identify the node's summary among the summaries of its fingerprint.
    Column("prompt_version", String, nullable=False),
    Column("model", String, nullable=False),
    # Id of the vector. It changes with the children and the summary.
    Column("point_id", String, nullable=False),
)
Index("ix_raptor_nodes_point", raptor_nodes.c.tenant_id, raptor_nodes.c.point_id)

# A node's children: passages with their documents at level 1, nodes at higher levels.
raptor_links = Table(
    "raptor_links",
    metadata,
    _tenant_column(),
    Column("generation", Integer, primary_key=True),
    Column("node_id", String, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("child_id", String, nullable=False),
    Column("document_id", String),
)
Index("ix_raptor_links_child", raptor_links.c.tenant_id, raptor_links.c.child_id)
Index("ix_raptor_links_document", raptor_links.c.tenant_id, raptor_links.c.document_id)

raptor_summaries = Table("raptor_summaries", metadata, *_summary_columns())

# Processes that run jobs, if there may be several. Other processes detect a dead worker by its unchanged `beats`.
workers = Table(
    "workers",
    metadata,
    Column("executor_id", String, primary_key=True),
    Column("beats", Integer, nullable=False),
    Column("workflows", Json, nullable=False),
    Column("joined_at", UtcDateTime, nullable=False),
    Column("beaten_at", UtcDateTime, nullable=False),  # by the database's clock
)

# Work that only one worker may do at a time: a tenant's commits and rebuilds, and housekeeping (without a tenant).
leases = Table(
    "leases",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("holder", String),  # an executor; free if null or no longer a worker
    Column("fence", Integer, nullable=False),  # rises with every acquisition
    Column("wanted", Boolean, nullable=False),  # another worker has requested it since it was acquired
)

# Changes that other stores still have to apply; see `stores.catalogue.jobs.outbox`.
outbox = Table(
    "outbox",
    metadata,
    _tenant_column(),
    Column("topic", String, primary_key=True),
    Column("subject", String, primary_key=True),
    Column("token", String, nullable=False),  # new each time the entry is recorded
    Column("recorded_at", UtcDateTime, nullable=False),
)

# Edits of the graph by people, in the order in which they apply.
graph_edits = Table(
    "graph_edits",
    metadata,
    _tenant_column(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("draft", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("undone_at", UtcDateTime),
)

# Model calls and requests of one day, in UTC. The number of rows does not grow with the number of calls.
usage = Table(
    "usage",
    metadata,
    _tenant_column(),
    Column("day", Date, primary_key=True),
    Column("key_id", String, primary_key=True),  # empty: work that no request began
    Column("model", String, primary_key=True),  # empty, like the stage: requests
    Column("stage", String, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
    Column("failed_calls", BigInteger, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("cost_nanos", BigInteger, nullable=False),  # billionths of a unit of the currency
    Column("unpriced_calls", BigInteger, nullable=False),
)

# Requests of a tenant, or of one of its keys, in the current window, and the places of requests that run.
quota_counters = Table(
    "quota_counters",
    metadata,
    _tenant_column(),
    Column("key_id", String, primary_key=True),  # empty: of the whole tenant
    Column("minute", BigInteger, nullable=False),  # number of the window since 1970
    Column("taken", BigInteger, nullable=False),
    Column("granted", BigInteger, nullable=False),  # of them, by the last statement
    Column("places", Json, nullable=False),  # by process: their number, and the second until which they are valid
)

# How the newest answers were made, and what they used: ids only. No foreign key to documents, which are deleted earlier.
answers = Table(
    "answers",
    metadata,
    _tenant_column(),
    Column("id", String, primary_key=True),
    Column("key_id", String, nullable=False),
    Column("strategy", String, nullable=False),
    Column("generator", String, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("estimate", Float),  # the confidence before a tuned scale; null: equal
    Column("grounded", Boolean, nullable=False),
    Column("question_hash", String),  # null: recorded by an earlier release
    Column("question", Text),  # null: the tenant does not keep questions, or it was deleted
    Column("citations", Json, nullable=False),  # pairs of marker and chunk
    Column("documents", Json, nullable=False),  # by chunk
    Column("created_at", UtcDateTime, nullable=False),
)
Index("ix_answers_created", answers.c.tenant_id, answers.c.created_at, answers.c.id)
_KEPT = answers.c.question.is_not(None)
Index("ix_answers_question", answers.c.tenant_id, answers.c.created_at, sqlite_where=_KEPT, postgresql_where=_KEPT)

feedback = Table(
    "feedback",
    metadata,
    _tenant_column(),
    Column("id", String, primary_key=True),
    Column("answer_id", String, nullable=False),
    Column("key_id", String, nullable=False),
    Column("citation", Integer),
    Column("result", String),
    Column("chunk_id", String),
    Column("strategy", String, nullable=False),
    Column("generator", String, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("estimate", Float),  # the confidence before a tuned scale; null: equal
    Column("grounded", Boolean, nullable=False),
    Column("question_hash", String),
    Column("rating", String, nullable=False),
    Column("reason", Text),
    Column("correction", Text),
    Column("question", Text),
    Column("texts_removed", Boolean, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)
Index("ix_feedback_created", feedback.c.tenant_id, feedback.c.created_at, feedback.c.id)
Index("ix_feedback_answer", feedback.c.tenant_id, feedback.c.answer_id)
Index("ix_feedback_question", feedback.c.tenant_id, feedback.c.question_hash)

# The documents that the texts of feedback may quote.
feedback_documents = Table(
    "feedback_documents",
    metadata,
    _tenant_column(),
    Column("document_id", String, primary_key=True),
    Column("feedback_id", String, primary_key=True),
    ForeignKeyConstraint(["tenant_id", "feedback_id"], ["feedback.tenant_id", "feedback.id"]),
)

# Scores of answers that callers measured elsewhere. A submission has a row for each metric.
submitted_scores = Table(
    "submitted_scores",
    metadata,
    _tenant_column(),
    Column("id", String, primary_key=True),
    Column("metric", String, primary_key=True),
    Column("day", Date, nullable=False),
    Column("strategy", String, nullable=False),
    Column("configuration", String, nullable=False),
    Column("value", Float, nullable=False),
    Column("computed", Boolean, nullable=False),
)
Index(
    "ix_submitted_scores_group",
    submitted_scores.c.tenant_id,
    submitted_scores.c.day,
    submitted_scores.c.strategy,
    submitted_scores.c.configuration,
)

# Folders outside of databases that belong to this catalogue: one row per setting that names a folder.
store_folders = Table(
    "places",
    metadata,
    Column("name", String, primary_key=True),
    Column("place_id", String, nullable=False),  # as written in the folder
    Column("described", String, nullable=False),  # host and path, for people
)

# This deployment: one row, in slot 1. Its data on shared servers carries its id.
deployments = Table(
    "deployments",
    metadata,
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("deployment_id", String, nullable=False),
    Column("name", String, nullable=False),  # the setting DEPLOYMENT under which the vectors were written
    Column("created_at", UtcDateTime, nullable=False),
)

# Removed tenants. Data that stores still hold of these tenants can safely be deleted.
removed_tenants = Table(
    "removed_tenants",
    metadata,
    Column("removed_id", String, primary_key=True),  # not `tenant_id`: the row outlives the tenant's own
    Column("removed_at", UtcDateTime, nullable=False),
)

# Workflows that are running, or were running when a worker died. No foreign key: a workflow may end shortly after its
# tenant was removed.
workflow_runs = Table(
    "workflow_runs",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("workflow_id", String, primary_key=True),
    Column("executor_id", String),  # null: it runs nowhere now
    Column("kills", Integer, nullable=False),
)

# Responses by Idempotency-Key. The tenant is `operator` for the operator's own routes, so there is no foreign key.
idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("tenant_id", String, primary_key=True),
    Column("digest", String, primary_key=True),
    Column("fingerprint", String, nullable=False),
    Column("claim", String),  # claim of the request in progress; null after it has ended
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("status", Integer),
    Column("headers", Json),
    Column("body", LargeBinary),
)
Index("ix_idempotency_keys_created", idempotency_keys.c.tenant_id, idempotency_keys.c.created_at, idempotency_keys.c.digest)

# What agentic searches of one API key and session id remember. `facts` are places in chunks: no words of documents are stored.
search_sessions = Table(
    "search_sessions",
    metadata,
    _tenant_column(),
    Column("digest", String, primary_key=True),
    Column("facts", Json, nullable=False),
    Column("constraints", Json, nullable=False),
    Column("used_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)
Index("ix_search_sessions_used", search_sessions.c.tenant_id, search_sessions.c.used_at, search_sessions.c.digest)

# Sets of documents: members, or the documents that pass a filter.
document_sets = Table(
    "document_sets",
    metadata,
    _tenant_column(),
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("description", Text, nullable=False),
    Column("labels", Json, nullable=False),
    Column("filter", Json),  # null: the set has members
    Column("created_at", UtcDateTime, nullable=False),
)
Index("ix_document_sets_created", document_sets.c.tenant_id, document_sets.c.created_at, document_sets.c.id)
document_set_members = Table(
    "document_set_members",
    metadata,
    _tenant_column(),
    Column("set_id", String, primary_key=True),
    Column("document_id", String, primary_key=True),
    Column("batch_id", String),
    Column("added_at", UtcDateTime, nullable=False),
    ForeignKeyConstraint(["tenant_id", "set_id"], ["document_sets.tenant_id", "document_sets.id"]),
)
Index("ix_document_set_members_document", document_set_members.c.tenant_id, document_set_members.c.document_id)

evaluation_datasets = Table(
    "evaluation_datasets",
    metadata,
    _tenant_column(),
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("job_id", String),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)
Index(
    "ix_evaluation_datasets_created",
    evaluation_datasets.c.tenant_id,
    evaluation_datasets.c.created_at,
    evaluation_datasets.c.id,
)

# A case belongs to the versions of its dataset from `added_in` to before `removed_in` (null: to the current one).
evaluation_cases = Table(
    "evaluation_cases",
    metadata,
    _tenant_column(),
    Column("dataset_id", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("id", String, nullable=False),
    Column("added_in", Integer, nullable=False),
    Column("removed_in", Integer),
    Column("source", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("question_hash", String, nullable=False),
    Column("content", Json, nullable=False),
    UniqueConstraint("tenant_id", "id"),
    ForeignKeyConstraint(["tenant_id", "dataset_id"], ["evaluation_datasets.tenant_id", "evaluation_datasets.id"]),
)

# The documents whose texts a case has. Their purge removes these texts.
evaluation_case_documents = Table(
    "evaluation_case_documents",
    metadata,
    _tenant_column(),
    Column("document_id", String, primary_key=True),
    Column("dataset_id", String, primary_key=True),
    Column("number", Integer, primary_key=True),
    ForeignKeyConstraint(
        ["tenant_id", "dataset_id", "number"],
        ["evaluation_cases.tenant_id", "evaluation_cases.dataset_id", "evaluation_cases.number"],
    ),
)
Index(
    "ix_evaluation_case_documents_case",
    evaluation_case_documents.c.tenant_id,
    evaluation_case_documents.c.dataset_id,
    evaluation_case_documents.c.number,
)

evaluation_runs = Table(
    "evaluation_runs",
    metadata,
    _tenant_column(),
    Column("id", String, primary_key=True),
    Column("dataset_id", String, nullable=False),
    Column("job_id", String, nullable=False),
    Column("plan", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("result", PackedJson),
    ForeignKeyConstraint(["tenant_id", "dataset_id"], ["evaluation_datasets.tenant_id", "evaluation_datasets.id"]),
    ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"]),
)
Index("ix_evaluation_runs_created", evaluation_runs.c.tenant_id, evaluation_runs.c.created_at, evaluation_runs.c.id)
Index("ix_evaluation_runs_dataset", evaluation_runs.c.tenant_id, evaluation_runs.c.dataset_id)

# One row for each case and configuration that a judge compared with the first configuration. It has no text of an answer.
evaluation_verdicts = Table(
    "evaluation_verdicts",
    metadata,
    _tenant_column(),
    Column("run_id", String, primary_key=True),
    Column("case_id", String, primary_key=True),
    Column("configuration", String, primary_key=True),
    Column("content", Json, nullable=False),
    ForeignKeyConstraint(["tenant_id", "run_id"], ["evaluation_runs.tenant_id", "evaluation_runs.id"]),
)

# One row for each case and configuration that was asked. It has no text of a document.
evaluation_outcomes = Table(
    "evaluation_outcomes",
    metadata,
    _tenant_column(),
    Column("run_id", String, primary_key=True),
    Column("case_id", String, primary_key=True),
    Column("configuration", String, primary_key=True),
    Column("content", Json, nullable=False),
    ForeignKeyConstraint(["tenant_id", "run_id"], ["evaluation_runs.tenant_id", "evaluation_runs.id"]),
)

# `content_version` is that of the tenant when the measuring began. `base` are the tuned values then, `previous` those that the
# acceptance replaced.
tuning_proposals = Table(
    "tuning_proposals",
    metadata,
    _tenant_column(),
    Column("id", String, primary_key=True),
    Column("job_id", String, nullable=False),
    Column("plan", Json, nullable=False),
    Column("base", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("content_version", Integer, nullable=False),
    Column("proposed", Json),
    Column("result", PackedJson),
    Column("previous", Json),
    Column("accepted_at", UtcDateTime),
    Column("accepted_by", String),
    Column("rolled_back_at", UtcDateTime),
    Column("rolled_back_by", String),
    ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"]),
)
Index("ix_tuning_proposals_created", tuning_proposals.c.tenant_id, tuning_proposals.c.created_at, tuning_proposals.c.id)

# One row for each case and parameter that was measured. It has no text.
tuning_scores = Table(
    "tuning_scores",
    metadata,
    _tenant_column(),
    Column("proposal_id", String, primary_key=True),
    Column("case_id", String, primary_key=True),
    Column("parameter", String, primary_key=True),
    Column("scores", Json, nullable=False),
    ForeignKeyConstraint(["tenant_id", "proposal_id"], ["tuning_proposals.tenant_id", "tuning_proposals.id"]),
)

# `content` is the part that requests need. It is also the tenant's column while the experiment runs.
experiments = Table(
    "experiments",
    metadata,
    _tenant_column(),
    Column("id", String, primary_key=True),
    Column("content", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("created_by", String, nullable=False),
    Column("stopped_at", UtcDateTime),
    Column("stopped_because", String),
    Column("stopped_by", String),
)
Index("ix_experiments_created", experiments.c.tenant_id, experiments.c.created_at, experiments.c.id)

# The first request of each question in an experiment. It has no text, only a digest of the question.
experiment_outcomes = Table(
    "experiment_outcomes",
    metadata,
    _tenant_column(),
    Column("experiment_id", String, primary_key=True),
    Column("unit", String, primary_key=True),
    Column("configuration", String, nullable=False),
    Column("log_latency", Float, nullable=False),
    Column("log_tokens", Float, nullable=False),
    Column("refused", Float),
    Column("answer_id", String),
    Column("created_at", UtcDateTime, nullable=False),
    ForeignKeyConstraint(["tenant_id", "experiment_id"], ["experiments.tenant_id", "experiments.id"]),
)
