"""Contract of the catalogue for jobs, tenants and communities."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from agentic_rag_backend.domain.graph import CommunitySummary, Finding, Label, Support
from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.domain.ontology import EntityType, Ontology, RelationType
from agentic_rag_backend.domain.tenant import Scope, TenantId, TenantState
from agentic_rag_backend.errors import Conflict, InvalidRequest, NotFound, StoreUnavailable
from agentic_rag_backend.stores.catalogue.base import Catalogue
from agentic_rag_backend.testing.catalogue.samples import (
    Check,
    Queue,
    equal,
    ingest,
    nothing,
    raises,
    state_version,
    submission,
    tenant,
    true,
)

SECRET = "5e" * 32
SUMMARY = CommunitySummary(
    fingerprint="f1",
    names=(Label("Ada", (Support("d", 1, "c"), Support("d2", 4, "c3"))), Label("Charles")),
    title=Label("Engines", (Support("d", 2, "c2"),)),
    summary="About engines.",
    keywords=(Label("engine", (Support("d", 1, "c"),)), Label("program")),
    findings=(Finding("Ada knew Charles.", (Support("d", 1, "c"), Support("d", 2, "c2"))),),
    rating=0.75,
    model="extractive",
    prompt_version="v1",
    tokens=12,
    sources=(Support("d", 1, "c"),),
)
BARE = CommunitySummary(
    fingerprint="",
    names=(Label("N"),),
    summary="S",
    keywords=(),
    findings=(),
    rating=0.0,
    model="extractive",
    prompt_version="v1",
)


async def a_job_ends_only_once(catalogue: Catalogue) -> None:
    """A job starts, progresses and ends. The first end is final."""
    owner, queue = await tenant(catalogue), Queue()
    job = await catalogue.jobs.create(owner, JobKind.REBUILD, {"full": True}, queue)
    equal((queue.jobs, job.arguments, job.state, job.attempt), ([(owner, job)], {"full": True}, JobState.QUEUED, 1))
    running = await catalogue.jobs.start(owner, job.id)
    true(running.state is JobState.RUNNING and running.started_at is not None, "a started job runs")
    equal((await catalogue.jobs.start(owner, job.id)).started_at, running.started_at, "started twice, begun once")
    equal(await catalogue.jobs.progress(owner, job.id, stage="read", done=3, total=9, message="chunks"), False)
    equal(await catalogue.jobs.remember(owner, job.id, "counted", {"rows": 3}), {"rows": 3})
    equal(await catalogue.jobs.remember(owner, job.id, "counted", {"rows": 2}), {"rows": 3}, "the first count stands")
    equal((await catalogue.jobs.job(owner, job.id)).arguments, {"full": True, "counted": {"rows": 3}})
    await raises(InvalidRequest, catalogue.jobs.finish(owner, job.id, JobState.RUNNING), "an ending that is none")
    await catalogue.jobs.finish(owner, job.id, JobState.SUCCEEDED, result={"communities": 4})
    ended = await catalogue.jobs.job(owner, job.id)
    equal((ended.state, ended.stage, ended.done, ended.total, ended.message), (JobState.SUCCEEDED, "read", 3, 9, "chunks"))
    true(ended.finished_at is not None and ended.result == {"communities": 4}, "the result is kept")
    await catalogue.jobs.finish(owner, job.id, JobState.FAILED, error={"code": "late"})
    await catalogue.jobs.progress(owner, job.id, stage="late", done=1, total=1)
    await catalogue.jobs.start(owner, job.id)
    equal(await catalogue.jobs.job(owner, job.id), ended)
    unfinished = await catalogue.jobs.create(owner, JobKind.REBUILD, {}, Queue())
    equal(await catalogue.jobs.ended(owner, [unfinished.id, job.id, job.id]), [ended])
    equal(await catalogue.jobs.ended(owner, []), [])
    jobs = catalogue.jobs
    late: dict[str, Callable[[], Awaitable[Any]]] = {
        "job": lambda: jobs.job(owner, "unknown"),
        "ended": lambda: jobs.ended(owner, ["unknown"]),
        "start": lambda: jobs.start(owner, "unknown"),
        "progress": lambda: jobs.progress(owner, "unknown", stage="", done=0, total=0),
        "remember": lambda: jobs.remember(owner, "unknown", "counted", 1),
        "finish": lambda: jobs.finish(owner, "unknown", JobState.FAILED),
        "cancel": lambda: jobs.request_cancel(owner, "unknown"),
        "retry": lambda: jobs.retry(owner, "unknown", queue),
    }
    for what, call in late.items():
        await raises(NotFound, call(), what)


async def an_equal_job_is_joined(catalogue: Catalogue) -> None:
    """Twenty concurrent requests create one job. A job that has ended, or is being cancelled, is not joined."""
    owner, queue = await tenant(catalogue), Queue()
    joined = [catalogue.jobs.create(owner, JobKind.REBUILD, {}, queue, join=True) for _ in range(20)]
    found = await asyncio.gather(*joined)
    equal((len({job.id for job in found}), len(queue.jobs)), (1, 1))
    await catalogue.jobs.request_cancel(owner, found[0].id)
    second = await catalogue.jobs.create(owner, JobKind.REBUILD, {}, queue, join=True)
    true(second.id != found[0].id, "a job that was asked to stop is not joined")
    await catalogue.jobs.finish(owner, second.id, JobState.SUCCEEDED)
    third = await catalogue.jobs.create(owner, JobKind.REBUILD, {}, queue, join=True)
    true(third.id not in {second.id, found[0].id}, "a job that has ended is not joined")
    other = await catalogue.jobs.create(owner, JobKind.REBUILD, {}, queue)
    equal(await catalogue.jobs.last(owner, JobKind.REBUILD), other)
    equal(await catalogue.jobs.last(owner, JobKind.DELETE), None)


async def a_cancelled_job_can_be_retried(catalogue: Catalogue) -> None:
    """Cancelling is a request that the job reads. A retry increases the attempt and clears the earlier result."""
    owner, queue = await tenant(catalogue), Queue()
    job = await catalogue.jobs.create(owner, JobKind.REBUILD, {"full": True}, nothing)
    await raises(Conflict, catalogue.jobs.retry(owner, job.id, queue), "a retry of a queued job")
    await catalogue.jobs.start(owner, job.id)
    true((await catalogue.jobs.request_cancel(owner, job.id)).cancel_requested, "the wish is recorded")
    equal(await catalogue.jobs.progress(owner, job.id, stage="x", done=1, total=2), True)
    await catalogue.jobs.finish(owner, job.id, JobState.CANCELLED, error={"code": "cancelled"})
    await raises(Conflict, catalogue.jobs.request_cancel(owner, job.id), "cancelling what has ended")
    await raises(ConnectionRefusedError, catalogue.jobs.retry(owner, job.id, Queue(fails=True)), "a queue that is down")
    equal((await catalogue.jobs.job(owner, job.id)).state, JobState.CANCELLED, "whole or not at all")
    again = await catalogue.jobs.retry(owner, job.id, queue)
    equal((again.state, again.attempt, again.error, again.cancel_requested, again.done), (JobState.QUEUED, 2, None, False, 0))
    equal((again.started_at, again.finished_at, again.arguments), (None, None, {"full": True}))
    equal(queue.jobs, [(owner, again)])
    await catalogue.jobs.finish(owner, job.id, JobState.SUCCEEDED)
    await raises(Conflict, catalogue.jobs.retry(owner, job.id, queue), "a retry of what succeeded")
    deleted = await catalogue.documents.submit(owner, submission("report"), nothing)
    await catalogue.documents.tombstone(owner, deleted.document.id, nothing)
    if deleted.job is not None:
        await catalogue.jobs.finish(owner, deleted.job.id, JobState.CANCELLED)
        await raises(Conflict, catalogue.jobs.retry(owner, deleted.job.id, queue), "ingesting what was deleted")


async def jobs_are_listed_in_pages(catalogue: Catalogue) -> None:
    """Newest first, filtered by state, kind and document."""
    owner = await tenant(catalogue)
    made = [await catalogue.jobs.create(owner, JobKind.REBUILD, {"n": number}, nothing) for number in range(5)]
    document = (await catalogue.documents.submit(owner, submission("report"), nothing)).document
    first = await catalogue.jobs.jobs(owner, limit=3, kind=JobKind.REBUILD)
    rest = await catalogue.jobs.jobs(owner, limit=3, kind=JobKind.REBUILD, cursor=first.next_cursor)
    equal(([*first.items, *rest.items], rest.next_cursor), (made[::-1], None))
    equal([job.id for job in (await catalogue.jobs.jobs(owner, limit=9, document_id=document.id)).items], [document.job_id])
    await catalogue.jobs.start(owner, made[0].id)
    equal([job.id for job in (await catalogue.jobs.jobs(owner, limit=9, state=JobState.RUNNING)).items], [made[0].id])
    await raises(InvalidRequest, catalogue.jobs.jobs(owner, limit=3, cursor="garbage"), "a cursor that is none")
    await raises(InvalidRequest, catalogue.jobs.jobs(owner, limit=0), "limit 0")


async def tenants_are_found(catalogue: Catalogue) -> None:
    """By id, by name and in pages. Names and ids are unique."""
    directory = catalogue.tenants
    given = TenantId("t_" + "a" * 32)
    first = await directory.create("first", tenant_id=given)
    made = [first, *[await directory.create(f"tenant {number}") for number in range(4)]]
    equal((first.id, first.state, first.state_version), (given, TenantState.ACTIVE, 0))
    true(abs(datetime.now(UTC) - first.created_at) < timedelta(minutes=5), "created now, in UTC")
    equal(await directory.tenant(given), first)
    equal((await directory.tenant_by_name("first"), await directory.tenant_by_name("none")), (first, None))
    page = await directory.tenants(limit=3)
    rest = await directory.tenants(limit=3, cursor=page.next_cursor)
    equal(([*page.items, *rest.items], rest.next_cursor), (made, None))
    await raises(Conflict, directory.create("first"), "a name that is taken")
    await raises(Conflict, directory.create("another", tenant_id=given), "an id that is taken")
    await raises(NotFound, directory.tenant(TenantId.new()), "a tenant that does not exist")
    await raises(NotFound, directory.mark_deleting(TenantId.new()), "a tenant that does not exist")
    await raises(NotFound, directory.add_key(TenantId.new(), name="k", secret_sha256=SECRET, scopes=[]), "a key of nobody")
    await raises(NotFound, directory.set_flags(TenantId.new(), {"a": 1}), "flags of nobody")
    await raises(NotFound, catalogue.documents.submit(TenantId.new(), submission("report"), nothing), "a document of nobody")
    await raises(NotFound, catalogue.jobs.create(TenantId.new(), JobKind.REBUILD, {}, nothing), "a job of nobody")


async def removals_are_recorded(catalogue: Catalogue) -> None:
    """A tenant is known until it is removed, and recorded as removed afterwards. Other ids are neither."""
    directory = catalogue.tenants
    stays, goes = [(await directory.create(name)).id for name in ("stays", "goes")]
    asked = [stays, goes, TenantId.new()]
    equal((await directory.known(asked), await directory.removed(asked)), (frozenset((stays, goes)), frozenset()))
    await directory.remove(goes)
    await directory.remove(goes)
    equal((await directory.known(asked), await directory.removed(asked)), (frozenset((stays,)), frozenset((goes,))))


async def keys_authenticate_their_tenant(catalogue: Catalogue) -> None:
    """A key gives tenant, scopes, flags and version. A revoked key, or a key of a tenant in deletion, gives nothing."""
    owner, directory = await tenant(catalogue), catalogue.tenants
    key = await directory.add_key(owner, name="laptop", secret_sha256=SECRET, scopes=[Scope.WRITE, Scope.READ])
    await raises(Conflict, directory.add_key(owner, name="x", secret_sha256=SECRET, scopes=[]), "a secret in use")
    again = directory.add_key(owner, name="x", secret_sha256="66" * 32, scopes=[], key_id=key.id)
    await raises(Conflict, again, "a key's id in use")
    await directory.set_flags(owner, {"dual_level": True})
    principal = await directory.authenticate(SECRET)
    if principal is None:
        raise AssertionError("a valid key must open its tenant")
    equal((principal.tenant, principal.key_id, principal.operator), (await directory.tenant(owner), key.id, False))
    equal((principal.scopes, principal.flags), (frozenset((Scope.READ, Scope.WRITE)), {"dual_level": True}))
    equal(await directory.authenticate("00" * 32), None)
    equal(list(await directory.keys(owner)), [key])
    await directory.revoke_key(owner, key.id)
    await directory.revoke_key(owner, key.id)
    equal(await directory.authenticate(SECRET), None, "a revoked key")
    true((await directory.keys(owner))[0].revoked_at is not None, "revoked keys are listed")
    await raises(NotFound, directory.revoke_key(owner, "unknown"), "an unknown key")
    await directory.add_key(owner, name="second", secret_sha256="77" * 32, scopes=[Scope.READ])
    await directory.mark_deleting(owner)
    equal(await directory.authenticate("77" * 32), None, "a tenant that is going")
    equal((await directory.tenant(owner)).state, TenantState.DELETING)


async def flags_are_counted(catalogue: Catalogue) -> None:
    """Fifty concurrent changes are all stored and all counted. None removes a flag."""
    owner = await tenant(catalogue)
    await asyncio.gather(*(catalogue.tenants.set_flags(owner, {f"flag {number}": number}) for number in range(50)))
    equal(await catalogue.tenants.flags(owner), {f"flag {number}": number for number in range(50)})
    equal(await state_version(catalogue, owner), 50)
    left = await catalogue.tenants.set_flags(owner, {f"flag {number}": None for number in range(49)})
    equal((left, await catalogue.tenants.flags(owner)), ({"flag 49": 49}, {"flag 49": 49}))


async def an_ontology_is_counted(catalogue: Catalogue) -> None:
    """A tenant without an ontology has none. Setting and removing it raise the version."""
    owner, directory = await tenant(catalogue), catalogue.tenants
    equal(await directory.ontology(owner), None)
    vessel = EntityType("vessel", "ships “at sea”")
    ontology = Ontology((EntityType("person"), vessel), (RelationType("commands", "", ("person",), ("vessel",)),))
    await directory.set_ontology(owner, ontology)
    equal((await directory.ontology(owner), await state_version(catalogue, owner)), (ontology, 1))
    await directory.set_ontology(owner, None)
    equal((await directory.ontology(owner), await state_version(catalogue, owner)), (None, 2))
    nobody = TenantId.new()
    await raises(NotFound, directory.set_ontology(nobody, ontology), "the ontology of nobody")
    equal(await directory.ontology(nobody), None)


async def a_tenant_is_removed_completely(catalogue: Catalogue) -> None:
    """No data is left, other tenants are unchanged, and the name is free."""
    owner, other = await tenant(catalogue), await tenant(catalogue, "other")
    for one in (owner, other):
        await ingest(catalogue, one, "report")
        await catalogue.tenants.add_key(one, name="key", secret_sha256=one.value, scopes=[Scope.READ])
        await catalogue.communities.next_generation(one)
        await catalogue.communities.save_summaries(one, [SUMMARY])
    before = await catalogue.documents.documents(other, limit=5)
    removed = await catalogue.tenants.remove(owner)
    equal((removed["tenants"], removed["documents"], removed["chunks"], removed["jobs"]), (1, 1, 3, 1))
    true(all(removed[name] for name in ("api_keys", "community_pointers", "community_summaries")), "every table")
    equal(sum((await catalogue.tenants.remove(owner)).values()), 0, "repeated")
    await raises(NotFound, catalogue.tenants.tenant(owner), "a removed tenant")
    equal(await catalogue.tenants.authenticate(owner.value), None)
    equal(await catalogue.documents.documents(other, limit=5), before)
    true(await catalogue.tenants.authenticate(other.value) is not None, "the other's key")
    fresh = await catalogue.tenants.create("first", tenant_id=owner)
    equal((await catalogue.documents.documents(fresh.id, limit=5)).items, ())


async def generations_are_numbered_in_order(catalogue: Catalogue) -> None:
    """Numbers are never reused. Changes of documents make the current generation stale, flags and generations do not."""
    owner, communities = await tenant(catalogue), catalogue.communities
    equal(((await communities.pointer(owner)).generation, (await communities.pointer(owner)).stale), (0, False))
    document = await ingest(catalogue, owner, "report")
    true((await communities.pointer(owner)).stale, "documents and no communities")
    built_from = await state_version(catalogue, owner)
    first = await communities.next_generation(owner)
    await raises(Conflict, communities.publish(owner, 99, built_from=0, details={}), "a number never given")
    await catalogue.tenants.set_flags(owner, {"a": 1})
    before = await state_version(catalogue, owner)
    await communities.publish(owner, first, built_from=built_from, details={"levels": [3, 1]})
    true(await state_version(catalogue, owner) > before, "a generation changes answers")
    pointer = await communities.pointer(owner)
    equal(
        (pointer.generation, pointer.stale, pointer.built_from, pointer.details),
        (first, False, built_from, {"levels": [3, 1]}),
    )
    true(pointer.built_at is not None, "when it was built")
    await catalogue.documents.submit(owner, submission("report", metadata={"new": 1}), nothing)
    await catalogue.tenants.set_flags(owner, {"a": 2})
    equal((await communities.pointer(owner)).stale, False, "flags and metadata do not make communities stale")
    built_from = await state_version(catalogue, owner)
    second = await communities.next_generation(owner)
    await catalogue.documents.tombstone(owner, document.id, nothing)
    await communities.publish(owner, second, built_from=built_from, details={})
    true((await communities.pointer(owner)).stale, "a document went while it was built")
    await raises(Conflict, communities.publish(owner, first, built_from=9, details={}), "an older generation")
    before = await state_version(catalogue, owner)
    await communities.publish(owner, second, built_from=built_from, details={})
    equal(await state_version(catalogue, owner), before, "repeated")
    numbers = await asyncio.gather(*(communities.next_generation(owner) for _ in range(50)))
    equal(len({first, second, *numbers}), 52)


async def summaries_are_kept_by_fingerprint(catalogue: Catalogue) -> None:
    """By prompt and model. Saving again replaces them, and they are dropped when no community needs them."""
    owner, communities = await tenant(catalogue), catalogue.communities
    many = [replace(BARE, fingerprint=f"f{number}") for number in range(600)]
    await communities.save_summaries(owner, many)
    await communities.save_summaries(owner, [SUMMARY])
    fingerprints = [one.fingerprint for one in many]
    found = await communities.summaries(owner, [*fingerprints, "unknown"], prompt_version="v1", model="extractive")
    equal((len(found), found["f1"], found["f599"]), (600, SUMMARY, many[599]))
    equal(await communities.summaries(owner, fingerprints, prompt_version="v2", model="extractive"), {})
    equal(await communities.summaries(owner, fingerprints, prompt_version="v1", model="other"), {})
    before = await state_version(catalogue, owner)
    equal(await communities.drop_summaries(owner, keep=["f1", *(f"g{number}" for number in range(40_000))]), 599)
    equal(await state_version(catalogue, owner), before + 1, "data of older generations is gone")
    equal(await communities.summaries(owner, fingerprints, prompt_version="v1", model="extractive"), {"f1": SUMMARY})
    await communities.save_summaries(owner, [])
    equal(await communities.drop_summaries(owner, keep=[]), 1)


async def summaries_are_found_by_their_sources(catalogue: Catalogue) -> None:
    """In prose, findings, titles, names and keywords. A replacement replaces all summaries of the fingerprint."""
    owner, communities = await tenant(catalogue), catalogue.communities
    support = (Support("paper", 1, "chunk"),)
    resting = [
        replace(BARE, fingerprint="prose", sources=support),
        replace(BARE, fingerprint="finding", findings=(Finding("Said.", support),)),
        replace(BARE, fingerprint="title", title=Label("Title", support)),
        replace(BARE, fingerprint="name", names=(Label("Name", support),)),
        replace(BARE, fingerprint="keyword", keywords=(Label("word", support),)),
    ]
    await communities.save_summaries(owner, [SUMMARY, BARE, *resting])
    found = await communities.summaries_resting_on(owner, "paper")
    equal({each.fingerprint for each in found}, {each.fingerprint for each in resting})
    await communities.save_summaries(owner, [replace(resting[0], model="other")])
    equal(
        [each.model for each in await communities.summaries_resting_on(owner, "paper") if each.fingerprint == "prose"][-1],
        "other",
    )
    left = [replace(BARE, fingerprint=each.fingerprint, prompt_version="left") for each in resting]
    await communities.replace_summaries(owner, left)
    equal(await communities.summaries_resting_on(owner, "paper"), [])
    fingerprints = [each.fingerprint for each in resting]
    equal(await communities.summaries(owner, fingerprints), {each.fingerprint: each for each in left})
    equal(await communities.summaries(owner, fingerprints, prompt_version="v1", model="extractive"), {})
    equal((await communities.summaries(owner, ["f1"]))["f1"], SUMMARY)


async def stale_rebuilds_are_due(catalogue: Catalogue) -> None:
    """Due after a quiet time without queued documents, or when stale for long. Requested once, not during a rebuild."""
    owner, other, queue = await tenant(catalogue), await tenant(catalogue, "other"), Queue()
    long_ago, ahead = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)

    async def due(quiet_since: datetime, stale_since: datetime, asked_before: datetime) -> list[TenantId]:
        return await catalogue.communities.due(quiet_since, asked_before, stale_since=stale_since, limit=10)

    equal(await due(ahead, ahead, ahead), [], "nothing was ever ingested")
    await ingest(catalogue, owner, "report")
    equal(await due(long_ago, long_ago, ahead), [], "changed a moment ago")
    equal([await due(ahead, long_ago, long_ago), await due(long_ago, ahead, long_ago)], [[owner], [owner]])
    await catalogue.communities.asked(owner)
    await catalogue.communities.asked(other)
    equal(await due(ahead, ahead, long_ago), [], "asked for after the last change")
    equal(await due(ahead, ahead, ahead), [owner], "asked for long ago, and still stale")
    await ingest(catalogue, owner, "second")
    equal(await due(ahead, ahead, long_ago), [owner], "changed after it was asked for")
    await _open_jobs_postpone_rebuilds(catalogue, owner, lambda: due(ahead, long_ago, long_ago))
    equal(await due(long_ago, ahead, long_ago), [owner], "stale for long")
    job = await catalogue.jobs.create(owner, JobKind.REBUILD, {}, queue)
    equal(await due(ahead, ahead, ahead), [], "beside a rebuild")
    generation = await catalogue.communities.next_generation(owner)
    built_from = await state_version(catalogue, owner)
    await ingest(catalogue, owner, "third")  # during the build
    await catalogue.communities.publish(owner, generation, built_from=built_from, details={})
    await catalogue.jobs.finish(owner, job.id, JobState.SUCCEEDED)
    equal(await due(ahead, long_ago, long_ago), [owner], "changed while it was built")
    generation = await catalogue.communities.next_generation(owner)
    built_from = await state_version(catalogue, owner)
    await catalogue.communities.publish(owner, generation, built_from=built_from, details={})
    await catalogue.tenants.set_flags(owner, {"a": 1})
    equal(await due(ahead, ahead, ahead), [], "built from all there is; a flag changes no community")
    await ingest(catalogue, owner, "fourth")
    await catalogue.tenants.mark_deleting(owner)
    equal(await due(ahead, ahead, ahead), [], "of a tenant that is being deleted")


async def _open_jobs_postpone_rebuilds(
    catalogue: Catalogue, owner: TenantId, due: Callable[[], Awaitable[list[TenantId]]]
) -> None:
    """A queued document and a deletion postpone a rebuild until their jobs have ended, or are asked to stop."""
    upload = await catalogue.documents.submit(owner, submission("queued"), nothing)
    equal(await due(), [], "a document is queued")
    await catalogue.jobs.request_cancel(owner, upload.document.job_id or "")
    equal(await due(), [owner], "it will not be processed")
    deletion = await catalogue.documents.tombstone(owner, upload.document.id, nothing)
    equal(await due(), [], "a document is being deleted")
    await catalogue.jobs.finish(owner, deletion.id, JobState.SUCCEEDED)
    equal(await due(), [owner])


async def migrating_is_repeatable(catalogue: Catalogue) -> None:
    """Migrating again, or concurrently, changes nothing."""
    owner = await tenant(catalogue)
    document = await ingest(catalogue, owner, "report")
    await asyncio.gather(*(catalogue.migrate() for _ in range(3)))
    equal(await catalogue.documents.document(owner, document.id), document)


async def a_closed_catalogue_raises_an_error(catalogue: Catalogue) -> None:
    """After closing, every call raises `StoreUnavailable`. Closing again does not."""
    owner = await tenant(catalogue)
    await catalogue.ping()
    await catalogue.close()
    await catalogue.close()
    await raises(StoreUnavailable, catalogue.ping(), "a closed catalogue")
    await raises(StoreUnavailable, catalogue.documents.hydrate(owner, ["x"]), "a closed catalogue")
    await raises(StoreUnavailable, catalogue.tenants.set_flags(owner, {"a": 1}), "a closed catalogue")


CHECKS: tuple[Check, ...] = (
    a_job_ends_only_once,
    an_equal_job_is_joined,
    a_cancelled_job_can_be_retried,
    jobs_are_listed_in_pages,
    tenants_are_found,
    removals_are_recorded,
    keys_authenticate_their_tenant,
    flags_are_counted,
    an_ontology_is_counted,
    a_tenant_is_removed_completely,
    generations_are_numbered_in_order,
    summaries_are_kept_by_fingerprint,
    summaries_are_found_by_their_sources,
    stale_rebuilds_are_due,
    migrating_is_repeatable,
    a_closed_catalogue_raises_an_error,
)
