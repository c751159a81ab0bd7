"""The embedded application with a small corpus, and the contents of its stores in a comparable form."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from harbour_reports import small_text
from tests.integration.pipeline.conftest import Application as WithoutFolder

from agentic_rag_backend.container import open_container
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.reconciliation.report import Report
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.vector.base import Collection

Opens = Callable[..., AbstractAsyncContextManager["Application"]]
ACME = TenantId("t_" + "ac" * 16)


@dataclass
class Application(WithoutFolder):
    """An application, its folder, and shortcuts for tests."""

    folder: Path

    async def ingested(self, count: int, *, tenant: TenantId | None = None) -> list[str]:
        """Ingest that many documents, one after another, and return their ids."""
        ids = []
        for number in range(count):
            submitted = await self.submit(small_text(number), key=f"report-{number}", tenant=tenant, metadata={"shelf": number})
            await self.ended(submitted.job, tenant=tenant)
            ids.append(submitted.document.id)
        return ids

    async def rebuilt(self) -> None:
        job = await self.ended(await self.container.communities.request_rebuild(self.tenant))
        assert job.state == "succeeded", job

    async def reconciled(self, *, repair: bool = True, tenant: TenantId | None = None) -> Report:
        return await self.container.reconciler.run(tenant or self.tenant, repair=repair)

    def graph(self, query: str, *bound: Any) -> list[tuple[Any, ...]]:
        """Run a statement on the graph's file, to damage it."""
        with sqlite3.connect(self.folder / "graph.db", timeout=30) as connection:
            return connection.execute(query, bound).fetchall()

    def rows(self, query: str, *bound: Any) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.folder / "catalogue.db", timeout=30) as connection:
            return connection.execute(query, bound).fetchall()

    async def contents(self, tenant: TenantId | None = None) -> dict[str, Any]:
        """Return the contents of the stores for a tenant, including the bytes of its vectors."""
        owner, stores = tenant or self.tenant, self.container
        state: dict[str, Any] = {}
        for collection in Collection:
            points = [point async for page in stores.vectors.points(owner, collection) for point in page]
            dense = await stores.vectors.vectors(owner, collection, [point.id for point in points])
            state[f"{collection} points"] = sorted(map(repr, points))
            state[f"{collection} vectors"] = {id: vector.tobytes() for id, vector in sorted(dense.items())}
        for table in ("entities", "entity_names", "entity_supports", "mentions", "relationships", "relationship_supports",
                      "written_versions", "communities", "community_members"):  # fmt: skip
            state[table] = sorted(self.graph(f"SELECT * FROM {table} WHERE tenant = ?", owner.value))
        folder = self.folder / "blobs" / owner.value
        state["blobs"] = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        state["documents"] = sorted(self.rows(
            "SELECT id, key, title, state, current_version, metadata, deleted_at FROM documents WHERE tenant_id = ?", owner.value
        ))  # fmt: skip
        return state


@pytest.fixture
def opens(tmp_path: Path) -> Opens:
    """Return a function that opens the application on one folder repeatedly."""

    @asynccontextmanager
    async def opened(*, work: bool = True, **settings: Any) -> AsyncIterator[Application]:
        given = {"community_auto_rebuild": False, "job_polling_interval_s": 0.02, "reconcile_interval_s": 0, **settings}
        folder = given.setdefault("data_dir", tmp_path / "data")
        async with open_container(Settings(_env_file=None, **given), work=work) as container:
            known = await container.catalogue.tenants.tenant_by_name("acme")
            tenant = known or await container.catalogue.tenants.create("acme", tenant_id=ACME)
            yield Application(container, tenant.id, folder)

    return opened


@pytest.fixture
async def application(opens: Opens) -> AsyncIterator[Application]:
    async with opens() as opened:
        yield opened
