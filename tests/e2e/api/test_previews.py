"""Previews of chunking: the chunks that ingestion would make, without a trace in the stores."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World

from agentic_rag_backend.domain.document import CHUNKING_STRATEGIES
from agentic_rag_backend.ingestion.prepare.previewing import MAX_PREVIEW_BYTES

pytestmark = pytest.mark.asyncio(loop_scope="module")

LOCK = "The lock {0} of Sarn was rebuilt by Ilse Harrow. It is nine metres wide. "
TEXT = "# Locks\n\n" + "\n\n".join(f"## Lock {number}\n\n{LOCK.format(number) * 3}" for number in range(6))


async def _preview(client: Client, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = await client.data("POST", "/chunking/preview", json=body)
    return found


async def test_a_preview_has_the_chunks_of_the_ingested_document_and_stores_nothing(world: World) -> None:
    before = (await world.alpha.data("GET", "/status"))["counts"]
    for strategy in sorted(CHUNKING_STRATEGIES):
        chunking = {"strategy": strategy, "chunk_size": 60, "overlap": 8}
        shown = await _preview(world.alpha, text=TEXT, chunking=chunking)
        assert shown["chunking"] == {**chunking, "unit": "tokens", "percentile": 90, "parent_size": 500}
        assert shown["count"] == len(shown["chunks"]) > 3
        assert shown["size_tokens"] == sum(each["size_tokens"] for each in shown["chunks"])
        assert shown["characters"] == len(TEXT)
        for each in shown["chunks"]:
            assert TEXT[each["location"]["start_char"] : each["location"]["end_char"]] == each["content"]
    assert (await world.alpha.data("GET", "/status"))["counts"] == before

    document = await world.alpha.upload(TEXT, chunking=chunking)
    chunks = await world.alpha.pages(f"/documents/{document['id']}/chunks", limit=50)
    assert [(each["content"], each["location"]) for each in chunks] == [
        (each["content"], each["location"]) for each in shown["chunks"]
    ]
    stored = await _preview(world.alpha, document_id=document["id"], chunking=chunking, limit=2)
    assert stored["chunks"] == shown["chunks"][:2]
    assert stored["count"] == shown["count"]
    await world.alpha.data("DELETE", f"/documents/{document['id']}", status=202)


async def test_a_file_is_previewed_by_its_type(world: World) -> None:
    files = {"file": ("rooms.csv", b"Name,Room\nPetra Sauvage,C002\n", "application/octet-stream")}
    form = {"chunking": json.dumps({"strategy": "fixed"}), "limit": "1"}
    shown = await world.alpha.data("POST", "/chunking/preview", files=files, data=form)
    assert (shown["media_type"], shown["count"], shown["chunking"]["chunk_size"]) == ("text/csv", 1, 220)


async def test_what_cannot_be_previewed_is_refused(world: World) -> None:
    for body, status, message in [
        ({}, 422, "either text or document_id"),
        ({"text": "a", "document_id": "b"}, 422, "either text or document_id"),
        ({"text": "  "}, 422, "no text"),
        ({"text": "a", "chunking": {"overlap": 111}}, 422, "overlap must be 0 to 110 (half of chunk_size); it is 111"),
        ({"text": "a", "chunking": {"strategy": "magic"}}, 422, "strategy"),
        ({"text": "a", "limit": 1001}, 422, "limit"),
        ({"text": "a", "media_type": "image/gif"}, 415, "image/gif"),
        ({"text": "a" * (MAX_PREVIEW_BYTES + 1)}, 413, f"at most {MAX_PREVIEW_BYTES} bytes; it has {MAX_PREVIEW_BYTES + 1}"),
        ({"document_id": "nothing"}, 404, "no document"),
    ]:
        response = await world.alpha.request("POST", "/chunking/preview", json=body)
        assert (response.status_code, message in response.text) == (status, True), response.text


@pytest.mark.parametrize(("files", "form"), [(["a", "b"], {}), (["a"], {"limit": "0"}), (["a"], {"title": "T"})], ids=str)
async def test_a_bad_form_is_refused(world: World, files: list[str], form: dict[str, str]) -> None:
    parts = [("file", (f"{name}.md", b"Text.", "text/markdown")) for name in files]
    response = await world.alpha.request("POST", "/chunking/preview", files=parts, data=form)
    assert response.status_code == 422, response.text
