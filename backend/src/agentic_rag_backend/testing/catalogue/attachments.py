"""Contract of every document catalogue for documents that are attachments of a message."""

from __future__ import annotations

import asyncio

from agentic_rag_backend.domain.document import Document
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import Conflict, NotFound
from agentic_rag_backend.stores.catalogue.base import Catalogue, Parent, Submission, Topic
from agentic_rag_backend.testing.catalogue.samples import (
    LINES,
    TEXT,
    Check,
    Queue,
    equal,
    ingest,
    nothing,
    prepared,
    raises,
    stage,
    state_version,
    submission,
    tenant,
    true,
)


def attachment(message: Document, place: str, text: str = TEXT, **other: object) -> Submission:
    """Return the submission of an attachment of the visible version of ``message``."""
    parent = Parent(message.id, message.current_version, place)
    return submission(f"{message.key}#{place}", text, parent=parent, **other)


async def _attach(catalogue: Catalogue, owner: TenantId, message: Document, place: str) -> Document:
    """Make an attachment visible."""
    submitted = await catalogue.documents.submit(owner, attachment(message, place), nothing)
    document = await stage(catalogue, owner, submitted)
    true(await catalogue.documents.publish(owner, document.id, 1), "an attachment is published as any document")
    return await catalogue.documents.document(owner, document.id)


async def attachments_are_identified_by_their_place(catalogue: Catalogue) -> None:
    """A repeated submission changes nothing. Title and metadata of the owner stay until the content changes."""
    owner, docs = await tenant(catalogue), catalogue.documents
    message = await ingest(catalogue, owner, "mail")
    other = await ingest(catalogue, owner, "other")
    queue = Queue()
    first = await docs.submit(owner, attachment(message, "1/a.txt"), queue)
    equal((first.document.parent_id, first.document.place, first.document.key), (message.id, "1/a.txt", "mail#1/a.txt"))
    equal([job for _, job in queue.jobs], [first.job])
    again = await docs.submit(owner, attachment(message, "1/a.txt", document_id="another"), nothing)
    equal((again.unchanged, again.document.id), (True, first.document.id))
    second = await docs.submit(owner, attachment(message, "2/a.txt"), nothing)
    listed = await docs.documents(owner, limit=9, parent_id=message.id)
    equal([each.id for each in listed.items], [second.document.id, first.document.id])
    equal((await docs.documents(owner, limit=9, parent_id=other.id)).items, ())
    equal((await docs.document(owner, message.id)).parent_id, None)
    await stage(catalogue, owner, first)
    await docs.publish(owner, first.document.id, 1)
    own = await docs.submit(owner, attachment(message, "1/a.txt", title="From the file", metadata={"year": 1844}), nothing)
    equal((own.document.title, own.document.metadata), ("Title of mail#1/a.txt", {"colour": "red", "year": 1844}))
    changed = await docs.submit(owner, attachment(message, "1/a.txt", LINES[0], title="New", metadata={}), nothing)
    equal((changed.document.id, changed.document.latest_version), (first.document.id, 2))
    version = await docs.version(owner, first.document.id, 2)
    equal((version.title, version.submitted_metadata), ("New", {}))


async def attachments_need_a_visible_message(catalogue: Catalogue) -> None:
    """Neither an invisible version nor a deleted message gets attachments, and keys of other documents are safe."""
    owner, docs = await tenant(catalogue), catalogue.documents
    message = await ingest(catalogue, owner, "mail")
    await raises(NotFound, docs.submit(owner, submission("x", parent=Parent(message.id, 2, "1/x")), nothing), "a later version")
    await raises(NotFound, docs.submit(owner, submission("x", parent=Parent("unknown", 1, "1/x")), nothing), "an unknown message")
    taken = await ingest(catalogue, owner, "mail#1/a.txt")
    made = await docs.submit(owner, attachment(message, "1/a.txt", document_id="own"), nothing)
    equal((made.document.id, made.document.key), ("own", f"{message.id}#1/a.txt"), "another document has the key")
    equal(await docs.document(owner, taken.id), taken)
    await raises(Conflict, docs.submit(owner, submission(f"{message.id}#1/a.txt"), nothing), "an upload under its key")
    await ingest(catalogue, owner, f"{message.id}#1/b.txt")
    await ingest(catalogue, owner, "mail#1/b.txt")
    await raises(Conflict, docs.submit(owner, attachment(message, "1/b.txt"), nothing), "both keys are taken")


async def a_tombstone_hides_attachments(catalogue: Catalogue) -> None:
    """Attachments are hidden with their message, within one transaction, each with its own job."""
    owner, docs, queue = await tenant(catalogue), catalogue.documents, Queue()
    message = await ingest(catalogue, owner, "mail")
    inner = await _attach(catalogue, owner, message, "1/inner.eml")
    deepest = await _attach(catalogue, owner, inner, "1/deep.txt")
    waiting = await docs.submit(owner, attachment(message, "1/waiting.txt"), nothing)
    other = await ingest(catalogue, owner, "other")
    kept = await _attach(catalogue, owner, other, "1/kept.txt")
    before = await state_version(catalogue, owner)
    job = await docs.tombstone(owner, message.id, queue)
    gone = {message.id, inner.id, deepest.id, waiting.document.id}
    equal({each.document_id for _, each in queue.jobs}, gone)
    equal({each.kind for _, each in queue.jobs}, {JobKind.DELETE})
    deleted = {each.document_id: each.id for _, each in queue.jobs if each.id != job.id}
    equal({each["document_id"]: each["job_id"] for each in job.arguments["attachments"]}, deleted)
    equal(await docs.visible_versions(owner), {other.id: 1, kept.id: 1})
    equal(dict((await docs.visibility(owner, since=before)).versions), dict.fromkeys(gone, 0))
    equal(await docs.hydrate(owner, [item.chunk.id for item in prepared(deepest.id, 1, TEXT)]), {})
    if waiting.job is not None:
        true((await catalogue.jobs.job(owner, waiting.job.id)).cancel_requested, "its ingestion is asked to stop")
    await raises(NotFound, docs.submit(owner, attachment(message, "1/late.txt"), nothing), "a late attachment")
    again = await ingest(catalogue, owner, "mail")
    true((await _attach(catalogue, owner, again, "1/inner.eml")).id != inner.id, "a new message has new attachments")


async def attachments_that_a_message_lost_are_retired(catalogue: Catalogue) -> None:
    """The attachments at other places are deleted, with the ones within them."""
    owner, docs, queue = await tenant(catalogue), catalogue.documents, Queue()
    message = await ingest(catalogue, owner, "mail")
    kept = await _attach(catalogue, owner, message, "1/kept.txt")
    inner = await _attach(catalogue, owner, message, "1/inner.eml")
    deepest = await _attach(catalogue, owner, inner, "1/kept.txt")
    await raises(NotFound, docs.retire_attachments(owner, message.id, 2, [], queue), "of an invisible version")
    equal(await docs.retire_attachments(owner, message.id, 1, ["1/kept.txt", "1/new.txt"], queue), 1)
    equal({each.document_id for _, each in queue.jobs}, {inner.id, deepest.id})
    equal(await docs.retire_attachments(owner, message.id, 1, ["1/kept.txt"], queue), 0, "repeated")
    equal(await docs.visible_versions(owner), {message.id: 1, kept.id: 1})


async def attachments_and_a_tombstone_exclude_each_other(catalogue: Catalogue) -> None:
    """In any order, no attachment of a deleted message exists."""
    owner, docs = await tenant(catalogue), catalogue.documents
    for number in range(6):
        message = await ingest(catalogue, owner, f"mail {number}")
        calls = [
            docs.submit(owner, attachment(message, "1/a.txt"), nothing),
            docs.tombstone(owner, message.id, nothing),
            docs.submit(owner, attachment(message, "2/a.txt"), nothing),
        ]
        ended = await asyncio.gather(*(calls if number % 2 else reversed(calls)), return_exceptions=True)
        true(all(isinstance(each, NotFound) for each in ended if isinstance(each, BaseException)), f"got {ended!r}")
        equal((await docs.documents(owner, limit=9)).items, ())


async def an_original_is_forgotten_after_its_attachments(catalogue: Catalogue) -> None:
    """It stays when the version is published, until `forget_original` records its removal."""
    owner, docs, key = await tenant(catalogue), catalogue.documents, submission("mail").blob_key
    message = await ingest(catalogue, owner, "mail")
    await docs.forget_original(owner, message.id, 2)
    equal(list(await docs.blob_keys(owner, message.id, up_to_version=9)), [key], "version 2 does not exist")
    for _ in range(2):
        await docs.forget_original(owner, message.id, 1)
    equal([(each.topic, each.subject) for each in await catalogue.outbox.pending(owner, limit=9)], [(Topic.ORIGINAL, key)])
    equal(list(await docs.blob_keys(owner, message.id, up_to_version=9)), [])


CHECKS: tuple[Check, ...] = (
    attachments_are_identified_by_their_place,
    attachments_need_a_visible_message,
    a_tombstone_hides_attachments,
    attachments_that_a_message_lost_are_retired,
    attachments_and_a_tombstone_exclude_each_other,
    an_original_is_forgotten_after_its_attachments,
)
