"""Progress and cancellation of tools, through the official client in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from agentic_rag_backend.api.doors.mcp_protocol.tools import build_server
from agentic_rag_backend.api.doors.permalinks import Permalinks
from agentic_rag_backend.errors import AgenticRagError, Forbidden

ANSWER = {"id": "a_1", "answer": "It was delayed. [1]", "grounded": True, "confidence": 0.9, "citations": []}


class Api:
    """An API whose answers and jobs take as long as the test lets them. It records its calls."""

    links = Permalinks("https://rag.test")

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.going_on = asyncio.Event()
        self.started = asyncio.Event()
        self.stages = ["parse", "embed", "embed", "commit"]
        self.error: AgenticRagError | None = None

    async def get(self, path: str, **parameters: Any) -> Any:
        """Return a job in its next stage."""
        self.calls.append(f"GET {path}")
        self.started.set()
        if not self.stages:
            await self.going_on.wait()
            return {"state": "succeeded", "stage": "commit"}
        return {"state": "running", "stage": self.stages.pop(0)}

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Accept a document, cancel a job, or answer."""
        self.calls.append(f"POST {path}")
        if self.error is not None:
            raise self.error
        if path == "/documents":
            return {"document_id": "d1", "job_id": "j1"}
        if path == "/answers":
            self.started.set()
            await self.going_on.wait()
        return ANSWER

    async def stream(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """Yield the events of an answer, and wait before its end."""
        self.calls.append(f"STREAM {path}")
        try:
            yield "retrieval", {"results": [1, 2]}
            yield "citation", {}
            yield "token", {"text": "It was delayed. [1] "}
            self.started.set()
            await self.going_on.wait()
            if self.error is not None:
                raise self.error
            yield "done", ANSWER
        finally:
            self.calls.append("CLOSED")


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture(autouse=True)
def _poll_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentic_rag_backend.api.doors.mcp_protocol.tools._JOB_PAUSE_S", 0.001)


class Progress:
    """Reports that a client received."""

    def __init__(self) -> None:
        self.reports: list[tuple[float, str | None]] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.reports.append((progress, message))


async def test_sentences_of_an_answer_are_reported(api: Api) -> None:
    api.going_on.set()
    progress = Progress()
    async with Client(build_server(api), mode="legacy") as client:
        followed = await client.call_tool("ask", {"question": "?"}, progress_callback=progress)
        plain = await client.call_tool("ask", {"question": "?"})
        assert progress.reports == [(1, "2 passages"), (2, "It was delayed. [1]")]
        assert followed.structured_content == plain.structured_content
        assert api.calls == ["STREAM /answers", "CLOSED", "POST /answers"]


async def test_stages_of_a_document_are_reported(api: Api) -> None:
    api.going_on.set()
    progress = Progress()
    async with Client(build_server(api), mode="legacy") as client:
        added = await client.call_tool("add_document", {"text": "x"}, progress_callback=progress)
        assert progress.reports == [(1, "parse"), (2, "embed"), (3, "commit"), (4, "succeeded")]
        assert added.structured_content == {"document_id": "d1", "job_id": "j1"}
        api.calls.clear()
        await client.call_tool("add_document", {"text": "x"})
        assert api.calls == ["POST /documents"]  # without progress, nobody waits


async def _cancel(api: Api, tool: str, arguments: dict[str, Any], progress: Progress | None = None) -> None:
    async with Client(build_server(api), mode="legacy") as client:
        call = asyncio.create_task(client.call_tool(tool, arguments, progress_callback=progress))
        await asyncio.wait_for(api.started.wait(), 5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(5):
            while not {"CLOSED", "POST /jobs/j1/cancel"} & set(api.calls):
                await asyncio.sleep(0.001)


async def test_a_cancelled_answer_is_not_written_to_its_end(api: Api) -> None:
    await _cancel(api, "ask", {"question": "?"}, Progress())
    assert api.calls == ["STREAM /answers", "CLOSED"]


async def test_the_job_of_a_cancelled_document_is_cancelled(api: Api) -> None:
    api.stages = ["parse"]
    await _cancel(api, "add_document", {"text": "x"}, Progress())
    assert api.calls[-1] == "POST /jobs/j1/cancel"


async def test_errors_of_a_followed_answer_are_errors_of_the_tool(api: Api) -> None:
    api.error = Forbidden("the tenant is suspended")
    api.going_on.set()
    async with Client(build_server(api), mode="legacy") as client:
        for progress in (None, Progress()):
            result = await client.call_tool("ask", {"question": "?"}, progress_callback=progress)
            assert result.is_error
            assert "suspended" in str(result.content[0])
        with pytest.raises(MCPError):
            await client.read_resource("document://../x")
