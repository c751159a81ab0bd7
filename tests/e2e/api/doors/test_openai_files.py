"""Files of OpenAI's protocol, with the client that its maker publishes."""

from __future__ import annotations

import openai
import pytest
from pdf_files import Page, pdf_of
from tests.e2e.api.conftest import World
from tests.e2e.api.doors.conftest import client_for

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIGHT = "# Zorbal lighthouse\n\nThe zorbal lighthouse was painted green in 1931."


async def test_a_file_is_a_document(world: World, writer: openai.AsyncOpenAI, client: openai.AsyncOpenAI) -> None:
    created = await writer.files.create(file=("light.md", LIGHT.encode()), purpose="assistants")
    assert created.id.startswith("file-")
    assert (created.filename, created.bytes, created.purpose) == ("light.md", len(LIGHT.encode()), "assistants")
    processed = await client.files.wait_for_processing(created.id, poll_interval=0.05)
    assert (processed.status, processed.status_details) == ("processed", None)
    (document,) = [item for item in await world.alpha.pages("/documents", limit=50) if item["title"] == "Zorbal lighthouse"]
    assert created.id == "file-" + document["id"].replace("-", "")
    assert (await client.files.content(created.id)).content == LIGHT.encode()

    again = await writer.files.create(file=("light.md", LIGHT.encode()), purpose="user_data")
    assert again.id == created.id
    other = await writer.files.create(file=("light.md", b"The zorbal lighthouse was painted red in 1950."), purpose="assistants")
    assert other.id != created.id  # equal names with other contents are two files
    assert other.filename == "light.md"

    assert (await writer.files.delete(created.id)).deleted
    with pytest.raises(openai.NotFoundError, match=created.id):
        await client.files.retrieve(created.id)
    await writer.files.delete(other.id)


async def test_lists_are_paged(world: World, client: openai.AsyncOpenAI) -> None:
    whole = [item.id async for item in client.files.list()]
    documents = await world.alpha.pages("/documents", limit=50)
    assert whole == ["file-" + item["id"].replace("-", "") for item in documents]
    assert [item.id async for item in client.files.list(limit=1, order="asc")] == whole[::-1]
    assert [item.id async for item in client.files.list(after=whole[0], purpose="assistants")] == whole[1:]
    assert [item.id async for item in client.files.list(purpose="batch")] == []
    with pytest.raises(openai.NotFoundError, match="file-nothing"):
        await client.files.list(after="file-nothing")
    with pytest.raises(openai.BadRequestError, match="1000"):
        await client.files.list(limit=1001)


async def test_a_file_that_fails_says_why(world: World, writer: openai.AsyncOpenAI) -> None:
    created = await writer.files.create(file=("empty.pdf", pdf_of(Page())), purpose="assistants")
    ended = await writer.files.wait_for_processing(created.id, poll_interval=0.05)
    assert ended.status == "error"
    assert ended.status_details
    await writer.files.delete(created.id)


async def _count(world: World) -> tuple[int, int]:
    """Return the numbers of documents and of jobs, deletions included."""
    held = await world.held()
    return held["counts"]["documents"], held["jobs"]


async def test_refusals_name_limit_and_value(world: World, client: openai.AsyncOpenAI, writer: openai.AsyncOpenAI) -> None:
    before = await _count(world)
    with pytest.raises(openai.PermissionDeniedError, match="write"):
        await client.files.create(file=("a.md", b"text"), purpose="assistants")
    for name, content, purpose, expected in (
        ("a.md", b"text", "fine-tune", "assistants, user_data"),
        ("a.exe", b"MZ\x90\x00" * 40, "assistants", "is a program"),
        ("n" * 256 + ".md", b"text", "assistants", "255 characters; got 259"),
        ("blank.md", b" ", "assistants", "no text"),
    ):
        with pytest.raises(openai.APIStatusError, match=expected) as refused:
            await writer.files.create(file=(name, content), purpose=purpose)  # type: ignore[arg-type]
        assert 400 <= refused.value.status_code < 500
        assert refused.value.type == "invalid_request_error"
    limit = world.container.settings.max_upload_mb * 1024 * 1024
    with pytest.raises(openai.APIStatusError, match=f"limit is {limit}|at most {limit}") as refused:
        await writer.files.create(file=("big.md", b"x" * (limit + 1)), purpose="assistants")
    assert refused.value.status_code == 413
    with pytest.raises(openai.BadRequestError, match="do not expire"):
        await writer.files.create(
            file=("a.md", b"text"), purpose="assistants", expires_after={"anchor": "created_at", "seconds": 3600}
        )
    with pytest.raises(openai.APIStatusError, match="multipart/form-data"):
        await writer.post("/files", body={"purpose": "assistants"}, cast_to=object)
    assert await _count(world) == before


async def test_files_of_another_tenant_do_not_exist(world: World, writer: openai.AsyncOpenAI) -> None:
    foreign = "file-" + world.documents["beta"]["tide"]["id"].replace("-", "")
    for call in (writer.files.retrieve, writer.files.content, writer.files.delete):
        with pytest.raises(openai.NotFoundError, match=foreign):
            await call(foreign)
    async with client_for(world, world.beta) as beta:
        assert (await beta.files.retrieve(foreign)).filename == "Tidal barrage"
