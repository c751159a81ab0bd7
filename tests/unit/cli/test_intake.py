"""Uploads by the command line: concurrency, state that is kept, and polling of jobs."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.cli import following, progress
from agentic_rag_backend.cli.commands.ingest import show_progress
from agentic_rag_backend.cli.intake import FAILURES, IN_FLIGHT, LISTED, SENDING, SENDING_BYTES, Intake, Processing
from agentic_rag_backend.cli.session.client import Client
from agentic_rag_backend.errors import InvalidRequest, StoreUnavailable
from agentic_rag_backend.sources.reading import Extent, ReadingProblem, SourceDocument


class Jobs(Client):
    """A server whose jobs end at the second poll. It counts polls."""

    def __init__(self, *, foreign: int = 0) -> None:
        self.calls: Counter[str] = Counter()
        self.open: dict[str, int] = {}
        self.most: Counter[str] = Counter()
        self.sending = self.sending_bytes = 0
        self.foreign = foreign
        self.pause_s = 0.001

    async def post(self, path: str, body: Any = None) -> Any:
        self.calls["POST"] += 1
        size = len(body["text"])
        self.sending, self.sending_bytes = self.sending + 1, self.sending_bytes + size
        self._note()
        await asyncio.sleep(self.pause_s)
        self.sending, self.sending_bytes = self.sending - 1, self.sending_bytes - size
        if body["key"].startswith("refused"):
            raise InvalidRequest("refused")
        self.open[body["key"]] = 0
        self._note()
        return {"document_id": body["key"], "job_id": body["key"], "state": "pending"}

    async def every(self, path: str, *, limit: int, **parameters: Any) -> list[dict[str, Any]]:
        self.calls["page"] += 1
        # Jobs of other uploads fill the page.
        return [self._job(job_id) for job_id in list(self.open)[self.foreign :]]

    async def get(self, path: str, **parameters: Any) -> Any:
        self.calls["GET"] += 1
        return self._job(path.removeprefix("/jobs/"))

    def _job(self, job_id: str) -> dict[str, Any]:
        self.open[job_id] += 1
        if self.open[job_id] < 2:
            return {"id": job_id, "state": "running", "stage": "embed"}
        del self.open[job_id]
        return {"id": job_id, "state": "succeeded", "stage": "done"}

    def _note(self) -> None:
        self.most["open"] = max(self.most["open"], len(self.open))
        self.most["sending"] = max(self.most["sending"], self.sending)
        self.most["bytes"] = max(self.most["bytes"], self.sending_bytes if self.sending > 1 else 0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_INTERVAL_S", 0.005)


def _rows(count: int, *, content: bytes = b"text", key: str = "k") -> Iterator[SourceDocument]:
    for number in range(count):
        yield SourceDocument(path=Path("a.csv"), key=f"{key}{number}", row=number, content=content)


async def test_concurrent_submissions_are_bounded() -> None:
    jobs, read = Jobs(), 0

    def counted() -> Iterator[SourceDocument]:
        nonlocal read
        for document in _rows(2000):
            read += 1
            assert read - ended <= IN_FLIGHT + 1
            yield document

    ended = 0

    def note(*_: object) -> None:
        nonlocal ended
        ended += 1

    results = await Intake(jobs, Processing(), wait=True, on_ended=note).submit_documents(counted())
    assert results.counts == {"ready": 2000}
    assert results.fine
    assert 1 < jobs.most["open"] <= IN_FLIGHT
    assert jobs.most["sending"] <= SENDING
    assert len(results.items) == LISTED
    assert [item.key for item in results.items] == [f"k{number}" for number in range(LISTED)]


async def test_jobs_are_asked_for_by_the_page_not_one_by_one() -> None:
    jobs, started = Jobs(), time.monotonic()
    await Intake(jobs, Processing(), wait=True).submit_documents(_rows(1000))
    assert jobs.calls["GET"] <= 20
    # A page per interval, however many jobs are open. How many intervals there are depends on the machine.
    assert jobs.calls["page"] <= (time.monotonic() - started) / following.POLL_INTERVAL_S + 1


async def test_jobs_that_others_push_off_the_page_still_end() -> None:
    jobs = Jobs(foreign=IN_FLIGHT)
    results = await Intake(jobs, Processing(), wait=True).submit_documents(_rows(200))
    assert results.counts == {"ready": 200}
    assert jobs.calls["GET"] <= jobs.calls["page"] * following.ALONE


async def test_large_documents_are_sent_few_at_a_time() -> None:
    jobs = Jobs()
    jobs.pause_s = 0.05
    content = b"x" * (SENDING_BYTES // 3)
    await Intake(jobs, Processing(), wait=False).submit_documents(_rows(12, content=content))
    assert jobs.most["bytes"] <= SENDING_BYTES
    assert 2 <= jobs.most["sending"] <= 3
    jobs = Jobs()
    jobs.pause_s = 0.05
    await Intake(jobs, Processing(), wait=False).submit_documents(_rows(3, content=b"x" * (SENDING_BYTES + 1)))
    assert jobs.most["sending"] == 1


async def test_progress_has_the_documents_that_ended_and_the_stage_of_a_running_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_INTERVAL_S", 0.0)
    rows = (replace(row, size=5) for row in _rows(2))
    await show_progress(Jobs(), rows, Processing(), extent=Extent(files=1, size=10, skipped=0))
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "ingest: 0 documents of 1 file, embed, 0 %"
    assert last == "ingest: 2 documents of 1 file, embed, 100 %"


async def test_failures_are_counted_all_and_kept_few() -> None:
    problem = ReadingProblem(code="bad_row", message="row 1: no")
    bad = (SourceDocument(path=Path("a.csv"), key=f"b{number}", row=number, problem=problem) for number in range(1000))

    def documents() -> Iterator[SourceDocument]:
        yield from _rows(1500)
        yield from bad
        yield from _rows(5, key="refused")

    results = await Intake(Jobs(), Processing(), wait=False).submit_documents(documents())
    assert results.counts == {"queued": 1500, "refused": 1005}
    assert not results.fine
    assert (len(results.failures), len(results.items)) == (FAILURES, LISTED)
    assert results.failures[0].error == {"code": "bad_row", "message": "row 1: no"}


async def test_what_ends_the_reading_or_the_server_ends_the_intake() -> None:
    def broken() -> Iterator[SourceDocument]:
        yield from _rows(3)
        raise InvalidRequest("two files")

    with pytest.raises(InvalidRequest, match="two files"):
        await Intake(Jobs(), Processing(), wait=True).submit_documents(broken())

    class Gone(Jobs):
        async def post(self, path: str, body: Any = None) -> Any:
            raise StoreUnavailable("gone")

    with pytest.raises(StoreUnavailable):
        await Intake(Gone(), Processing(), wait=True).submit_documents(_rows(500))


def test_forms_and_bodies_have_the_same_processing_options() -> None:
    processing = Processing(chunking={"unit": "tokens"}, extraction="rules")
    assert processing.as_body() == {"chunking": {"unit": "tokens"}, "extraction": "rules"}
    assert processing.as_form() == {"chunking": '{"unit": "tokens"}', "extraction": "rules"}
    assert Processing(chunking={}).as_body() == {}


async def test_jobs_that_take_long_do_not_keep_those_behind_them_from_being_seen() -> None:
    class Slow(Jobs):
        def _job(self, job_id: str) -> dict[str, Any]:
            late = int(job_id.removeprefix("k")) < following.ALONE and len(self.open) > following.ALONE
            return {"id": job_id, "state": "running", "stage": "embed"} if late else super()._job(job_id)

    async with asyncio.timeout(20):
        results = await Intake(Slow(foreign=IN_FLIGHT), Processing(), wait=True).submit_documents(_rows(40))
    assert results.counts == {"ready": 40}


class Mail(Jobs):
    """A server whose jobs of messages name attachments: one in a job, one unchanged, one refused, and one within the first."""

    def _job(self, job_id: str) -> dict[str, Any]:
        job = super()._job(job_id)
        if job["state"] == "succeeded" and job_id in ("k0", "first"):
            inner = "first" if job_id == "k0" else "within"
            self.open[inner] = 0
            taken: list[dict[str, Any]] = [
                {"place": f"1/{inner}", "key": f"{job_id}#{inner}", "document_id": inner, "job_id": inner, "state": "pending"}
            ]
            if job_id == "k0":
                taken.append({"place": "1/same", "key": "k0#same", "document_id": "same", "job_id": None, "state": "unchanged"})
                taken.append({"place": "1/bad", "error": {"code": "payload_too_large", "message": "too large"}})
            job["result"] = {"attachments": taken}
        return job


async def test_attachments_are_followed_and_counted() -> None:
    results = await Intake(Mail(), Processing(), wait=True).submit_documents(_rows(1))
    assert results.counts == {"ready": 3, "unchanged": 1, "refused": 1}
    assert {item.key: item.state for item in results.items} == {
        "k0": "ready",
        "k0#first": "ready",
        "first#within": "ready",
        "k0#same": "unchanged",
        "k0#1/bad": "refused",
    }
    (failure,) = results.failures
    assert failure.error == {"code": "payload_too_large", "message": "too large"}


async def test_warnings_and_the_reasons_of_a_partial_result_are_kept() -> None:
    class Partial(Jobs):
        async def post(self, path: str, body: Any = None) -> Any:
            return {**await super().post(path, body), "warnings": ["read as koi8-r"]}

        def _job(self, job_id: str) -> dict[str, Any]:
            result = {"failures": 2, "reasons": ["pages 4–12", "no"], "warnings": ["read as koi8-r", "pages 1–3"]}
            job = super()._job(job_id)
            return job if job["state"] == "running" else {**job, "state": "partial", "error": None, "result": result}

    (item,) = (await Intake(Partial(), Processing(), wait=True).submit_documents(_rows(1))).failures
    assert (item.state, item.error) == ("partial", {"code": "partial", "message": "pages 4–12; no"})
    assert item.warnings == ["read as koi8-r", "pages 1–3"]
