"""A server process with the scripted model server's vectors, for benchmarks that measure it over HTTP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from memory import MB

OPERATOR_KEY = "operator-of-the-benchmarks-0123456789"
BASE = "/api/v1"
ENDED = ("succeeded", "partial", "failed", "cancelled")
_COMMAND = "from agentic_rag_backend.cli.app import main; main()"
_START_S, _JOB_S = 120.0, 7200.0


class Server:
    """A server process on a data folder. ``http`` sends the key that it was started with."""

    def __init__(self, process: subprocess.Popen[bytes], address: str, key: str) -> None:
        self.process = process
        self.address = address
        self.http = self.connect(key)

    def create_tenant(self, name: str) -> str:
        """Create a tenant, and return its key."""
        with self.connect(OPERATOR_KEY) as http:
            tenant = data_of(http.post("/tenants", json={"name": name}))
            return str(data_of(http.post(f"/tenants/{tenant['id']}/keys", json={"scopes": ["admin"]}))["key"])

    def connect(self, key: str) -> httpx.Client:
        """Return a client that sends a key."""
        return httpx.Client(base_url=self.address + BASE, timeout=600, headers={"Authorization": f"Bearer {key}"})

    def memory_mb(self) -> dict[str, int]:
        """Return the private and the resident memory, and the largest resident memory since the start."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        kib = {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines) if value.endswith(" kB")}
        names = {"own": "RssAnon", "resident": "VmRSS", "peak": "VmHWM"}
        return {name: round(kib[field] * 1024 / MB) for name, field in names.items()}


@contextmanager
def serving(folder: Path, model_url: str, key: str = OPERATOR_KEY, **settings: str) -> Iterator[Server]:
    """Run a server until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DATA_DIR": str(folder / "data"),
        "PORT": str(port),
        "OPERATOR_KEY": OPERATOR_KEY,
        "EMBEDDER": "openai",
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": "any",
        "EMBEDDING_MODEL": "hashed+dimensions-384",
        "EMBEDDING_DIMENSIONS": "384",
        "COMMUNITY_AUTO_REBUILD": "false",
        "DUAL_LEVEL_RETRIEVAL_ENABLED": "true",
        "LOG_LEVEL": "error",
        **settings,
    }
    command = [sys.executable, "-c", _COMMAND, "serve"]
    process = subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address, until = f"http://127.0.0.1:{port}", time.monotonic() + _START_S
    try:
        while not _is_ready(address):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("the server did not start")
            time.sleep(0.1)
        yield Server(process, address, key)
    finally:
        process.terminate()
        process.wait(120)


def _is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health/ready").status_code == 200
    except httpx.TransportError:
        return False


def data_of(response: httpx.Response) -> Any:
    """Return the data of a response, and end the benchmark if it is an error."""
    if response.is_error:
        raise SystemExit(f"{response.request.url}: {response.status_code} {response.text[:500]}")
    return response.json()["data"]


def wait_for(http: httpx.Client, job: str, *, interval_s: float = 0.5) -> None:
    """Wait until a job has ended, and end the benchmark if it did not succeed."""
    until = time.monotonic() + _JOB_S
    while (row := data_of(http.get(f"/jobs/{job}")))["state"] not in ENDED:
        if time.monotonic() > until:
            raise SystemExit(f"the job {job} did not end")
        time.sleep(interval_s)
    if row["state"] != "succeeded":
        raise SystemExit(f"the job {job} ended {row['state']}: {row['error']}")
