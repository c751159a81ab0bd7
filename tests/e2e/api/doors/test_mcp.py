"""The Model Context Protocol over HTTP, with the official client of both eras of the protocol."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests.e2e.api.conftest import Client, World

from agentic_rag_backend.api.in_process import InProcessTransport
from agentic_rag_backend.application.questions import AnswerWriting

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Why was the tidal barrage delayed?"
Era = Literal["auto", "legacy"]


@asynccontextmanager
async def connect(world: World, caller: Client, era: Era = "auto") -> AsyncIterator[McpClient]:
    """Yield the official client of a caller."""
    transport = InProcessTransport(world.app)
    headers = {"Authorization": f"Bearer {caller.caller.key}"}
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers) as http,
        McpClient(streamable_http_client("http://test/mcp", http_client=http), mode=era) as client,
    ):
        yield client


async def call(client: McpClient, tool: str, **arguments: Any) -> Any:
    """Return the structured reply of a tool."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refusal(client: McpClient, tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the message of a tool that refuses."""
    result = await client.call_tool(tool, dict(arguments))
    assert result.is_error
    return str(getattr(result.content[0], "text", ""))


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_tools_say_what_the_api_says(world: World, era: Era) -> None:
    answer = await world.alpha_reader.data("POST", "/answers", json={"query": QUESTION})
    results = (await world.alpha_reader.data("POST", "/search", json={"query": QUESTION, "limit": 3}))["results"]
    async with connect(world, world.alpha_reader, era) as client:
        asked = await call(client, "ask", question=QUESTION)
        assert asked["answer"] == answer["answer"]
        assert [cited["quote"] for cited in asked["citations"]] == [cited["quote"] for cited in answer["citations"]]
        assert all(cited["url"].startswith("http://test/console/#/d/") for cited in asked["citations"])
        found = await call(client, "search", query=QUESTION, limit=3)
        assert [item["id"] for item in found["results"]] == [item["id"] for item in results]
        fetched = await call(client, "fetch", id=found["results"][0]["id"])
        assert found["results"][0]["text"] in fetched["text"]
        assert fetched["url"]
        document = await call(client, "fetch", id=fetched["metadata"]["document_id"])
        assert found["results"][0]["text"] in document["text"]
        themes = await call(client, "themes")
        assert themes["themes"]
        entity = await call(client, "entity", name="Harbour Authority")
        assert entity["entities"][0]["name"] == "Harbour Authority"
        paths = await call(client, "paths", source="Mara Venn", target="Harbour Authority")
        assert paths["paths"]
        assert "contradictions" in await call(client, "contradictions")
        refused = await call(client, "ask", question="Who won the football world cup in 1966?")
        assert (refused["grounded"], refused["citations"]) == (False, [])


async def test_tools_are_described(world: World) -> None:
    async with connect(world, world.alpha_reader) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {
            *("search", "fetch", "ask", "themes", "entity", "paths", "contradictions", "add_document", "document", "job")
        }
        for name, tool in tools.items():
            assert tool.description
            assert tool.output_schema
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is (name != "add_document")
            assert not any("tenant" in argument for argument in tool.input_schema["properties"])
        assert set(tools["search"].input_schema["required"]) == {"query"}
        assert set(tools["fetch"].input_schema["properties"]) == {"id"}
        templates = (await client.list_resource_templates()).resource_templates
        assert {template.uri_template for template in templates} == {"document://{document_id}", "theme://{theme_id}"}
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["answer_from_documents"]


async def test_documents_are_added_with_the_scope_write(world: World) -> None:
    async with connect(world, world.alpha_reader) as reader:
        assert "write" in await refusal(reader, "add_document", {"text": "x"})
    async with connect(world, world.alpha_writer) as writer:
        added = await call(writer, "add_document", text="The zinnia ferry sails on Mondays.", title="Ferry", key="mcp/1")
        for _ in range(200):
            job = (await call(writer, "job", job_id=added["job_id"]))["job"]
            if job["state"] == "succeeded":
                break
            await asyncio.sleep(0.05)
        shown = (await call(writer, "document", document_id=added["document_id"]))["document"]
        assert (shown["title"], shown["state"]) == ("Ferry", "ready")
        content = (await writer.read_resource(f"document://{added['document_id']}")).contents[0]
        assert "zinnia" in getattr(content, "text", "")
    await world.alpha.delete(f"/documents/{added['document_id']}")


async def test_a_foreign_id_is_an_unknown_id(world: World) -> None:
    tide = world.documents["beta"]["tide"]["id"]
    chunk = (await world.beta.data("GET", f"/documents/{tide}/chunks"))[0]["id"]
    job = (await world.beta.data("GET", "/jobs"))[0]["id"]
    community = (await world.beta.data("GET", "/communities"))[0]["id"]
    async with connect(world, world.alpha) as client:
        for tool, argument, foreign in (
            ("fetch", "id", chunk),
            ("fetch", "id", tide),
            ("document", "document_id", tide),
            ("job", "job_id", job),
        ):
            unknown = str(uuid.uuid4())
            message = await refusal(client, tool, {argument: foreign})
            assert message.replace(foreign, "") == (await refusal(client, tool, {argument: unknown})).replace(unknown, "")
        for kind, foreign in (("document", tide), ("theme", community)):
            unknown = str(uuid.uuid4())
            messages = []
            for id in (foreign, unknown):
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(f"{kind}://{id}")
                messages.append(str(refused.value).replace(id, ""))
            assert messages[0] == messages[1]
        for tool, arguments in (
            ("entity", {"name": "Brimwhistle Society"}),
            ("search", {"query": "Brimwhistle Society"}),
            ("ask", {"question": "Who chairs the Brimwhistle Society?"}),
        ):
            text = str((await client.call_tool(tool, arguments)).structured_content).casefold()
            assert "tindlebrae" not in text
        for path in ("..%2Fdocuments", "../jobs", ".", "a/b"):
            assert "id" in await refusal(client, "fetch", {"id": path})


async def test_many_clients_of_two_tenants_at_once(world: World) -> None:
    async def ask(caller: Client, own: str, foreign: str) -> None:
        async with connect(world, caller) as client:
            for _ in range(3):
                text = str(await call(client, "search", query="society eels")).casefold()
                assert own in text
                assert foreign not in text

    callers = ((world.alpha, "amberquoll", "brimwhistle"), (world.beta, "brimwhistle", "amberquoll"))
    await asyncio.gather(*(ask(*callers[number % 2]) for number in range(10)))


async def test_without_a_key_nothing_is_served(world: World) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream"}
    for key in (None, "Bearer wrong", "Basic x"):
        sent = {**headers, **({} if key is None else {"Authorization": key})}
        response = await world.nobody.http.post("/mcp", json=body, headers=sent)
        assert response.status_code == 401
        assert response.headers["www-authenticate"] == "Bearer"
    for path in ("", "/mcp"):  # no provider issues tokens
        described = await world.nobody.http.get(f"/.well-known/oauth-protected-resource{path}")
        assert (described.status_code, described.json()["code"]) == (404, "not_found")


async def test_pages_of_other_sites_are_refused(world: World) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {world.alpha_reader.caller.key}"}
    for origin, status in (
        ("https://evil.example", 403),
        ("null", 403),
        ("http://[", 403),
        ("http://localhost.evil.example", 403),
        ("http://localhost:6274", 200),
        ("http://127.0.0.1", 200),
    ):
        response = await world.nobody.http.post("/mcp", json=body, headers={**headers, "Origin": origin, "Host": "evil.example"})
        assert response.status_code == status, origin


async def test_an_initialisation_of_the_year_2025(world: World) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
    }
    headers = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {world.alpha_reader.caller.key}"}
    response = await world.nobody.http.post("/mcp", json=body, headers=headers)
    assert response.json()["result"]["protocolVersion"] == "2025-06-18"
    large = {**body, "params": {"x": "y" * 1024 * 1024}}
    assert (await world.nobody.http.post("/mcp", json=large, headers=headers)).status_code == 413
    for method in ("GET", "DELETE"):  # there are no sessions
        assert (await world.nobody.http.request(method, "/mcp", headers=headers)).status_code == 405


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_progress_of_an_answer_is_its_checked_sentences(world: World, era: Era) -> None:
    reports: list[tuple[float, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, message))

    async with connect(world, world.alpha_writer, era) as client:
        plain = await call(client, "ask", question=QUESTION)
        followed = await client.call_tool("ask", {"question": QUESTION}, progress_callback=report)
        assert followed.structured_content is not None
        assert {**followed.structured_content, "answer_id": ""} == {**plain, "answer_id": ""}
        assert [progress for progress, _ in reports] == list(range(1, len(reports) + 1))
        assert "".join(message or "" for _, message in reports[1:]).replace(" ", "") == plain["answer"].replace(" ", "")
        reports.clear()
        added = await client.call_tool("add_document", {"text": f"A quay of {era}.", "key": era}, progress_callback=report)
        assert added.structured_content is not None
        assert (await call(client, "job", job_id=added.structured_content["job_id"]))["job"]["state"] == "succeeded"
        assert reports[-1][1] == "succeeded"
    await world.alpha.delete(f"/documents/{added.structured_content['document_id']}")


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize("with_progress", [False, True])
async def test_a_client_that_leaves_ends_its_answer(
    world: World, era: Era, with_progress: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def hang(*_: Any, **__: Any) -> Any:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def hang_in_stream(*_: Any, **__: Any) -> AsyncIterator[Any]:
        yield await hang()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        """Wants to know the progress."""

    async def ask_and_wait() -> None:
        async with connect(world, world.alpha_reader, era) as client:
            await client.call_tool("ask", {"question": QUESTION}, progress_callback=report if with_progress else None)

    monkeypatch.setattr(AnswerWriting, "write_answer", hang)
    monkeypatch.setattr(AnswerWriting, "stream_answer", hang_in_stream)
    task = asyncio.create_task(ask_and_wait())
    await asyncio.wait_for(started.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 10)
