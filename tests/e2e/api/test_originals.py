"""Originals that are not kept: the bytes are removed once a document is visible, and later versions use its text."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client

from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError

pytestmark = pytest.mark.asyncio(loop_scope="module")

# After its front matter, the text begins with text that would be front matter if it were parsed again.
TEXT = """---
owner: nobody
---

# Eels

The Harbour Authority counts eels at the passage.

## Later

Mara Venn counted 40 eels."""
CONTENT = f"---\ntitle: Eel count\nyear: 2018\nshelf: low\n---\n{TEXT}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(tmp_path_factory: pytest.TempPathFactory, open_world: Any) -> AsyncIterator[tuple[Container, httpx.AsyncClient]]:
    async with open_world(tmp_path_factory.mktemp("originals"), keep_originals=False) as world:
        yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(opened: tuple[Container, httpx.AsyncClient], new_tenant: Callable[..., Any]) -> Client:
    found: Client = (await new_tenant(opened[1], "alpha", "admin"))[0]
    return found


def originals(container: Container) -> list[Path]:
    return [
        path for path in (container.settings.data_dir / "blobs").rglob("*") if path.is_file() and not path.name.startswith(".")
    ]


async def none_is_left(container: Container, tenant_id: str) -> None:
    """Wait until the outbox is empty, and check that the folder is empty."""
    async with asyncio.timeout(60):
        while await container.catalogue.outbox.pending(TenantId(tenant_id), limit=1):
            await asyncio.sleep(0.01)
    assert originals(container) == []


async def handed_in(client: Client, key: str) -> dict[str, Any]:
    files = [("file", (key, CONTENT.encode(), "text/markdown"))]
    data = await client.data("POST", "/documents", status=202, files=files)
    (submitted,) = data["documents"]
    assert (await client.ended(submitted["job_id"]))["state"] == "succeeded"
    document: dict[str, Any] = await client.data("GET", f"/documents/{submitted['document_id']}")
    return document


async def test_the_bytes_go_and_the_text_serves_what_comes_after(
    opened: tuple[Container, httpx.AsyncClient], client: Client
) -> None:
    container, _ = opened
    document = await handed_in(client, "eels.md")
    path = f"/documents/{document['id']}"
    await none_is_left(container, client.caller.tenant_id)

    refused = await client.get(f"{path}/content")
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    assert "KEEP_ORIGINALS" in refused.json()["detail"]
    assert (await client.data("GET", "/status"))["stores"]["originals"] == "not kept"

    await client.data("PATCH", path, json={"metadata": {"shelf": None, "reviewed": True}})
    again = await client.data("POST", f"{path}/chunks", status=202, json={"chunk_size": 64, "overlap": 0, "unit": "characters"})
    assert (await client.ended(again["job_id"]))["state"] == "succeeded"
    chunks = (await client.get(f"{path}/chunks", params={"limit": 100})).json()["data"]
    assert len(chunks) > document["chunk_count"]
    assert [
        part for part in chunks if part["content"] != TEXT[part["location"]["start_char"] : part["location"]["end_char"]]
    ] == []
    shown = await client.data("GET", path)
    assert (shown["title"], shown["metadata"]) == ("Eel count", {"year": 2018, "reviewed": True})
    await none_is_left(container, client.caller.tenant_id)

    compared = await client.data("POST", "/admin/reconcile", status=202, json={"repair": False})
    assert (await client.ended(compared["job_id"]))["result"]["kinds"] == {}


async def test_an_unchanged_upload_leaves_nothing_and_a_new_one_replaces_the_text(
    opened: tuple[Container, httpx.AsyncClient], client: Client
) -> None:
    container, _ = opened
    document = await handed_in(client, "again.md")
    await none_is_left(container, client.caller.tenant_id)
    files = [("file", ("again.md", CONTENT.encode(), "text/markdown"))]
    assert (await client.data("POST", "/documents", files=files))["documents"][0]["state"] == "unchanged"
    assert originals(container) == []
    files = [("file", ("again.md", b"# Crabs\n\nCrabs walk.", "text/markdown"))]
    (submitted,) = (await client.data("POST", "/documents", status=202, files=files))["documents"]
    assert (await client.ended(submitted["job_id"]))["state"] == "succeeded"
    (chunk,) = (await client.get(f"/documents/{document['id']}/chunks")).json()["data"]
    assert chunk["content"].endswith("Crabs walk.")
    await none_is_left(container, client.caller.tenant_id)


async def test_a_document_that_cannot_be_embedded_keeps_its_original_until_it_is_ready(
    opened: tuple[Container, httpx.AsyncClient], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    container, _ = opened

    async def broken(*_: Any, **__: Any) -> Any:
        raise AgenticRagError("broken")

    preparation = container.ingestion._preparation
    with monkeypatch.context() as patched:
        patched.setattr(type(preparation.reader), "read", broken)
        submitted = await client.data("POST", "/documents", status=202, json={"text": "Eels swim.", "key": "broken"})
        assert (await client.ended(submitted["job_id"]))["state"] == "failed"
    assert len(originals(container)) == 1
    await client.data("POST", f"/jobs/{submitted['job_id']}/retry", status=202)
    assert (await client.ended(submitted["job_id"]))["state"] == "succeeded"
    await none_is_left(container, client.caller.tenant_id)
