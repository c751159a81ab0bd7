"""Two API and two worker processes act as one: fair to small tenants, also with a killed and a stopped worker."""

from __future__ import annotations

import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Event
from typing import Any

import httpx
import pytest
from programs import Program
from prometheus_client.parser import text_string_to_metric_families
from sampling import budget
from site_of_processes import OPERATOR, Running, Site, Tenant, call, make_tenant

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.sampled]

BIG, SMALL, REST = budget(gate=60, deep=100), budget(gate=4, deep=10), 9
DOCUMENTS = BIG + REST * SMALL + 10
"""Of 10 tenants: 106 in the gate, 200 in `make test-deep`."""
PEOPLE = ("Mara Voss", "Tomas Eld", "Ines Carrow", "Juno Abara")
PLACES = ("Scarrow", "Greenholm", "Teller Sound", "Outer Mirrow", "Lowmere")


def text(number: int) -> str:
    """Return a document of one chunk that shares people and places with its neighbours."""
    person, friend, place = PEOPLE[number % 4], PEOPLE[(number + 1) % 4], PLACES[number % 5]
    return (
        f"# Report {number}\n\n{person} founded the Tidal Institute {number} in {place} in {1950 + number % 60}. "
        f"{person} and {friend} surveyed {place} for the Harbour Office."
    )


@pytest.fixture(scope="module")
def apis(site: Site) -> list[Running]:
    """Two servers without workers."""
    return [site.await_start(process) for process in [site.start("serve"), site.start("serve")]]


@pytest.fixture(scope="module")
def tenants(apis: list[Running]) -> list[Tenant]:
    """Ten tenants. The first one is large."""
    return [make_tenant(apis[number % 2].url, f"tenant {number}") for number in range(10)]


def put(apis: list[Running], tenant: Tenant, number: int) -> dict[str, Any]:
    """Submit a document at one of the servers."""
    body = {"text": text(number), "key": f"report {number}"}
    found: dict[str, Any] = call(apis[number % 2].url, "POST", "/documents", tenant.headers, body)
    return found


def put_many(apis: list[Running], wanted: list[tuple[Tenant, int]]) -> None:
    """Submit documents, several concurrently."""
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda each: put(apis, *each), wanted):
            pass


def open_jobs(site: Site) -> dict[str, int]:
    """Return the number of unfinished jobs by tenant."""
    return dict(site.sql("SELECT tenant_id, count(*) FROM jobs WHERE state IN ('queued', 'running') GROUP BY tenant_id"))


def ended(site: Site, job_id: str) -> bool:
    ((state,),) = site.sql("SELECT state FROM jobs WHERE id = %s", job_id)
    assert state in ("queued", "running", "succeeded"), state
    return bool(state == "succeeded")


def test_a_server_without_workers_answers_and_says_so(site: Site, apis: list[Running], tenants: list[Tenant]) -> None:
    for api in apis:
        ready = httpx.get(f"{api.url}/health/ready", timeout=60)
        assert ready.status_code == 200
        assert set(ready.json()["stores"]) == {"catalogue", "graph", "vectors", "blobs", "jobs"}
        assert ready.json()["workers"] == 0
        status = call(api.url, "GET", "/status", tenants[1].headers)
        assert status["profile"] == "server"
        assert status["workers"] == {"alive": 0, "here": False}
        assert "no live worker" in status["warnings"][0]
    put(apis, tenants[1], 0)
    assert open_jobs(site) == {tenants[1].id: 1}


def test_a_flag_set_at_one_server_acts_at_the_other(apis: list[Running], tenants: list[Tenant]) -> None:
    first, second = (api.url for api in apis)
    query = {"query": "Who surveyed Scarrow?"}
    for on, status in ((True, 200), (False, 404), (True, 200)):
        call(first, "PATCH", "/features", tenants[2].headers, {"DUAL_LEVEL_RETRIEVAL_ENABLED": on})
        found = httpx.post(f"{second}/api/v1/search/dual-level", headers=dict(tenants[2].headers), json=query, timeout=60)
        assert found.status_code == status, found.text


def test_everything_is_ready_once_though_a_worker_is_killed(site: Site, apis: list[Running], tenants: list[Tenant]) -> None:
    workers = [site.await_start(process) for process in [site.start("worker"), site.start("worker")]]
    big, small = tenants[0], tenants[1]
    for worker in workers:
        assert httpx.get(f"{worker.url}/health/live", timeout=60).status_code == 200
        assert httpx.get(f"{worker.url}/health/ready", timeout=60).json()["stores"]["jobs"] == "ok"
    site.until(lambda: not open_jobs(site), "what was waiting for a worker")
    assert call(apis[0].url, "GET", "/status", OPERATOR | {"X-Tenant-Id": small.id})["workers"]["alive"] == 2

    # Fairness: one document of a small tenant while a hundred of a large one wait.
    alone = []
    for number in range(1, 4):
        begun = time.monotonic()
        job_id = put(apis, small, number)["job_id"]
        site.until(lambda job_id=job_id: ended(site, job_id), "a document alone")  # type: ignore[misc]
        alone.append(time.monotonic() - begun)
    site.until(lambda: figures_of(apis[0])["agentic_rag_workers"] == 2, "two workers in the figures")
    for worker in workers:  # so that all are queued when it begins
        worker.process.send_signal(signal.SIGSTOP)
    put_many(apis, [(big, number) for number in range(BIG)])
    waiting = open_jobs(site)[big.id]
    figures = figures_of(apis[0])
    job_id = put(apis, small, 4)["job_id"]
    begun = time.monotonic()
    for worker in workers:
        worker.process.send_signal(signal.SIGCONT)
    site.until(lambda: ended(site, job_id), "a small tenant's document")
    beside = time.monotonic() - begun
    left = open_jobs(site).get(big.id, 0)
    print(f"alone {sorted(alone)[1]:.2f} s, beside {waiting} of another tenant {beside:.2f} s, of which {left} were left")
    assert waiting == BIG
    assert figures["agentic_rag_jobs"] == BIG
    assert left > waiting // 2, "the small tenant's document came after most of what was waiting before it"

    # Then kill a worker in the middle of the remaining work.
    rest = [(tenant, number) for tenant in tenants[1:] for number in range(5, 5 + SMALL)]
    put_many(apis, [*rest, *((big, BIG + number) for number in range(10 - 5))])
    victim = workers[0]
    mine = f"{victim.process.pid}-%"
    site.until(lambda: site.sql("SELECT 1 FROM workflow_runs WHERE executor_id LIKE %s", mine), "work in the victim")
    victim.kill()
    site.until(lambda: not open_jobs(site), "the end of all jobs")
    site.until(
        lambda: not site.sql("SELECT 1 FROM workflows WHERE finished_us IS NULL LIMIT 1"),
        "the end of all workflows",
    )
    everything_is_there_once(site, apis, tenants)
    assert httpx.get(f"{apis[1].url}/health/ready", timeout=60).json()["workers"] == 1


def figures_of(api: Running) -> dict[str, float]:
    """Read ``/metrics`` as Prometheus does: each name with the sum over its labels."""
    families = text_string_to_metric_families(httpx.get(f"{api.url}/metrics", headers=OPERATOR, timeout=60).text)
    return {family.name: sum(sample.value for sample in family.samples) for family in families}


def everything_is_there_once(site: Site, apis: list[Running], tenants: list[Tenant]) -> None:
    """Compare documents, chunks, vectors and graph with the submitted documents, and run the reconciler."""
    counts = Counter(dict(site.sql("SELECT tenant_id, count(*) FROM documents GROUP BY tenant_id")))
    assert counts.total() == DOCUMENTS
    states = site.sql("SELECT DISTINCT state, current_version FROM documents")
    assert states == [("ready", 1)]
    assert site.sql("SELECT DISTINCT kind, state, attempt FROM jobs") == [("ingest", "succeeded", 1)]
    assert site.sql("SELECT count(*), count(DISTINCT document_id) FROM jobs") == [(DOCUMENTS, DOCUMENTS)]
    chunks = dict(site.sql("SELECT tenant_id, count(*) FROM chunks GROUP BY tenant_id"))
    asked = "MATCH (n:Chunk) RETURN n.group_id AS tenant, count(n) AS nodes, count(DISTINCT n.uuid) AS apart"
    nodes = {row["tenant"]: (row["nodes"], row["apart"]) for row in site.graph(asked)}
    doubled = "MATCH (n:Entity) WITH n.group_id AS tenant, toLower(n.name) AS name, count(n) AS times WHERE times > 1 RETURN *"
    assert site.graph(doubled) == [], "an entity was made by two processes"
    for tenant in tenants:
        assert nodes[tenant.id] == (chunks[tenant.id], chunks[tenant.id])
        assert site.points(tenant.id)["chunks"] == chunks[tenant.id]
    for number, tenant in enumerate(tenants):
        job = call(apis[number % 2].url, "POST", "/admin/reconcile", tenant.headers, {"repair": False})
        job_id = job["job_id"]
        site.until(lambda job_id=job_id: ended(site, job_id), "a comparison")  # type: ignore[misc]
        result = call(apis[number % 2].url, "GET", f"/jobs/{job_id}", tenant.headers)["result"]
        assert (result["found"], result["skipped"]) == (0, 0), result


def test_one_rebuild_at_a_time_and_the_next_request_joins(site: Site, apis: list[Running], tenants: list[Tenant]) -> None:
    def ask(number: int) -> str:
        found = call(apis[number % 2].url, "POST", "/admin/communities/rebuild", tenants[0].headers, {"mode": "full"})
        return str(found["job_id"])

    with ThreadPoolExecutor(4) as pool:
        jobs = set(pool.map(ask, range(4)))
    for job_id in jobs:
        site.until(lambda job_id=job_id: ended(site, job_id), "a rebuild")  # type: ignore[misc]
    spans = site.sql("SELECT started_at, finished_at FROM jobs WHERE kind = 'rebuild' ORDER BY started_at")
    assert all(before[1] <= after[0] for before, after in pairwise(spans)), spans
    generations = {call(api.url, "GET", "/status", tenants[0].headers)["communities"]["generation"] for api in apis}
    assert generations == {len(jobs)}


def test_readers_see_no_gap_when_a_worker_is_killed_in_a_rebuild(site: Site, apis: list[Running], tenants: list[Tenant]) -> None:
    def shown(api: Running) -> tuple[set[int], frozenset[str]]:
        listed = call(api.url, "GET", "/communities?limit=100", tenants[0].headers)
        return {each["generation"] for each in listed}, frozenset(each["id"] for each in listed)

    site.await_start(site.start("worker"))
    wholes = {min(shown(apis[0])[0]): shown(apis[0])[1]}
    (before,) = wholes
    over = Event()

    def read(api: Running) -> list[tuple[set[int], frozenset[str]]]:
        seen = []
        while not over.is_set():
            seen.append(shown(api))
        return seen

    def at_work() -> list[Program]:
        running = [each for each in site.started if each.args[0] == "worker" and each.poll() is None]
        mine = "SELECT 1 FROM workflow_runs WHERE executor_id LIKE %s"
        return [each for each in running if site.sql(mine, f"{each.pid}-%")]

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read, api) for api in apis]
        try:
            body = {"mode": "full", "resolution": 2.0}
            job_id = call(apis[0].url, "POST", "/admin/communities/rebuild", tenants[0].headers, body)["job_id"]
            (victim, *_) = site.until(at_work, "a worker that rebuilds")
            Running(victim, "").kill()
            site.until(lambda: ended(site, job_id), "the end of the rebuild")
            after = call(apis[0].url, "GET", "/status", tenants[0].headers)["communities"]["generation"]
            site.until(lambda: shown(apis[1])[0] == {after}, "the new generation")
        finally:
            over.set()
    seen = [each for reader in readers for each in reader.result()]
    assert after > before
    assert len(seen) > 2
    for generations, ids in seen:
        (generation,) = generations
        assert generation in (before, after)
        assert wholes.setdefault(generation, ids) == ids, "a reader saw a part of a generation"


def test_a_stopping_worker_finishes_or_hands_back_its_jobs(site: Site, apis: list[Running], tenants: list[Tenant]) -> None:
    worker = next(each for each in site.started if each.args[0] == "worker" and each.poll() is None)
    put_many(apis, [(tenants[0], number) for number in range(1000, 1040)])
    mine = f"{worker.pid}-%"
    site.until(lambda: site.sql("SELECT 1 FROM workflow_runs WHERE executor_id LIKE %s", mine), "work in the worker")
    assert Running(worker, "").stop() == 0
    assert site.sql("SELECT 1 FROM workers WHERE executor_id LIKE %s", mine) == []
    assert site.sql("SELECT 1 FROM workflows WHERE finished_us IS NULL AND claimant IS NOT NULL") == [], (
        "claimed by nobody who is there"
    )
    assert open_jobs(site)[tenants[0].id] > 0, "it was stopped in the middle"
    site.await_start(site.start("worker"))
    site.until(lambda: not open_jobs(site), "the end of all jobs")
    states = site.sql("SELECT state, count(*) FROM documents WHERE tenant_id = %s GROUP BY state", tenants[0].id)
    assert states == [("ready", BIG + 5 + 40)]
