"""Conditions under which a commit waits for others to share its flush, and its work meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.ingestion.commit import batches as module
from agentic_rag_backend.ingestion.commit.batches import Batches, PreparedJob
from agentic_rag_backend.jobs.coordination.recovery import Caution

TENANT, OTHER = TenantId("t_" + "1" * 32), TenantId("t_" + "2" * 32)


class _World:
    """A runner and a commitment that record the order of their steps."""

    def __init__(self, *, version: int = 1) -> None:
        self.done: list[str] = []
        self.version = version
        self.publishing = self.most_publishing = 0
        self.settled: list[dict[str, int]] = []
        self.flushes_fail: list[Exception] = []
        self.documents: dict[str, str] = {}
        self.refused: set[str] = set()
        self.writing = self.most_writing = 0
        self.stuck = asyncio.Event()
        self.stuck.set()
        self.facts = SimpleNamespace(vectors=self)

    async def begin_job(self, tenant: TenantId, job_id: str, attempt: int, *, started: bool) -> Any:
        return SimpleNamespace(
            job_id=job_id, document_id=self.documents.get(job_id, job_id), version=self.version, stage="", attempt=attempt
        )

    async def run_step(self, run: Any, step: Callable[[Any], Any], failed: Callable[[Any, Any], Any]) -> bool:
        try:
            await step(run)
        except StoreUnavailable as error:
            await failed(run, error)
            return False
        return True

    async def record_failure(self, run: Any, error: Exception, order: Any) -> None:
        self.done.append(f"failed {run.job_id}")

    async def write(self, run: Any, order: Any) -> Any:
        self.writing += 1
        self.most_writing = max(self.most_writing, self.writing)
        try:
            if run.job_id in self.refused:
                raise StoreUnavailable("no disk space")
            await self.stuck.wait()
            await asyncio.sleep(0)
        finally:
            self.writing -= 1
        self.done.append(f"write {run.job_id}")
        return SimpleNamespace(run=run)

    async def flush(self) -> None:
        self.done.append("flush")
        if self.flushes_fail:
            raise self.flushes_fail.pop()

    async def settle_names(self, tenant: TenantId, written: dict[str, int], flush: Callable[[], Any]) -> None:
        self.settled.append(dict(written))

    async def publish(self, written: Any, settle: Callable[[], Any]) -> None:
        self.publishing += 1
        self.most_publishing = max(self.most_publishing, self.publishing)
        await asyncio.sleep(0)
        self.publishing -= 1
        self.done.append(f"publish {written.run.job_id}")


@pytest.fixture
def world() -> _World:
    return _World()


@pytest.fixture
def batches(world: _World, monkeypatch: pytest.MonkeyPatch) -> Batches:
    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 0.2)
    made = Batches(cast("Any", world), cast("Any", world), cast("Any", world))
    made._flush_s = 10.0
    return made


def _add(
    batches: Batches, job_id: str, *, tenant: TenantId = TENANT, enqueued: bool = True, results_saved: int = 1
) -> PreparedJob:
    """Add a prepared job, whose run is the one that `_World.begin` returns."""

    def next_part() -> Any:
        return SimpleNamespace(job_id=job_id, document_id=job_id, version=1, stage="", attempt=1)

    run = SimpleNamespace(
        tenant=tenant, job=SimpleNamespace(id=job_id, attempt=1), next_part=next_part, results_saved=results_saved
    )
    return batches.add(cast("Any", run), enqueued=enqueued)


def _just_flushed(batches: Batches) -> None:
    batches._flushed_at = asyncio.get_running_loop().time()


async def test_a_single_document_is_not_kept_waiting(batches: Batches, world: _World) -> None:
    _just_flushed(batches)
    _add(batches, "one")
    before = asyncio.get_running_loop().time()
    await batches.commit(TENANT, "one", 1)
    assert world.done == ["write one", "flush", "publish one"]
    assert asyncio.get_running_loop().time() - before < 0.2


async def test_what_is_prepared_shares_the_flush(batches: Batches, world: _World) -> None:
    _just_flushed(batches)
    for job_id in ("one", "two", "three"):
        _add(batches, job_id)
    await batches.commit(TENANT, "one", 1)
    assert world.done[:4] == ["write one", "write two", "write three", "flush"]
    assert sorted(world.done[4:]) == ["publish one", "publish three", "publish two"]
    assert world.most_publishing == 3, "first versions are published beside each other"


async def test_documents_are_written_beside_each_other_but_not_all_at_once(batches: Batches, world: _World) -> None:
    for number in range(10):
        _add(batches, str(number))
    await batches.commit(TENANT, "0", 1)
    assert world.most_writing == module.WRITTEN_AT_ONCE


async def test_two_versions_of_a_document_are_written_one_after_the_other(batches: Batches, world: _World) -> None:
    world.documents = {"one": "document", "two": "document"}
    for job_id in ("one", "two"):
        _add(batches, job_id)
    await batches.commit(TENANT, "one", 1)
    assert world.most_writing == 1
    assert world.done[:2] == ["write one", "write two"]


async def test_a_commit_that_is_cancelled_leaves_nothing_writing(batches: Batches, world: _World) -> None:
    world.stuck.clear()
    for job_id in ("one", "two"):
        _add(batches, job_id)
    committing = asyncio.create_task(batches.commit(TENANT, "one", 1))
    while world.writing < 2:
        await asyncio.sleep(0)
    committing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await committing
    assert world.writing == 0
    assert world.done == []


async def test_it_writes_while_it_waits_for_what_is_being_prepared(batches: Batches, world: _World) -> None:
    _just_flushed(batches)
    _add(batches, "one")
    with batches.count_preparation():
        committing = asyncio.create_task(batches.commit(TENANT, "one", 1))
        while "write one" not in world.done:
            await asyncio.sleep(0)
        assert "flush" not in world.done
        _add(batches, "two")
        while "write two" not in world.done:
            await asyncio.sleep(0)
        assert "flush" not in world.done
    await committing
    assert world.done.count("flush") == 1


async def test_it_does_not_wait_longer_than_the_flush_is_due(batches: Batches, world: _World) -> None:
    _just_flushed(batches)
    with batches.count_preparation():
        async with asyncio.timeout(10):
            await batches.commit(TENANT, "one", 1)
    assert world.done == ["write one", "flush", "publish one"]


async def test_anothers_documents_are_not_taken_along(batches: Batches, world: _World) -> None:
    _add(batches, "one")
    _add(batches, "two", tenant=OTHER)
    await batches.commit(TENANT, "one", 1)
    assert world.done == ["write one", "flush", "publish one"]


async def test_later_versions_are_published_one_by_one(batches: Batches, world: _World) -> None:
    world.version = 2
    for job_id in ("one", "two"):
        _add(batches, job_id)
    await batches.commit(TENANT, "one", 1)
    assert world.most_publishing == 1
    assert world.done == ["write one", "write two", "flush", "publish one", "publish two"]


async def test_a_flush_that_failed_is_tried_for_the_next(batches: Batches, world: _World) -> None:
    world.flushes_fail = [StoreUnavailable("full")]
    for job_id in ("one", "two"):
        _add(batches, job_id)
    await batches.commit(TENANT, "one", 1)
    assert world.done.count("flush") == 2
    assert "publish one" not in world.done
    assert {"failed one", "publish two"} <= set(world.done)


async def test_a_lost_turn_ends_the_commit_after_all_have_ended(batches: Batches, world: _World) -> None:
    ended: list[str] = []

    async def publish(written: Any, settle: Any) -> None:
        if written.run.job_id == "one":
            raise asyncio.CancelledError("the turn is another's")
        await asyncio.sleep(0.01)
        ended.append(written.run.job_id)

    world.publish = publish  # type: ignore[method-assign]
    for job_id in ("one", "two"):
        _add(batches, job_id)
    with pytest.raises(asyncio.CancelledError):
        await batches.commit(TENANT, "one", 1)
    assert ended == ["two"]


async def test_names_are_settled_after_all_are_written_and_before_any_is_published(batches: Batches, world: _World) -> None:
    async def settle(tenant: TenantId, written: dict[str, int], flush: Callable[[], Any]) -> None:
        world.done.append(f"settle {sorted(written)}")
        await flush()

    world.settle_names = settle  # type: ignore[method-assign]
    for job_id in ("one", "two"):
        _add(batches, job_id)
    await batches.commit(TENANT, "one", 1)
    assert world.done[:4] == ["write one", "write two", "settle ['one', 'two']", "flush"]
    assert sorted(world.done[4:]) == ["publish one", "publish two"]


async def test_a_document_that_failed_is_not_settled(batches: Batches, world: _World) -> None:
    """Its knowledge was removed, and must not be written again."""

    async def publish(written: Any, settle: Callable[[], Any]) -> None:
        if written.run.job_id == "one":
            raise StoreUnavailable("the first is not published")
        await settle()

    world.version = 2
    world.publish = publish  # type: ignore[method-assign]
    for job_id in ("one", "two"):
        _add(batches, job_id)
    await batches.commit(TENANT, "one", 1)
    assert world.settled == [{"one": 2, "two": 2}, {"two": 2}]


async def test_a_document_that_fails_while_another_is_written_does_not_lose_it(batches: Batches, world: _World) -> None:
    """The other document's job would run for ever: written, never published, never ended."""
    world.refused = {"two"}
    world.stuck.clear()
    for job_id in ("one", "two"):
        _add(batches, job_id)
    committing = asyncio.create_task(batches.commit(TENANT, "one", 1))
    while "failed two" not in world.done:
        await asyncio.sleep(0)
    world.stuck.set()
    await committing
    assert world.done == ["failed two", "write one", "flush", "publish one"]


async def test_a_workflow_continues_with_the_commit_of_its_job_unless_another_commit_included_it(
    batches: Batches, world: _World
) -> None:
    jobs = [_add(batches, job_id, enqueued=job_id == "three") for job_id in ("one", "two", "three")]
    one, two, three = map(batches.choose_continuation, jobs)
    assert one is not None
    assert two is not None
    assert three is None, "a workflow of its own commits it"
    assert not two.is_done()
    await one.workflow(TENANT, "one", 1)
    assert two.is_done()
    assert sorted(world.done) == [
        "flush", "publish one", "publish three", "publish two", "write one", "write three", "write two"
    ]  # fmt: skip


async def test_a_job_is_not_done_if_the_commit_that_included_it_was_cut_off(batches: Batches, world: _World) -> None:
    world.stuck.clear()
    _, job = [_add(batches, job_id, enqueued=False) for job_id in ("one", "two")]
    committing = asyncio.create_task(batches.commit(TENANT, "one", 1))
    while world.writing < 2:
        await asyncio.sleep(0)
    part = batches.choose_continuation(job)  # if the workflow ended now, a kill would lose the job
    committing.cancel()
    await asyncio.gather(committing, return_exceptions=True)
    assert part is not None
    assert not part.is_done()
    world.stuck.set()
    await part.workflow(TENANT, "two", 1)
    assert world.done == ["write two", "flush", "publish two"]


async def test_a_job_is_not_done_if_the_lock_was_lost_before_it_was_published(batches: Batches, world: _World) -> None:
    async def publish(written: Any, settle: Any) -> None:
        raise asyncio.CancelledError

    world.publish = publish  # type: ignore[method-assign]
    _, job = [_add(batches, job_id, enqueued=False) for job_id in ("one", "two")]
    part = batches.choose_continuation(job)
    with pytest.raises(asyncio.CancelledError):
        await batches.commit(TENANT, "one", 1)
    assert "write two" in world.done
    assert part is not None
    assert not part.is_done()


@pytest.mark.parametrize("caution", list(Caution))
async def test_a_job_that_may_have_killed_its_process_is_not_included_by_others(
    batches: Batches, world: _World, monkeypatch: pytest.MonkeyPatch, caution: Caution
) -> None:
    """The commit that includes it would be blamed for its next kill, and its kills would never add up."""
    _just_flushed(batches)
    with monkeypatch.context() as patch:
        patch.setattr(module, "caution_here", lambda: caution)
        _add(batches, "suspect", enqueued=False)
    await batches.commit(TENANT, "one", 1)
    assert ("write suspect" in world.done) == (caution is Caution.NONE)


async def test_a_job_whose_workflow_was_cut_off_while_it_waited_is_not_included(batches: Batches, world: _World) -> None:
    """Another process may run it now. If it is prepared here again, only the new run counts."""
    _just_flushed(batches)

    async def wait(job_id: str) -> None:
        _add(batches, job_id, enqueued=False)
        await asyncio.Event().wait()

    workflows = [asyncio.create_task(wait(job_id)) for job_id in ("gone", "again")]
    await asyncio.sleep(0)
    _add(batches, "again", enqueued=False)
    for workflow in workflows:
        workflow.cancel()
    await asyncio.gather(*workflows, return_exceptions=True)
    await batches.commit(TENANT, "one", 1)
    assert sorted(world.done) == ["flush", "publish again", "publish one", "write again", "write one"]


async def test_a_job_that_an_earlier_run_prepared_is_not_included_by_others(batches: Batches, world: _World) -> None:
    """The earlier run may have been killed while another job's commit included it. Its next kill must be its own."""
    _just_flushed(batches)
    job = _add(batches, "again", enqueued=False, results_saved=0)
    await batches.commit(TENANT, "one", 1)
    assert world.done == ["write one", "flush", "publish one"]
    part = batches.choose_continuation(job)
    assert part is not None
    assert not part.is_done()
