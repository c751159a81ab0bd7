"""A server that is killed between carrying out a request and recording its response."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from http_server import read_address

from agentic_rag_backend.container import open_container

from .conftest import OPERATOR_KEY, Client, add_tenant, serving, settings_for

CRASHES = """
import asyncio, os, signal, sys
from pathlib import Path
from agentic_rag_backend.cli.app import main
from agentic_rag_backend.ingestion.service import IngestionService

submit = IngestionService.submit

async def submit_and_die(self, *arguments):
    await submit(self, *arguments)
    os.kill(os.getpid(), signal.SIGKILL)

IngestionService.submit = submit_and_die
sys.argv = ["agentic-rag", "serve", "--port", "0", "--data-dir", sys.argv[1], "--json"]
main()
"""


def _serving(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server that dies after accepting a document. Return its address."""
    environment = {**os.environ, "OPERATOR_KEY": OPERATOR_KEY, "COMMUNITY_AUTO_REBUILD": "false"}
    command = [sys.executable, "-c", CRASHES, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True)
    return process, read_address(process)


async def test_a_crash_before_the_end_frees_the_key_at_the_next_start(tmp_path: Path) -> None:
    process, url = await asyncio.to_thread(_serving, tmp_path)
    headers, body = {"Idempotency-Key": "crashes"}, {"text": "The bridge was closed in May.", "key": "bridge"}
    try:
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            (caller,) = await add_tenant(http, "crashes", "admin")
            with pytest.raises(httpx.TransportError):
                await caller.post("/documents", body, headers=headers)
        assert await asyncio.to_thread(process.wait, 30) == -signal.SIGKILL
    finally:
        process.kill()
        process.communicate()
    async with open_container(settings_for(tmp_path)) as container, serving(container) as http:
        client = Client(http, caller.caller)
        answer = await client.post("/documents", body, headers=headers)
        assert (answer.status_code, answer.json()["data"]["state"]) == (200, "unchanged")
        again = await client.post("/documents", body, headers=headers)
        assert (again.content, again.headers["idempotency-replayed"]) == (answer.content, "true")
        assert len(await client.pages("/documents", limit=100)) == len(await client.pages("/jobs", limit=100)) == 1
