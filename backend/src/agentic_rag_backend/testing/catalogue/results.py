"""Contract of every document catalogue for expensive results: they are kept and never confused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.document import Chunk, Document, DocumentState, Failure
from agentic_rag_backend.domain.graph import Alias, Extraction
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import Conflict, NotFound
from agentic_rag_backend.stores.catalogue.base import Catalogue, Ending, HandOn, ParsedVersion, PreparedChunk
from agentic_rag_backend.testing.catalogue.samples import (
    LINES,
    Check,
    Queue,
    equal,
    ingest,
    nothing,
    prepared,
    raises,
    recipe,
    stage,
    submission,
    tenant,
    true,
)

TEXT = "\n".join(LINES)
NEW = "The engine was never finished."
SECOND = "\n".join((*LINES[1:], NEW))
REFUSED = Failure("embed", "model_input_refused", "HTTP 400", "c1")


def wanted(items: Sequence[PreparedChunk], *, made_with: str = "v1") -> list[tuple[Chunk, str]]:
    """Return chunks with their recipes."""
    return [(item.chunk, recipe(item.chunk, made_with=made_with)) for item in items]


def seen(items: Sequence[PreparedChunk]) -> list[object]:
    """Return the comparable fields of prepared chunks."""
    return [
        (item.chunk, item.extraction, item.recipe, item.failure, item.reused, None if item.vector is None else list(item.vector))
        for item in items
    ]


async def begin(catalogue: Catalogue, owner: TenantId, key: str, text: str) -> Document:
    """Submit a version of ``text`` and parse it."""
    document = (await catalogue.documents.submit(owner, submission(key, text), nothing)).document
    version = document.latest_version
    begun = await catalogue.documents.begin_processing(owner, document.id, version)
    true(begun is not None and begun.version == version, "a version that waits can be begun")
    await catalogue.documents.save_parsed(owner, document.id, version, ParsedVersion(text, document.title, {}))
    return document


async def the_next_job_is_created_with_the_last_chunks(catalogue: Catalogue) -> None:
    """Enqueueing is part of the transaction: after a failure nothing is staged, and a commit finds everything at once."""
    owner, docs, queue = await tenant(catalogue), catalogue.documents, Queue()
    submitted = await docs.submit(owner, submission("report", TEXT), nothing)
    document, job = await begin(catalogue, owner, "report", TEXT), submitted.job
    if job is None:
        raise AssertionError("a first version has a job")
    staged = prepared(document.id, 1, TEXT)

    def full(connection: Connection, tenant: TenantId, job: Job) -> None:
        raise Conflict("the queue is full")

    await raises(Conflict, docs.save_prepared(owner, document.id, 1, staged, hand_on=HandOn(job, full)), "a full queue")
    equal(await docs.prepared(owner, document.id, 1), [], "neither is there without the other")
    await docs.save_prepared(owner, document.id, 1, staged[:1])
    equal(queue.jobs, [], "more is to come")
    await docs.save_prepared(owner, document.id, 1, staged[1:], hand_on=HandOn(job, queue))
    equal(queue.jobs, [(owner, job)])
    ready = await docs.ready(owner, document.id, 1)
    equal(seen(ready.prepared), seen(staged))
    equal((ready.document, ready.version), (await docs.document(owner, document.id), await docs.version(owner, document.id, 1)))
    equal(await docs.publish(owner, document.id, 1), True)
    await docs.save_prepared(owner, document.id, 1, [], hand_on=HandOn(job, queue))
    equal(len(queue.jobs), 2, "a visible version keeps what it has, and its job goes on all the same")


async def a_job_begins_with_its_version(catalogue: Catalogue) -> None:
    """One transaction starts the job and its version. The version of another attempt does not move."""
    owner, docs = await tenant(catalogue), catalogue.documents
    job = (await docs.submit(owner, submission("report", TEXT), nothing)).job
    if job is None or job.document_id is None:
        raise AssertionError("a first version has a job and a document")
    other = await docs.begin_job(owner, job.id, 2)
    equal((other.version, (await docs.document(owner, job.document_id)).state), (None, DocumentState.PENDING))
    begun = await docs.begin_job(owner, job.id, 1)
    equal((begun.job.state, begun.version), (JobState.RUNNING, await docs.version(owner, job.document_id, 1)))
    equal((begun.ontology, (await docs.document(owner, job.document_id)).state), (None, DocumentState.PROCESSING))
    await docs.submit(owner, submission("report", f"{TEXT} More."), nothing)
    equal((await docs.begin_job(owner, job.id, 1)).version, None, "version 2 has overtaken it")


async def the_text_is_recorded_with_its_chunks(catalogue: Catalogue) -> None:
    """One transaction records text and chunks. Chunks of another text are dropped before."""
    owner, docs = await tenant(catalogue), catalogue.documents
    document = await begin(catalogue, owner, "report", TEXT)
    await docs.save_prepared(owner, document.id, 1, prepared(document.id, 1, TEXT))
    parsed = ParsedVersion(NEW, "Parsed", {"colour": "red"})
    staged = prepared(document.id, 1, NEW)[:1]
    await docs.save_prepared(owner, document.id, 1, staged, parsed=parsed)
    version = await docs.version(owner, document.id, 1)
    equal((version.text, version.title, version.metadata), (NEW, "Parsed", {"colour": "red"}))
    equal(seen(await docs.prepared(owner, document.id, 1)), seen(staged))


async def a_job_ends_in_the_transaction_of_its_publication(catalogue: Catalogue) -> None:
    """In one transaction, and only if the version becomes visible. The first end is final."""
    owner, docs = await tenant(catalogue), catalogue.documents
    submitted = await docs.submit(owner, submission("report", TEXT), nothing)
    document, job = await stage(catalogue, owner, submitted), submitted.job
    if job is None:
        raise AssertionError("a first version has a job")
    ending = Ending(job_id=job.id, state=JobState.SUCCEEDED, result={"chunks": 3}, progress=("publish", 3, 3))
    unknown = replace(ending, job_id="of nobody")
    await raises(NotFound, docs.publish(owner, document.id, 1, ending=unknown), "a job that there is not")
    equal((await docs.document(owner, document.id)).current_version, 0, "nothing is visible without its job's ending")
    equal(await docs.publish(owner, document.id, 7, ending=ending), False)
    equal((await catalogue.jobs.job(owner, job.id)).state, JobState.QUEUED)
    other = await docs.submit(owner, submission("unwanted", TEXT), nothing)
    unwanted = await stage(catalogue, owner, other)
    if other.job is None:
        raise AssertionError("a first version has a job")
    await catalogue.jobs.request_cancel(owner, other.job.id)
    stopped = replace(ending, job_id=other.job.id)
    equal(await docs.publish(owner, unwanted.id, 1, ending=stopped), False, "what is not wanted any more is not shown")
    equal((await docs.document(owner, unwanted.id)).current_version, 0)
    equal(await docs.publish(owner, document.id, 1, ending=ending), True)
    ended = await catalogue.jobs.job(owner, job.id)
    equal((ended.state, ended.result, ended.stage, ended.done, ended.total), (JobState.SUCCEEDED, {"chunks": 3}, "publish", 3, 3))
    equal(await docs.publish(owner, document.id, 1, ending=replace(ending, state=JobState.PARTIAL)), True)
    equal(await catalogue.jobs.job(owner, job.id), ended, "the first ending stands")


async def a_version_reuses_unchanged_results(catalogue: Catalogue) -> None:
    """Results of equal chunks and recipes are copied with new positions, and kept while their version is visible."""
    owner, docs = await tenant(catalogue), catalogue.documents
    document = await ingest(catalogue, owner, "report")
    old, new = prepared(document.id, 1, TEXT), prepared(document.id, 2, SECOND)
    equal(seen(await docs.prepared(owner, document.id, 1)), seen(old), "a visible version keeps its results")
    await begin(catalogue, owner, "report", SECOND)
    kept = await docs.reuse(owner, document.id, 2, wanted(new))
    equal(kept, frozenset(item.chunk.id for item in new[:2]))
    taken = [replace(held, chunk=item.chunk, reused=True) for item, held in zip(new[:2], old[1:], strict=True)]
    equal(seen(await docs.prepared(owner, document.id, 2)), seen(taken))
    equal(await docs.reuse(owner, document.id, 2, wanted(new)), kept, "repeated")
    await docs.save_prepared(owner, document.id, 2, new[2:])
    equal(await docs.publish(owner, document.id, 2), True)
    equal((await docs.document(owner, document.id)).chunk_count, 3)
    equal(seen(await docs.prepared(owner, document.id, 2)), seen([*taken, *new[2:]]))
    equal(await docs.prepared(owner, document.id, 1), [], "nothing asks for an older version's results any more")
    equal(await docs.reuse(owner, document.id, 2, wanted(new)), frozenset(item.chunk.id for item in new))
    shown = await docs.hydrate(owner, [item.chunk.id for item in new])
    equal([shown[item.chunk.id].chunk for item in new], [item.chunk for item in new])


async def another_recipe_reuses_no_result(catalogue: Catalogue) -> None:
    """Results of one recipe never replace results of another, in this version or another one."""
    owner, docs = await tenant(catalogue), catalogue.documents
    document = await ingest(catalogue, owner, "report")
    await begin(catalogue, owner, "report", SECOND)
    new = prepared(document.id, 2, SECOND)
    equal(await docs.reuse(owner, document.id, 2, wanted(new, made_with="v2")), frozenset())
    swapped = [(new[0].chunk, recipe(new[1].chunk)), (new[1].chunk, recipe(new[0].chunk))]
    equal(await docs.reuse(owner, document.id, 2, swapped), frozenset(), "a recipe is one chunk's")
    equal(await docs.prepared(owner, document.id, 2), [])
    await docs.save_prepared(owner, document.id, 2, new)
    equal(await docs.reuse(owner, document.id, 2, wanted(new, made_with="v2")), frozenset())
    equal(await docs.reuse(owner, document.id, 2, wanted(new)), frozenset(item.chunk.id for item in new))
    equal(seen(await docs.prepared(owner, document.id, 2)), seen(new), "its own results are not copies")


async def extractions_of_staged_chunks_are_replaced(catalogue: Catalogue) -> None:
    """Only the extractions of staged chunks change. Those of the visible version and of other chunks stay."""
    owner, docs = await tenant(catalogue), catalogue.documents
    document = await ingest(catalogue, owner, "report")
    old, new = prepared(document.id, 1, TEXT), prepared(document.id, 2, SECOND)
    await begin(catalogue, owner, "report", SECOND)
    await docs.reuse(owner, document.id, 2, wanted(new))
    first = Extraction(chunk_id=new[0].chunk.id, aliases=(Alias(name="Ada Lovelace", alias="Ada", type="person"),))
    for extractions in ([first, Extraction(chunk_id=new[2].chunk.id)], [first], []):
        await docs.save_extractions(owner, document.id, 2, extractions)
    held = await docs.prepared(owner, document.id, 2)
    equal([item.extraction for item in held], [first, old[2].extraction], "the third chunk is not staged")
    equal([item.recipe for item in held], [item.recipe for item in new[:2]])
    equal(seen(await docs.prepared(owner, document.id, 1)), seen(old), "the visible version's own result stays")
    await docs.save_extractions(owner, document.id, 1, [Extraction(chunk_id=old[0].chunk.id)])
    equal(seen(await docs.prepared(owner, document.id, 1)), seen(old), "a visible version is not changed")


async def failed_results_are_not_reused(catalogue: Catalogue) -> None:
    """A chunk without a vector, or with a failed extraction, is computed again, and the new result replaces it."""
    owner, docs = await tenant(catalogue), catalogue.documents
    first = await begin(catalogue, owner, "report", TEXT)
    good = prepared(first.id, 1, TEXT)
    bad = [
        replace(good[0], vector=None, failure=REFUSED),
        replace(good[1], extraction=replace(good[1].extraction, failure=REFUSED)),
        good[2],
    ]
    await docs.save_prepared(owner, first.id, 1, bad)
    held = await docs.prepared(owner, first.id, 1)
    equal([item.failures for item in held], [(REFUSED,), (REFUSED,), ()])
    equal([item.vector is None for item in held], [True, False, False])
    equal(await docs.reuse(owner, first.id, 1, wanted(good)), frozenset({good[2].chunk.id}))
    equal(await docs.publish(owner, first.id, 1, failures=[REFUSED]), True)
    await begin(catalogue, owner, "report", SECOND)
    new = prepared(first.id, 2, SECOND)
    equal(await docs.reuse(owner, first.id, 2, wanted(new)), frozenset({new[1].chunk.id}))
    await docs.save_prepared(owner, first.id, 2, [new[0]])
    # Version 3 fails at a chunk that version 2 has, and then finds it.
    await begin(catalogue, owner, "report", LINES[1])
    third = prepared(first.id, 3, LINES[1])
    await docs.save_prepared(owner, first.id, 3, [replace(third[0], vector=None, failure=REFUSED)])
    equal(await docs.reuse(owner, first.id, 3, wanted(third)), frozenset({third[0].chunk.id}))
    equal([item.failures for item in await docs.prepared(owner, first.id, 3)], [()])


async def results_of_a_stopped_version_are_reused(catalogue: Catalogue) -> None:
    """A version that ended before it was visible keeps its results until a newer one is visible."""
    owner, docs = await tenant(catalogue), catalogue.documents
    document = await ingest(catalogue, owner, "report")
    second = await docs.submit(owner, submission("report", SECOND), nothing)
    await stage(catalogue, owner, second, SECOND)
    await docs.fail(owner, document.id, 2, state=DocumentState.FAILED, failure=Failure("embed", "cancelled", "stopped"))
    equal(len(await docs.prepared(owner, document.id, 2)), 3)
    await begin(catalogue, owner, "report", f"{NEW}\n{LINES[0]}")
    new = prepared(document.id, 3, f"{NEW}\n{LINES[0]}")
    equal(await docs.reuse(owner, document.id, 3, wanted(new)), frozenset(item.chunk.id for item in new), "of both versions")
    equal([item.chunk for item in await docs.prepared(owner, document.id, 3)], [item.chunk for item in new])
    equal(await docs.publish(owner, document.id, 3), True)
    for version in (1, 2):
        equal(await docs.prepared(owner, document.id, version), [])
    keys = [submission("report", text).blob_key for text in (TEXT, SECOND, f"{NEW}\n{LINES[0]}")]
    equal(await docs.unknown_blobs(owner, [*keys, "nobody's"]), ["nobody's"])
    equal(await docs.unknown_blobs(await tenant(catalogue, "second"), keys), keys)


async def results_belong_to_one_document_of_one_tenant(catalogue: Catalogue) -> None:
    """Equal chunks, ids and recipes of another tenant, another document or a deleted document are not reused."""
    owner, other, docs = await tenant(catalogue), await tenant(catalogue, "second"), catalogue.documents
    document = await ingest(catalogue, owner, "report")
    first = await begin(catalogue, other, "report", NEW)
    await docs.save_prepared(other, first.id, 1, prepared(first.id, 1, NEW))
    equal(await docs.publish(other, first.id, 1), True)
    await begin(catalogue, other, "report", SECOND)
    new = prepared(document.id, 2, SECOND)
    equal((first.id, await docs.reuse(other, first.id, 2, wanted(new))), (document.id, frozenset({new[2].chunk.id})))
    equal([item.chunk.text for item in await docs.prepared(other, first.id, 2)], [NEW])
    elsewhere = await begin(catalogue, owner, "another", TEXT)
    theirs = prepared(elsewhere.id, 1, TEXT)
    equal(await docs.reuse(owner, elsewhere.id, 1, wanted(theirs)), frozenset())
    await begin(catalogue, owner, "report", SECOND)
    await docs.tombstone(owner, document.id, nothing)
    await raises(NotFound, docs.reuse(owner, document.id, 2, wanted(new)), "a deleted document")


async def many_results_are_reused_at_once(catalogue: Catalogue) -> None:
    """The ids exceed one statement. Chunks keep their order."""
    owner, docs = await tenant(catalogue), catalogue.documents
    lines = [f"This is line {number}." for number in range(603)]
    document = await ingest(catalogue, owner, "long", "\n".join(lines))
    text = "\n".join(reversed(lines))
    await begin(catalogue, owner, "long", text)
    new = prepared(document.id, 2, text)
    equal(len(await docs.reuse(owner, document.id, 2, wanted(new))), 603)
    equal([item.chunk for item in await docs.prepared(owner, document.id, 2)], [item.chunk for item in new])


async def a_purge_leaves_no_row(catalogue: Catalogue) -> None:
    """The rows of a document are counted by table, also after a tombstone. After its purge, all counts are 0."""
    owner, docs = await tenant(catalogue), catalogue.documents
    document = await ingest(catalogue, owner, "report")
    await stage(catalogue, owner, await docs.submit(owner, submission("report", SECOND), nothing), SECOND)
    await catalogue.model_results.save(owner, document.id, 2, "r", [1], Usage())
    there = {"prepared_chunks": 6, "chunks": 6, "chunk_texts": 4, "model_results": 1, "document_versions": 2, "documents": 1}
    there["chunk_questions"] = 0
    equal(dict(await docs.remains(owner, document.id)), there)
    await docs.tombstone(owner, document.id, nothing)
    equal(dict(await docs.remains(owner, document.id)), there)
    equal(dict(await docs.purge(owner, document.id, up_to_version=2)), there)
    equal(dict(await docs.remains(owner, document.id)), dict.fromkeys(there, 0))
    true(not any((await docs.remains(owner, "unknown")).values()), "of an unknown document there is nothing")


CHECKS: tuple[Check, ...] = (
    the_next_job_is_created_with_the_last_chunks,
    a_job_begins_with_its_version,
    the_text_is_recorded_with_its_chunks,
    a_job_ends_in_the_transaction_of_its_publication,
    a_version_reuses_unchanged_results,
    another_recipe_reuses_no_result,
    extractions_of_staged_chunks_are_replaced,
    failed_results_are_not_reused,
    results_of_a_stopped_version_are_reused,
    results_belong_to_one_document_of_one_tenant,
    many_results_are_reused_at_once,
    a_purge_leaves_no_row,
)
