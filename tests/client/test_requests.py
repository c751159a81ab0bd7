"""Requests that are repeated, and those that are not; errors; addresses."""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_client import (
    AsyncClient,
    Client,
    Conflict,
    ConnectionFailed,
    InvalidRequest,
    JobFailed,
    JobUnfinished,
    NotFound,
    OtherEvent,
    PermissionDenied,
    ProblemError,
    TokenEvent,
    TooManyRequests,
    Unavailable,
    UnexpectedReply,
)
from agentic_rag_client.event_streams import AsyncEventStream, EventStream
from agentic_rag_client.pages import AsyncPages, Pages
from agentic_rag_client.requests import Call, choose_pause, encode_query, fill_path
from agentic_rag_client.transport import AsyncTransport, BlockingTransport

Reply = httpx2.Response | Exception
BROKEN = httpx2.ReadError("broken")
JOB: dict[str, Any] = {"data": {"id": "j", "state": "running"}, "meta": {"requestId": "r"}}


def problem(status: int, code: str, **headers: str) -> httpx2.Response:
    body = {"type": "t", "title": "T", "status": status, "detail": "limit must be at most 100; got 1000", "code": code}
    return httpx2.Response(status, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


class Broken(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """Body that breaks at its end."""

    def __init__(self, content: str) -> None:
        self.content = content.encode()

    def __iter__(self) -> Iterator[bytes]:
        yield self.content
        raise BROKEN

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.content
        raise BROKEN


class Script:
    """Replies in order, to a client of either kind, and records the requests and the pauses between them."""

    def __init__(self, replies: Iterable[Reply], *, is_blocking: bool) -> None:
        self.replies = list(replies)
        self.is_blocking = is_blocking
        self.requests: list[httpx2.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """Return the next reply to a request that was read."""
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        stream = reply.stream if isinstance(reply.stream, Broken) else httpx2.ByteStream(reply.content)
        return httpx2.Response(reply.status_code, headers=reply.headers, stream=stream)

    def reply_to_blocking(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        return self(request)

    async def reply_to_waiting(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        return self(request)

    async def wait(self, seconds: float) -> None:
        """Record a pause."""
        self.pauses.append(seconds)

    async def call(self, use: Callable[[Any], Any], received: list[Any] | None = None, **options: Any) -> Any:
        """Return what a method of the client returns: a result, or a list of items, which ``received`` has after an error too."""
        self.received = [] if received is None else received
        if self.is_blocking:
            with httpx2.Client(transport=httpx2.MockTransport(self.reply_to_blocking)) as http:
                return await self.read(use(Client("http://rag.test/", "key", http=http, **options)))
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(self.reply_to_waiting)) as waiting:
            return await self.read(use(AsyncClient("http://rag.test/", "key", http=waiting, **options)))

    async def read(self, value: Any) -> Any:
        """Return a result, or a list of items."""
        if inspect.isawaitable(value):
            return await value
        if isinstance(value, AsyncPages | AsyncEventStream):
            async for item in value:
                self.received.append(item)
        elif isinstance(value, Pages | EventStream):
            self.received.extend(value)
        else:
            return value
        return self.received


Play = Callable[..., Script]


@pytest.fixture(params=["blocking", "asynchronous"])
def play(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Return a function that makes a script of replies, for each kind of client in turn."""

    def play(*replies: Reply) -> Script:
        script = Script(replies, is_blocking=request.param == "blocking")
        for transport in (AsyncTransport, BlockingTransport):
            monkeypatch.setattr(transport, "sleep", lambda _, seconds: script.wait(seconds))
        return script

    return play


async def test_a_keyed_request_is_repeated_under_the_same_key(play: Play) -> None:
    accepted = httpx2.Response(202, json={"data": {"document_id": "d", "state": "pending"}, "meta": {}})
    script = play(BROKEN, problem(409, "idempotency_in_progress", retry_after="3"), problem(503, "x"), accepted)
    assert (await script.call(lambda client: client.documents.add("text"))).document_id == "d"
    named = play(accepted)
    await named.call(lambda client: client.documents.add("text", idempotency_key="mine"))
    assert named.requests[0].headers["idempotency-key"] == "mine"
    keys = {request.headers["idempotency-key"] for request in script.requests}
    assert len(script.requests) == 4
    assert len(keys) == 1
    assert script.pauses[1] == 3.0
    assert {request.content for request in script.requests} == {b'{"text": "text"}'}


@pytest.mark.parametrize("kind", ["path", "bytes", "open file", "open file without progress"])
async def test_an_upload_is_sent_again_as_a_whole(play: Play, tmp_path: Path, kind: str) -> None:
    content, progress = bytes(range(256)) * 1000, list[tuple[int, int]]()
    path = tmp_path / "a.md"
    path.write_bytes(content)
    accepted = httpx2.Response(202, json={"data": {"documents": [{"document_id": "d", "state": "pending"}]}, "meta": {}})
    script = play(problem(503, "x"), BROKEN, accepted)
    with path.open("rb") as opened:
        opened.seek(7)  # a file is sent from its beginning
        file: Any = {"path": path, "bytes": content}.get(kind, opened)
        options: dict[str, Any] = {"name": "a.md", "metadata": {"year": 2019}}
        if "without" not in kind:
            options["progress"] = lambda *sent: progress.append(sent)
        await script.call(lambda client: client.documents.upload(file, **options))
        assert not opened.closed
    assert len(script.requests) == 3
    for request in script.requests:
        assert content in request.content
        assert b'{"year": 2019}' in request.content
        assert b'filename="a.md"' in request.content
    assert progress.count((len(content), len(content))) == (0 if "without" in kind else 3)
    assert all(0 < sent <= total == len(content) for sent, total in progress)


async def test_a_file_needs_a_name(play: Play) -> None:
    with pytest.raises(ValueError, match="name is missing"):
        await play().call(lambda client: client.documents.upload(b"content"))
    with pytest.raises(ValueError, match="name is missing"):
        await play().call(lambda client: client.documents.upload(io.BytesIO(b"content")))


@pytest.mark.parametrize(
    ("use", "reply"),
    [
        (lambda client: client.graph.merge_entities("e", ["f"]), BROKEN),
        (lambda client: client.graph.merge_entities("e", ["f"]), problem(503, "store_unavailable")),
        (lambda client: client.search("q"), httpx2.ReadTimeout("slow")),
        (lambda client: client.jobs.get("j"), problem(504, "timeout")),
        (lambda client: client.documents.add("t"), problem(409, "idempotency_in_progress")),
        (lambda client: client.jobs.get("j"), problem(429, "quota_exceeded", retry_after="3600")),
    ],
    ids=["without a key, broken", "without a key, 503", "timeout", "504", "another's key", "an hour"],
)
async def test_an_unsafe_request_is_sent_once(play: Play, use: Callable[[Client], Any], reply: Reply) -> None:
    script = play(reply)
    with pytest.raises((ProblemError, ConnectionFailed)):
        await script.call(use)
    assert len(script.requests) == 1


async def test_a_refused_request_is_repeated_even_without_a_key(play: Play) -> None:
    done = httpx2.Response(202, json={"data": {"number": 1}, "meta": {}})
    script = play(problem(429, "x", retry_after="2"), httpx2.ConnectError("away"), done)
    assert (await script.call(lambda client: client.graph.merge_entities("e", ["f"]))).number == 1
    assert script.pauses[0] == 2.0


async def test_repetitions_have_a_limit(play: Play) -> None:
    script = play(*[problem(503, "store_unavailable", retry_after="1")] * 3)
    with pytest.raises(Unavailable) as raised:
        await script.call(lambda client: client.status(), max_retries=2)
    assert (len(script.requests), raised.value.retry_after_s, raised.value.code) == (3, 1.0, "store_unavailable")


@given(st.integers(0, 9), st.floats(0, 1), st.integers(400, 599), st.booleans())
def test_only_refusals_are_repeated(attempt: int, spread: float, status: int, keyed: bool) -> None:
    call = Call("POST", "/x", keyed=keyed)
    pause = choose_pause(call, attempt, httpx2.Response(status, json={}), spread)
    assert (pause is not None) == (status == 429 or (status == 503 and keyed))
    assert pause is None or 0 < pause <= 8


async def test_errors_have_the_members_of_the_problem(play: Play) -> None:
    refused = problem(422, "invalid_request")
    body = json.loads(refused.content) | {
        "requestId": "r",
        "errors": [{"field": "limit", "message": "m", "code": "c", "value": 1000}],
    }
    with pytest.raises(InvalidRequest, match="at most 100; got 1000") as raised:
        await play(httpx2.Response(422, json=body)).call(lambda client: client.search("q", limit=1000))
    error = raised.value
    assert (error.status, error.code, error.request_id, error.errors[0].field, error.errors[0].value) == (
        422, "invalid_request", "r", "limit", "1000",
    )  # fmt: skip
    kinds = {404: NotFound, 409: Conflict, 429: TooManyRequests, 418: ProblemError}
    for status, kind in kinds.items():
        with pytest.raises(kind):
            await play(problem(status, "x")).call(lambda client: client.status(), max_retries=0)


async def test_problems_of_proxies(play: Play) -> None:
    without_code = httpx2.Response(403, json={"title": "Forbidden", "detail": "blocked by a rule"})
    with pytest.raises(PermissionDenied, match="blocked by a rule") as raised:
        await play(without_code).call(lambda client: client.status())
    assert (raised.value.code, raised.value.title) == ("403", "Forbidden")
    page = httpx2.Response(503, text="<h1>maintenance</h1>")
    script = play(page, page)
    with pytest.raises(Unavailable, match="maintenance"):
        await script.call(lambda client: client.status(), max_retries=1)
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    "reply", [httpx2.Response(200, text="<html>"), httpx2.Response(200, json=[]), httpx2.Response(500, text="no")]
)
async def test_another_server_is_noticed(play: Play, reply: httpx2.Response) -> None:
    with pytest.raises(UnexpectedReply, match=r"rag\.test"):
        await play(reply).call(lambda client: client.status())


async def test_data_of_another_form_are_an_error_of_the_client(play: Play) -> None:
    reply = httpx2.Response(200, json={"data": {"version": ["1"]}, "meta": {}})
    with pytest.raises(UnexpectedReply, match="version"):
        await play(reply).call(lambda client: client.status())


async def test_a_job_that_does_not_end_in_time(play: Play) -> None:
    script = play(httpx2.Response(200, json={"data": {**JOB["data"], "kind": "ingest", "stage": "embed"}, "meta": {}}))
    with pytest.raises(JobUnfinished, match="'embed'") as raised:
        await script.call(lambda client: client.jobs.wait("j", timeout_s=0))
    assert raised.value.job.stage == "embed"
    with pytest.raises(ValueError, match="nothing to do"):
        await script.call(lambda client: client.jobs.wait(type("Nothing", (), {"job_id": None})()))


async def test_a_job_is_requested_until_it_has_ended(play: Play) -> None:
    stages = [httpx2.Response(200, json={"data": {**JOB["data"], "stage": stage}, "meta": {}}) for stage in ("parse", "embed")]
    done = httpx2.Response(200, json={"data": {**JOB["data"], "state": "succeeded", "stage": "end", "novelty": [1]}, "meta": {}})
    script, seen = play(stages[0], problem(429, "too_many_requests", retry_after="7"), *stages, BROKEN, done), list[str]()
    job = await script.call(lambda client: client.jobs.wait("j", progress=lambda job: seen.append(job.stage)))
    assert (job.state, job.novelty, seen) == ("succeeded", [1], ["parse", "embed", "end"])
    assert 7.0 in script.pauses


async def test_a_job_that_failed_is_an_error(play: Play) -> None:
    job = {**JOB["data"], "state": "failed", "kind": "ingest", "error": {"code": "resource_limit", "message": "over 512 MB"}}
    reply = httpx2.Response(200, json={"data": job, "meta": {}})
    with pytest.raises(JobFailed, match="the ingest job j is failed: over 512 MB") as raised:
        await play(reply).call(lambda client: client.jobs.wait("j"))
    assert (raised.value.code, raised.value.job.id) == ("resource_limit", "j")
    assert (await play(reply).call(lambda client: client.jobs.wait("j", check=False))).state == "failed"


async def test_three_pages(play: Play) -> None:
    pages = [httpx2.Response(200, json={"data": [{"id": name}], "meta": {"nextCursor": cursor}})
             for name, cursor in (("a", "1"), ("b", "2"), ("c", None))]  # fmt: skip
    script = play(pages[0], problem(503, "x", retry_after="1"), *pages[1:])
    assert [job.id for job in await script.call(lambda client: client.jobs.list(limit=1, state="failed"))] == ["a", "b", "c"]
    queries = [dict(request.url.params) for request in script.requests]
    assert [query.pop("cursor", None) for query in queries] == [None, "1", "1", "2"]
    assert queries == [{"limit": "1", "state": "failed"}] * 4


async def test_null_is_sent_where_it_is_a_value(play: Play) -> None:
    script = play(httpx2.Response(200, json={"data": [], "meta": {}}))
    await script.call(lambda client: client.features.update({"RERANK": None}))
    assert json.loads(script.requests[0].content) == {"RERANK": None}


STREAM = 'id: 1\nevent: token\ndata: {"v": 1, "text": "Late."}\n\nid: 2\nevent: novelty\ndata: {"v": 1, "a": 1}\n\n'


async def test_a_stream_that_cannot_be_resumed_is_an_error(play: Play) -> None:
    begun = httpx2.Response(200, headers={"content-location": "/api/v1/answers/streams/s"}, stream=Broken(STREAM))
    gone = problem(404, "not_found")
    script = play(begun, httpx2.ConnectError("away"), gone, gone)
    with pytest.raises(NotFound):
        await script.call(lambda client: client.answers.stream("q"))
    assert [request.method for request in script.requests] == ["POST", "GET", "GET", "DELETE"]
    assert script.requests[1].headers["last-event-id"] == "2"
    without_address = play(httpx2.Response(200, stream=Broken(STREAM)))
    with pytest.raises(ConnectionFailed, match="broke"):
        await without_address.call(lambda client: client.answers.stream("q"))


async def test_events_of_a_stream(play: Play) -> None:
    end = 'event: error\ndata: {"v": 1, "status": 503, "code": "model_unavailable", "detail": "no model"}\n\n'
    events: list[object] = []
    script = play(httpx2.Response(200, text=STREAM + end))
    with pytest.raises(Unavailable, match="no model"):
        await script.call(lambda client: client.answers.stream("q"), received=events)
    assert events == [TokenEvent("Late."), OtherEvent("novelty", {"a": 1})]


def test_ids_cannot_change_the_route() -> None:
    assert fill_path("/documents/{document_id}/pages/{page}", "a/../b?c#d", 3) == "/documents/a%2F..%2Fb%3Fc%23d/pages/3"
    for value in ("", ".", ".."):
        with pytest.raises(ValueError, match="an id must not be"):
            fill_path("/documents/{document_id}", value)
    with Client("http://rag.test") as client, pytest.raises(ValueError, match="an id must not be"):
        client.jobs.get(None)  # type: ignore[arg-type]


@given(st.text(min_size=1).filter(lambda text: text not in (".", "..")))
def test_an_id_is_one_part_of_the_path(value: str) -> None:
    assert httpx2.URL("http://x" + fill_path("/a/{id}/b", value)).raw_path.count(b"/") == 3


def test_parameters_of_an_address() -> None:
    query = {"limit": None, "mentions": True, "relation_types": ["a", "b"], "filter": {"year": {"gt": 2019}}}
    expected = [("mentions", "true"), ("relation_types", "a"), ("relation_types", "b"), ("filter", '{"year": {"gt": 2019}}')]
    assert encode_query(query) == expected


def test_the_base_path_may_be_given() -> None:
    for address in ("http://rag.test", "http://rag.test/", "http://rag.test/api/v1", "http://rag.test/api/v1/"):
        with Client(address) as client:
            assert client._session.options.origin == "http://rag.test"
    for address in ("rag.test", "ftp://rag.test", "http://", "http://rag.test?x=1"):
        with pytest.raises(ValueError, match="base_url must be"):
            Client(address)


async def test_numbers_that_are_none_are_refused_before_they_are_sent(play: Play) -> None:
    with pytest.raises(ValueError, match="JSON"):
        await play().call(lambda client: client.search("q", min_score=float("nan")))


async def test_a_tenant_of_another_alphabet(play: Play) -> None:
    script = play(httpx2.Response(200, json=JOB), httpx2.Response(200, json=JOB))
    await script.call(lambda client: client.with_options(tenant="Überlingen").jobs.get("j"))
    assert "Überlingen".encode() in dict(script.requests[0].headers.raw)[b"X-Tenant-Id"]
    await script.call(lambda client: client.jobs.get("j"))
    assert "x-tenant-id" not in script.requests[1].headers
