"""Contract of every document catalogue."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np

from agentic_rag_backend.domain.document import (
    ChunkingOptions,
    ChunkSpan,
    DocumentState,
    Failure,
    ParentPassage,
    ProcessingOptions,
    VisibleChunk,
    content_hash,
)
from agentic_rag_backend.domain.filters import And, Comparison, Not
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.base import Catalogue, ParsedVersion
from agentic_rag_backend.testing.catalogue.samples import (
    BAD,
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
    untimed,
)


async def a_submission_is_recorded_with_its_job(catalogue: Catalogue) -> None:
    """Document, version and job exist, and the queue has the job."""
    owner, queue = await tenant(catalogue), Queue()
    handed_in = submission("report", options=ProcessingOptions(chunking=ChunkingOptions(chunk_size=99)))
    submitted = await catalogue.documents.submit(owner, handed_in, queue)
    job = submitted.job
    true(job is not None and not submitted.unchanged, "a new document needs a job")
    if job is None:
        return
    equal([(job.kind, job.state, job.document_id, job.version, job.attempt)], [("ingest", "queued", handed_in.document_id, 1, 1)])
    equal(queue.jobs, [(owner, job)])
    equal(await catalogue.jobs.job(owner, job.id), job)
    document = await catalogue.documents.document(owner, handed_in.document_id)
    equal(document, submitted.document)
    equal((document.key, document.title, document.state, document.job_id), ("report", "Title of report", "pending", job.id))
    equal((document.current_version, document.latest_version, document.chunk_count), (0, 1, 0))
    equal(document.metadata, {"colour": "red", "year": 1843})
    true(document.created_at.utcoffset() is not None, "times are aware")
    version = await catalogue.documents.version(owner, document.id, 1)
    equal((version.blob_key, version.options, version.text), (handed_in.blob_key, handed_in.options, ""))


async def nul_characters_cause_no_server_error(catalogue: Catalogue) -> None:
    """PostgreSQL cannot store U+0000. Searching for it finds nothing or is refused, without a server error."""
    owner = await tenant(catalogue)
    for asked in (catalogue.documents.document, catalogue.jobs.job):
        try:
            await asked(owner, "a\0b")
        except (NotFound, InvalidRequest):
            continue
        true(False, "there is no such document or job")


async def submissions_are_atomic(catalogue: Catalogue) -> None:
    """If the queue refuses, no document, version or job is left."""
    owner = await tenant(catalogue)
    await raises(
        ConnectionRefusedError, catalogue.documents.submit(owner, submission("report"), Queue(fails=True)), "a queue that is down"
    )
    equal((await catalogue.documents.documents(owner, limit=10)).items, ())
    equal((await catalogue.jobs.jobs(owner, limit=10)).items, ())
    document = await ingest(catalogue, owner, "other")
    await raises(
        ConnectionRefusedError, catalogue.documents.tombstone(owner, document.id, Queue(fails=True)), "a queue that is down"
    )
    equal(await catalogue.documents.document(owner, document.id), document)


async def a_repeated_submission_is_unchanged(catalogue: Catalogue) -> None:
    """Equal submissions change nothing, processed or not. Without a caller's key, a document has none."""
    owner, queue = await tenant(catalogue), Queue()
    first = await catalogue.documents.submit(owner, submission("report"), queue)
    again = await catalogue.documents.submit(owner, submission("report", document_id="another"), queue)
    equal((again.unchanged, again.job, again.document), (True, None, first.document))
    document = await ingest(catalogue, owner, content_hash(TEXT))
    equal(document.key, None)
    version = await state_version(catalogue, owner)
    again = await catalogue.documents.submit(owner, submission(content_hash(TEXT)), queue)
    equal((again.unchanged, again.document), (True, document))
    equal(await state_version(catalogue, owner), version)
    equal(len(queue.jobs), 1)


async def changed_metadata_is_an_update(catalogue: Catalogue) -> None:
    """With equal content, a visible document is not processed again, but readers of its metadata are notified."""
    owner = await tenant(catalogue)
    submitted = await catalogue.documents.submit(owner, submission("report"), nothing)
    document = submitted.document
    await stage(catalogue, owner, submitted)
    merged = {"colour": "red", "year": 1843, "author": "Ada"}
    await catalogue.documents.save_parsed(owner, document.id, 1, ParsedVersion(TEXT, "Parsed", merged))
    await catalogue.documents.publish(owner, document.id, 1)
    before = await state_version(catalogue, owner)
    updated = await catalogue.documents.submit(owner, submission("report", metadata={"colour": "blue"}), nothing)
    equal((updated.unchanged, updated.job), (False, None))
    equal(updated.document.metadata, {"colour": "blue", "author": "Ada"}, "what parsing found stays")
    equal(updated.document.title, "Parsed")
    equal(untimed(await catalogue.documents.document(owner, document.id)), untimed(updated.document))
    true(await state_version(catalogue, owner) > before, "other metadata can change an answer")
    chunk = prepared(document.id, 1, TEXT)[0].chunk
    equal((await catalogue.documents.hydrate(owner, [chunk.id]))[chunk.id].metadata, {"colour": "blue", "author": "Ada"})
    again = await catalogue.documents.submit(owner, submission("report", metadata={"colour": "blue"}), nothing)
    equal(again.unchanged, True)


async def changed_content_or_options_create_a_version(catalogue: Catalogue) -> None:
    """The old version stays visible until the new one is published."""
    owner = await tenant(catalogue)
    document = await ingest(catalogue, owner, "report")
    new_text = "\n".join((*LINES[1:], "The engine was never finished."))
    submitted = await catalogue.documents.submit(owner, submission("report", new_text, title="Second"), nothing)
    equal((submitted.document.id, submitted.document.latest_version, submitted.document.current_version), (document.id, 2, 1))
    equal((submitted.document.title, submitted.document.content_hash), (document.title, document.content_hash))
    await stage(catalogue, owner, submitted, new_text)
    old, new = prepared(document.id, 1, TEXT), prepared(document.id, 2, new_text)
    ids = [item.chunk.id for item in (*old, *new)]
    shown = await catalogue.documents.hydrate(owner, ids)
    equal([shown[item.chunk.id].chunk for item in old], [item.chunk for item in old])
    equal(len(shown), len(old))
    equal(await catalogue.documents.publish(owner, document.id, 2), True)
    shown = await catalogue.documents.hydrate(owner, ids)
    equal([shown[item.chunk.id].chunk for item in new], [item.chunk for item in new])
    equal(len(shown), len(new))
    document = await catalogue.documents.document(owner, document.id)
    equal((document.current_version, document.content_hash, document.chunk_count), (2, content_hash(new_text), len(new)))
    options = ProcessingOptions(chunking=ChunkingOptions(overlap=0))
    submitted = await catalogue.documents.submit(owner, submission("report", new_text, title="Second", options=options), nothing)
    equal(submitted.document.latest_version, 3)


async def processing_steps_are_repeatable(catalogue: Catalogue) -> None:
    """Repeating a step changes nothing, also in other batches and after publishing."""
    owner = await tenant(catalogue)
    submitted = await catalogue.documents.submit(owner, submission("report"), nothing)
    document = submitted.document
    staged = prepared(document.id, 1, TEXT)
    for _ in range(2):
        await stage(catalogue, owner, submitted)
    await catalogue.documents.save_prepared(owner, document.id, 1, staged[1:])
    found = await catalogue.documents.prepared(owner, document.id, 1)
    equal([(item.chunk, item.extraction) for item in found], [(item.chunk, item.extraction) for item in staged])
    equal([np.asarray(item.vector).tolist() for item in found], [np.asarray(item.vector).tolist() for item in staged])
    equal(await catalogue.documents.hydrate(owner, [item.chunk.id for item in staged]), {}, "nothing is visible yet")
    before = await state_version(catalogue, owner)
    equal(await catalogue.documents.publish(owner, document.id, 1), True)
    after = await state_version(catalogue, owner)
    true(after > before, "publishing changes answers")
    published = await catalogue.documents.document(owner, document.id)
    equal((published.state, published.chunk_count), (DocumentState.READY, len(staged)))
    await stage(catalogue, owner, submitted)
    equal(await catalogue.documents.publish(owner, document.id, 1), True)
    equal(await catalogue.documents.document(owner, document.id), published)
    equal(await state_version(catalogue, owner), after, "a repeated publish changes nothing")


async def another_parse_removes_prepared_chunks(catalogue: Catalogue) -> None:
    """Prepared chunks of another text are dropped."""
    owner = await tenant(catalogue)
    submitted = await catalogue.documents.submit(owner, submission("report"), nothing)
    await stage(catalogue, owner, submitted)
    await stage(catalogue, owner, submitted, LINES[0])
    document = submitted.document
    equal([item.chunk.text for item in await catalogue.documents.prepared(owner, document.id, 1)], [LINES[0]])
    await catalogue.documents.publish(owner, document.id, 1)
    equal((await catalogue.documents.version(owner, document.id, 1)).text, LINES[0])
    equal((await catalogue.documents.document(owner, document.id)).chunk_count, 1)


async def version_numbers_only_increase(catalogue: Catalogue) -> None:
    """A late version neither starts nor becomes visible."""
    owner = await tenant(catalogue)
    first = await catalogue.documents.submit(owner, submission("report"), nothing)
    await stage(catalogue, owner, first)
    second = await catalogue.documents.submit(owner, submission("report", LINES[0]), nothing)
    document = second.document
    equal(await catalogue.documents.begin_processing(owner, document.id, 1), None, "version 2 has overtaken it")
    await stage(catalogue, owner, second, LINES[0])
    equal(await catalogue.documents.publish(owner, document.id, 2), True)
    before = await catalogue.documents.document(owner, document.id)
    equal(await catalogue.documents.publish(owner, document.id, 1), False)
    equal(await catalogue.documents.publish(owner, document.id, 7), False)
    equal(await catalogue.documents.document(owner, document.id), before)
    equal(await catalogue.documents.visible_versions(owner), {document.id: 2})


async def visible_chunks_are_ordered_by_their_documents(catalogue: Catalogue) -> None:
    """By key, and then as they are read, whatever the ids of the documents are."""
    owner, other = await tenant(catalogue, "one"), await tenant(catalogue, "other")
    documents = {key: (await ingest(catalogue, owner, key)).id for key in ("b", "a", "c", "B")}
    await ingest(catalogue, other, "a")
    await catalogue.documents.submit(owner, submission("waiting"), nothing)
    await catalogue.documents.tombstone(owner, documents.pop("c"), nothing)
    order = await catalogue.documents.visible_chunk_ids(owner, list(documents.values()))
    expected = [chunk for key in ("B", "a", "b") for chunk in order[documents[key]]]
    equal(await catalogue.documents.visible_chunks_in_order(owner), expected)
    true(len(expected) > len(documents), "documents of several chunks")


async def a_failed_version_keeps_the_visible_one(catalogue: Catalogue) -> None:
    """The failure is listed, the older version stays visible, and the same content is processed again."""
    owner = await tenant(catalogue)
    first = await catalogue.documents.submit(owner, submission("report"), nothing)
    document = first.document
    await catalogue.documents.begin_processing(owner, document.id, 1)
    await catalogue.documents.fail(owner, document.id, 1, state=DocumentState.UNREADABLE, failure=BAD)
    failed = await catalogue.documents.document(owner, document.id)
    equal((failed.state, failed.failures, failed.current_version), (DocumentState.UNREADABLE, (BAD,), 0))
    equal(await catalogue.documents.publish(owner, document.id, 1), False, "a failed version is over")
    again = await catalogue.documents.submit(owner, submission("report"), nothing)
    true(again.job is not None and not again.unchanged, "what failed is processed again")
    await stage(catalogue, owner, again)
    listed = Failure("extract", "model_unavailable", "one chunk", "c1")
    equal(await catalogue.documents.publish(owner, document.id, 2, failures=[listed]), True)
    visible = await catalogue.documents.document(owner, document.id)
    equal((visible.state, visible.failures, visible.current_version), (DocumentState.PARTIAL, (listed,), 2))
    await catalogue.documents.submit(owner, submission("report", LINES[0]), nothing)
    await catalogue.documents.begin_processing(owner, document.id, 3)
    await catalogue.documents.fail(owner, document.id, 3, state=DocumentState.FAILED, failure=BAD)
    still = await catalogue.documents.document(owner, document.id)
    equal((still.state, still.failures, still.current_version), (DocumentState.PARTIAL, (listed, BAD), 2))
    equal(await catalogue.documents.visible_versions(owner), {document.id: 2})


async def concurrent_equal_submissions_are_one_document(catalogue: Catalogue) -> None:
    """Twenty concurrent submissions create one document with one job."""
    owner, queue = await tenant(catalogue), Queue()
    handed_in = [submission("report", document_id=f"proposed {number}") for number in range(20)]
    found = await asyncio.gather(*(catalogue.documents.submit(owner, one, queue) for one in handed_in))
    equal(len({one.document.id for one in found}), 1)
    equal(sorted(one.unchanged for one in found), [False] + [True] * 19)
    equal(len(queue.jobs), 1)


async def documents_are_listed_in_pages(catalogue: Catalogue) -> None:
    """Newest first, without repetition, filtered by state, key and filter. Invalid cursors and limits are refused."""
    owner, docs = await tenant(catalogue), catalogue.documents
    for number in range(7):
        await docs.submit(owner, submission(f"report {number}", metadata={"even": number % 2 == 0, "n": number}), nothing)
    keys, cursor = [], None
    while True:
        page = await docs.documents(owner, limit=3, cursor=cursor)
        keys += [document.key for document in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    equal(keys, [f"report {number}" for number in reversed(range(7))])
    even = And((Comparison("even", "eq", True), Not(Comparison("n", "gt", 4))))
    first = await docs.documents(owner, limit=2, filter=even)
    equal([document.key for document in first.items], ["report 4", "report 2"])
    rest = await docs.documents(owner, limit=2, filter=even, cursor=first.next_cursor)
    equal(([document.key for document in rest.items], rest.next_cursor), (["report 0"], None))
    equal([item.key for item in (await docs.documents(owner, limit=9, key="report 3")).items], ["report 3"])
    equal((await docs.documents(owner, limit=9, state=DocumentState.READY)).items, ())
    one = first.items[0]
    by_id = And((Comparison("document_id", "eq", one.id), Comparison("title", "contains", "TITLE")))
    equal((await docs.documents(owner, limit=9, filter=by_id)).items, (one,))
    jobs = await catalogue.jobs.jobs(owner, limit=2)
    for cursor in ("garbage", "", "é", "AAAA", (first.next_cursor or "")[:-3], jobs.next_cursor):
        await raises(InvalidRequest, docs.documents(owner, limit=2, cursor=cursor), f"cursor {cursor!r}")
    for limit in (0, -1, 1_000_000):
        await raises(InvalidRequest, docs.documents(owner, limit=limit), f"limit {limit}")


async def chunks_are_listed_in_reading_order(catalogue: Catalogue) -> None:
    """In pages, of the visible version. Hydration accepts any number of ids, including repeated and unknown ones."""
    owner = await tenant(catalogue)
    text = "\n".join(f"This is line {number}." for number in range(1203))
    document = await ingest(catalogue, owner, "long", text)
    found: list[VisibleChunk] = []
    cursor = None
    while True:
        page = await catalogue.documents.chunks(owner, document.id, limit=500, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    expected = [item.chunk for item in prepared(document.id, 1, text)]
    equal([item.chunk for item in found], expected)
    equal({(item.document_title, item.document_key) for item in found}, {("Title of long", "long")})
    shown = await catalogue.documents.hydrate(owner, [*(chunk.id for chunk in expected), expected[0].id, "unknown"])
    equal({id: item.chunk for id, item in shown.items()}, {chunk.id: chunk for chunk in expected})
    equal(await catalogue.documents.hydrate(owner, []), {})
    counts = await catalogue.documents.counts(owner)
    equal((counts["documents"], counts["documents_ready"], counts["chunks"]), (1, 1, 1203))


async def parents_are_read_with_their_chunks(catalogue: Catalogue) -> None:
    """A parent has the text between its offsets, in characters, and its chunks. Only visible versions have parents."""
    owner, docs = await tenant(catalogue), catalogue.documents
    text = "Größe \U0001f6a2 zählt.\n\nThe second line."
    document = await ingest(catalogue, owner, "report", text)
    chunks = [item.chunk for item in prepared(document.id, 1, text)]
    found = await docs.parents(owner, [chunks[2].id, chunks[0].id, "unknown"])
    equal(
        found,
        {
            chunks[0].parent_id: ParentPassage(
                id=chunks[0].parent_id or "", start_char=0, end_char=len(text), text=text, chunks=tuple(chunks)
            )
        },
    )
    equal(await docs.parents(owner, []), {})
    second = await docs.submit(owner, submission("report", LINES[0]), nothing)
    await stage(catalogue, owner, second, LINES[0])
    staged = prepared(document.id, 2, LINES[0])[0].chunk
    equal(await docs.parents(owner, [staged.id]), {}, "the second version is not visible yet")
    await docs.publish(owner, document.id, 2)
    equal(list(await docs.parents(owner, [staged.id, chunks[0].id])), [staged.parent_id])
    true(staged.parent_id != chunks[0].parent_id, "a parent's id names its version")


async def neighbouring_chunks_are_read_as_one_passage(catalogue: Catalogue) -> None:
    """A span of chunks has the text from its first to its last character. Only visible versions have passages."""
    owner, docs = await tenant(catalogue), catalogue.documents
    text = "Größe \U0001f6a2 zählt.\nThe second line.\nThe third line."
    document = await ingest(catalogue, owner, "report", text)
    chunks = [item.chunk for item in prepared(document.id, 1, text)]
    whole, last, beyond = (ChunkSpan(document.id, *ends) for ends in ((0, 99), (2, 2), (70, 80)))
    found = await docs.passages(owner, [whole, last, beyond, ChunkSpan("unknown", 0, 5), last])
    equal(set(found), {whole, last}, "spans without a chunk are absent")
    equal((found[whole].text, found[whole].chunks), (text, tuple(chunks)))
    start = text.index("The third")
    equal((found[last].start_char, found[last].end_char, found[last].text), (start, len(text), text[start:]))
    equal(await docs.passages(owner, []), {})
    second = await docs.submit(owner, submission("report", LINES[0]), nothing)
    await stage(catalogue, owner, second, LINES[0])
    equal((await docs.passages(owner, [whole]))[whole].text, text, "the second version is not visible yet")
    await docs.publish(owner, document.id, 2)
    equal((await docs.passages(owner, [whole]))[whole].text, LINES[0])


async def a_partial_ingestion_is_retried_as_a_new_version(catalogue: Catalogue) -> None:
    """The visible version stays meanwhile. A failed version keeps its number and its prepared chunks."""
    owner, queue = await tenant(catalogue), Queue()
    submitted = await catalogue.documents.submit(owner, submission("report"), nothing)
    document, job = await stage(catalogue, owner, submitted), submitted.job
    if job is None:
        raise AssertionError("a new document needs a job")
    await catalogue.documents.fail(owner, document.id, 1, state=DocumentState.FAILED, failure=BAD)
    await catalogue.jobs.finish(owner, job.id, JobState.FAILED)
    again = await catalogue.jobs.retry(owner, job.id, queue)
    equal((again.version, again.attempt), (1, 2))
    equal((await catalogue.documents.document(owner, document.id)).state, DocumentState.PENDING)
    equal(len(await catalogue.documents.prepared(owner, document.id, 1)), 3, "what was computed at a price is kept")
    await stage(catalogue, owner, submitted)
    await catalogue.documents.publish(owner, document.id, 1, failures=[BAD])
    await catalogue.jobs.finish(owner, job.id, JobState.PARTIAL)
    again = await catalogue.jobs.retry(owner, job.id, queue)
    equal((again.version, again.attempt, [one.version for _, one in queue.jobs]), (2, 3, [1, 2]))
    equal(await catalogue.documents.visible_versions(owner), {document.id: 1})
    first, second = [await catalogue.documents.version(owner, document.id, number) for number in (1, 2)]
    equal(replace(second, version=1, text=TEXT), replace(first, metadata=second.metadata))


CHECKS: tuple[Check, ...] = (
    a_submission_is_recorded_with_its_job,
    parents_are_read_with_their_chunks,
    neighbouring_chunks_are_read_as_one_passage,
    nul_characters_cause_no_server_error,
    submissions_are_atomic,
    a_repeated_submission_is_unchanged,
    changed_metadata_is_an_update,
    changed_content_or_options_create_a_version,
    processing_steps_are_repeatable,
    another_parse_removes_prepared_chunks,
    visible_chunks_are_ordered_by_their_documents,
    version_numbers_only_increase,
    a_failed_version_keeps_the_visible_one,
    concurrent_equal_submissions_are_one_document,
    documents_are_listed_in_pages,
    chunks_are_listed_in_reading_order,
    a_partial_ingestion_is_retried_as_a_new_version,
)
