"""Communities end to end on the embedded stores."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from theme_doubles import ScriptedModel

from agentic_rag_backend.domain.graph import community_point_id
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import (
    NotFound,
    StoreUnavailable,
)
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch
from agentic_rag_backend.themes.communities.rebuilds import schedule as schedule_module
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import Changes, RebuildOptions
from agentic_rag_backend.themes.communities.rebuilds.schedule import LITTLE_AFTER, RebuildSchedule
from agentic_rag_backend.themes.communities.service import CommunityService
from agentic_rag_backend.themes.communities.theme_index import CommunityView
from agentic_rag_testing.stores import graph_samples as samples

Story = Callable[[str], dict[str, list[str]]]


async def add_all(world: Any, tenant: TenantId, documents: dict[str, list[str]]) -> dict[str, str]:
    return {title: await world.add(tenant, title, paragraphs) for title, paragraphs in documents.items()}


async def rebuild(
    world: Any,
    service: CommunityService,
    tenant: TenantId,
    options: RebuildOptions | None = None,
) -> Job:
    job = await service.request_rebuild(tenant, options)
    await service.rebuild(tenant, job.id, job.attempt)
    ended: Job = await world.catalogue.jobs.job(tenant, job.id)
    return ended


async def everything(service: CommunityService, tenant: TenantId) -> tuple[CommunityView, ...]:
    return (await service.list(tenant, limit=1000)).items


async def found_by_vector(world: Any, tenant: TenantId, generation: int) -> set[str]:
    search = VectorSearch(kind=NodeKind.COMMUNITY, text="Tidal Array", limit=100, generation=generation)
    legs = (await world.vectors.search(tenant, Collection.NODES, [search]))[0]
    return {community_point_id(each.id, generation) for each in legs.sparse}


async def test_build_covers_the_graph_and_cites_passages(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    job = await rebuild(world, service, tenant)
    assert job.state is JobState.SUCCEEDED
    assert job.result is not None
    views = await everything(service, tenant)
    assert job.result["communities"] == len(views) >= 2
    assert job.result["summaries_written"] == len(views)
    tidal = next(view for view in views if "Tidal Array" in f"{view.name} {view.keywords}")
    museum = next(view for view in views if "Lantern Museum" in f"{view.name} {view.keywords}")
    assert tidal.id != museum.id
    assert tidal.summary.count(".") >= 2
    for view in views:
        assert view.findings
        assert not view.stale
        for finding in view.findings:
            for source in finding.sources:
                chunk = (await world.catalogue.documents.hydrate(tenant, [source.chunk_id]))[source.chunk_id].chunk
                assert finding.statement in chunk.text
    assert tidal.id in await found_by_vector(world, tenant, tidal.generation)
    status = await service.read_status(tenant)
    assert status["generation"] == tidal.generation
    assert status["stale"] is False
    assert status["levels"] == {"0": len(views)}
    assert 0 < status["modularity"] < 1
    counts = sorted(view.entity_count for view in views)
    assert status["sizes"] == {"0": [counts[0], counts[len(counts) // 2], counts[-1]]}
    assert status["coverage"] == pytest.approx(sum(of for of in counts if of >= 3) / sum(counts), abs=1e-4)
    assert status["last_job"].id == job.id


@pytest.mark.parametrize("mode", ["incremental", "full"])
async def test_rebuild_of_an_unchanged_graph_writes_nothing(world: Any, story: Story, mode: str) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    await rebuild(world, service, tenant)
    before, embedded = await everything(service, tenant), world.embedder.embedded
    job = await rebuild(world, service, tenant, RebuildOptions(mode=mode))
    after = await everything(service, tenant)
    assert job.result is not None
    assert (job.result["summaries_written"], job.result["summaries_reused"]) == (
        0,
        len(before),
    )
    assert [view.id for view in after] == [view.id for view in before]
    assert world.embedder.embedded == embedded
    assert await found_by_vector(world, tenant, after[0].generation)
    if mode == "incremental":
        assert job.result["unchanged"]
        assert {view.generation for view in after} == {before[0].generation}
    else:
        assert {view.generation for view in after} == {before[0].generation + 1}
        assert await found_by_vector(world, tenant, before[0].generation) == set()


async def _write_hidden(world: Any, tenant: TenantId) -> None:
    hidden = samples.knowledge("hidden", [("Ada", "founded", "Acme")])
    await world.graph.write_document(tenant, hidden)


async def _forget_hidden(world: Any, tenant: TenantId) -> None:
    await world.graph.delete_document(tenant, "unknown", up_to_version=1)


async def _lose_a_vector(world: Any, tenant: TenantId) -> None:
    pointer = await world.catalogue.communities.pointer(tenant)
    (first, *_) = await world.graph.communities(tenant, pointer.generation)
    await world.vectors.delete(tenant, Collection.NODES, [community_point_id(first.id, pointer.generation)])


async def _lose_a_community(world: Any, tenant: TenantId) -> None:
    pointer = await world.catalogue.communities.pointer(tenant)
    held = await world.graph.communities(tenant, pointer.generation)
    await world.graph.write_communities(tenant, pointer.generation, held[1:])


async def _hide_another(world: Any, tenant: TenantId) -> None:
    await world.hide(tenant, (await world.catalogue.documents.documents(tenant, limit=1)).items[0].id)


@pytest.mark.parametrize("happened", [_write_hidden, _forget_hidden, _lose_a_vector, _lose_a_community, _hide_another])
async def test_whatever_happened_to_the_stores_a_rebuild_is_not_skipped(
    world: Any, story: Story, happened: Callable[[Any, TenantId], Awaitable[None]]
) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    await rebuild(world, service, tenant)
    assert (await rebuild(world, service, tenant)).result["unchanged"]  # type: ignore[index]
    await happened(world, tenant)
    result = (await rebuild(world, service, tenant)).result
    assert result is not None
    assert "unchanged" not in result
    views = await everything(service, tenant)
    assert len(views) == result["communities"] > 0
    assert {view.id for view in views} >= await found_by_vector(world, tenant, result["generation"]) > set()
    assert (await rebuild(world, service, tenant)).result["unchanged"]  # type: ignore[index]


async def test_a_rebuild_with_nothing_to_do_says_how_it_was_asked_for(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    first = await rebuild(world, service, tenant, RebuildOptions(mode="full"))
    assert first.result is not None
    assert first.result["mode"] == "full"
    again = await rebuild(world, service, tenant)
    assert again.result is not None
    assert (again.result["mode"], again.result["unchanged"], again.result["documents_left_out"]) == ("incremental", True, 0)


@pytest.mark.parametrize("asked", [{"mode": "full"}, {"resolution": 2.0}, {"levels": 1}, {"summarize": False}])
async def test_requests_with_other_options_are_not_skipped(world: Any, story: Story, asked: dict[str, Any]) -> None:
    tenant, service = await world.tenant("a"), world.service(ScriptedModel())
    await add_all(world, tenant, story(""))
    await rebuild(world, service, tenant)
    assert "unchanged" not in ((await rebuild(world, service, tenant, RebuildOptions(**asked))).result or {})


async def test_one_more_document_rewrites_only_what_it_touches(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    await rebuild(world, service, tenant)
    before = {view.id for view in await everything(service, tenant)}
    await world.add(
        tenant,
        "Orchard",
        ["Bastian Krol planted the Winter Orchard in Ostrava with Alena Novak."],
    )
    assert (await service.read_status(tenant))["stale"] is True
    job = await rebuild(world, service, tenant)
    after = {view.id for view in await everything(service, tenant)}
    assert job.result is not None
    assert before < after
    assert job.result["summaries_written"] == len(after - before) == 1


async def test_after_a_delete_what_rested_on_it_is_withheld(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    ids = await add_all(world, tenant, story(""))
    await rebuild(world, service, tenant)
    before = {view.id: view for view in await everything(service, tenant)}
    await world.hide(tenant, ids["Lantern Museum"])
    await world.hide(tenant, ids["Halden Report"])
    after = {view.id: view for view in await everything(service, tenant)}
    gone = {ids["Lantern Museum"], ids["Halden Report"]}
    hidden = [view for view in before.values() if all(source.document_id in gone for source in view.sources)]
    partly = [view for view in before.values() if 0 < sum(s.document_id in gone for s in view.sources) < len(view.sources)]
    assert hidden
    assert partly
    for view in hidden:
        assert view.id not in after
        with pytest.raises(NotFound):
            await service.get(tenant, view.id)
    for view in partly:
        left = after[view.id]
        assert view.name.startswith(left.name), "titles of the deleted documents are left out"
        assert left.stale
        assert left.findings
        assert all(source.document_id not in gone for finding in left.findings for source in finding.sources)
        assert all(source.document_id not in gone for source in left.sources)
    assert any(after[view.id].withheld and not after[view.id].summary for view in partly)
    text = " ".join(f"{view.name} {view.summary} {view.findings} {view.keywords}" for view in after.values())
    assert "Glass Atlas" not in text
    assert "praised" not in text
    await rebuild(world, service, tenant)
    rebuilt = await everything(service, tenant)
    assert rebuilt
    assert not any(view.withheld or view.stale for view in rebuilt)


async def test_what_a_community_is_called_goes_with_its_last_passage(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    lone = await world.add(
        tenant,
        "Quennell Marsh",
        ["Quennell Marsh repaired the Tidal Array for Osric Lindqvist.", "Quennell Marsh left the Tidal Array."],
    )
    await rebuild(world, service, tenant)
    called = {view.id: f"{view.name} {view.keywords} {view.summary}" for view in await everything(service, tenant)}
    (of_it,) = [id for id, labels in called.items() if "Quennell Marsh" in labels]
    await world.hide(tenant, lone)
    assert "Quennell" not in str(await everything(service, tenant))
    left = await service.get(tenant, of_it)
    assert "Tidal Array" in f"{left.name} {left.keywords}", "others say it"
    for mode in ("incremental", "full"):
        await rebuild(world, service, tenant, RebuildOptions(mode=mode))
        assert "Quennell" not in str(await everything(service, tenant)), "its purge has not run"


async def test_a_name_that_only_hidden_versions_use_is_not_chosen_again(world: Any) -> None:
    tenant, service, model = await world.tenant("a"), world.service(), ScriptedModel()
    long = await world.add(
        tenant,
        "Charter",
        ["The Brackwater Tidal Bureau (BTB) hired Mira Voss in Carrow Bay.", "Mira Voss moved the BTB to Brennmoor."],
    )
    await world.add(
        tenant, "Minutes", ["The BTB paid Mira Voss and Osric Lindqvist.", "Osric Lindqvist left the BTB in Brennmoor."]
    )
    await rebuild(world, service, tenant)
    assert "Brackwater" in str(await everything(service, tenant))
    await world.hide(tenant, long)
    assert "Brackwater" not in str(await everything(service, tenant))
    await rebuild(world, world.service(model), tenant)
    told = [message.content for request in model.requests for message in request.messages]
    assert any("BTB" in text for text in told)
    assert not any("Brackwater" in text for text in told), "a model is not shown it either"
    await rebuild(world, service, tenant, RebuildOptions(mode="full"))
    assert any("BTB" in f"{view.name} {view.keywords}" for view in await everything(service, tenant))


async def test_a_summary_that_is_used_again_is_called_what_it_was(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    extra = {"Diary": ["Osric Lindqvist slept badly."], "Notes": ["The Tidal Array hums.", "Mira Voss has a dog."]}
    ids = await add_all(world, tenant, {**extra, **story("")})
    reused = 0
    for gone in ("Diary", "Halden Report", "Notes", "Lantern Museum", None):
        job = await rebuild(world, service, tenant)
        reused += (job.result or {})["summaries_reused"]
        _, communities = await service._reader.read(tenant)
        written = await world.catalogue.communities.summaries(tenant, [each.fingerprint for each in communities])
        views = await everything(service, tenant)
        told = {view.id: (view.name, view.keywords) for view in views}
        assert told == {
            each.id: (written[each.fingerprint].name, written[each.fingerprint].keyword_texts) for each in communities
        }, gone
        assert all(view.name for view in views)
        if gone is not None:
            await world.hide(tenant, ids[gone])
    assert reused


async def test_cancelled_rebuild_leaves_the_old_generation(world: Any, story: Story) -> None:
    tenant, model = await world.tenant("a"), ScriptedModel()
    service = world.service(model)
    await add_all(world, tenant, story(""))
    await rebuild(world, service, tenant)
    before = await everything(service, tenant)
    await world.add(
        tenant,
        "Orchard",
        ["Bastian Krol planted the Winter Orchard in Ostrava with Alena Novak."],
    )
    model.started.clear()
    model.released.clear()
    job = await service.request_rebuild(tenant)
    running = asyncio.create_task(service.rebuild(tenant, job.id, job.attempt))
    await asyncio.wait_for(model.started.wait(), 10)
    await world.catalogue.jobs.request_cancel(tenant, job.id)
    await asyncio.wait_for(running, 10)
    assert (await world.catalogue.jobs.job(tenant, job.id)).state is JobState.CANCELLED
    assert [view.id for view in await everything(service, tenant)] == [view.id for view in before]
    assert (await service.read_status(tenant))["generation"] == before[0].generation


async def test_failure_before_the_flip_leaves_the_old_generation_and_nothing_new(
    world: Any, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    await rebuild(world, service, tenant)
    before = await everything(service, tenant)
    await world.add(
        tenant,
        "Orchard",
        ["Bastian Krol planted the Winter Orchard in Ostrava with Alena Novak."],
    )

    async def broken() -> None:
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(world.vectors, "flush", broken)
        job = await rebuild(world, service, tenant)
    assert job.state is JobState.FAILED
    assert job.error == {"code": "store_unavailable", "message": "the disk is full", "stage": "publish"}
    assert [view.id for view in await everything(service, tenant)] == [view.id for view in before]
    generation = before[0].generation
    assert await world.graph.communities(tenant, generation + 1) == []
    assert await found_by_vector(world, tenant, generation + 1) == set()
    assert (await rebuild(world, service, tenant)).state is JobState.SUCCEEDED


async def test_a_model_writes_and_its_unsupported_findings_are_dropped(world: Any, story: Story) -> None:
    tenant, model = await world.tenant("a"), ScriptedModel()
    service = world.service(model)
    await add_all(world, tenant, story(""))
    job = await rebuild(world, service, tenant)
    assert job.result is not None
    views = await everything(service, tenant)
    assert job.result["prompt_tokens"] == 100 * len(views)
    for view in views:
        assert view.name.startswith("Theme ")
        assert [finding.statement for finding in view.findings] == ["Held by the first fact."]
        assert (view.rating, view.written_by) == (7.0, "scripted")
    again = await rebuild(world, service, tenant, RebuildOptions(mode="full"))
    assert again.result is not None
    assert again.result["model_calls"] == 0
    assert len(model.requests) == len(views)
    users = [message.content for request in model.requests for message in request.messages if message.role == "user"]
    assert all("<facts>" in text and re.search(r"^1\. ", text, re.MULTILINE) for text in users)


async def test_a_failing_summary_marks_its_community_and_is_tried_again(world: Any, story: Story) -> None:
    tenant = await world.tenant("a")
    model = ScriptedModel(failing=lambda call: call == 1)
    service = world.service(model)
    await add_all(world, tenant, story(""))
    job = await rebuild(world, service, tenant)
    assert job.state is JobState.SUCCEEDED
    assert job.result is not None
    assert len(job.result["summaries_failed"]) == 1
    failed = await service.get(tenant, job.result["summaries_failed"][0])
    assert failed.written_by == "extractive"
    assert failed.summary
    again = await rebuild(world, service, tenant)
    assert again.result is not None
    assert (again.result["summaries_written"], again.result["summaries_failed"]) == (
        1,
        [],
    )
    assert (await service.get(tenant, failed.id)).written_by == "scripted"


async def test_summaries_of_another_model_are_not_shown_after_its_rebuild(world: Any, story: Story) -> None:
    tenant = await world.tenant("a")
    await add_all(world, tenant, story(""))
    plain, written = world.service(), world.service(ScriptedModel())
    await rebuild(world, plain, tenant)
    await rebuild(world, written, tenant)
    assert {view.written_by for view in await everything(plain, tenant)} == {"scripted"}
    await rebuild(world, plain, tenant)
    assert {view.written_by for view in await everything(written, tenant)} == {"extractive"}


async def test_two_tenants_do_not_see_or_change_each_other(world: Any, story: Story) -> None:
    alone, first, second = (
        await world.tenant("alone"),
        await world.tenant("first"),
        await world.tenant("second"),
    )
    service = world.service()
    await add_all(world, alone, story(""))
    await rebuild(world, service, alone)
    await add_all(world, second, story(" Canary"))
    await add_all(world, first, story(""))
    await rebuild(world, service, second)
    await rebuild(world, service, first)
    seen = await everything(service, first)
    other = await everything(service, second)
    reference = await everything(service, alone)

    def content(views: tuple[CommunityView, ...]) -> list[tuple[object, ...]]:
        return [
            (
                v.name,
                v.summary,
                v.keywords,
                v.entity_count,
                v.level,
                [f.statement for f in v.findings],
            )
            for v in views
        ]

    assert sorted(content(seen), key=str) == sorted(content(reference), key=str)
    assert "Canary" not in str(seen)
    assert "Canary" in str(other)
    for view in other:
        with pytest.raises(NotFound):
            await service.get(first, view.id)
    assert not {view.id for view in seen} & {view.id for view in reference}


async def test_empty_tenant_has_no_communities_and_no_error(world: Any) -> None:
    tenant, service = await world.tenant("a"), world.service()
    job = await rebuild(world, service, tenant)
    assert job.state is JobState.SUCCEEDED
    assert job.result is not None
    assert (job.result["communities"], job.result["levels"]) == (0, {})
    assert await everything(service, tenant) == ()


async def test_requests_join_the_open_rebuild_but_never_a_dry_run(world: Any) -> None:
    tenant, service = await world.tenant("a"), world.service()
    dry = await service.request_rebuild(tenant, RebuildOptions(dry_run=True))
    first = await service.request_rebuild(tenant)
    assert first.id != dry.id
    second = await service.request_rebuild(tenant, RebuildOptions(mode="full"))
    assert second.id == first.id
    assert world.queue.enqueued == [("rebuild_v1", dry.id), ("rebuild_v1", first.id)]


async def test_changes_lead_to_one_rebuild_once_it_is_quiet(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    world.queue.enqueued.clear()
    schedule = RebuildSchedule(world.catalogue, service.request_rebuild, delay_s=60, max_wait_s=3600)
    now = datetime.now(UTC)
    assert await schedule.request_due(now) == 0
    looks = [await schedule.request_due(now + timedelta(seconds=seconds)) for seconds in (59, 61, 62, 3000)]
    assert (looks, [name for name, _ in world.queue.enqueued]) == ([0, 1, 0, 0], ["rebuild_v1"])
    await service.rebuild(tenant, world.queue.enqueued[0][1], 1)
    assert await schedule.request_due(now + timedelta(days=1)) == 0


async def test_a_tenant_that_is_never_quiet_is_served(world: Any) -> None:
    tenant, service = await world.tenant("a"), world.service()
    schedule = RebuildSchedule(world.catalogue, service.request_rebuild, delay_s=0.05, max_wait_s=0.5)
    found = number = 0
    async with asyncio.timeout(60):
        while not found:
            number += 1
            await world.add(tenant, f"note {number}", ["Ada Thorne knows Ben Wick."])
            found = await schedule.request_due(datetime.now(UTC))
    assert found == 1


async def test_a_rebuild_that_fails_is_not_asked_for_again_until_something_changes(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    schedule = RebuildSchedule(world.catalogue, service.request_rebuild, delay_s=1, max_wait_s=3600)
    soon = datetime.now(UTC) + timedelta(seconds=2)
    assert await schedule.request_due(soon) == 1
    (_, job_id) = world.queue.enqueued[-1]
    await world.catalogue.jobs.finish(tenant, job_id, JobState.FAILED)
    assert await schedule.request_due(soon) == 0
    assert await schedule.request_due(soon + timedelta(hours=2)) == 1, "and once more after an hour"


async def test_a_tenants_flag_decides(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    schedule = RebuildSchedule(
        world.catalogue,
        service.request_rebuild,
        delay_s=1,
        max_wait_s=3600,
        enabled=lambda flags: bool(flags.get("COMMUNITY_AUTO_REBUILD")),
    )
    soon = datetime.now(UTC) + timedelta(seconds=2)
    assert await schedule.request_due(soon) == 0
    await world.catalogue.tenants.set_flags(tenant, {"COMMUNITY_AUTO_REBUILD": True})
    assert await schedule.request_due(soon) == 1


async def test_few_changes_wait_until_they_are_many_or_the_generation_is_old(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    for mark in ("", " II", " III", " IV"):
        await add_all(world, tenant, story(mark))
    await rebuild(world, service, tenant)
    changes = Changes(documents=world.catalogue.documents, graph=world.graph)

    async def share() -> float:
        return await changes.changed_share(tenant, await world.catalogue.communities.pointer(tenant))

    def schedule(threshold: float) -> RebuildSchedule:
        return RebuildSchedule(
            world.catalogue, service.request_rebuild, delay_s=1, max_wait_s=3600, changes=changes, threshold=threshold
        )

    assert await share() == 0
    added = await world.add(tenant, "Note", ["Ada Thorne met Ben Wick in Ostrava."])
    few = await share()
    assert 0 < few < 0.3
    soon = datetime.now(UTC) + timedelta(seconds=2)
    assert await schedule(few + 0.01).request_due(soon) == 0
    assert await schedule(0.0).request_due(soon) == 0, "it was looked at, and nothing changed since"
    await world.add(tenant, "Another", ["Ada Thorne and Cy Wick met Ben Wick in Ostrava.", "Cy Wick moved to Ostrava."])
    assert await share() > few + 0.01
    assert await schedule(few + 0.01).request_due(soon + timedelta(seconds=2)) == 1
    await service.rebuild(tenant, world.queue.enqueued[-1][1], 1)
    assert await share() == 0
    await world.hide(tenant, added)
    await world.graph.delete_document(tenant, added, up_to_version=1)
    assert 0 < await share() <= few, "what went counts, too, but for what another document says as well"
    soon = datetime.now(UTC) + timedelta(seconds=2)
    assert await schedule(0.99).request_due(soon) == 0
    assert await schedule(0.99).request_due(soon + LITTLE_AFTER) == 1


async def test_a_manual_rebuild_during_a_poll_makes_the_automatic_one_unnecessary(world: Any, story: Story) -> None:
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    await rebuild(world, service, tenant)
    await world.add(tenant, "Note", ["Ada Thorne met Ben Wick in Ostrava."])

    class MeanwhileRebuilt(Changes):
        async def changed_share(self, *_: Any) -> float:
            await rebuild(world, service, tenant, RebuildOptions(mode="full", summarize=False))
            return 1.0

    changes = MeanwhileRebuilt(documents=world.catalogue.documents, graph=world.graph)
    schedule = RebuildSchedule(
        world.catalogue, service.request_rebuild, delay_s=1, max_wait_s=3600, changes=changes, threshold=0.1
    )
    assert await schedule.request_due(datetime.now(UTC) + timedelta(seconds=2)) == 0


async def test_only_the_leading_process_looks(world: Any, story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_module, "_SHORTEST_PAUSE_S", 0.001)
    tenant, service = await world.tenant("a"), world.service()
    await add_all(world, tenant, story(""))
    world.queue.enqueued.clear()
    leading = False
    asked = 0

    async def leads() -> bool:
        nonlocal asked
        asked += 1
        return leading

    running = asyncio.create_task(
        RebuildSchedule(world.catalogue, service.request_rebuild, delay_s=0, max_wait_s=3600).run(leads)
    )
    async with asyncio.timeout(60):
        while asked < 5:
            await asyncio.sleep(0.01)
        assert world.queue.enqueued == []
        leading = True
        while not world.queue.enqueued:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
