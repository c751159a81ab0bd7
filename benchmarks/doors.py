"""Cost of the doors of other protocols and of tokens: the same cached search through each, over a socket, in turns.

    python doors.py --requests 400

A server with examples answers every question once through every door, so that its results are cached. Then each door is asked the
same questions in turns. The difference of the medians to `POST /api/v1/search` is the cost of the door.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "fixtures"))
from token_issuer import AUDIENCE, serving_issuer  # noqa: E402 - after its folder is known

OPERATOR_KEY = "operator-of-the-benchmarks-0123456789"
LIMIT = 5
QUESTIONS = (
    "How wide is the corridor that the Narrows Accord keeps open to fishing?",
    "Who opened the array of Scarrow?",
    "What was said at the hearing of 2011?",
    "When was the slipway rebuilt?",
)
_START_S = 120.0
_AGENT = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
Request = Callable[[str], tuple[str, Mapping[str, Any], Mapping[str, str]]]


def _call_tool(question: str) -> tuple[str, Mapping[str, Any], Mapping[str, str]]:
    arguments = {"query": question, "limit": LIMIT}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": arguments}}
    return "/mcp", call, _AGENT


def _ask_dify(question: str) -> tuple[str, Mapping[str, Any], Mapping[str, str]]:
    setting = {"top_k": LIMIT, "score_threshold": 0}
    return "/retrieval", {"knowledge_id": "auto", "query": question, "retrieval_setting": setting}, {}


REQUESTS: Mapping[str, Request] = {
    "/search": lambda question: ("/api/v1/search", {"query": question, "limit": LIMIT}, {}),
    "OpenAI vector store": lambda question: (
        "/openai/v1/vector_stores/vs_all/search",
        {"query": question, "max_num_results": LIMIT},
        {},
    ),
    "Dify": _ask_dify,
    "MCP": _call_tool,
}


@contextmanager
def serving(folder: Path, issuer: str) -> Iterator[str]:
    """Run a server that trusts an OpenID provider. Yield its address."""
    environment = {**os.environ, "OPERATOR_KEY": OPERATOR_KEY, "OIDC_ISSUER": issuer, "OIDC_AUDIENCE": AUDIENCE}
    program = "from agentic_rag_backend.cli.app import main; main()"
    command = [sys.executable, "-c", program, "serve", "--port", "0", "--data-dir", str(folder / "data")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + _START_S
        while not (folder / "data" / "server.json").exists():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield str(json.loads((folder / "data" / "server.json").read_text())["url"])
    finally:
        process.terminate()
        process.wait(60)


def fill(http: httpx.Client) -> None:
    """Upload the examples and wait for them."""
    files = [("file", (path.name, path.read_bytes())) for path in sorted((ROOT / "examples" / "corpus").glob("*.md"))[:30]]
    submitted = http.post("/api/v1/documents", files=files)
    submitted.raise_for_status()
    for document in submitted.json()["data"]["documents"]:
        while http.get(f"/api/v1/jobs/{document['job_id']}").json()["data"]["state"] in ("queued", "running"):
            time.sleep(0.1)


def measure(http: httpx.Client, tokens: Mapping[str, str], requests: int) -> dict[str, list[float]]:
    """Return the milliseconds of each request, by door. The doors take turns."""
    series = {name: (request, tokens["key"]) for name, request in REQUESTS.items()}
    series["/search with a token"] = (REQUESTS["/search"], tokens["token"])
    times: dict[str, list[float]] = {name: [] for name in series}
    for number in range(requests + len(QUESTIONS)):
        question = QUESTIONS[number % len(QUESTIONS)]
        for name, (request, secret) in series.items():
            path, body, headers = request(question)
            began = time.perf_counter()
            response = http.post(path, json=body, headers={"Authorization": f"Bearer {secret}", **headers})
            took_ms = (time.perf_counter() - began) * 1000
            assert response.status_code == 200, response.text
            if number >= len(QUESTIONS):
                times[name].append(took_ms)
    return times


def main() -> int:
    """Print the median of each door, and its difference to a search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=400, help="requests of each door")
    requests = parser.parse_args().requests
    with tempfile.TemporaryDirectory() as folder, serving_issuer() as issuer, serving(Path(folder), issuer.address) as url:
        key = json.loads((Path(folder) / "data" / "credentials.json").read_text())["key"]
        token = issuer.token(tenant="default")
        with httpx.Client(base_url=url, timeout=60, headers={"Authorization": f"Bearer {key}"}) as http:
            fill(http)
            times = measure(http, {"key": key, "token": token}, requests)
    base = statistics.median(times["/search"])
    print(f"{'':24}{'p50 ms':>8}{'p95 ms':>8}{'cost ms':>9}")
    for name, measured in times.items():
        median, p95 = statistics.median(measured), statistics.quantiles(measured, n=20)[-1]
        print(f"{name:24}{median:8.1f}{p95:8.1f}{median - base:9.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
