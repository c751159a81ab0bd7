"""A request with an Idempotency-Key is carried out once, regardless of repetitions."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any
from uuid import uuid4

import httpx
import pytest

from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.ingestion.service import IngestionService

from .conftest import BASE, Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _under(key: str | None = None) -> dict[str, str]:
    return {"Idempotency-Key": key or f"key-{uuid4()}"}


def _same(first: httpx.Response, again: httpx.Response) -> None:
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    kept = {"content-type", "etag"} & first.headers.keys()
    assert {name: again.headers[name] for name in kept} == {name: first.headers[name] for name in kept}


async def _held(client: Client) -> tuple[int, int]:
    jobs, documents = await client.pages("/jobs", limit=100), await client.pages("/documents", limit=100)
    return len(documents), len(jobs)


async def test_a_repeated_upload_is_answered_as_the_first_time(world: World) -> None:
    client, headers = await world.tenant("repeats"), _under()
    body = {"text": "The heron waits at the weir.", "key": "heron"}
    first = await client.post("/documents", body, headers=headers)
    assert first.status_code == 202
    await client.ended(first.json()["data"]["job_id"])
    _same(first, await client.post("/documents", body, headers=headers))
    assert await _held(client) == (1, 1)
    assert (await client.post("/documents", body)).status_code == 200  # without the key: carried out, and unchanged


async def test_equal_requests_at_once_are_one(world: World) -> None:
    client, headers = await world.tenant("at-once"), _under()
    body = {"text": "The otter sleeps under the quay.", "key": "otter"}
    answers = await asyncio.gather(*(client.post("/documents", body, headers=headers) for _ in range(8)))
    found = Counter(answer.status_code for answer in answers)
    assert found.keys() <= {202, 409}
    assert found[202] >= 1
    assert len({answer.content for answer in answers if answer.status_code == 202}) == 1
    for refused in (answer for answer in answers if answer.status_code == 409):
        assert refused.json()["code"] == "idempotency_in_progress"
        assert int(refused.headers["retry-after"]) >= 1
    assert await _held(client) == (1, 1)


async def test_a_tenant_is_created_once(world: World) -> None:
    headers, name = _under(), f"once-{uuid4().hex[:8]}"
    answers = await asyncio.gather(*(world.operator.post("/tenants", {"name": name}, headers=headers) for _ in range(5)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"idempotency_in_progress"}
    first = next(answer for answer in answers if answer.status_code == 201)
    again = await world.operator.post("/tenants", {"name": name}, headers=headers)
    assert (again.status_code, again.content) == (201, first.content)
    assert (await world.operator.post("/tenants", {"name": name})).json()["code"] == "conflict"


async def test_another_body_is_refused(world: World) -> None:
    client, headers = await world.tenant("bodies"), _under()
    await client.post("/documents", {"text": "One."}, headers=headers)
    for other in ({"text": "Two."}, {"text": "One.", "title": "One"}):
        refused = await client.post("/documents", other, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    refused = await client.post("/documents", {"text": "One."}, headers={**headers, "If-Match": '"x"'})
    assert refused.json()["code"] == "idempotency_key_reused"
    assert (await _held(client))[0] == 1


async def test_a_form_is_the_same_whatever_divides_its_parts(world: World) -> None:
    client, headers = await world.tenant("forms"), _under()
    heron = ("file", ("heron.md", b"# Heron\n\nThe heron waits.\n" * 60_000, "text/markdown"))  # more than is kept in memory
    otter = ("file", ("otter.md", b"# Otter\n\nThe otter sleeps.\n", "text/markdown"))
    first = await client.request("POST", "/documents", files=[heron, otter], headers=headers)
    assert first.status_code == 202, first.text
    again = await client.request("POST", "/documents", files=[heron, otter], headers=headers)
    assert first.request.headers["content-type"] != again.request.headers["content-type"]  # another boundary
    _same(first, again)
    for other in ([heron], [otter, heron], [heron, ("file", ("otter.md", b"# Other", "text/markdown"))]):
        refused = await client.request("POST", "/documents", files=other, headers=headers)
        assert refused.json()["code"] == "idempotency_key_reused"
    assert (await _held(client))[0] == 2


async def test_a_refused_request_frees_the_key(world: World) -> None:
    client, headers = await world.tenant("refused"), _under()
    for bad in ({"text": ""}, {"text": "x", "unknown": 1}):
        assert (await client.post("/documents", bad, headers=headers)).status_code == 422
    assert (await client.post("/documents", {"text": "Now it is good."}, headers=headers)).status_code == 202


async def test_what_failed_or_was_cancelled_frees_the_key(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client, headers, body = await world.tenant("failed"), _under(), {"text": "In the end it is there."}
    hanging = asyncio.Event()

    async def fails(self: Any, *arguments: Any) -> Any:
        raise StoreUnavailable("on purpose")

    async def hangs(self: Any, *arguments: Any) -> Any:
        hanging.set()
        await asyncio.Event().wait()

    url, asked = f"{BASE}/documents", {"headers": {**headers, "X-API-Key": client.caller.key or ""}, "json": body}
    with monkeypatch.context() as patched:
        patched.setattr(IngestionService, "submit", fails)
        assert (await client.http.post(url, **asked)).status_code == 503
        patched.setattr(IngestionService, "submit", hangs)
        under_way = asyncio.create_task(client.http.post(url, **asked))
        await hanging.wait()
        refused = await client.post("/documents", body, headers=headers)
        assert refused.json()["code"] == "idempotency_in_progress"
        under_way.cancel()
        await asyncio.gather(under_way, return_exceptions=True)
    async with asyncio.timeout(90):
        while (answer := await client.post("/documents", body, headers=headers)).status_code == 409:
            await asyncio.sleep(0.02)
    assert answer.status_code == 202


async def test_a_key_opens_nothing(world: World) -> None:
    headers, body = _under("guessed"), {"text": "The tide turns at four.", "key": "tide-table"}
    first = await world.alpha_writer.post("/documents", body, headers=headers)
    assert first.status_code == 202
    for client, status in ((world.alpha_reader, 403), (world.nobody, 401)):
        assert (await client.post("/documents", body, headers=headers)).status_code == status
    other = await world.beta.post("/documents", body, headers=headers)
    assert other.status_code == 202
    assert other.json()["data"] != first.json()["data"]
    _same(first, await world.alpha.post("/documents", body, headers=headers))  # another API key of the same tenant
    acting = {**headers, "X-Tenant-Id": world.alpha.caller.tenant_id}
    operators = await world.operator.post("/documents", body, headers=acting)
    assert (operators.status_code, "idempotency-replayed" in operators.headers) == (200, False)
    assert (await world.operator.post("/documents", body, headers=headers)).status_code == 422  # it has no tenant


async def test_a_key_belongs_to_one_path(world: World) -> None:
    client, headers = await world.tenant("paths"), _under()
    made = await client.upload("The lighthouse keeper counts ships. " * 40)
    other = await client.upload("The baker counts loaves. " * 40)
    cut = {"chunk_size": 64, "overlap": 0}
    answers = [await client.post(f"/documents/{each['id']}/chunks", cut, headers=headers) for each in (made, other, made)]
    assert [answer.status_code for answer in answers] == [202, 202, 202], answers[0].text
    _same(answers[0], answers[2])
    rebuilt = [await client.post("/admin/communities/rebuild", headers=headers) for _ in range(2)]
    _same(*rebuilt)


async def test_a_secret_is_shown_once(world: World) -> None:
    tenant, headers = world.alpha.caller.tenant_id, _under()
    first = await world.operator.post(f"/tenants/{tenant}/keys", {"name": "shown"}, headers=headers)
    assert first.status_code == 201
    issued = first.json()["data"]
    again = await world.operator.post(f"/tenants/{tenant}/keys", {"name": "shown"}, headers=headers)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert issued["id"] in again.json()["detail"]
    secret = issued["key"]
    assert secret not in again.text
    for file in world.container.settings.data_dir.glob("catalogue.db*"):
        assert secret.encode() not in file.read_bytes()
    held = await world.operator.data("GET", f"/tenants/{tenant}/keys")
    assert [key["id"] for key in held if key["name"] == "shown"] == [issued["id"]]


@pytest.mark.parametrize("key", ["", "x" * 256, "two words", "clé", "tab\there"])
async def test_a_bad_key_is_refused(world: World, key: str) -> None:
    refused = await world.alpha.post("/documents", {"text": "x"}, headers={"Idempotency-Key": key.encode("utf-8")})
    assert refused.status_code == 422
    assert "1 to 255 visible ASCII characters" in refused.json()["detail"]
    assert f"length {len(key.encode())}" in refused.json()["detail"]


async def test_reading_ignores_the_key(world: World) -> None:
    headers = {"Idempotency-Key": "x" * 300}
    for query in ("Who leads the Harbour Authority?", "What was counted?"):
        found = await world.alpha.post("/search", {"query": query}, headers=headers)
        assert (found.status_code, "idempotency-replayed" in found.headers) == (200, False)
