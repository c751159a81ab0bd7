"""The model server in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import httpx
import pytest

from agentic_rag_testing.models import process as model_process
from agentic_rag_testing.models.counts import text_hash
from agentic_rag_testing.models.process import ModelProcess

_CLIENT = """
import httpx, os, signal, sys
httpx.post(sys.argv[1] + "/embeddings", json={"model": "hashed", "input": ["finished"]})
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_counts_survive_the_clients_kill() -> None:
    with ModelProcess() as server:
        for _ in range(2):
            killed = subprocess.run([sys.executable, "-c", _CLIENT, server.base_url], check=False)
            assert killed.returncode == -signal.SIGKILL
        assert server.stats().paid_again() == {text_hash("finished"): 2}
        assert server.stats().models["hashed"].calls == 2
        server.reset()
        assert server.stats().total.calls == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.base_url}/models")


def test_it_ends_with_what_started_it() -> None:
    starter = "import os, sys; from agentic_rag_testing.models.process import ModelProcess as P; p = P().__enter__()"
    said = "; print(p.base_url, p.pid, flush=True); os._exit(9)"
    run = subprocess.run([sys.executable, "-c", starter + said], stdout=subprocess.PIPE, text=True, check=False)
    url, pid = run.stdout.split()
    until = time.monotonic() + 60
    while True:
        try:
            httpx.get(f"{url}/models")
        except httpx.TransportError:
            break
        assert time.monotonic() < until, f"process {pid} serves on"
        time.sleep(0.05)


def test_it_ends_at_a_signal() -> None:
    command = [sys.executable, "-m", model_process.__name__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert httpx.get(f"{url}/models").status_code == 200
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 0
