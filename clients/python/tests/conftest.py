"""A server with documents of one tenant. It runs in the environment of the product, whose packages clash with the frameworks'."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentic_rag_client import AgenticRagError, Client

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "examples" / "corpus"
ACCORD = CORPUS / "narrows-accord-2012.md"
QUESTION = "How wide is the corridor that the Narrows Accord of 2012 keeps open to fishing?"


@dataclass(frozen=True)
class Site:
    """Address and key of a server."""

    url: str
    key: str


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run a server, and upload the corpus of the examples."""
    folder, operator_key = tmp_path_factory.mktemp("site"), secrets.token_urlsafe(32)
    command = [ROOT / ".venv" / "bin" / "agentic-rag", "serve", "--port", "0", "--data-dir", folder / "data"]
    environment = {**os.environ, "OPERATOR_KEY": operator_key, "COMMUNITY_AUTO_REBUILD": "false"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        url = _read_address(process, folder)
        with Client(url, operator_key) as operator:
            tenant = operator.tenants.create("frameworks")
            key = operator.tenants.create_key(tenant.id, name="tests", scopes=["write"]).key
        assert key is not None
        others = [path for path in sorted(CORPUS.glob("*.md")) if path != ACCORD][:11]
        with Client(url, key) as client:
            for number, submission in enumerate(client.documents.upload_files([ACCORD, *others])):
                document = client.documents.wait(submission, timeout_s=120)
                client.documents.update(document.id, metadata={"number": number})
        yield Site(url, key)
    finally:
        process.terminate()
        process.wait(60)


def _read_address(process: subprocess.Popen[bytes], folder: Path) -> str:
    """Return the address of a server that answers."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, (folder / "log").read_text()
        path = folder / "data" / "server.json"
        if path.exists():
            url = str(json.loads(path.read_text())["url"])
            try:
                with Client(url, timeout_s=10) as client:
                    client.health.live()
                return url
            except AgenticRagError:
                pass
        time.sleep(0.1)
    raise AssertionError((folder / "log").read_text())
