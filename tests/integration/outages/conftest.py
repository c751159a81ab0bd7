"""The application with HTTP, and one of its stores behind a faulty proxy."""

from __future__ import annotations

import asyncio
import gc
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from faulty_proxy import FaultyProxy

from agentic_rag_backend.api.app import create_app
from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.tenant import KeyRequest, Scope, TenantId
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.vector.base import Collection

SLACK_S = 30.0
"""Added to configured time limits for a busy machine. A hanging call takes minutes."""
PATIENCE_S = 120.0
QUESTION = "Who founded the Tidal Institute 0?"

Opens = Callable[..., AbstractAsyncContextManager["Site"]]


def text(number: int) -> str:
    """Return a document of three chunks."""
    return "\n\n".join(
        (
            f"# Report {number} of the Harbour Office",
            f"Mara Voss founded the Tidal Institute {number} in Greenholm in 2019. She was born in Scarrow.",
            "## Works\n\nMara Voss and Tomas Eld surveyed Scarrow for the Harbour Office. They measured tides.",
            f"## Later\n\nThe Tidal Institute {number} works in Greenholm with the Harbour Office.",
        )
    )


@dataclass
class Site:
    """A running application, and the proxy between it and a store."""

    container: Container
    proxy: FaultyProxy
    http: httpx.AsyncClient
    tenant: TenantId

    async def answer(self, method: str, path: str, *, limit_s: float, **options: Any) -> httpx.Response:
        """Return a response that arrives within ``limit_s`` plus the margin for the machine."""
        began = time.monotonic()
        response = await self.http.request(method, path, **options)
        assert time.monotonic() - began < limit_s + SLACK_S, response.text
        return response

    async def search(self, strategy: str = "graph") -> httpx.Response:
        """Search with a request's time limit."""
        body = {"query": QUESTION, "strategy": strategy, "limit": 3}
        return await self.answer("POST", "/api/v1/search", limit_s=self.container.settings.request_timeout_s, json=body)

    async def submit(self, number: int) -> httpx.Response:
        """Submit a document, as a client with retries."""
        body = {"text": text(number), "key": f"report-{number}", "chunking": {"unit": "tokens", "chunk_size": 48, "overlap": 0}}
        key = {"Idempotency-Key": f"report-{number}"}
        limit_s = self.container.settings.request_timeout_s
        return await self.answer("POST", "/api/v1/documents", limit_s=limit_s, json=body, headers=key)

    async def accepted(self, number: int) -> str:
        """Submit a document until it is accepted, and return its job."""
        response = await self.until(lambda: self.submit(number), lambda answer: answer.status_code == 202)
        return str(response.json()["data"]["job_id"])

    async def job(self, job_id: str) -> dict[str, Any]:
        response = await self.until(
            lambda: self.http.get(f"/api/v1/jobs/{job_id}"), lambda answer: answer.status_code == 200, pause_s=0.05
        )
        found: dict[str, Any] = response.json()["data"]
        return found

    async def until(self, ask: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool], *, pause_s: float = 0.2) -> Any:
        """Repeat a request until the response is as expected. Fail with the last response."""
        answer, end = await ask(), time.monotonic() + PATIENCE_S
        while not holds(answer):
            assert time.monotonic() < end, getattr(answer, "text", answer)
            await asyncio.sleep(pause_s)
            answer = await ask()
        return answer

    async def degrades(self, store: str, *, known: bool) -> None:
        """Send requests that need the store. Responses report what is missing; errors name the store.

        Args:
            known: whether passages are found without the store.
        """
        for response in await asyncio.gather(self.search("graph"), self.search("dual_level")):
            body = response.json()
            if response.status_code == 200:
                assert body["meta"]["fallback_used"], response.text
                assert "store_unavailable" in body["meta"]["fallback_reason"], response.text
                assert bool(body["data"]["results"]) is known, response.text
            else:
                assert not known, response.text
                assert (response.status_code, body["code"]) == (503, "store_unavailable"), response.text
                assert store in body["detail"]

    async def waits(self, jobs: list[str], *, for_: str) -> None:
        """Check that a job reports what it waits for. Other jobs of its tenant may be queued behind it."""

        async def told() -> list[str]:
            held = [await self.job(job_id) for job_id in jobs]
            assert {each["state"] for each in held} <= {"queued", "running"}, held
            return [each["message"] for each in held if each["message"].startswith("waiting until ")]

        messages = await self.until(told, bool)
        assert all(for_ in message for message in messages), messages

    async def restarts(self, documents: int) -> None:
        """Ingest documents while the store is repeatedly disconnected and restarted."""
        jobs = []
        for number in range(documents):
            jobs.append(await self.accepted(number))
            if number % 2:
                self.proxy.cut()
            if number % 4 == 3:
                self.proxy.stop()
                await self.search()
                self.proxy.restore()
        await self.all_is_well(jobs)

    async def ready(self) -> dict[str, str]:
        """Return the readiness of each store. The probe always answers."""
        response = await self.answer("GET", "/health/ready", limit_s=5.0)
        stores: dict[str, str] = response.json()["stores"]
        assert response.status_code == (200 if set(stores.values()) == {"ok"} else 503)
        return stores

    async def all_is_well(self, jobs: list[str]) -> None:
        """Wait until every job has succeeded at its first attempt and every store has every document exactly once."""
        for job_id in jobs:
            job = await self.until(lambda: self.job(job_id), lambda held: held["finished_at"] is not None)  # noqa: B023
            assert (job["state"], job["attempt"], job["error"]) == ("succeeded", 1, None), job
        listed = (await self.until(lambda: self.http.get("/api/v1/documents"), _is_ok)).json()["data"]
        assert sorted((each["key"], each["state"], each["version"]) for each in listed) == sorted(
            (f"report-{number}", "ready", 1) for number in range(len(jobs))
        )
        counts = await self.container.catalogue.documents.counts(self.tenant)
        assert await self.container.vectors.count(self.tenant, Collection.CHUNKS) == counts["chunks"] > 0
        report = await self.container.reconciler.run(self.tenant, repair=False)
        assert report.differences == 0, report.as_result()
        found = (await self.until(self.search, _is_whole)).json()["data"]["results"]
        assert "Tidal Institute" in found[0]["content"]
        assert set((await self.until(self.ready, lambda stores: set(stores.values()) == {"ok"})).values()) == {"ok"}


def _is_ok(response: httpx.Response) -> bool:
    return response.status_code == 200


def _is_whole(response: httpx.Response) -> bool:
    return response.status_code == 200 and not response.json()["meta"]["fallback_used"]


@pytest.fixture
def abandoned_sockets() -> Iterator[None]:
    """Collect sockets that Neo4j's driver leaves open if an attempt to connect is cancelled. They must not fail another test."""
    yield
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()


@pytest.fixture
def opens(tmp_path: Path) -> Opens:
    """Return a function that opens the application with a proxy in front of a store, given the proxy and settings."""

    @asynccontextmanager
    async def opened(proxy: FaultyProxy, **other: Any) -> AsyncIterator[Site]:
        chosen = {
            "data_dir": tmp_path / "data",
            "community_auto_rebuild": False,
            "reconcile_interval_s": 0,
            "job_polling_interval_s": 0.05,
            "request_timeout_s": 20.0,
            "dual_level_retrieval_enabled": True,
            # Equal searches before and during an outage: the cache would answer the second.
            "search_cache_mb": 0,
            "theme_cache_mb": 0,
            "passage_cache_mb": 0,
            "embedding_cache_mb": 0,
            **other,
        }
        async with open_container(Settings(_env_file=None, **chosen)) as container:
            tenant = await container.catalogue.tenants.create("acme")
            issued = await container.tenants.issue_key(tenant.id, KeyRequest("test", [Scope.ADMIN]))
            transport = httpx.ASGITransport(create_app(container), raise_app_exceptions=False)
            headers = {"Authorization": f"Bearer {issued.secret}"}
            async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=120, headers=headers) as http:
                try:
                    yield Site(container, proxy, http, tenant.id)
                finally:
                    proxy.restore()

    return opened
