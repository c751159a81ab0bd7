"""The API as a separate process: started by the command line, used over a socket, stopped by a signal."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from http_server import issue_key, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server that is ready. Afterwards, SIGTERM must end it without errors."""
    with running_server(tmp_path_factory.mktemp("server")) as client:
        yield client


def _data(client: httpx.Client, method: str, path: str, secret: str, **body: Any) -> Any:
    response = client.request(
        method, "/api/v1" + path, headers={"Authorization": f"Bearer {secret}"}, **({"json": body} if body else {})
    )
    assert response.is_success, response.text
    return response.json()["data"]


def _ended(client: httpx.Client, key: str, job_id: str) -> str:
    """Follow the job's events to the end and return its final state."""
    states = []
    with client.stream("GET", f"/api/v1/jobs/{job_id}/events", headers={"X-API-Key": key}) as events:
        states = [line for line in events.iter_lines() if line.startswith("data:") and '"state"' in line]
    return str(json.loads(states[-1].removeprefix("data:"))["state"])


def test_the_main_job_over_a_socket(server: httpx.Client) -> None:
    keys = [issue_key(server, name) for name in ("first", "second")]
    documents = []
    for key, place in zip(keys, ("Sarn", "Quell"), strict=True):
        text = f"Mara Venn leads the Harbour Authority of {place}. The Harbour Authority built the pier in 1911."
        submitted = _data(server, "POST", "/documents", key, text=text, key="pier")
        assert _ended(server, key, submitted["job_id"]) == "succeeded"
        job = _data(server, "POST", "/admin/communities/rebuild", key, mode="full")
        assert _ended(server, key, job["job_id"]) == "succeeded"
        documents.append(submitted["document_id"])

    asked = {"query": "Who leads the Harbour Authority?"}
    off = server.post("/api/v1/search/dual-level", headers={"X-API-Key": keys[0]}, json=asked)
    assert (off.status_code, off.json()["code"]) == (404, "feature_disabled")
    _data(server, "PATCH", "/features", keys[0], DUAL_LEVEL_RETRIEVAL_ENABLED=True)
    found = _data(server, "POST", "/search/dual-level", keys[0], **asked)
    assert found["citations"]
    assert "Sarn" in found["synthesized_answer"]
    assert "Quell" not in str(found)
    foreign = server.get(f"/api/v1/documents/{documents[1]}", headers={"X-API-Key": keys[0]})
    assert foreign.status_code == 404


def test_a_body_without_a_length_is_bounded(server: httpx.Client) -> None:
    key = issue_key(server, "fourth")

    def pieces() -> Iterator[bytes]:
        yield b'{"query": "'
        for _ in range(14):
            yield b"x" * 1024 * 1024

    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    try:
        refused = server.post("/api/v1/search", headers=headers, content=pieces())
    except httpx.TransportError:
        pass  # refused while it was being sent
    else:
        assert refused.status_code == 413
    assert server.get("/health/live").status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nHost: x\r\nX-API-Key: " + b"k" * 200_000 + b"\r\n\r\n",
        b"POST /api/v1/search HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/v1/search HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"GET /api/v1/documents/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_malformed_requests_get_a_4xx_or_no_response(server: httpx.Client, sent: bytes) -> None:
    with socket.create_connection((server.base_url.host, server.base_url.port or 0), timeout=10) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            line = connection.recv(64)
        except OSError:
            line = b""  # the server closed the connection during the request
    assert not line or line.split()[1].startswith(b"4"), line
    assert server.get("/health/live").status_code == 200


def test_head_over_a_socket_has_no_body_and_leaves_the_connection_usable(server: httpx.Client) -> None:
    for path in ("/health/live", "/api/v1/docs", "/api/v1/jobs/nobody/events"):
        head, whole = server.head(path), server.get(path)
        assert (head.status_code, head.content) == (whole.status_code, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]


def test_half_sent_requests_are_closed_and_others_are_served_meanwhile(tmp_path: Path) -> None:
    """Uses the command and its settings. tests/unit/api/test_http_connections.py tests the connections themselves."""
    begun = (b"POST /api/v1/search HTTP/1.1\r\nHost: x\r\n", b"POST /api/v1/search HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n")
    limits = {"HEADER_TIMEOUT_S": 1, "BODY_TIMEOUT_S": 1, "MAX_CONNECTIONS_PER_CLIENT": 400}
    with running_server(tmp_path, **limits) as client:
        key = f"X-API-Key: {issue_key(client, 'slow')}\r\n".encode()
        address = (client.base_url.host, client.base_url.port or 0)
        slow = [socket.create_connection(address, timeout=60) for _ in range(120)]
        for number, connection in enumerate(slow):
            head = begun[0] if number % 2 else begun[1] + key + b"Content-Type: application/json\r\n\r\n{"
            connection.sendall(head)
        assert client.get("/health/live").status_code == 200
        for connection in slow:
            received = b""
            while part := connection.recv(65536):
                received += part
            assert received.startswith(b"HTTP/1.1 408 "), received
            assert b'"code":"request_incomplete"' in received.replace(b'": "', b'":"')
            connection.close()
        assert client.get("/health/live").status_code == 200


@pytest.mark.parametrize("trusted", ["", "127.0.0.1"], ids=["no proxy", "behind a proxy"])
def test_wrong_keys_lock_out_one_client_and_no_valid_key(tmp_path: Path, trusted: str) -> None:
    """Clients of 192.0.2.7 and 192.0.2.8 share the proxy 127.0.0.1, whose header counts only if the proxy is trusted."""

    def ask(client: httpx.Client, secret: str, address: str) -> httpx.Response:
        headers = {"X-Forwarded-For": address, "Authorization": f"Bearer {secret}"}
        return client.get("/api/v1/tenants/me", headers=headers)

    with running_server(tmp_path, MAX_WRONG_KEYS_PER_CLIENT=5, TRUSTED_PROXIES=trusted) as client:
        key = issue_key(client, "acme")
        # Without a trusted proxy, another address in the header is no other client.
        addresses = ["192.0.2.7" if trusted else f"192.0.2.{number}" for number in range(7)]
        answers = [ask(client, f"ark_wrong_{number}", address) for number, address in enumerate(addresses)]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2
        assert {answer.json()["code"] for answer in answers[5:]} == {"too_many_wrong_keys"}
        assert {int(answer.headers["retry-after"]) for answer in answers[5:]} == {1}
        assert ask(client, key, "192.0.2.7").status_code == 200
        assert ask(client, "ark_wrong", "192.0.2.8").status_code == (401 if trusted else 429)
        log = (tmp_path / "log").read_text()
        assert ("192.0.2.7" if trusted else "127.0.0.1") in next(line for line in log.splitlines() if "client_locked_out" in line)
