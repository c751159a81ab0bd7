"""Contract of every catalogue for the state of documents, which the reconciler compares with the other stores."""

from __future__ import annotations

from agentic_rag_backend.domain.document import DocumentState, Failure
from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import Catalogue, DocumentStatus
from agentic_rag_backend.testing.catalogue.samples import (
    LINES,
    Check,
    Queue,
    equal,
    ingest,
    nothing,
    prepared,
    stage,
    state_version,
    submission,
    tenant,
)

_LATE = "A late line."


async def status_of(catalogue: Catalogue, owner: TenantId, document_id: str) -> DocumentStatus:
    """Return the status of one document."""
    (found,) = await catalogue.documents.statuses(owner, ids=[document_id])
    return found


async def finish_jobs(catalogue: Catalogue, owner: TenantId) -> None:
    """End all unfinished jobs."""
    for job in (await catalogue.jobs.jobs(owner, limit=100)).items:
        if not job.state.ended:
            await catalogue.jobs.finish(owner, job.id, JobState.FAILED)


async def documents_have_a_status(catalogue: Catalogue) -> None:
    """A document that is visible, in flight, unfinished or tombstoned, from its first to its last state."""
    owner = await tenant(catalogue)
    submitted = await catalogue.documents.submit(owner, submission("report"), nothing)
    document = submitted.document
    held = await status_of(catalogue, owner, document.id)
    equal((held.deleted, held.in_flight, held.unfinished, held.blob_key), (False, True, True, None))
    await finish_jobs(catalogue, owner)
    equal((await status_of(catalogue, owner, document.id)).in_flight, False)
    await stage(catalogue, owner, submitted)
    await catalogue.documents.publish(owner, document.id, 1)
    held = await status_of(catalogue, owner, document.id)
    shown = await catalogue.documents.document(owner, document.id)
    equal((held.document, held.in_flight, held.unfinished), (shown, False, False))
    equal(held.blob_key, submission("report").blob_key)
    await catalogue.documents.submit(owner, submission("report", _LATE), nothing)
    held = await status_of(catalogue, owner, document.id)
    equal((held.document.current_version, held.in_flight, held.unfinished), (1, True, True))
    equal(held.blob_key, submission("report").blob_key, "the visible version's original")
    await catalogue.documents.tombstone(owner, document.id, nothing)
    held = await status_of(catalogue, owner, document.id)
    equal((held.deleted, held.in_flight, held.document.state), (True, True, DocumentState.DELETING))
    equal(await catalogue.documents.statuses(owner, ids=[]), [])
    equal(await catalogue.documents.statuses(owner, ids=["nobody's"]), [])


async def statuses_are_ordered_by_id(catalogue: Catalogue) -> None:
    """Pages cover every document, including tombstoned ones."""
    owner = await tenant(catalogue)
    ids = sorted([(await ingest(catalogue, owner, f"report-{number}")).id for number in range(7)])
    await catalogue.documents.tombstone(owner, ids[3], nothing)
    found: list[str] = []
    for expected in (3, 3, 1, 0):
        page = await catalogue.documents.statuses(owner, after=found[-1] if found else "", limit=3)
        equal(len(page), expected)
        found += [each.document.id for each in page]
    equal(found, ids)
    equal([each.document.id for each in await catalogue.documents.statuses(owner, ids=ids[::2], after=ids[0])], ids[2::2])


async def visible_chunks_are_returned_by_document(catalogue: Catalogue) -> None:
    """In reading order. Documents without a visible version are absent."""
    owner = await tenant(catalogue)
    document = await ingest(catalogue, owner, "report")
    expected = [item.chunk.id for item in prepared(document.id, 1, "\n".join(LINES))]
    hidden = (await catalogue.documents.submit(owner, submission("hidden"), nothing)).document
    await stage(catalogue, owner, await catalogue.documents.submit(owner, submission("report", _LATE), nothing), _LATE)
    equal(await catalogue.documents.visible_chunk_ids(owner, [document.id, hidden.id, "nobody's"]), {document.id: expected})
    await catalogue.documents.publish(owner, document.id, 2)
    late = [item.chunk.id for item in prepared(document.id, 2, _LATE)]
    equal(await catalogue.documents.visible_chunk_ids(owner, [document.id]), {document.id: late})
    await catalogue.documents.tombstone(owner, document.id, nothing)
    equal(await catalogue.documents.visible_chunk_ids(owner, [document.id]), {})


async def unfinished_documents_get_a_job(catalogue: Catalogue) -> None:
    """A document with an unprocessed version gets an ingest job, a tombstoned one a delete job. Others get no job."""
    owner, queue = await tenant(catalogue), Queue()
    kinds: list[JobKind] = []

    def enqueue(kind: JobKind) -> Queue:
        kinds.append(kind)
        return queue

    docs = catalogue.documents
    document = (await docs.submit(owner, submission("report"), nothing)).document
    equal(await docs.take_up(owner, document.id, enqueue), None, "a document whose job has not ended got another one")
    await finish_jobs(catalogue, owner)
    job = await docs.take_up(owner, document.id, enqueue)
    equal(job and (job.kind, job.state, job.document_id, job.version), (JobKind.INGEST, JobState.QUEUED, document.id, 1))
    equal(([held.id for _, held in queue.jobs], kinds), ([job and job.id], [JobKind.INGEST]))
    equal((await docs.document(owner, document.id)).job_id, job and job.id)
    equal(await docs.take_up(owner, document.id, enqueue), None)
    await docs.fail(owner, document.id, 1, state=DocumentState.FAILED, failure=Failure("parse", "bad", "bad"))
    await finish_jobs(catalogue, owner)
    equal(await docs.take_up(owner, document.id, enqueue), None, "a version that has failed is not waiting")
    await docs.tombstone(owner, document.id, nothing)
    await finish_jobs(catalogue, owner)
    job = await docs.take_up(owner, document.id, enqueue)
    equal(job and (job.kind, job.version), (JobKind.DELETE, 1))
    equal(await docs.take_up(owner, "nobody's", enqueue), None)


async def a_repair_is_recorded_as_a_change(catalogue: Catalogue) -> None:
    """A repair raises ``state_version``. A repair of knowledge also makes communities stale and counts as a document change."""
    owner = await tenant(catalogue)
    document = await ingest(catalogue, owner, "report")
    generation = await catalogue.communities.next_generation(owner)
    before = await state_version(catalogue, owner)
    await catalogue.communities.publish(owner, generation, built_from=before, details={})
    before = await state_version(catalogue, owner)
    await catalogue.documents.record_repair(owner, document.id, knowledge=False)
    equal((await state_version(catalogue, owner), (await catalogue.communities.pointer(owner)).stale), (before + 1, False))
    equal(dict((await catalogue.documents.visibility(owner, since=before)).versions), {})
    await catalogue.documents.record_repair(owner, document.id, knowledge=True)
    equal((await state_version(catalogue, owner), (await catalogue.communities.pointer(owner)).stale), (before + 2, True))
    await catalogue.documents.record_repair(owner, "nobody's", knowledge=True)
    versions = dict((await catalogue.documents.visibility(owner, since=before)).versions)
    equal(versions, {document.id: 1, "nobody's": 0})


CHECKS: tuple[Check, ...] = (
    documents_have_a_status,
    statuses_are_ordered_by_id,
    visible_chunks_are_returned_by_document,
    unfinished_documents_get_a_job,
    a_repair_is_recorded_as_a_change,
)
