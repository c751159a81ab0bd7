"""Streamed answers over a socket: broken connections, resumption, and answers that nobody follows."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from faulty_proxy import FaultyProxy
from http_server import issue_key, running_server

from agentic_rag_backend.cli.session.client import Client
from agentic_rag_testing.models.server import ModelServer

LONGEST_S = 40
NAMES = ("Abel", "Boris", "Clara", "Doris", "Edgar", "Fiona", "Gustav", "Helga", "Igor", "Julia", "Karl", "Lena")
SENTENCES = [f"{name} painted boat number {number} of the Harbour Authority." for number, name in enumerate(NAMES, 11)]
POINTS = 6
"""Sentences that the model chooses for a corpus-wide answer. Its other sentences are not supported then."""
QUESTION = "Who painted the boats of the Harbour Authority?"
Event = tuple[int, str, dict[str, Any]]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    text = " ".join(f"{sentence} [1]" for sentence in SENTENCES)
    questions = json.dumps({"questions": [QUESTION]})
    points = json.dumps({"points": [{"statement": each, "sources": [1], "score": 80} for each in SENTENCES[:POINTS]]})
    matchers = [
        (lambda prompt: 'objects {"statement"' in prompt, points),
        (lambda prompt: "<answer>" in prompt and "<passage" not in prompt, questions),
        (lambda prompt: "<passage" in prompt, text),
    ]
    with ModelServer(matchers=matchers) as running:
        yield running


@contextmanager
def serving(folder: Path, model: ModelServer, name: str, **settings: Any) -> Iterator[httpx.Client]:
    chosen = {
        "LLM": "openai",
        "EXTRACTION": "rules",
        "OPENAI_API_KEY": "any",
        "OPENAI_BASE_URL": model.base_url,
        "LLM_MODEL": name,
        **settings,
    }
    with running_server(folder, **chosen) as client:
        yield client


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[httpx.Client]:
    """A server whose model writes a piece of twelve characters every 40 ms: an answer takes about three seconds."""
    with serving(tmp_path_factory.mktemp("slow"), model, "cite+slow-stream-40ms") as client:
        yield client


@pytest.fixture(scope="module")
def key(server: httpx.Client) -> str:
    return filled(server, "first")


def filled(server: httpx.Client, name: str) -> str:
    """Return a key of a new tenant that has the document."""
    secret = issue_key(server, name)
    headers = {"X-API-Key": secret}
    body = {"text": " ".join(SENTENCES), "key": "boats", "title": "Boats"}
    job = server.post("/api/v1/documents", headers=headers, json=body).json()["data"]["job_id"]
    until(lambda: server.get(f"/api/v1/jobs/{job}", headers=headers).json()["data"]["state"] == "succeeded")
    return secret


@pytest.fixture(scope="module")
def themed(server: httpx.Client) -> str:
    """Return a key of a tenant whose documents have communities."""
    secret = filled(server, "themed")
    headers = {"X-API-Key": secret}
    job = server.post("/api/v1/admin/communities/rebuild", headers=headers, json={"mode": "full"}).json()["data"]["job_id"]
    until(lambda: server.get(f"/api/v1/jobs/{job}", headers=headers).json()["data"]["state"] == "succeeded")
    return secret


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def events_of(lines: Iterator[str], *, most: int = 10_000) -> list[Event]:
    """Return the first ``most`` events."""
    events: list[Event] = []
    fields: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and "data" in fields:
            events.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
            fields = {}
            if len(events) == most:
                break
    return events


def begun(server: httpx.Client, key: str, *, most: int = 3, **body: Any) -> tuple[str, list[Event]]:
    """Ask, read ``most`` events, and break the connection. Return the stream's address and the events."""
    asked = {"query": QUESTION, "strategy": "hybrid", "stream": True, **body}
    with server.stream("POST", "/api/v1/answers", headers={"X-API-Key": key}, json=asked) as response:
        assert response.status_code == 200
        return response.headers["content-location"], events_of(response.iter_lines(), most=most)


def resumed(server: httpx.Client, key: str, address: str, after: int, *, most: int = 10_000) -> list[Event]:
    headers = {"X-API-Key": key, "Last-Event-ID": str(after)}
    with server.stream("GET", address, headers=headers) as response:
        assert response.status_code == 200, response.read()
        return events_of(response.iter_lines(), most=most)


def problem_of(response: httpx.Response) -> tuple[int, str, str]:
    problem = response.json()
    return response.status_code, problem["code"], problem["detail"]


def assert_whole(events: list[Event], sentences: int = len(SENTENCES)) -> None:
    """Check that events are numbered without a gap, and that the text is the answer with a citation for each sentence."""
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert [events[0][1], events[-1][1]] == ["retrieval", "done"]
    done = events[-1][2]
    assert "".join(data["text"] for _, name, data in events if name == "token").strip() == done["answer"]
    assert len(done["citations"]) == sentences
    assert done["trace"]["processing_time_ms"]["first_sentence"] > 0


def test_a_broken_stream_is_resumed_twice(server: httpx.Client, key: str, model: ModelServer) -> None:
    model.reset()
    address, events = begun(server, key, resumable=True)
    time.sleep(1.5)  # longer than the pause after which an answer that is not resumable stops
    events += resumed(server, key, address, len(events), most=4)
    events += resumed(server, key, address, len(events))
    assert_whole(events)
    assert (model.stats().total.calls, model.stats().cancelled) == (1, 0)
    assert resumed(server, key, address, len(events) - 1) == events[-1:]
    assert resumed(server, key, address, 0) == events


def test_a_quick_reconnection_needs_no_flag(server: httpx.Client, key: str) -> None:
    address, events = begun(server, key)
    assert_whole(events + resumed(server, key, address, len(events)))


@pytest.mark.parametrize(("asked", "most"), [({}, 2), ({"generator": "verified"}, 1), ({"strategy": "global"}, 2)])
def test_a_client_that_leaves_stops_the_model(
    server: httpx.Client, themed: str, model: ModelServer, asked: dict[str, Any], most: int
) -> None:
    model.reset()
    address, events = begun(server, themed, most=most, **asked)
    until(lambda: model.stats().cancelled == 1)
    calls = model.stats().total.calls
    rest = resumed(server, themed, address, len(events))
    assert [number for number, _, _ in rest] == list(range(len(events) + 1, len(events) + 1 + len(rest)))
    assert (rest[-1][1], rest[-1][2]["code"], rest[-1][2]["status"]) == ("error", "answer_stopped", 410)
    assert sum(name == "token" for _, name, _ in events + rest) < len(SENTENCES)
    assert model.stats().total.calls == calls


def test_a_verified_answer_is_resumed(server: httpx.Client, key: str, model: ModelServer) -> None:
    model.reset()
    address, events = begun(server, key, most=1, resumable=True, generator="verified")
    time.sleep(1.5)  # longer than the pause after which an answer that is not resumable stops
    events += resumed(server, key, address, len(events))
    assert_whole(events)
    done = events[-1][2]
    assert (done["generator"], done["trace"]["fallback_used"]) == ("verified", False)
    assert model.stats().cancelled == 0
    assert resumed(server, key, address, 0) == events


def test_a_global_answer_is_resumed(server: httpx.Client, themed: str, model: ModelServer) -> None:
    model.reset()
    address, events = begun(server, themed, most=2, resumable=True, strategy="global")
    time.sleep(1.5)  # longer than the pause after which an answer that is not resumable stops
    events += resumed(server, themed, address, len(events))
    assert_whole(events, POINTS)
    done = events[-1][2]
    assert (done["trace"]["strategy"], done["trace"]["fallback_used"]) == ("global", False)
    assert done["trace"]["details"]["partial_answers"]["written_by"] == "model"
    # Calls for partial answers, the answer, and the check of its sentences: the resumption asked for nothing again.
    assert (model.stats().total.calls, model.stats().cancelled) == (3, 0)
    assert resumed(server, themed, address, 0) == events


def test_a_caller_stops_an_answer(server: httpx.Client, key: str, model: ModelServer) -> None:
    model.reset()
    address, _ = begun(server, key, resumable=True)
    assert server.delete(address, headers={"X-API-Key": key}).status_code == 204
    until(lambda: model.stats().cancelled == 1)
    for method in ("GET", "DELETE"):
        assert problem_of(server.request(method, address, headers={"X-API-Key": key}))[:2] == (404, "not_found")


def test_nobody_else_resumes_a_stream(server: httpx.Client, key: str) -> None:
    address, events = begun(server, key, resumable=True)
    stranger = issue_key(server, "second")
    tenant = server.get("/api/v1/tenants/me", headers={"X-API-Key": key}).json()["data"]["id"]
    operator = {"Authorization": "Bearer the-operators-key-of-these-tests-0123456789"}
    issued = server.post(f"/api/v1/tenants/{tenant}/keys", headers=operator, json={"name": "other", "scopes": ["read"]})
    unknown = problem_of(server.get(address[:-4] + "0000", headers={"X-API-Key": key}))
    for other in (stranger, issued.json()["data"]["key"]):
        for method in ("GET", "DELETE"):
            assert problem_of(server.request(method, address, headers={"X-API-Key": other})) == unknown
    assert unknown[0] == 404
    assert server.get(address).status_code == 401
    assert_whole(events + resumed(server, key, address, len(events)))


def test_the_same_request_resumes_a_stream(server: httpx.Client, key: str) -> None:
    body = {"query": f"{QUESTION} All of them?", "strategy": "hybrid", "stream": True, "resumable": True}
    _, events = begun(server, key, **body)
    headers = {"X-API-Key": key, "Last-Event-ID": str(len(events))}
    with server.stream("POST", "/api/v1/answers", headers=headers, json=body) as response:
        assert_whole(events + events_of(response.iter_lines()))
    other = server.post("/api/v1/answers", headers=headers, json={**body, "query": "Who sank the boats?"})
    assert problem_of(other)[:2] == (404, "not_found")
    assert "without Last-Event-ID" in problem_of(other)[2]


@pytest.mark.parametrize("given", ["x", "-1", "1.5", "9999999999", "500"])
def test_a_wrong_place_is_refused(server: httpx.Client, key: str, given: str) -> None:
    address, _ = begun(server, key, most=1, resumable=True)
    status, code, detail = problem_of(server.get(address, headers={"X-API-Key": key, "Last-Event-ID": given}))
    assert (status, code) == (422, "invalid_request")
    assert given in detail
    server.delete(address, headers={"X-API-Key": key})


def test_an_answer_about_a_deleted_document_is_not_resumed(server: httpx.Client) -> None:
    key = filled(server, "third")
    address, _ = begun(server, key, resumable=True)
    headers = {"X-API-Key": key}
    (document,) = server.get("/api/v1/documents", headers=headers).json()["data"]
    assert server.delete(f"/api/v1/documents/{document['id']}", headers=headers).status_code == 202
    status, code, detail = problem_of(server.get(address, headers=headers))
    assert (status, code) == (404, "not_found")
    assert "deleted or changed" in detail


def test_a_model_that_breaks_off_ends_the_stream_with_the_checked_sentences(tmp_path: Path, model: ModelServer) -> None:
    with serving(tmp_path, model, "cite+slow-stream-5ms+cut-stream", STREAM_RESUME_S=1) as server:
        key = filled(server, "cut")
        address, events = begun(server, key, most=2)
        events += resumed(server, key, address, len(events))
        assert events[-1][1] == "done"
        assert "broke off" in events[-1][2]["trace"]["fallback_reason"]
        assert 0 < sum(name == "token" for _, name, _ in events) < len(SENTENCES)

        # One second after its last connection, the stream is dropped.
        until(lambda: server.get(address, headers={"X-API-Key": key, "Last-Event-ID": "9999"}).status_code == 404)
        status, code, detail = problem_of(server.get(address, headers={"X-API-Key": key}))
        assert (status, code) == (404, "not_found")
        assert "1 s (STREAM_RESUME_S)" in detail


def test_the_command_lines_client_resumes_by_itself(server: httpx.Client, key: str, model: ModelServer) -> None:
    model.reset()

    async def asked() -> list[tuple[str, dict[str, Any]]]:
        events = []
        with FaultyProxy(server.base_url.host, server.base_url.port or 0) as proxy:
            address = f"http://127.0.0.1:{proxy.port}"
            async with httpx2.AsyncClient(base_url=address, headers={"X-API-Key": key}, timeout=60) as http:
                body = {"query": QUESTION, "strategy": "hybrid", "stream": True, "resumable": True}
                async for event in Client(http, where="the proxy", in_process=False).events("/answers", body):
                    events.append(event)
                    if len(events) in (4, 9):
                        await asyncio.to_thread(proxy.cut)
                        proxy.restore()
        return events

    events = asyncio.run(asked())
    assert_whole([(number, name, data) for number, (name, data) in enumerate(events, 1)])
    assert model.stats().total.calls == 1


def test_the_client_stops_an_answer_that_its_reader_leaves(server: httpx.Client, key: str, model: ModelServer) -> None:
    model.reset()

    async def left() -> None:
        async with httpx2.AsyncClient(base_url=str(server.base_url), headers={"X-API-Key": key}, timeout=60) as http:
            body = {"query": QUESTION, "strategy": "hybrid", "stream": True, "resumable": True}
            events = Client(http, where="the server", in_process=False).events("/answers", body)
            await anext(events)
            await asyncio.to_thread(until, lambda: model.stats().total.calls == 1)
            await events.aclose()

    asyncio.run(left())
    until(lambda: model.stats().cancelled == 1)
