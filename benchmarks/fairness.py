"""Measures how long a small tenant's document takes while a large tenant uploads many, compared with an idle server.

Uses HTTP on a real server process. Vectors come from the scripted model server, so that the queue is measured and not an
encoder that shares two cores.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from agentic_rag_backend.evaluation.datasets import CorpusPassage, load_question_set
from agentic_rag_testing.models.process import ModelProcess
from report import data, finish

OPERATOR_KEY = "operator-of-the-benchmarks-0123456789"
BASE = "/api/v1"
MAX_RATIO = 10.0
"""Limit of the small tenant's time during the uploads ÷ alone. After all of the large tenant's documents, it would be hundreds.
"""
ENDED = ("succeeded", "partial", "failed", "cancelled")
_COMMAND = "from agentic_rag_backend.cli.app import main; main()"
_POLL_INTERVAL_S = 0.02
_START_S = 120.0
_SETTLED_S = 2.1


@contextmanager
def serving(folder: Path, model_url: str) -> Iterator[str]:
    """Run a server on ``folder`` and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DATA_DIR": str(folder / "data"),
        "PORT": str(port),
        "OPERATOR_KEY": OPERATOR_KEY,
        "EMBEDDER": "openai",
        "OPENAI_BASE_URL": model_url,
        "EMBEDDING_MODEL": "hashed+dimensions-384",
        "EMBEDDING_DIMENSIONS": "384",
        "COMMUNITY_AUTO_REBUILD": "false",
        "LOG_LEVEL": "error",
    }
    process = subprocess.Popen([sys.executable, "-c", _COMMAND, "serve"], env=environment, cwd=folder)
    address = f"http://127.0.0.1:{port}"
    try:
        _await_start(address, process)
        yield address
    finally:
        process.terminate()
        process.wait(60)


def _await_start(address: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _START_S
    while True:
        try:
            if httpx.get(f"{address}/health/ready").status_code == 200:
                return
        except httpx.TransportError:
            pass
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit("the server did not start")
        time.sleep(0.1)


class Client:
    """One tenant of the server at ``address``."""

    def __init__(self, address: str, name: str) -> None:
        operator = {"Authorization": f"Bearer {OPERATOR_KEY}"}
        tenant = _data(httpx.post(f"{address}{BASE}/tenants", json={"name": name}, headers=operator))
        key = _data(httpx.post(f"{address}{BASE}/tenants/{tenant['id']}/keys", json={}, headers=operator))["key"]
        self._http = httpx.Client(base_url=f"{address}{BASE}", headers={"Authorization": f"Bearer {key}"}, timeout=120)

    def upload(self, passage: CorpusPassage) -> str:
        """Submit a document and return its job."""
        body = {"text": passage.text, "title": passage.title, "key": passage.id, "media_type": "text/plain"}
        return str(_data(self._http.post("/documents", json=body))["job_id"])

    def unended(self) -> bool:
        """Return whether any ingestion is queued or running."""
        return any(_data(self._http.get("/jobs", params={"state": state, "limit": 1})) for state in ("queued", "running"))

    def time_to_ready(self, passage: CorpusPassage) -> float:
        """Submit a document and return the seconds until it can be searched."""
        started = time.perf_counter()
        job = self.upload(passage)
        while (state := _data(self._http.get(f"/jobs/{job}"))["state"]) not in ENDED:
            time.sleep(_POLL_INTERVAL_S)
        if state != "succeeded":
            raise SystemExit(f"a document of the small tenant ended {state}")
        return time.perf_counter() - started


def _data(response: httpx.Response) -> Any:
    response.raise_for_status()
    return response.json()["data"]


def measure(small_ones: Sequence[CorpusPassage], large_ones: Sequence[CorpusPassage]) -> dict[str, Any]:
    """Time half of ``small_ones`` alone, and the others while another tenant uploads ``large_ones``."""
    half = len(small_ones) // 2
    over = threading.Event()
    with (
        tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as name,
        ModelProcess() as model,
        serving(Path(name), model.base_url) as address,
    ):
        small, large = Client(address, "small"), Client(address, "large")
        small.time_to_ready(large_ones[0])
        alone = [_settled(small, passage) for passage in small_ones[:half]]
        uploads = threading.Thread(target=_upload, args=(large, large_ones, over))
        uploads.start()
        beside = []
        for passage in small_ones[half:]:
            time.sleep(_SETTLED_S)
            if not uploads.is_alive() and not large.unended():
                break
            beside.append(small.time_to_ready(passage))
        over.set()
        uploads.join()
    if not beside:
        raise SystemExit("the large tenant was done before the small one began; give it more documents")
    return {
        "uploads": len(large_ones),
        "runs": len(beside),
        "alone_s": round(median(alone), 3),
        "beside_s": round(median(beside), 3),
        "longest_beside_s": round(max(beside), 3),
        "ratio": round(median(beside) / median(alone), 2),
    }


def _upload(client: Client, passages: Sequence[CorpusPassage], over: threading.Event) -> None:
    for passage in passages:
        if over.is_set():
            return
        client.upload(passage)


def _settled(client: Client, passage: CorpusPassage) -> float:
    time.sleep(_SETTLED_S)
    return client.time_to_ready(passage)


def run(folder: Path, *, uploads: int, runs: int) -> dict[str, Any]:
    """Measure on the passages of two sets."""
    large_ones = load_question_set(folder / "musique").passages + load_question_set(folder / "hotpotqa").passages
    large_ones = tuple(replace(passage, id=f"{number}") for number, passage in enumerate(large_ones))
    return measure(large_ones[-2 * runs :], large_ones[:uploads])


def failures(row: dict[str, Any]) -> list[str]:
    """Return the assertions that fail."""
    return [f"a small tenant waits {row['ratio']} times as long beside a large one, above {MAX_RATIO}"] * (
        row["ratio"] > MAX_RATIO
    )


def table(row: dict[str, Any]) -> str:
    """Return the table."""
    return "\n".join(["| " + " | ".join(row) + " |", "|---" * len(row) + "|", "| " + " | ".join(map(str, row.values())) + " |"])


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uploads", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=9)
    chosen = parser.parse_args()
    folder = data()
    if folder is None:
        return 0
    row = run(folder, uploads=chosen.uploads, runs=chosen.runs)
    return finish("fairness", row, table(row), failures(row))


if __name__ == "__main__":
    raise SystemExit(main())
