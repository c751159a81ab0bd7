"""Authentication uses the headers only: the body of a request that is refused for key, scope or address is never read."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from starlette.types import Message, Receive
from tests.e2e.api.conftest import DOORS, Client, World

from agentic_rag_backend.api.requests.bodies import LargeBodies
from agentic_rag_backend.telemetry.metrics import REGISTRY

pytestmark = pytest.mark.asyncio(loop_scope="module")

BASE = "/api/v1"
LARGE = 12 * 1024 * 1024


async def asked(
    app: Any, method: str, path: str, headers: dict[str, str], query: bytes = b"limt=5"
) -> tuple[int, dict[str, Any], int]:
    """Send a request without a client. Return status, problem, and the number of reads of the body."""
    reads = 0

    async def receive() -> dict[str, Any]:
        nonlocal reads
        reads += 1
        return {"type": "http.request", "body": b"{" * 1024, "more_body": True}

    sent = await exchanged(app, method, path, headers, receive, query)
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(body), reads


async def exchanged(
    app: Any, method: str, path: str, headers: dict[str, str], receive: Receive, query: bytes = b""
) -> list[Message]:
    """Return the application's response to a request whose body comes from ``receive``."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": query,
        "headers": [(b"host", b"test"), *raw],
        "client": ("127.0.0.1", 4711),
        "server": ("test", 80),
    }
    async with asyncio.timeout(30):
        await app(scope, receive, send)
    return sent


async def routes(app: Any) -> list[tuple[str, str]]:
    """Return every method and path below the base path, with an unknown id."""
    return [
        (method.upper(), re.sub(r"\{\w+\}", "nobody", template))
        for template, operations in (await asyncio.to_thread(app.openapi))["paths"].items()
        if template.startswith(BASE)
        for method in operations
    ]


def body_headers() -> Iterator[dict[str, str]]:
    """Yield headers for bodies: valid, too large, of a wrong type, of unknown length."""
    yield {"Content-Type": "application/json", "Content-Length": "20"}
    yield {"Content-Type": "application/json", "Content-Length": str(LARGE * 100)}
    yield {"Content-Type": "text/plain", "Transfer-Encoding": "chunked"}
    yield {"Content-Type": "multipart/form-data; boundary=b", "Content-Length": "20", "Idempotency-Key": "once"}


async def test_without_a_key_every_route_is_401_before_anything_else(world: World) -> None:
    for method, path in await routes(world.app):
        for headers in body_headers():
            for secret in ({}, {"Authorization": "Bearer ark_nobody"}, {"X-API-Key": "x" * 300}):
                status, problem, reads = await asked(world.app, method, path, {**headers, **secret})
                assert (status, problem["code"], reads) == (401, "unauthenticated", 0), (method, path, headers, problem)


async def test_a_scope_that_does_not_allow_it_is_403_before_the_body(world: World) -> None:
    refused = 0
    for method, path in await routes(world.app):
        for headers in body_headers():
            key = {"X-API-Key": str(world.alpha_reader.caller.key)}
            readable = (f"{BASE}/search", f"{BASE}/answers", f"{BASE}/graph/paths", f"{BASE}/feedback", f"{BASE}/label", *DOORS)
            if method == "GET" or path.startswith(readable):
                continue
            status, problem, reads = await asked(world.app, method, path, {**headers, **key})
            assert (status, problem["code"], reads) == (403, "forbidden", 0), (method, path, headers, problem)
            refused += 1
    assert refused > 50


async def test_an_address_or_method_that_is_not_there_reads_no_body(world: World) -> None:
    for method, path, expected in (("POST", f"{BASE}/nothing", 404), ("PUT", f"{BASE}/documents", 405), ("POST", "/", 405)):
        for headers in body_headers():
            status, _, reads = await asked(world.app, method, path, headers)
            assert (status, reads) == (expected, 0)


async def test_a_declared_length_beyond_the_limit_is_refused_unread(world: World) -> None:
    key = {"X-API-Key": str(world.alpha.caller.key), "Content-Type": "application/json", "Content-Length": str(LARGE * 2)}
    limits = ((f"{BASE}/admin/reconcile", 64 * 1024), (f"{BASE}/search", 161_536), (f"{BASE}/documents", LARGE))
    for path, limit in limits:
        status, problem, reads = await asked(world.app, "POST", path, key, b"")
        assert (status, problem["code"], reads) == (413, "payload_too_large", 0), problem
        assert str(limit) in problem["detail"]
        assert str(LARGE * 2) in problem["detail"]


async def test_a_body_whose_every_text_is_as_long_as_it_may_be_fits(world: World) -> None:
    longest = "\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL A}" * 8_000  # twelve bytes per character, escaped
    turns = [{"role": role, "content": longest} for role in ("user", "assistant") * 10]
    body = {"query": "Who leads the Harbour Authority?", "history": turns, "strategy": "sparse"}
    sent = json.dumps(body).encode()
    assert len(sent) > 20 * 8_000 * 12
    response = await world.alpha.request("POST", "/answers", content=sent, headers={"Content-Type": "application/json"})
    assert response.status_code == 200, response.text
    sent = json.dumps({"query": longest, "strategy": "sparse"}).encode()
    response = await world.alpha.request("POST", "/search", content=sent, headers={"Content-Type": "application/json"})
    assert response.status_code == 200, response.text
    sent = json.dumps({**body, "options": {"a": "x" * 200_000}}).encode()
    refused = await world.alpha.request("POST", "/answers", content=sent, headers={"Content-Type": "application/json"})
    assert refused.status_code == 413
    assert str(64 * 1024 + 21 * 8_000 * 12) in refused.json()["detail"]


async def test_a_body_that_stops_arriving_is_408_and_ends_the_connection(world: World) -> None:
    served = world.app.state.container
    hurried = served.settings.model_copy(update={"body_timeout_s": 0.05})

    async def stalling() -> Any:
        yield b'{"query": '
        await asyncio.sleep(3600)

    world.app.state.container = SimpleNamespace(
        authenticator=served.authenticator,
        settings=hurried,
        disk_space=served.disk_space,
        usage=served.usage,
        quotas=served.quotas,
        budgets=served.budgets,
    )
    try:
        responses = [
            await world.alpha.request("POST", path, content=stalling(), headers={"Content-Type": "application/json"})
            for path in ("/search", "/documents", "/answers")
        ]
    finally:
        world.app.state.container = served
    for response in responses:
        assert (response.status_code, response.json()["code"]) == (408, "request_incomplete")
        assert response.headers["connection"] == "close"
        assert "BODY_TIMEOUT_S" in response.json()["detail"]
        assert "received 10 bytes before" in response.json()["detail"]


def counted(route: str, status: int) -> float:
    labels = {"method": "POST", "route": BASE + route, "status": str(status), "door": "api"}
    return REGISTRY.get_sample_value("agentic_rag_http_requests_total", labels) or 0.0


async def test_a_client_that_goes_away_in_the_middle_of_its_body_is_one_line_and_no_server_error(world: World) -> None:
    form, archive = "multipart/form-data; boundary=b", "application/gzip"
    begun = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\nThe pier'
    cases = [
        ("/search", {"Content-Type": "application/json"}, b'{"query": '),
        ("/answers", {"Content-Type": "application/json"}, b""),
        ("/documents", {"Content-Type": "application/json"}, b'{"text": "' + b"x" * 300_000),
        ("/documents", {"Content-Type": form}, begun),
        ("/documents", {"Content-Type": form, "Idempotency-Key": "gone"}, begun),
        ("/tenants/import", {"Content-Type": archive, "X-API-Key": str(world.operator.caller.key)}, b"\x1f\x8b"),
    ]
    before = await world.held()
    for path, headers, part in cases:
        arriving: Iterator[Message] = iter(
            [{"type": "http.request", "body": part, "more_body": True}, {"type": "http.disconnect"}]
        )

        async def receive(arriving: Iterator[Message] = arriving) -> Message:
            return next(arriving)

        gone, failed = counted(path, 0), counted(path, 500)
        with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logged:
            sent = await exchanged(
                world.app,
                "POST",
                BASE + path,
                {"X-API-Key": str(world.alpha.caller.key), "X-Request-Id": "gone-1", **headers},
                receive,
            )
        assert sent == [], path
        assert [(line["event"], line["log_level"], line["status"], line["request_id"]) for line in logged] == [
            ("request", "info", 0, "gone-1")
        ], path
        assert (counted(path, 0), counted(path, 500)) == (gone + 1, failed), path
    assert await world.held() == before


async def test_a_request_that_crashes_is_one_line_counted_as_500_and_answered_with_its_id(world: World) -> None:
    class Broken:
        async def authenticate(self, *_: Any, **__: Any) -> None:
            raise RuntimeError("boom")

    served, failed, gone = world.app.state.container, counted("/search", 500), counted("/search", 0)
    world.app.state.container = SimpleNamespace(authenticator=Broken(), settings=served.settings)
    try:
        with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logged:
            response = await world.alpha.http.post(f"{BASE}/search", headers={"X-API-Key": "any", "X-Request-Id": "crash-1"})
    finally:
        world.app.state.container = served
    assert (response.status_code, response.headers["x-request-id"]) == (500, "crash-1")
    assert response.json()["requestId"] == "crash-1"
    assert "boom" not in response.text
    assert [(line["event"], line["request_id"]) for line in logged] == [("request_crashed", "crash-1"), ("request", "crash-1")]
    assert (counted("/search", 500), counted("/search", 0)) == (failed + 1, gone)


async def test_large_bodies_of_one_tenant_wait_for_one_another_and_not_for_another_tenants() -> None:
    bodies, held, released = LargeBodies(), [], asyncio.Event()

    async def hold(tenant: str) -> None:
        async with bodies.of(tenant):
            held.append(tenant)
            await released.wait()

    tasks = [asyncio.create_task(hold("busy")) for _ in range(10)]
    tasks += [asyncio.create_task(hold("other"))]
    for _ in range(20):
        await asyncio.sleep(0)
    assert (held.count("busy"), held.count("other")) == (4, 1)
    tasks[0].cancel()  # if one that waits or holds a slot ends, another takes its place
    released.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert held.count("busy") in {9, 10}
    assert not bodies._tenants
    assert not bodies._users


async def test_log_lines_of_a_request_carry_its_tenant(world: World) -> None:
    with structlog.testing.capture_logs(processors=[structlog.contextvars.merge_contextvars]) as logged:
        await both(world.alpha, world.beta)
        await world.nobody.get("/status")
    lines = [(line["path"], line.get("tenant")) for line in logged if line["event"] == "request"]
    assert sorted(lines, key=str) == sorted(
        [
            (f"{BASE}/status", world.alpha.caller.tenant_id),
            (f"{BASE}/jobs", world.beta.caller.tenant_id),
            (f"{BASE}/status", None),
        ],
        key=str,
    )


async def both(one: Client, other: Client) -> None:
    await asyncio.gather(one.get("/status"), other.get("/jobs"))
