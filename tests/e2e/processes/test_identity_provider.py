"""A real OpenID provider and a server, as the guide sets them up: tokens, rotation, and a provider that is away."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from http_server import OPERATOR_KEY, running_server

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "guide" / "oidc.md").read_text(encoding="utf-8")
WITHIN_S = 60


def blocks(language: str) -> list[str]:
    """Return the blocks of the guide's page that are to be tried."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.partition("## Try it")[2], re.MULTILINE | re.DOTALL)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Provider:
    """nanoidp with the settings and the users of the page. A client of a second tenant's user is added."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        settings, users = (yaml.safe_load(block.replace("9000", str(self.port))) for block in blocks("yaml"))
        users["users"]["ben"] = {"password": "bens-password", "tenant": "north", "roles": ["reader"]}
        folder.mkdir()
        (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
        (folder / "users.yaml").write_text(yaml.safe_dump(users))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the provider."""
        with (self._folder / "log").open("wb") as log:
            command = [sys.executable, "-m", "nanoidp", "--config", str(self._folder)]
            process = subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + WITHIN_S
            while time.monotonic() < deadline:
                assert process.poll() is None, (self._folder / "log").read_text()
                try:
                    httpx.get(f"{self.url}/.well-known/openid-configuration", timeout=10)
                    break
                except httpx.ConnectError:
                    time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(WITHIN_S)

    def token(self, user: str = "anna", **form: Any) -> str:
        """Return a token of a user, as the page gets it."""
        data = {"grant_type": "password", "username": user, "password": f"{user}s-password", **form}
        reply = httpx.post(f"{self.url}/token", auth=("website", "website-secret"), data=data, timeout=30)
        return str(reply.json()["access_token"])


@pytest.mark.slow
def test_the_page_works_with_a_real_provider(tmp_path: Path) -> None:
    provider = Provider(tmp_path / "idp")
    settings = dict(line.split("=", 1) for line in blocks("ini")[-1].replace("9000", str(provider.port)).splitlines())
    settings["OIDC_AUDIENCE"] = settings["OIDC_AUDIENCE"].replace("127.0.0.1:8000", "rag.test")
    with running_server(tmp_path, **settings, PUBLIC_URL="http://rag.test") as client:

        def get(token: str, path: str = "/api/v1/documents") -> httpx.Response:
            return client.get(path, headers={"Authorization": f"Bearer {token}"})

        with provider.running():
            token, early = provider.token(), get("a.b.c")
            assert (early.status_code, early.json()["code"]) == (401, "token_invalid")
        away = get(token)  # the provider has left before its keys were needed
        assert (away.status_code, away.json()["code"]) == (503, "identity_provider_unavailable")
        assert get(OPERATOR_KEY, "/api/v1/tenants").status_code == 200
        with provider.running():
            _read_with_tokens(client, provider, get)
            _run_commands(client, provider)
            token = provider.token()
        assert get(token).status_code == 200  # away again, and its keys are known


def _read_with_tokens(client: httpx.Client, provider: Provider, get: Any) -> None:
    operator = {"Authorization": f"Bearer {OPERATOR_KEY}"}
    assert client.post("/api/v1/tenants", json={"name": "north"}, headers=operator).status_code == 201
    deadline = time.monotonic() + WITHIN_S
    anna, ben = provider.token(), provider.token("ben")
    while get(anna).status_code == 503 and time.monotonic() < deadline:
        time.sleep(0.2)  # the pause after a failure
    assert [get(token, "/api/v1/tenants/me").json()["data"]["name"] for token in (anna, ben)] == ["default", "north"]
    written = client.post("/api/v1/documents", json={"text": "x"}, headers={"Authorization": f"Bearer {ben}"})
    assert (written.status_code, written.json()["code"]) == (403, "forbidden")
    for_agent = provider.token(resource="http://rag.test/mcp")
    assert get(for_agent).status_code == 200
    assert get(provider.token(resource="http://other.test/mcp")).status_code == 401
    rotated = httpx.post(f"{provider.url}/api/keys/rotate", timeout=30)
    assert rotated.is_success
    for token in (provider.token(), anna):  # the previous key is still published
        assert get(token).status_code == 200


def _run_commands(client: httpx.Client, provider: Provider) -> None:
    """Run the commands of the page as they stand, on other ports."""
    code = blocks("bash")[0].replace("http://127.0.0.1:9000", provider.url)
    code = code.replace("http://127.0.0.1:8000", str(client.base_url).rstrip("/")).replace("curl -s", "curl -s --fail-with-body")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euc", code], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"name":"default"' in done.stdout
    assert '"job_id"' in done.stdout
