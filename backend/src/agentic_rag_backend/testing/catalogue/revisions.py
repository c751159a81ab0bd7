"""Contract of every document catalogue for changes of a document that keep its content, and for concurrent writers."""

from __future__ import annotations

import asyncio
from typing import Any

from agentic_rag_backend.domain.document import ChunkingOptions, DocumentState, Failure, content_hash
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.errors import Conflict, InvalidRequest, NotFound, PreconditionFailed
from agentic_rag_backend.stores.catalogue.base import ANY_REVISION, Catalogue, Change, Submitted
from agentic_rag_backend.testing.catalogue.samples import (
    LINES,
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
    untimed,
)

TEXT = "\n".join(LINES)
SMALL = ChunkingOptions(chunk_size=33)
BROKEN = Failure("embed", "model_unavailable", "no answer")


async def metadata_is_merged_by_key(catalogue: Catalogue) -> None:
    """Null removes a key, missing keys stay. Readers see the change at once, and cached answers become outdated."""
    owner, queue = await tenant(catalogue), Queue()
    document = await ingest(catalogue, owner, "report")
    before = await state_version(catalogue, owner)
    change = Change(title="Another", metadata={"colour": None, "tags": ["a", "b"], "absent": None})
    changed = await catalogue.documents.revise(owner, document.id, change, queue)
    equal((changed.unchanged, changed.job, queue.jobs), (False, None, []))
    equal((changed.document.title, changed.document.metadata), ("Another", {"year": 1843, "tags": ["a", "b"]}))
    equal((changed.document.current_version, changed.document.latest_version), (1, 1))
    equal(untimed(await catalogue.documents.document(owner, document.id)), untimed(changed.document))
    true(await state_version(catalogue, owner) > before, "other metadata can change an answer")
    chunk = prepared(document.id, 1, TEXT)[0].chunk
    shown = (await catalogue.documents.hydrate(owner, [chunk.id]))[chunk.id]
    equal((shown.document_title, shown.metadata), ("Another", {"year": 1843, "tags": ["a", "b"]}))
    before = await state_version(catalogue, owner)
    again = await catalogue.documents.revise(owner, document.id, change, queue)
    equal((again.unchanged, again.document), (True, await catalogue.documents.document(owner, document.id)))
    equal(await state_version(catalogue, owner), before)


async def a_refused_change_changes_nothing(catalogue: Catalogue) -> None:
    """A failed check of the merged metadata, an unknown id and a deleted document leave everything unchanged."""
    owner = await tenant(catalogue)
    document = await ingest(catalogue, owner, "report")
    merged: list[Any] = []

    def refuse(metadata: Any) -> None:
        merged.append(dict(metadata))
        raise InvalidRequest("too much")

    change = Change(metadata={"more": 1}, check=refuse)
    await raises(InvalidRequest, catalogue.documents.revise(owner, document.id, change, nothing), "a refused change")
    equal(merged, [{"colour": "red", "year": 1843, "more": 1}])
    equal(await catalogue.documents.document(owner, document.id), document)
    cut = Change(chunking=SMALL)
    await raises(ConnectionRefusedError, catalogue.documents.revise(owner, document.id, cut, Queue(fails=True)), "no queue")
    equal(await catalogue.documents.document(owner, document.id), document)
    await raises(NotFound, catalogue.documents.revise(owner, "unknown", Change(title="x"), nothing), "an unknown document")
    await catalogue.documents.tombstone(owner, document.id, nothing)
    await raises(NotFound, catalogue.documents.revise(owner, document.id, Change(title="x"), nothing), "a deleted document")


async def an_unfinished_version_is_superseded(catalogue: Catalogue) -> None:
    """A metadata change during processing creates another version. The visible version stays until it is published."""
    owner, queue = await tenant(catalogue), Queue()
    document = await ingest(catalogue, owner, "report")
    await catalogue.documents.submit(owner, submission("report", LINES[0]), nothing)
    changed = await catalogue.documents.revise(owner, document.id, Change(metadata={"year": None, "shelf": 3}), queue)
    equal([job.version for _, job in queue.jobs], [3])
    equal((changed.document.latest_version, changed.document.metadata), (3, document.metadata))
    version = await catalogue.documents.version(owner, document.id, 3)
    equal((version.content_hash, version.metadata), (content_hash(LINES[0]), {"colour": "red", "year": None, "shelf": 3}))
    fresh = await catalogue.documents.submit(owner, submission("fresh"), nothing)
    changed = await catalogue.documents.revise(owner, fresh.document.id, Change(title="T", metadata={"year": None}), nothing)
    equal((changed.document.title, changed.document.metadata), ("T", {"colour": "red"}), "nothing is visible yet")


async def another_chunking_creates_a_version_of_the_same_original(catalogue: Catalogue) -> None:
    """With the same content, title and metadata. The old chunks stay visible until it is published."""
    owner, queue = await tenant(catalogue), Queue()
    document = await ingest(catalogue, owner, "report")
    await catalogue.documents.revise(owner, document.id, Change(metadata={"shelf": 3}), nothing)
    cut = await catalogue.documents.revise(owner, document.id, Change(chunking=SMALL), queue)
    equal([(job.kind, job.version, job.document_id) for _, job in queue.jobs], [("ingest", 2, document.id)])
    equal((cut.job, cut.document.job_id), (queue.jobs[0][1], queue.jobs[0][1].id))
    first, second = [await catalogue.documents.version(owner, document.id, number) for number in (1, 2)]
    equal((second.options.chunking, second.options.extraction), (SMALL, first.options.extraction))
    equal((second.blob_key, second.content_hash, second.title), (first.blob_key, first.content_hash, first.title))
    equal(second.metadata, {"colour": "red", "year": 1843, "shelf": 3})
    equal(len((await catalogue.documents.chunks(owner, document.id, limit=9)).items), 3)
    same = await catalogue.documents.revise(owner, document.id, Change(chunking=SMALL), queue)
    equal((same.unchanged, same.job, len(queue.jobs)), (True, None, 1))
    await stage(catalogue, owner, cut, TEXT)
    await catalogue.documents.publish(owner, document.id, 2)
    equal(list(await catalogue.documents.drop_versions(owner, document.id, below=2)), [], "the original is still needed")
    equal((await catalogue.documents.revise(owner, document.id, Change(chunking=SMALL), queue)).unchanged, True)


async def a_failed_document_can_be_changed(catalogue: Catalogue) -> None:
    """A failed version is chunked again even without a change. An unreadable one gives way to the visible one, or `Conflict`."""
    owner, queue = await tenant(catalogue), Queue()
    document = await ingest(catalogue, owner, "report")
    submitted = await catalogue.documents.submit(owner, submission("report", LINES[0]), nothing)
    await catalogue.documents.begin_processing(owner, document.id, 2)
    await catalogue.documents.fail(owner, document.id, 2, state=DocumentState.FAILED, failure=BROKEN)
    changed = await catalogue.documents.revise(owner, document.id, Change(metadata={"year": None}), queue)
    equal((changed.job, changed.document.metadata), (None, {"colour": "red"}), "what is visible shows it")
    if submitted.job is not None:
        await catalogue.jobs.finish(owner, submitted.job.id, JobState.FAILED)
        await catalogue.jobs.retry(owner, submitted.job.id, nothing)
    equal((await catalogue.documents.version(owner, document.id, 2)).metadata, {"colour": "red", "year": None})
    await catalogue.documents.fail(owner, document.id, 2, state=DocumentState.FAILED, failure=BROKEN)
    again = await catalogue.documents.revise(owner, document.id, Change(chunking=ChunkingOptions()), queue)
    equal((again.document.latest_version, len(queue.jobs)), (3, 1))
    await catalogue.documents.fail(owner, document.id, 3, state=DocumentState.UNREADABLE, failure=BROKEN)
    await catalogue.documents.revise(owner, document.id, Change(chunking=SMALL), queue)
    equal((await catalogue.documents.version(owner, document.id, 4)).content_hash, content_hash(TEXT))
    lost = (await catalogue.documents.submit(owner, submission("lost"), nothing)).document
    await catalogue.documents.fail(owner, lost.id, 1, state=DocumentState.UNREADABLE, failure=BROKEN)
    await raises(Conflict, catalogue.documents.revise(owner, lost.id, Change(chunking=SMALL), queue), "nothing to cut")


async def a_revision_identifies_one_state_of_a_document(catalogue: Catalogue) -> None:
    """Processing keeps it. It changes with version, title and metadata, and differs between equal documents."""
    owner = await tenant(catalogue)
    submitted = await catalogue.documents.submit(owner, submission("report"), nothing)
    document = await stage(catalogue, owner, submitted)
    await catalogue.documents.publish(owner, document.id, 1)
    seen = [submitted.document.revision]
    equal((await catalogue.documents.document(owner, document.id)).revision, seen[0])
    changes = (Change(title="Other"), Change(metadata={"shelf": 3}), Change(chunking=SMALL))
    made = [await catalogue.documents.revise(owner, document.id, change, nothing) for change in changes]
    made.append(await catalogue.documents.submit(owner, submission("report", LINES[0]), nothing))
    made.append(await catalogue.documents.submit(owner, submission("like it"), nothing))
    seen += [item.document.revision for item in made]
    equal(len(set(seen)), len(seen))


async def one_of_two_writers_wins(catalogue: Catalogue) -> None:
    """Of many writers that expect the same revision, exactly one changes the document."""
    owner, docs = await tenant(catalogue), catalogue.documents
    for turn in range(3):
        document = await ingest(catalogue, owner, f"report {turn}")
        seen = frozenset({document.revision})
        calls = [
            docs.revise(owner, document.id, Change(metadata={"by": 1}, expected=seen), nothing),
            docs.revise(owner, document.id, Change(metadata={"by": 2}, expected=seen), nothing),
            docs.revise(owner, document.id, Change(title="By 3", expected=seen), nothing),
            docs.revise(owner, document.id, Change(chunking=SMALL, expected=seen), nothing),
            docs.submit(owner, submission(f"report {turn}", LINES[0], expected=seen), nothing),
            docs.submit(owner, submission(f"report {turn}", metadata={"by": 6}, expected=seen), nothing),
        ]
        found = await asyncio.gather(*calls, return_exceptions=True)
        equal(sum(isinstance(item, PreconditionFailed) for item in found), len(calls) - 1)
        (won,) = (item for item in found if isinstance(item, Submitted))
        equal(untimed(await docs.document(owner, document.id)), untimed(won.document))
    document = await ingest(catalogue, owner, "last")
    await docs.revise(owner, document.id, Change(title="Newer"), nothing)
    late = frozenset({document.revision})
    await raises(PreconditionFailed, docs.tombstone(owner, document.id, nothing, expected=late), "deleting what has changed")
    equal((await docs.document(owner, document.id)).title, "Newer")
    anyway = submission("absent", expected=frozenset({ANY_REVISION}))
    await raises(PreconditionFailed, docs.submit(owner, anyway, nothing), "expecting a document that is not there")
    await docs.revise(owner, document.id, Change(title="Any", expected=frozenset({ANY_REVISION, "x"})), nothing)
    now = frozenset({"x", (await docs.document(owner, document.id)).revision})
    await docs.tombstone(owner, document.id, nothing, expected=now)
    await raises(NotFound, docs.tombstone(owner, document.id, nothing, expected=late), "a deleted document")


async def a_job_ends_with_its_counts(catalogue: Catalogue) -> None:
    """Stage and counts given at the end are stored. Others stay unchanged."""
    owner = await tenant(catalogue)
    for progress, expected in ((("publish", 3, 3), ("publish", 3, 3)), (None, ("embed", 1, 3))):
        submitted = await catalogue.documents.submit(owner, submission(f"report {progress}"), nothing)
        job_id = submitted.job.id if submitted.job else ""
        await catalogue.jobs.progress(owner, job_id, stage="embed", done=1, total=3)
        await catalogue.jobs.finish(owner, job_id, JobState.SUCCEEDED, progress=progress)
        job = await catalogue.jobs.job(owner, job_id)
        equal((job.stage, job.done, job.total), expected)


CHECKS: tuple[Check, ...] = (
    metadata_is_merged_by_key,
    a_refused_change_changes_nothing,
    an_unfinished_version_is_superseded,
    another_chunking_creates_a_version_of_the_same_original,
    a_failed_document_can_be_changed,
    a_revision_identifies_one_state_of_a_document,
    one_of_two_writers_wins,
    a_job_ends_with_its_counts,
)
