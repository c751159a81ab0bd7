"""The service that `same` asks, in its own process and with reproducible ids.

Everything is asked through HTTP, because a change of the code inside must not change the responses.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx

from agentic_rag_backend.api.app import create_app
from agentic_rag_backend.container import open_container
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.accept import uploads
from report import make_settings
from same_corpora import File

TENANT = "same"
OPERATOR_KEY = "the-operator-of-same-needs-a-long-key-of-its-own"
TENANT_ID = f"t_{'5a' * 16}"
PAUSE_S = 0.01


def make_ids_reproducible() -> None:
    """Number the ids of tenants and documents in this process: everything else has ids made from these.

    Ids decide between results of equal score, so random ones would differ from run to run.
    """
    numbers = count(1)
    namespace = uuid.UUID(int=33)
    uploads.uuid = SimpleNamespace(uuid4=lambda: uuid.uuid5(namespace, str(next(numbers))))  # type: ignore[assignment, attr-defined]
    TenantId.new = classmethod(lambda cls: cls(TENANT_ID))  # type: ignore[method-assign, assignment]


class Service:
    """A service with one tenant."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def get(self, path: str, **parameters: Any) -> Any:
        """Return the body of a response."""
        return self._body(await self._http.get(path, params=parameters))

    async def post(self, path: str, body: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """Return the body of a response."""
        return self._body(await self._http.post(path, json=body, **more))

    async def list_items(self, path: str, **parameters: Any) -> list[Any]:
        """Return the items of all pages."""
        items: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self.get(path, limit=100, **parameters, **({"cursor": cursor} if cursor else {}))
            items += page["data"]
            cursor = page["meta"]["nextCursor"]
            if cursor is None:
                return items

    async def upload(self, file: File) -> None:
        """Upload a document, and wait until it and its attachments are processed."""
        if file.name:
            form = {"key": file.key, "questions": '{"method": "patterns"}'}
            self._body(await self._http.post("/documents", files={"file": (file.name, file.content)}, data=form))
        else:
            body = {"text": file.content.decode(), "key": file.key, "title": file.title or None, "media_type": "text/plain"}
            await self.post("/documents", {name: value for name, value in body.items() if value is not None})
        await self.wait_for_jobs()

    async def rebuild(self, path: str) -> None:
        """Build the communities or the tree, and wait for the end."""
        await self.post(f"/admin/{path}/rebuild")
        await self.wait_for_jobs()

    async def wait_for_jobs(self) -> None:
        """Wait until no job is queued or running."""
        for state in ("queued", "running", "queued"):
            while (await self.get("/jobs", state=state, limit=1))["data"]:
                await asyncio.sleep(PAUSE_S)

    @staticmethod
    def _body(response: httpx.Response) -> Any:
        if response.status_code >= 400:
            return {"data": None, "meta": {"nextCursor": None}, "status": response.status_code, "problem": response.json()}
        return response.json()


@asynccontextmanager
async def open_service(data_dir: Path) -> AsyncIterator[Service]:
    """Serve a data folder in this process, without caches of results and without limits of time."""
    settings = make_settings(
        data_dir=data_dir,
        operator_key=OPERATOR_KEY,
        dual_level_retrieval_enabled=True,
        community_auto_rebuild=False,
        search_cache_mb=0,
        request_timeout_s=600,
        rerank_timeout_s=60,
    )
    async with open_container(settings) as container:
        transport = httpx.ASGITransport(create_app(container))
        headers = {"Authorization": f"Bearer {OPERATOR_KEY}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://same/api/v1", headers=headers, timeout=600) as http:
            await http.post("/tenants", json={"name": TENANT})  # 409 if the folder was kept
            http.headers["X-Tenant-Id"] = TENANT
            yield Service(http)
