"""Contract of every document catalogue for deletions: of documents, of superseded versions and of originals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agentic_rag_backend.domain.document import (
    ChunkingOptions,
    DocumentState,
    content_hash,
)
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.errors import NotFound
from agentic_rag_backend.stores.catalogue.base import Catalogue, Change, ParsedVersion, Topic
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


async def a_tombstone_hides_immediately(catalogue: Catalogue) -> None:
    """The document is hidden, its open jobs are asked to stop, and late steps raise `NotFound`."""
    owner, queue = await tenant(catalogue), Queue()
    document = await ingest(catalogue, owner, "report")
    newer = await catalogue.documents.submit(owner, submission("report", LINES[0]), nothing)
    before = await state_version(catalogue, owner)
    job = await catalogue.documents.tombstone(owner, document.id, queue)
    true(await state_version(catalogue, owner) > before, "a tombstone changes answers")
    equal((job.kind, job.document_id, job.version, queue.jobs), (JobKind.DELETE, document.id, 2, [(owner, job)]))
    if newer.job is not None:
        true((await catalogue.jobs.job(owner, newer.job.id)).cancel_requested, "its ingestion is asked to stop")
    docs, ids = catalogue.documents, [item.chunk.id for item in prepared(document.id, 1, TEXT)]
    equal(await docs.hydrate(owner, ids), {})
    equal(await docs.visible_versions(owner), {})
    equal((await docs.documents(owner, limit=10)).items, ())
    equal([item.id for item in (await docs.documents(owner, limit=10, state=DocumentState.DELETING)).items], [document.id])
    late: dict[str, Callable[[], Awaitable[Any]]] = {
        "document": lambda: docs.document(owner, document.id),
        "version": lambda: docs.version(owner, document.id, 1),
        "chunks": lambda: docs.chunks(owner, document.id, limit=5),
        "a second delete": lambda: docs.tombstone(owner, document.id, queue),
        "save_parsed": lambda: docs.save_parsed(owner, document.id, 2, ParsedVersion("x", "x", {})),
        "save_prepared": lambda: docs.save_prepared(owner, document.id, 2, prepared(document.id, 2, "x")),
    }
    for what, call in late.items():
        await raises(NotFound, call(), what)
    equal(await docs.begin_processing(owner, document.id, 2), None)
    equal(await docs.publish(owner, document.id, 2), False)
    counts = await docs.counts(owner)
    equal((counts["documents"], counts["chunks"], counts["documents_deleting"]), (0, 0, 1))


async def a_purge_removes_only_tombstoned_versions(catalogue: Catalogue) -> None:
    """It keeps documents without a tombstone, newer versions and a new upload, and removes everything else."""
    owner = await tenant(catalogue)
    document = await ingest(catalogue, owner, "report")
    equal(sum((await catalogue.documents.purge(owner, document.id, up_to_version=9)).values()), 0, "it is not tombstoned")
    equal(await catalogue.documents.document(owner, document.id), document)
    second = await catalogue.documents.submit(owner, submission("report", LINES[0]), nothing)
    await stage(catalogue, owner, second, LINES[0])
    await catalogue.documents.tombstone(owner, document.id, nothing)
    again = await ingest(catalogue, owner, "report")
    true(again.id != document.id, "a tombstoned document keeps its id until it is purged")
    keys = await catalogue.documents.blob_keys(owner, document.id, up_to_version=2)
    equal(list(keys), [submission("report").blob_key, submission("report", LINES[0]).blob_key])
    first = await catalogue.documents.purge(owner, document.id, up_to_version=1)
    equal((first["document_versions"], first["chunks"], first["documents"]), (1, 3, 0))
    before = await state_version(catalogue, owner)
    rest = await catalogue.documents.purge(owner, document.id, up_to_version=2)
    equal((rest["document_versions"], rest["chunks"], rest["prepared_chunks"], rest["documents"]), (1, 1, 1, 1))
    equal(first["chunk_texts"] + rest["chunk_texts"], 3, "the shared chunk goes with its last version")
    true(await state_version(catalogue, owner) > before, "the end of a purge is counted")
    equal(sum((await catalogue.documents.purge(owner, document.id, up_to_version=2)).values()), 0, "repeated")
    equal(await catalogue.documents.document(owner, again.id), again)
    equal(await catalogue.documents.visible_versions(owner), {again.id: 1})


async def superseded_versions_are_removed(catalogue: Catalogue) -> None:
    """Only versions below the visible one are removed, with the originals that no other version needs."""
    owner = await tenant(catalogue)
    document = await ingest(catalogue, owner, "report")
    equal(list(await catalogue.documents.drop_versions(owner, document.id, below=5)), [], "the visible version stays")
    await ingest(catalogue, owner, "report", LINES[0])
    third = await catalogue.documents.submit(owner, submission("report", LINES[1]), nothing)
    before = await state_version(catalogue, owner)
    equal(list(await catalogue.documents.drop_versions(owner, document.id, below=3)), [submission("report").blob_key])
    equal(await state_version(catalogue, owner), before + 1, "their data is gone from the other stores")
    equal(list(await catalogue.documents.drop_versions(owner, document.id, below=3)), [])
    await raises(NotFound, catalogue.documents.version(owner, document.id, 1), "a dropped version")
    kept = prepared(document.id, 2, LINES[0])[0].chunk
    equal((await catalogue.documents.hydrate(owner, [kept.id]))[kept.id].chunk, kept, "its chunk was version 1's as well")
    equal((await catalogue.documents.version(owner, document.id, 3)).content_hash, content_hash(LINES[1]))
    true(third.job is not None, "version 3 is on its way")


async def a_discarded_original_is_recorded_in_the_outbox(catalogue: Catalogue) -> None:
    """The outbox names it, its version no longer does. Versions of the same content use text and metadata."""
    owner, key = await tenant(catalogue), submission("report").blob_key
    submitted = await catalogue.documents.submit(owner, submission("report", metadata={"shelf": 1}), nothing)
    document_id = submitted.document.id
    await stage(catalogue, owner, submitted)
    text, metadata = "\n".join(LINES), {"shelf": 1, "from the file": True}
    await catalogue.documents.save_parsed(owner, document_id, 1, ParsedVersion(text, "Title of report", metadata))
    equal(await catalogue.documents.unknown_blobs(owner, [key]), [])
    equal(await catalogue.documents.publish(owner, document_id, 1, keep_original=False), True)
    equal(await catalogue.documents.publish(owner, document_id, 1, keep_original=False), True, "repeated")
    equal([(each.topic, each.subject) for each in await catalogue.outbox.pending(owner, limit=9)], [(Topic.ORIGINAL, key)])
    equal(await catalogue.documents.unknown_blobs(owner, [key]), [key])
    equal(list(await catalogue.documents.blob_keys(owner, document_id, up_to_version=9)), [])
    (status,) = await catalogue.documents.statuses(owner, ids=[document_id])
    equal(status.blob_key, None)
    change = Change(chunking=ChunkingOptions(chunk_size=9, overlap=0), metadata={"shelf": 2})
    revised = await catalogue.documents.revise(owner, document_id, change, nothing)
    again = await catalogue.documents.begin_processing(owner, document_id, 2)
    true(again is not None and revised.job is not None, "the text can be cut again")
    if again is not None:
        equal((again.blob_key, again.text, again.metadata), ("", text, {"shelf": 2, "from the file": True}))
    await stage(catalogue, owner, revised)
    equal(await catalogue.documents.publish(owner, document_id, 2, keep_original=False), True)
    equal(list(await catalogue.documents.drop_versions(owner, document_id, below=2)), [])
    await raises(NotFound, catalogue.documents.version(owner, document_id, 1), "a dropped version")


async def publish_and_tombstone_exclude_each_other(catalogue: Catalogue) -> None:
    """In any order, a tombstoned document never becomes visible again."""
    owner = await tenant(catalogue)
    for number in range(8):
        submitted = await catalogue.documents.submit(owner, submission(f"report {number}"), nothing)
        document = await stage(catalogue, owner, submitted)
        calls = [
            catalogue.documents.publish(owner, document.id, 1),
            catalogue.documents.tombstone(owner, document.id, nothing),
            catalogue.documents.publish(owner, document.id, 1),
        ]
        await asyncio.gather(*(calls if number % 2 else reversed(calls)))
        equal(await catalogue.documents.publish(owner, document.id, 1), False)
        equal(await catalogue.documents.visible_versions(owner), {})
        equal(await catalogue.documents.hydrate(owner, [item.chunk.id for item in prepared(document.id, 1, TEXT)]), {})


CHECKS: tuple[Check, ...] = (
    a_tombstone_hides_immediately,
    a_purge_removes_only_tombstoned_versions,
    superseded_versions_are_removed,
    a_discarded_original_is_recorded_in_the_outbox,
    publish_and_tombstone_exclude_each_other,
)
