"""Attachments of messages become documents, follow their message, and go with it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from mail_messages import message_of
from tests.integration.ingestion.conftest import Builder, World

from agentic_rag_backend.domain.document import ChunkingOptions, Document
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.ingestion.commit import attaching
from agentic_rag_backend.stores.catalogue.base import Submitted

Texts = dict[str, str]


async def submit(world: World, files: Texts, *, inner: Texts | None = None, key: str = "mail", **fields: object) -> Submitted:
    contents = {**files, **({"": message_of("Inner", "The inner text.", inner)} if inner is not None else {})}
    content = message_of("Outer", "The outer text.", contents).as_bytes()
    return await world.submit(content, key=key, file_name="mail.eml", **fields)


async def settled(world: World, submitted: Submitted) -> Job:
    """Wait for the jobs of a message and of its attachments. Return the message's job."""
    job = await world.ended(submitted.job)
    await _within(world, job)
    return job


async def _within(world: World, job: Job) -> None:
    for each in (job.result or {}).get("attachments", ()):
        if each.get("job_id"):
            await _within(world, await world.ended(await world.catalogue.jobs.job(world.tenant, each["job_id"])))


async def visible(world: World) -> dict[str, Document]:
    """Return the visible documents by key."""
    found = await world.catalogue.documents.documents(world.tenant, limit=100)
    return {each.key or "": each for each in found.items if each.current_version}


async def test_attachments_follow_their_message(world: World) -> None:
    chunking = ChunkingOptions(chunk_size=50, overlap=0)
    first = await submit(world, {"a.txt": "Alder.", "b.txt": "Birch."}, inner={"deep.txt": "Deep."}, metadata={"shelf": 1})
    job = await settled(world, first)
    assert (job.state, job.stage, job.done) == (JobState.SUCCEEDED, "attachments", 3)
    before = await visible(world)
    assert before.keys() == {"mail", "mail#1/a.txt", "mail#1/b.txt", "mail#1/Inner.eml", "mail#1/Inner.eml#1/deep.txt"}
    assert {each.metadata["shelf"] for each in before.values()} == {1}
    inner, deep = before["mail#1/Inner.eml"], before["mail#1/Inner.eml#1/deep.txt"]
    assert (deep.parent_id, inner.parent_id, before["mail"].parent_id) == (inner.id, first.document.id, None)
    again = await submit(world, {"a.txt": "Alder.", "b.txt": "Birch."}, inner={"deep.txt": "Deep."}, metadata={"shelf": 1})
    assert (again.unchanged, again.document.id, await visible(world)) == (True, first.document.id, before)

    await world.ingestion.update(world.tenant, before["mail#1/a.txt"].id, title="Alders", fields={"own": True})
    second = await submit(world, {"b.txt": "Beech.", "a.txt": "Alder."}, metadata={"shelf": 2})
    job = await settled(world, second)
    assert job.result is not None
    assert [(each["place"], each["state"]) for each in job.result["attachments"]] == [
        ("1/b.txt", "pending"),
        ("1/a.txt", "unchanged"),
    ]
    assert job.result["attachments_deleted"] == 1
    after = await visible(world)
    assert {key: each.id for key, each in after.items()} == {
        key: before[key].id for key in ("mail", "mail#1/a.txt", "mail#1/b.txt")
    }
    assert (after["mail#1/a.txt"].title, dict(after["mail#1/a.txt"].metadata)) == ("Alders", {"shelf": 2, "own": True})
    assert after["mail#1/b.txt"].current_version == 2

    await settled(world, await world.ingestion.chunk_again(world.tenant, first.document.id, chunking))
    cut = await visible(world)
    assert {cut[key].current_version for key in cut} == {2, 3}, "attachments are cut as their message is"
    sections = await submit(world, {"b.txt": "Beech.", "a.txt": "Alder."}, attachments="sections")
    await settled(world, sections)
    (alone,) = (await visible(world)).values()
    text = (await world.catalogue.documents.version(world.tenant, alone.id, alone.current_version)).text
    assert "Attachment b.txt\n\nBeech." in text


async def test_no_attachment_outlives_its_message(world: World) -> None:
    """Random sequences of uploads and deletions: the visible documents are those of the model after every step."""
    chosen, model = random.Random(7), dict[str, set[str]]()
    ids: dict[tuple[str, str], str] = {}
    for step in range(14):
        key = chosen.choice(["one", "two"])
        if chosen.random() < 0.3 and key in model:
            held = await visible(world)
            job = await world.ended(await world.ingestion.delete(world.tenant, held[key].id))
            deleted = {each["document_id"] for each in (job.result or {}).get("attachments", ())}
            assert deleted == {each.id for name, each in held.items() if name.startswith(f"{key}#")}
            del model[key]
            ids = {place: id for place, id in ids.items() if place[0] != key}
        else:
            names = chosen.sample(["a.txt", "b.txt", "c.txt"], chosen.randint(0, 3))
            inner = {"deep.txt": "Deep."} if chosen.random() < 0.5 else None
            submitted = await submit(world, {name: f"Text of {name}." for name in names}, inner=inner, key=key)
            if submitted.job is not None:
                await settled(world, submitted)
            places = {f"#1/{name}" for name in names} | ({"#1/Inner.eml", "#1/Inner.eml#1/deep.txt"} if inner else set())
            model[key] = places
            ids = {place: id for place, id in ids.items() if place[0] != key or place[1] in places}
        shown = await visible(world)
        assert shown.keys() == {f"{key}{place}" for key, places in model.items() for place in (*places, "")}, step
        for key, places in model.items():
            for place in places:
                assert ids.setdefault((key, place), shown[f"{key}{place}"].id) == shown[f"{key}{place}"].id, step


async def test_originals_that_are_not_kept_stay_until_their_attachments_are_taken(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await builder.open(keep_originals=False)

    def refused(*_: object) -> None:
        raise ValueError("as a fault in the code would")

    with monkeypatch.context() as patched:
        patched.setattr(attaching, "_make_upload", refused)
        failed = await world.ended((await submit(world, {"a.txt": "Alder."})).job)
    assert (failed.state, (failed.error or {})["stage"], len(world.originals())) == (JobState.FAILED, "attachments", 1)
    assert (await visible(world)).keys() == {"mail"}
    second = await submit(world, {"a.txt": "Alder."}, inner={"deep.txt": "Deep."})
    await settled(world, second)
    held = await visible(world)
    assert held.keys() == {"mail", "mail#1/a.txt", "mail#1/Inner.eml", "mail#1/Inner.eml#1/deep.txt"}
    await world.ingestion.relay.deliver(world.tenant, within_s=30)
    assert world.originals() == []
    cut = ChunkingOptions(chunk_size=50, overlap=0)
    await settled(world, await world.ingestion.chunk_again(world.tenant, held["mail"].id, cut))
    assert (await visible(world)).keys() == held.keys(), "the attachments stay as they are"


async def test_an_outage_after_the_original_was_forgotten_does_not_fail_the_message(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await builder.open(keep_originals=False)
    finish, calls = world.catalogue.jobs.finish, []

    async def unavailable_once(tenant: TenantId, job_id: str, *arguments: Any, **fields: Any) -> None:
        calls.append(fields.get("progress"))
        if len([each for each in calls if each and each[0] == "attachments"]) == 1:
            raise StoreUnavailable("the catalogue does not answer")
        await finish(tenant, job_id, *arguments, **fields)

    monkeypatch.setattr(type(world.catalogue.jobs), "finish", staticmethod(unavailable_once))
    job = await settled(world, await submit(world, {"a.txt": "Alder."}))
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)
    assert [each["place"] for each in (job.result or {})["attachments"]] == ["1/a.txt"]
    assert (await visible(world)).keys() == {"mail", "mail#1/a.txt"}
