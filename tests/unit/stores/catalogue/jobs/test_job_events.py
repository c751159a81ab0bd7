"""Log entries for each job's start and end, with its tenant and results."""

from __future__ import annotations

from catalogue_checks.samples import nothing
from structlog.testing import capture_logs

from agentic_rag_backend.domain.job import JobKind, JobState
from agentic_rag_backend.stores.catalogue.base import Catalogue


async def test_start_and_end_are_logged_once_with_counts(catalogue: Catalogue) -> None:
    tenant = (await catalogue.tenants.create("acme")).id
    result = {"chunks": 3, "title": "not a count", "unchanged": True, "stages_ms": {"read": 1.5}, "levels": {}, "ids": ["x"]}
    with capture_logs() as logs:
        job = await catalogue.jobs.create(tenant, JobKind.REBUILD, {}, nothing)
        await catalogue.jobs.start(tenant, job.id)
        await catalogue.jobs.finish(tenant, job.id, JobState.SUCCEEDED, result=result)
        await catalogue.jobs.finish(tenant, job.id, JobState.FAILED)
    began, ended = logs
    about = {"tenant": str(tenant), "job": job.id, "kind": "rebuild", "attempt": 1, "log_level": "info"}
    assert began == {**about, "event": "job_started"}
    assert ended.pop("seconds") >= 0
    assert ended == {**about, "event": "job_ended", "state": "succeeded", "counts": {"chunks": 3, "stages_ms": {"read": 1.5}}}


async def test_a_failure_is_logged_with_its_reason(catalogue: Catalogue) -> None:
    tenant = (await catalogue.tenants.create("acme")).id
    job = await catalogue.jobs.create(tenant, JobKind.REBUILD, {}, nothing)
    with capture_logs() as logs:
        await catalogue.jobs.finish(tenant, job.id, JobState.FAILED, error={"code": "store_unavailable", "message": "away"})
    (ended,) = logs
    assert (ended["state"], ended["code"], ended["reason"], "seconds" in ended) == ("failed", "store_unavailable", "away", False)
