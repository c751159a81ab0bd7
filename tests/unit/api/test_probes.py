"""Responses to probes: health and metrics, and access to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from agentic_rag_backend.api.app import create_app
from agentic_rag_backend.api.worker_app import create_worker_app
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.job import JobKind
from agentic_rag_backend.domain.tenant import Credential, Principal, Scope, Tenant, TenantId, TenantState
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.jobs.base import QueueName
from agentic_rag_backend.jobs.coordination.membership import Others
from agentic_rag_backend.jobs.coordination.worker_status import WorkerStatus
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.catalogue.base import Worker
from agentic_rag_backend.tenancy.authentication import Authenticator, WrongKeys, secret_hash

KEY = "the-operators-key-of-these-tests-0123456789"
METRICS_KEY = "the-metrics-key-of-these-tests-0123456789"


class Directory:
    """A directory with the given workers, or an unavailable one."""

    def __init__(self, *workers: Worker, away: bool = False) -> None:
        self.found = workers
        self.away = away

    async def workers(self) -> Sequence[Worker]:
        if self.away:
            raise StoreUnavailable("away")
        return self.found

    async def open_jobs(self) -> Mapping[str, int]:
        return {"queued": 7, "running": 2}

    async def oldest_queued_s(self) -> Mapping[JobKind, float]:
        return {JobKind.INGEST: 600.0}


class Queue:
    """A queue without jobs that another queue has passed on."""

    def queue_of(self, name: str) -> QueueName:
        return QueueName.PREPARE

    async def oldest_enqueued_s(self) -> Mapping[QueueName, float]:
        return {}


class Store:
    def __init__(self, *, away: bool = False) -> None:
        self.away = away

    async def ping(self) -> None:
        if self.away:
            raise StoreUnavailable("away")


class Tenants:
    """A directory with one tenant and its key."""

    async def authenticate(self, digest: str) -> Credential | None:
        if digest != secret_hash("a-tenants"):
            return None
        now = datetime.now(UTC)
        tenant = Tenant(TenantId.new(), "acme", TenantState.ACTIVE, 1, now)
        return Credential(Principal(tenant=tenant, scopes=frozenset({Scope.ADMIN}), key_id="k"))


def worker(name: str, silent_s: float, *workflows: str) -> Worker:
    return Worker(executor_id=name, beats=1, workflows=frozenset(workflows), silent_s=silent_s)


ALIVE = (worker("alive", 1, "ingest_v1"), worker("silent", 31, "ingest_v1"), worker("a command that looks", 1))


def worker_status(directory: Directory, *, shared: bool = True, here: bool = False) -> WorkerStatus:
    others = Others(directory=cast(Any, directory), leases=cast(Any, None), silent_after_s=30) if shared else None
    return WorkerStatus(cast(Any, directory), here=here, others=others, queue=cast(Any, Queue()), workflows={JobKind.INGEST: "i"})


def container(directory: Directory, *, away: str = "", **options: Any) -> Container:
    names = ("catalogue", "graph", "vectors", "blobs", "queue")
    stores = {name: Store(away=name == away) for name in names}
    settings = Settings(_env_file=None, **options)  # type: ignore[call-arg]
    keys = Authenticator(
        cast(Any, Tenants()),
        operators={"operator": KEY},
        metrics_key=METRICS_KEY,
        wrong_keys=WrongKeys(settings.max_wrong_keys_per_client),
    )
    held = {"settings": settings, "worker_status": worker_status(directory), "authenticator": keys, "reindex_due": None}
    return cast(Container, SimpleNamespace(**held, **stores, model=None, embedder=None))


def client(made: Container, *, of_worker: bool = True) -> httpx.AsyncClient:
    app = create_worker_app(made) if of_worker else create_app(made)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://probe")


async def test_only_who_runs_jobs_and_has_beaten_lately_is_alive() -> None:
    assert [each.executor_id for each in await worker_status(Directory(*ALIVE)).list_workers()] == ["alive"]
    assert await worker_status(Directory(*ALIVE), shared=False).list_workers() == []
    assert len(await worker_status(Directory(), shared=False, here=True).list_workers()) == 1


@pytest.mark.parametrize("of_worker", [True, False])
async def test_ready_names_each_store_and_counts_workers(of_worker: bool) -> None:
    async with client(container(Directory(*ALIVE)), of_worker=of_worker) as probe:
        assert (await probe.get("/health/live")).json() == {"status": "ok"}
        found = await probe.get("/health/ready")
    names = ("catalogue", "graph", "vectors", "blobs", "jobs")
    assert (found.status_code, found.json()["stores"], found.json()["workers"]) == (200, dict.fromkeys(names, "ok"), 1)


async def test_a_store_that_is_away_is_named_and_no_worker_is_no_fault() -> None:
    async with client(container(Directory(), away="graph")) as probe:
        found = await probe.get("/health/ready")
    assert (found.status_code, found.json()["stores"]["graph"], found.json()["workers"]) == (503, "store_unavailable", 0)
    async with client(container(Directory())) as probe:
        assert (await probe.get("/health/ready")).status_code == 200
    async with client(container(Directory(away=True))) as probe:
        assert (await probe.get("/health/ready")).json()["workers"] is None


async def test_figures() -> None:
    async with client(container(Directory(*ALIVE), away="vectors")) as probe:
        found = await scrape(probe)
    assert found.headers["content-type"].startswith("text/plain; version=")
    lines = [line for line in found.text.splitlines() if not line.startswith("#")]
    assert "agentic_rag_workers 1.0" in lines
    assert {'agentic_rag_jobs{state="queued"} 7.0', 'agentic_rag_jobs{state="running"} 2.0'} <= set(lines)
    assert {'agentic_rag_store_up{store="graph"} 1.0', 'agentic_rag_store_up{store="vectors"} 0.0'} <= set(lines)
    lag = {
        name: float(line.split()[-1]) for name in QueueName for line in lines if f'queue_lag_seconds{{queue="{name}"}}' in line
    }
    assert lag == {QueueName.PREPARE: 600.0, QueueName.COMMIT: 0.0}
    async with client(container(Directory(away=True), away="catalogue")) as probe:
        found = await scrape(probe)
    assert (found.status_code, "agentic_rag_workers" in found.text) == (200, False)


async def test_requests_are_counted_by_route_template_and_status() -> None:
    async with client(container(Directory(*ALIVE)), of_worker=False) as probe:
        before = await counted(probe)
        for path in ("/health/live", "/health/live", "/nothing/4711", "/api/v1/documents/4711"):
            await probe.get(path)
        after = await counted(probe)
    new = {line: count - before.get(line, 0) for line, count in after.items() if count != before.get(line, 0)}
    assert new == {
        'agentic_rag_http_requests_total{door="api",method="GET",route="/health/live",status="200"}': 2,
        'agentic_rag_http_requests_total{door="api",method="GET",route="unmatched",status="404"}': 1,
        'agentic_rag_http_requests_total{door="api",method="GET",route="/api/v1/documents/{document_id}",status="401"}': 1,
        'agentic_rag_http_requests_total{door="api",method="GET",route="/metrics",status="200"}': 1,
    }


async def scrape(probe: httpx.AsyncClient, key: str = METRICS_KEY) -> httpx.Response:
    """Read the metrics as Prometheus does."""
    return await probe.get("/metrics", headers={"Authorization": f"Bearer {key}"})


async def counted(probe: httpx.AsyncClient) -> dict[str, float]:
    lines = (await scrape(probe)).text.splitlines()
    return {line.rpartition(" ")[0]: float(line.split()[-1]) for line in lines if "http_requests_total{" in line}


@pytest.mark.parametrize("of_worker", [True, False])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_metrics_require_a_key_on_every_address(host: str, of_worker: bool) -> None:
    async with client(container(Directory(), host=host), of_worker=of_worker) as probe:
        refused = await probe.get("/metrics")
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert "METRICS_KEY or the operator's key" in refused.json()["detail"]
        expected = {"a-tenants": 403, KEY: 200, METRICS_KEY: 200, "of nobody": 401}
        assert {key: (await scrape(probe, key)).status_code for key in expected} == expected
        assert (await probe.get("/metrics", headers={"X-API-Key": METRICS_KEY})).status_code == 200
        assert (await probe.get("/health/ready")).status_code == 200


async def test_the_key_of_the_metrics_reads_nothing_else() -> None:
    async with client(container(Directory()), of_worker=False) as probe:
        for path in ("/api/v1/tenants", "/api/v1/documents"):
            response = await probe.get(path, headers={"X-API-Key": METRICS_KEY, "X-Tenant-Id": "t_" + "0" * 32})
            assert (path, response.status_code) == (path, 401)


async def test_public_metrics_require_no_key() -> None:
    async with client(container(Directory(), metrics_public=True)) as probe:
        assert (await probe.get("/metrics")).status_code == 200
        assert (await scrape(probe, "of nobody")).status_code == 200


async def test_a_client_with_many_wrong_keys_is_locked_out() -> None:
    async with client(container(Directory(), max_wrong_keys_per_client=3)) as probe:
        answers = [await scrape(probe, f"wrong {number}") for number in range(5)]
        assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
        problem = answers[3].json()
        assert (problem["code"], answers[3].headers["retry-after"]) == ("too_many_wrong_keys", "1")
        assert "more than 3 wrong keys (MAX_WRONG_KEYS_PER_CLIENT)" in problem["detail"]
        # The right key of the metrics cannot be found by trying, and a tenant's key is known to be valid.
        assert (await scrape(probe)).status_code == 429
        assert (await scrape(probe, "a-tenants")).status_code == 403
        assert (await probe.get("/metrics")).status_code == 401


async def test_queue_lag_is_of_jobs_that_have_not_begun_and_of_those_between_two_queues() -> None:
    class Waiting:
        async def oldest_queued_s(self) -> dict[JobKind, float]:
            return {JobKind.INGEST: 7.0, JobKind.REBUILD: 3.0, JobKind.DELETE: 1.0}

    class Queue:
        def queue_of(self, name: str) -> QueueName:
            return {"ingest_v1": QueueName.PREPARE, "rebuild_v1": QueueName.PREPARE, "delete_v1": QueueName.COMMIT}[name]

        async def oldest_enqueued_s(self) -> dict[QueueName, float]:
            return {QueueName.PREPARE: 0.0, QueueName.COMMIT: 5.0}

    workflows = {JobKind.INGEST: "ingest_v1", JobKind.REBUILD: "rebuild_v1", JobKind.DELETE: "delete_v1"}
    here = WorkerStatus(cast(Any, Waiting()), here=True, others=None, queue=cast(Any, Queue()), workflows=workflows)
    assert await here.queue_lag_s() == {QueueName.PREPARE: 7.0, QueueName.COMMIT: 5.0}
