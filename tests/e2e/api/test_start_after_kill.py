"""A process that was killed between a change of metadata and its copy in the vectors: the next one serves no stale filters."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.api.conftest import Client

from agentic_rag_backend import container as composition
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.stores.catalogue.base import Change
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore

SEARCH = {"query": "Where does the lamp of Sarn burn?", "filters": {"shelf": 7}, "strategy": "dense"}


async def leave_entry(open_world: Any, new_tenant: Any, folder: Path) -> Client:
    """Ingest a document, and change its metadata as a process does that is killed before it tells the vector store."""

    def no_job(*_: object) -> None:
        raise AssertionError("a change of metadata needs no job")

    async with open_world(folder) as (container, http):
        client: Client = (await new_tenant(http, "alpha", "admin"))[0]
        document = await client.upload("# Lamp\n\nThe lamp of Sarn burns at the pier.", metadata={"shelf": 3})
        change = Change(metadata={"shelf": 7})
        await container.catalogue.documents.revise(TenantId(client.caller.tenant_id), document["id"], change, no_job)
    return client


async def read(client: Client, http: Any) -> tuple[int, str]:
    """Return the number of results with the changed metadata, and whether filters see every change."""
    caller = type(client)(http, client.caller)
    found = await caller.data("POST", "/search", json=SEARCH)
    return len(found["results"]), (await caller.data("GET", "/status"))["search"]


async def test_the_first_search_sees_the_change(
    tmp_path: Path, open_world: Any, new_tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await leave_entry(open_world, new_tenant, tmp_path / "data")
    update = EdgeVectorStore.update_metadata

    @functools.wraps(update)
    async def slow(*arguments: Any, **options: Any) -> None:
        await asyncio.sleep(1)
        await update(*arguments, **options)

    monkeypatch.setattr(EdgeVectorStore, "update_metadata", slow)
    async with open_world(tmp_path / "data") as (_, http):
        assert await read(client, http) == (1, "current")


@pytest.mark.parametrize("fault", ["refuses", "hangs"])
async def test_a_store_that_is_down_does_not_keep_the_server_from_starting(
    tmp_path: Path, open_world: Any, new_tenant: Any, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    client = await leave_entry(open_world, new_tenant, tmp_path / "data")
    update = EdgeVectorStore.update_metadata

    @functools.wraps(update)
    async def fails(*_arguments: Any, **_options: Any) -> None:
        if fault == "hangs":
            await asyncio.Event().wait()
        raise StoreUnavailable("down")

    monkeypatch.setattr(composition, "CAUGHT_UP_WITHIN_S", 0.2)
    monkeypatch.setattr(EdgeVectorStore, "update_metadata", fails)
    async with open_world(tmp_path / "data") as (_, http):
        assert await read(client, http) == (0, "pending")
    monkeypatch.setattr(EdgeVectorStore, "update_metadata", update)
    async with open_world(tmp_path / "data") as (_, http):
        assert await read(client, http) == (1, "current")
