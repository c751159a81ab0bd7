"""The life cycle of a version. Each step is a compare-and-set: begin, save, publish or fail; drop, purge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, case, delete, exists, func, literal, select, update
from sqlalchemy.engine import Connection, RowMapping

from agentic_rag_backend.domain.document import DocumentState, DocumentVersion, Failure
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.columns import options_from_json, plain, utc_now
from agentic_rag_backend.stores.catalogue.documents.document_values import JobEnding, ParsedVersion
from agentic_rag_backend.stores.catalogue.documents.submissions import (
    FAILED_STATES,
    UNFINISHED_STATES,
    change_document,
    read_version,
)
from agentic_rag_backend.stores.catalogue.documents.visible_documents import record_change, select_readable
from agentic_rag_backend.stores.catalogue.evaluation.dataset_catalogue import count_of_document, forget_document
from agentic_rag_backend.stores.catalogue.jobs.job_rows import cancel_requested, end_job
from agentic_rag_backend.stores.catalogue.jobs.leases import Fence, require_fence
from agentic_rag_backend.stores.catalogue.jobs.outbox import Topic, record
from agentic_rag_backend.stores.catalogue.operations import batches, lock_document, lock_tenant, raise_state_version
from agentic_rag_backend.stores.catalogue.tables import (
    chunk_questions,
    chunk_texts,
    chunks,
    documents,
    model_results,
    prepared_chunks,
)
from agentic_rag_backend.stores.catalogue.tables import document_versions as versions

PROCESSING = DocumentState.PROCESSING.value

_SCOPE = (versions.c.tenant_id == bindparam("tenant"), versions.c.document_id == bindparam("document"))
_ONE = (*_SCOPE, versions.c.version == bindparam("number"))
_BEGIN = update(versions).where(*_ONE, versions.c.state.in_((*UNFINISHED_STATES, *FAILED_STATES))).values(state=PROCESSING)
_END = (
    update(versions)
    .where(*_ONE, versions.c.state.in_(UNFINISHED_STATES))
    .values(state=bindparam("ended"), failures=bindparam("listed"))
)
# State of the document and the version that a late step checks before it writes, in one row.
_STANDING = (
    select(
        documents.c.current_version,
        documents.c.latest_version,
        documents.c.deleted_at,
        case((versions.c.text.is_(None), literal(True)), else_=versions.c.text == bindparam("parsed")).label("same_text"),
    )
    .select_from(
        documents.join(versions, and_(versions.c.tenant_id == documents.c.tenant_id, versions.c.document_id == documents.c.id))
    )
    .where(
        documents.c.tenant_id == bindparam("tenant"),
        documents.c.id == bindparam("document"),
        versions.c.version == bindparam("number"),
    )
)
_WHOLE = (
    select(versions)
    .join(documents, and_(versions.c.tenant_id == documents.c.tenant_id, versions.c.document_id == documents.c.id))
    .where(*_ONE, documents.c.deleted_at.is_(None))
)
_SAVE_PARSED = (
    update(versions)
    .where(*_ONE)
    .values(text=bindparam("parsed"), title=bindparam("new_title"), metadata=bindparam("new_metadata"))
)
_COUNT_CHUNKS = select(func.count()).where(
    chunks.c.tenant_id == bindparam("tenant"),
    chunks.c.document_id == bindparam("document"),
    chunks.c.version == bindparam("number"),
)
_PUBLISH = (
    update(documents)
    .where(
        documents.c.tenant_id == bindparam("tenant"),
        documents.c.id == bindparam("document"),
        documents.c.deleted_at.is_(None),
        documents.c.current_version < bindparam("number"),
    )
    .values(
        {name: bindparam(f"new_{name}") for name in ("title", "state", "content_hash", "media_type", "size_bytes")}
        | {name: bindparam(f"new_{name}") for name in ("metadata", "failures", "chunk_count", "updated_at")}
        | {"current_version": bindparam("number")}
    )
)
STAGED_TABLES = (chunk_questions, prepared_chunks, chunks)
"""Tables with rows for the chunks of a version, in the order of removal."""
_TABLES = (*STAGED_TABLES, chunk_texts, model_results, versions, documents)
"""Tables with rows of a document, in the order of removal."""
_DROP_RESULTS = [
    delete(table).where(
        table.c.tenant_id == bindparam("tenant"),
        table.c.document_id == bindparam("document"),
        table.c.version < bindparam("number"),
    )
    for table in (chunk_questions, prepared_chunks, model_results)
]


def _bind_version(tenant: TenantId, document_id: str, version: int) -> dict[str, Any]:
    return {"tenant": tenant.value, "document": document_id, "number": version}


def writable(connection: Connection, tenant: TenantId, document_id: str, version: int, text: str = "") -> RowMapping | None:
    """Return the state of document and version. None if the version is visible, or older than a visible one.

    ``same_text`` is true if the version has no text yet, or exactly ``text``.

    Raises:
        NotFound: the document was deleted, or there is no such version.
    """
    row = connection.execute(_STANDING, _bind_version(tenant, document_id, version) | {"parsed": text}).mappings().first()
    if row is None or row["deleted_at"] is not None:
        raise NotFound(f"there is no version {version} of document {document_id!r}")
    return None if row["current_version"] >= version else row


def begin_processing(connection: Connection, tenant: TenantId, document_id: str, version: int) -> DocumentVersion | None:
    """Move a version that is not visible to ``processing`` and return it. Idempotent. None if superseded or deleted.

    A version that is already visible is returned unchanged.
    """
    document = lock_document(connection, tenant, document_id)
    if document is None or document["deleted_at"] is not None or document["latest_version"] != version:
        return None
    if document["current_version"] != version:
        if connection.execute(_BEGIN, _bind_version(tenant, document_id, version)).rowcount == 0:
            return None
        if document["state"] != PROCESSING:
            change_document(connection, tenant, document_id, {"state": PROCESSING, "updated_at": utc_now()})
    return whole_version(connection, tenant, document_id, version)


def whole_version(connection: Connection, tenant: TenantId, document_id: str, version: int) -> DocumentVersion:
    """Return a version, text included.

    Raises:
        NotFound: the version does not exist, or its document was deleted.
    """
    row = connection.execute(_WHOLE, _bind_version(tenant, document_id, version)).mappings().first()
    if row is None or not select_readable(connection, tenant, [document_id]):
        raise NotFound(f"there is no version {version} of document {document_id!r}")
    return DocumentVersion(
        document_id=row["document_id"],
        version=row["version"],
        title=row["title"],
        content_hash=row["content_hash"],
        media_type=row["media_type"],
        blob_key=row["blob_key"],
        options=options_from_json(row["options"]),
        metadata=row["metadata"],
        submitted_metadata=row["submitted_metadata"],
        text=row["text"] or "",
    )


def save_parsed(connection: Connection, tenant: TenantId, document_id: str, version: int, parsed: ParsedVersion) -> None:
    """Record a version's parsed text, its title and its merged metadata. Idempotent.

    If the text differs from the recorded text, chunks prepared from the old text are dropped. A version that is
    visible, or older than a visible one, is not changed. `NotFound` if the document was deleted.
    """
    record_parsed_text(connection, tenant, document_id, version, parsed)


def record_parsed_text(
    connection: Connection, tenant: TenantId, document_id: str, version: int, parsed: ParsedVersion
) -> RowMapping | None:
    """Do the work of `DocumentCatalogue.save_parsed` and return what `writable` returned before."""
    text, title = parsed.text, parsed.title
    status = writable(connection, tenant, document_id, version, text)
    if status is None:
        return None
    bound = _bind_version(tenant, document_id, version)
    if not status["same_text"]:  # offsets of chunks from another parse do not fit this text
        drop_staged_rows(connection, tenant, document_id, version)
    metadata = plain(parsed.metadata)
    connection.execute(_SAVE_PARSED, {**bound, "parsed": text, "new_title": title, "new_metadata": metadata})
    if status["current_version"] == 0 and status["latest_version"] == version:
        change_document(connection, tenant, document_id, {"title": title, "metadata": metadata, "updated_at": utc_now()})
    return status


def drop_staged_rows(connection: Connection, tenant: TenantId, document_id: str, version: int) -> None:
    """Remove the staged data of one version that is not visible."""
    for table in STAGED_TABLES:
        connection.execute(
            delete(table).where(table.c.tenant_id == tenant.value, table.c.document_id == document_id, table.c.version == version)
        )


def publish(
    connection: Connection,
    tenant: TenantId,
    document_id: str,
    version: int,
    *,
    failures: Sequence[Failure] = (),
    fence: Fence | None = None,
    ending: JobEnding | None = None,
    keep_original: bool = True,
) -> bool:
    """Make the version visible by compare-and-set, drop prepared chunks of older versions, raise ``state_version``.

    With a ``fence``, raise `StoreUnavailable` unless the fence is the newest of its lease. With an ``ending``, the job ends
    in the same transaction if the result is True; a job that was asked to stop does not make its version visible.

    Return False and change nothing if the document was deleted, a newer version is visible, this version has failed, or its
    job was asked to stop. A repeated call returns True.

    Without ``keep_original``, the version no longer names an original, and the outbox has an entry to remove the blob.
    Later versions of the same content are made from its text.
    """
    require_fence(connection, tenant, fence)
    if ending is not None and cancel_requested(connection, tenant, ending.job_id):
        return False
    published = _publish_version(connection, tenant, document_id, version, failures)
    if published and not keep_original:
        _drop_original(connection, tenant, document_id, version)
    if published and ending is not None:
        end_job(connection, tenant, ending.job_id, ending.state, result=ending.result, progress=ending.progress)
    return published


def _publish_version(
    connection: Connection, tenant: TenantId, document_id: str, version: int, failures: Sequence[Failure]
) -> bool:
    lock_tenant(connection, tenant)
    document = lock_document(connection, tenant, document_id)
    if document is None or document["deleted_at"] is not None or document["current_version"] > version:
        return False
    if document["current_version"] == version:
        return True
    row = read_version(connection, tenant, document_id, version)
    if row is None or row["state"] not in UNFINISHED_STATES:
        return False
    bound = _bind_version(tenant, document_id, version)
    end_state = DocumentState.PARTIAL.value if failures else DocumentState.READY.value
    failures_json = plain({"failures": list(failures)})["failures"]
    state = end_state
    if document["latest_version"] > version and document["state"] in UNFINISHED_STATES:
        state = document["state"]  # a newer version is being processed
    face = {f"new_{name}": row[name] for name in ("title", "content_hash", "media_type", "size_bytes", "metadata")}
    count = connection.execute(_COUNT_CHUNKS, bound).scalar_one()
    face |= {"new_state": state, "new_failures": failures_json, "new_chunk_count": count, "new_updated_at": utc_now()}
    if connection.execute(_PUBLISH, bound | face).rowcount == 0:
        return False
    connection.execute(_END, {**bound, "ended": end_state, "listed": failures_json})
    if version > 1:
        for drop in _DROP_RESULTS:
            connection.execute(drop, bound)
    raise_state_version(connection, tenant, content=True)
    record_change(connection, tenant, document_id, version)
    return True


def forget_original(connection: Connection, tenant: TenantId, document_id: str, version: int) -> None:
    """Remove the name of a visible version's original, as `publish` does without ``keep_original``. Idempotent."""
    document = lock_document(connection, tenant, document_id)
    if document is not None and document["deleted_at"] is None and document["current_version"] == version:
        _drop_original(connection, tenant, document_id, version)


def _drop_original(connection: Connection, tenant: TenantId, document_id: str, version: int) -> None:
    row = read_version(connection, tenant, document_id, version)
    if row is not None and row["blob_key"]:
        connection.execute(update(versions).where(*_ONE).values(blob_key=""), _bind_version(tenant, document_id, version))
        record(connection, tenant, Topic.ORIGINAL, row["blob_key"])


def fail(
    connection: Connection, tenant: TenantId, document_id: str, version: int, *, state: DocumentState, failure: Failure
) -> None:
    """End a version that could not be made visible, as ``failed`` or ``unreadable``. The first ending is final.

    An older visible version stays visible in its own state (``ready`` or ``partial``), with the failure listed.
    """
    if state.value not in FAILED_STATES:
        raise InvalidRequest(f"a version ends as one of {', '.join(FAILED_STATES)}; got {state.value!r}")
    document = lock_document(connection, tenant, document_id)
    if document is None:
        return
    failures_json = plain({"failures": [failure]})["failures"]
    bound = _bind_version(tenant, document_id, version) | {"ended": state.value, "listed": failures_json}
    if connection.execute(_END, bound).rowcount == 0:
        return
    if document["deleted_at"] is not None or document["latest_version"] != version:
        return
    changed: dict[str, Any] = {"state": state.value, "failures": failures_json, "updated_at": utc_now()}
    visible = read_version(connection, tenant, document_id, document["current_version"]) if document["current_version"] else None
    if visible is not None:
        changed |= {"state": visible["state"], "failures": [*visible["failures"], *failures_json]}
    change_document(connection, tenant, document_id, changed)


def purge(connection: Connection, tenant: TenantId, document_id: str, *, up_to_version: int) -> Mapping[str, int]:
    """Remove the rows of a tombstoned document for versions ≤ ``up_to_version``. Return the counts by table.

    A document that is not tombstoned is not changed.
    """
    lock_tenant(connection, tenant)
    document = lock_document(connection, tenant, document_id)
    if document is None or document["deleted_at"] is None:
        return dict.fromkeys((*map(str, _TABLES), "evaluation_cases"), 0)
    counts = _remove_versions(connection, tenant, document_id, up_to_version)
    its = (versions.c.tenant_id == tenant.value, versions.c.document_id == document_id)
    counts |= {"documents": 0, "evaluation_cases": 0}
    if not connection.execute(select(func.count()).where(*its)).scalar_one():
        removed = delete(documents).where(documents.c.tenant_id == tenant.value, documents.c.id == document_id)
        counts["documents"] = connection.execute(removed).rowcount
        counts["evaluation_cases"] = forget_document(connection, tenant, document_id)
    raise_state_version(connection, tenant, content=True)
    return counts


def remains(connection: Connection, tenant: TenantId, document_id: str) -> Mapping[str, int]:
    """Count the rows of a document by table, tombstoned or not. All counts are 0 after its last `purge`."""
    counts = {"evaluation_cases": count_of_document(connection, tenant, document_id)}
    for table in _TABLES:
        name = table.c.id if table is documents else table.c.document_id
        rows = select(func.count()).where(table.c.tenant_id == tenant.value, name == document_id)
        counts[str(table.name)] = connection.execute(rows).scalar_one()
    return counts


def drop_versions(connection: Connection, tenant: TenantId, document_id: str, *, below: int) -> Sequence[str]:
    """Remove versions < ``below`` that a visible version superseded. Return the blob keys that are no longer needed.

    Raises ``state_version`` if there were any: the caller has removed their data from the other stores before.
    """
    lock_tenant(connection, tenant)
    document = lock_document(connection, tenant, document_id)
    if document is None or document["deleted_at"] is not None:
        return ()
    last_dropped = min(below, document["current_version"]) - 1
    older = versions.c.version <= last_dropped
    if not connection.execute(
        select(exists().where(versions.c.tenant_id == tenant.value, versions.c.document_id == document_id, older))
    ).scalar():
        return ()
    before = blob_keys(connection, tenant, document_id, up_to_version=last_dropped)
    _remove_versions(connection, tenant, document_id, last_dropped)
    kept_blobs = set(blob_keys(connection, tenant, document_id, up_to_version=document["latest_version"]))
    raise_state_version(connection, tenant)
    return [key for key in before if key not in kept_blobs]


def blob_keys(connection: Connection, tenant: TenantId, document_id: str, *, up_to_version: int) -> Sequence[str]:
    """Return the blob keys of versions ≤ ``up_to_version``, also of a tombstoned document. Call this before `purge`."""
    statement = (
        select(versions.c.blob_key)
        .where(
            versions.c.tenant_id == tenant.value,
            versions.c.document_id == document_id,
            versions.c.version <= up_to_version,
            versions.c.blob_key != "",
        )
        .order_by(versions.c.version)
    )
    return list(dict.fromkeys(connection.execute(statement).scalars()))


def unknown_blobs(connection: Connection, tenant: TenantId, keys: Sequence[str]) -> list[str]:
    """Return the ``keys`` that no version names. Tombstoned documents count."""
    known_keys: set[str] = set()
    for batch in batches(keys):
        statement = select(versions.c.blob_key).where(versions.c.tenant_id == tenant.value, versions.c.blob_key.in_(batch))
        known_keys.update(connection.execute(statement).scalars())
    return [key for key in keys if key not in known_keys]


def _remove_versions(connection: Connection, tenant: TenantId, document_id: str, up_to_version: int) -> dict[str, int]:
    counts = {}
    for table in (*STAGED_TABLES, model_results):
        counts[table.name] = connection.execute(
            delete(table).where(
                table.c.tenant_id == tenant.value, table.c.document_id == document_id, table.c.version <= up_to_version
            )
        ).rowcount
    counts["chunk_texts"] = _drop_unused_texts(connection, tenant, document_id)
    removal = delete(versions).where(
        versions.c.tenant_id == tenant.value, versions.c.document_id == document_id, versions.c.version <= up_to_version
    )
    counts["document_versions"] = connection.execute(removal).rowcount
    return counts


def _drop_unused_texts(connection: Connection, tenant: TenantId, document_id: str) -> int:
    used = exists().where(chunks.c.tenant_id == chunk_texts.c.tenant_id, chunks.c.chunk_id == chunk_texts.c.chunk_id)
    unused = delete(chunk_texts).where(chunk_texts.c.tenant_id == tenant.value, chunk_texts.c.document_id == document_id, ~used)
    return connection.execute(unused).rowcount
