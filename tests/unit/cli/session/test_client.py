"""The API contract on the client's side: pages, problems, and invalid replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx2
import pytest

from agentic_rag_backend.cli.following import poll_jobs
from agentic_rag_backend.cli.session import client as cli_client
from agentic_rag_backend.cli.session.client import Client, ServerUnreachable, UnexpectedReply
from agentic_rag_backend.cli.session.remote import open_remote
from agentic_rag_backend.errors import (
    AgenticRagError,
    FeatureDisabled,
    InvalidRequest,
    NotFound,
    RequestTimeout,
    StoreLocked,
    StoreUnavailable,
)


def client_of(answer: Callable[[httpx2.Request], httpx2.Response]) -> Client:
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url="http://server")
    return Client(http, where="http://server", in_process=False)


def _page(request: httpx2.Request) -> httpx2.Response:
    start = int(request.url.params.get("cursor", 0))
    end = min(start + int(request.url.params["limit"]), 250)
    data = [{"number": number} for number in range(start, end)]
    return httpx2.Response(200, json={"data": data, "meta": {"nextCursor": str(end) if end < 250 else None}})


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (100, 100), (130, 130), (1000, 250)])
async def test_a_list_is_read_over_as_many_pages_as_it_takes(limit: int, count: int) -> None:
    items = await client_of(_page).every("/things", limit=limit)
    assert [item["number"] for item in items] == list(range(count))


async def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="limit must be at least 1; got 0"):
        await client_of(_page).every("/things", limit=0)


@pytest.mark.parametrize(
    "error", [NotFound("no document 'x'"), FeatureDisabled("off"), StoreLocked("in use"), InvalidRequest("too long")]
)
async def test_a_problem_comes_back_as_the_error_it_was(error: AgenticRagError) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(error.status, json={"code": error.code, "detail": error.message, "title": error.title})

    with pytest.raises(type(error)) as raised:
        await client_of(answer).get("/documents/x")
    assert type(raised.value) is type(error)
    assert raised.value.message == error.message


@pytest.mark.parametrize(
    "response",
    [
        httpx2.Response(200, text="<html>"),
        httpx2.Response(200, json=[1]),
        httpx2.Response(502, text="bad gateway"),
        httpx2.Response(404, json={"detail": "Not Found"}),
    ],
)
async def test_a_reply_of_another_server_is_reported(response: httpx2.Response) -> None:
    with pytest.raises(UnexpectedReply, match="http://server returned"):
        await client_of(lambda request: response).get("/status")


async def test_no_answer_names_the_address() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    with pytest.raises(ServerUnreachable, match="http://server does not respond: refused"):
        await client_of(refuse).get("/status")


async def test_an_error_event_of_a_stream_is_raised() -> None:
    events = 'event: token\ndata: {"text": "a"}\n\n: heartbeat\n\nevent: error\ndata: {"code": "not_found", "detail": "gone"}\n\n'
    client = client_of(lambda request: httpx2.Response(200, text=events))
    stream = client.events("/answers", {})
    assert await anext(stream) == ("token", {"text": "a"})
    with pytest.raises(NotFound, match="gone"):
        await anext(stream)


@pytest.mark.parametrize("url", ["ftp://x", "server:8000", "not an address", ""])
async def test_an_address_must_be_one_of_http(url: str) -> None:
    with pytest.raises(InvalidRequest, match="--url must be an address"):
        async with open_remote(url, None, None):
            pass


async def test_a_follower_hands_over_jobs_as_they_end_with_one_request_a_look() -> None:
    looks: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        looks.append(request.url.path)
        ended = looks.count("/api/v1/jobs") > 2
        if request.url.path.endswith("/jobs"):
            state = "succeeded" if ended else "running"
            jobs = [{"id": "a", "state": state, "stage": "embed"}]
            return httpx2.Response(200, json={"data": jobs, "meta": {}})
        return httpx2.Response(200, json={"data": {"id": "old", "state": "failed", "stage": ""}, "meta": {}})

    seen: list[str] = []
    async with poll_jobs(client_of(answer), lambda job: seen.append(job["stage"])) as follower:
        jobs = await asyncio.gather(follower.wait_for("old"), follower.wait_for("a"))
    assert [job["state"] for job in jobs] == ["failed", "succeeded"]
    assert seen == ["embed", "embed"]
    assert looks.count("/api/v1/jobs/old") == 1


async def test_whoever_waits_learns_that_the_server_is_gone() -> None:
    def gone(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    async with poll_jobs(client_of(gone)) as follower:
        with pytest.raises(ServerUnreachable):
            await follower.wait_for("a")


class _Breaks:
    """Breaks connections after reading the request, then answers that it is in progress, then answers."""

    def __init__(self, *answers: httpx2.Response | type[httpx2.TransportError]) -> None:
        self.answers = list(answers)
        self.keys: list[str | None] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.keys.append(request.headers.get("idempotency-key"))
        answer = self.answers.pop(0)
        if isinstance(answer, httpx2.Response):
            return answer
        raise answer("broken", request=request)


DONE = httpx2.Response(202, json={"data": {"job_id": "1"}, "meta": {}})
UNDER_WAY = httpx2.Response(
    409, headers={"Retry-After": "0"}, json={"code": "idempotency_in_progress", "detail": "being carried out"}
)


async def test_a_post_whose_connection_breaks_is_sent_again_under_its_key() -> None:
    server = _Breaks(httpx2.ReadError, httpx2.RemoteProtocolError, UNDER_WAY, UNDER_WAY, DONE)
    assert await client_of(server).post("/documents", {"text": "x"}) == {"job_id": "1"}
    assert len(server.keys) == 5
    assert len(set(server.keys)) == 1
    assert server.keys[0]


TOO_LONG = httpx2.Response(504, json={"code": "timeout", "detail": "the request took longer than 60 s"})
JOB = httpx2.Response(200, json={"data": {"id": "1"}, "meta": {}})


async def test_what_takes_a_busy_server_too_long_is_sent_again_where_nothing_is_paid_twice() -> None:
    server = _Breaks(TOO_LONG, UNDER_WAY, DONE)
    assert await client_of(server).post("/documents", {"text": "x"}) == {"job_id": "1"}
    assert len(set(server.keys)) == 1
    assert await client_of(_Breaks(TOO_LONG, TOO_LONG, JOB)).get("/jobs/1") == {"id": "1"}
    for method, path, asked in (("GET", "/jobs/1", 3), ("POST", "/query", 1), ("DELETE", "/documents/1", 1)):
        server = _Breaks(*[TOO_LONG] * 4)
        with pytest.raises(RequestTimeout):
            await client_of(server).request(method, path)
        assert len(server.keys) == asked, method


async def test_every_post_has_a_key_of_its_own() -> None:
    server = _Breaks(DONE, DONE)
    client = client_of(server)
    for _ in range(2):
        await client.post("/documents", {"text": "x"})
    assert len(set(server.keys)) == 2


@pytest.mark.parametrize("error", [httpx2.ConnectError, httpx2.ReadError])
async def test_a_server_that_stays_away_is_named(error: type[httpx2.TransportError]) -> None:
    server = _Breaks(*[error] * 4)
    with pytest.raises(ServerUnreachable):
        await client_of(server).post("/documents", {"text": "x"})
    assert len(server.answers) == 1


AWAY = httpx2.Response(503, json={"code": "store_unavailable", "detail": "the catalogue does not answer"})


async def test_a_server_that_is_started_again_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_client, "_SENT_AGAIN_AFTER_S", (0.0,) * 2)
    monkeypatch.setattr(cli_client, "_BACK_AFTER_S", (0.0,) * 4)
    server = _Breaks(JOB, *[httpx2.ConnectError] * 4, AWAY, AWAY, DONE)
    client = client_of(server)
    client.wait_for_restarts()
    await client.get("/jobs/1")
    assert await client.post("/documents", {"text": "x"}) == {"job_id": "1"}
    assert len(set(server.keys[1:])) == 1
    server.answers = [httpx2.ConnectError] * 7 + [DONE]  # type: ignore[assignment]
    with pytest.raises(ServerUnreachable):
        await client.get("/jobs/1")
    assert server.answers == [DONE]
    server.answers = [AWAY, DONE]
    with pytest.raises(StoreUnavailable):  # a search is not repeated
        await client.post("/answers", {"query": "x"})


async def test_what_has_no_key_is_not_sent_again() -> None:
    for method in ("PATCH", "DELETE"):
        server = _Breaks(httpx2.ReadError)
        with pytest.raises(ServerUnreachable):
            await client_of(server).request(method, "/documents/1")
        assert server.keys == [None]
