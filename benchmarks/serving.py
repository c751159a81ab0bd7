"""Measures a server with one large tenant: its memory by kind of search, of one very large result, and the time of answers by the
size of the prompt.

Every kind of search runs on a server that was just started, because a tenant's graph, themes and tree are read at their first
use. Vectors and replies come from the scripted model server in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from agentic_rag_testing.models.process import ModelProcess
from memory import MB, paragraphs, write_folder
from report import data, finish

OPERATOR_KEY = "operator-of-the-benchmarks-0123456789"
BASE = "/api/v1"
VECTORS = ("dense",)
EVERYTHING = ("dense", "hybrid", "graph", "dual_level", "community", "raptor", "agentic")
QUESTIONS = 60
MAX_RATIO = 1.2
"""Limit of the memory of a server with graph, communities and tree ÷ that of a server that searches vectors only."""
PROMPT_TOKENS = (1_000, 4_000, 16_000, 64_000)
ENDED = ("succeeded", "partial", "failed", "cancelled")
_COMMAND = "from agentic_rag_backend.cli.app import main; main()"
_START_S, _JOB_S, _POLL_INTERVAL_S = 120.0, 7200.0, 0.5


class Server:
    """A server process on a data folder. ``http`` sends requests of its one tenant."""

    def __init__(self, process: subprocess.Popen[bytes], address: str, key: str | None) -> None:
        self.process = process
        self.http = httpx.Client(base_url=address + BASE, timeout=600, headers={"Authorization": f"Bearer {key}"})

    def create_tenant(self) -> str:
        """Create the tenant, and return its key."""
        operator = {"Authorization": f"Bearer {OPERATOR_KEY}"}
        tenant = _data(self.http.post("/tenants", json={"name": "large"}, headers=operator))
        key = str(_data(self.http.post(f"/tenants/{tenant['id']}/keys", json={}, headers=operator))["key"])
        self.http.headers["Authorization"] = f"Bearer {key}"
        return key

    def wait_for(self, job: str) -> None:
        """Wait until a job has ended, and end the benchmark if it failed."""
        until = time.monotonic() + _JOB_S
        while (row := _data(self.http.get(f"/jobs/{job}")))["state"] not in ENDED:
            if time.monotonic() > until:
                raise SystemExit(f"the job {job} did not end")
            time.sleep(_POLL_INTERVAL_S)
        if row["state"] != "succeeded":
            raise SystemExit(f"the job {job} ended {row['state']}: {row['error']}")

    def memory_mb(self) -> dict[str, int]:
        """Return the private and the resident memory, and the largest resident memory since the start."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        kib = {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines) if value.endswith(" kB")}
        names = {"own": "RssAnon", "resident": "VmRSS", "peak": "VmHWM"}
        return {name: round(kib[field] * 1024 / MB) for name, field in names.items()}


@contextmanager
def serving(folder: Path, model_url: str, key: str | None, **settings: str) -> Iterator[Server]:
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


def _data(response: httpx.Response) -> Any:
    if response.is_error:
        raise SystemExit(f"{response.request.url}: {response.status_code} {response.text[:500]}")
    return response.json()["data"]


def fill(folder: Path, model_url: str, texts: Path) -> tuple[str, str, int]:
    """Upload the files, build communities and tree, and return the tenant's key, a document and the number of chunks."""
    with serving(folder, model_url, None) as server:
        key = server.create_tenant()
        rows = []
        for path in sorted(texts.rglob("*.txt")):
            body = {"text": path.read_text(encoding="utf-8"), "key": path.name, "title": path.name, "media_type": "text/plain"}
            rows.append(_data(server.http.post("/documents", json=body)))
        for row in rows:
            server.wait_for(row["job_id"])
        for name in ("communities", "raptor"):
            server.wait_for(_data(server.http.post(f"/admin/{name}/rebuild", json={}))["job_id"])
        chunks = int(_data(server.http.get("/status"))["counts"]["chunks"])
        return key, str(rows[0]["document_id"]), chunks


def measure_searches(server: Server, strategies: Sequence[str], questions: Sequence[str]) -> dict[str, Any]:
    """Ask each question with each strategy, and return the memory before and after."""
    before = server.memory_mb()
    for strategy in strategies:
        for question in questions:
            _data(server.http.post("/search", json={"query": question, "strategy": strategy, "limit": 10, "cache": False}))
    return {"idle": before, "after": server.memory_mb()}


def measure_large(server: Server, document: str, question: str) -> dict[str, dict[str, int]]:
    """Request the largest results there are, and return the size of each with the growth of the peak of memory."""
    rows: dict[str, dict[str, int]] = {}
    requests = {
        "search, 100 results": ("POST", "/search", {"query": question, "strategy": "dense", "limit": 100}),
        "search in both levels, 100 results": ("POST", "/search", {"query": question, "strategy": "dual_level", "limit": 100}),
        "chunks of a document, a page of 100": ("GET", f"/documents/{document}/chunks?limit=100", None),
        "export of the graph": ("GET", "/graph/export?format=json", None),
    }
    for name, (method, path, body) in requests.items():
        before, size = server.memory_mb(), 0
        with server.http.stream(method, path, json=body) as response:
            size = sum(len(piece) for piece in response.iter_bytes())
            if response.is_error:
                raise SystemExit(f"{path}: {response.status_code}")
        after = server.memory_mb()
        rows[name] = {"kilobytes": round(size / 1000), "peak_growth_mb": after["peak"] - before["peak"], "peak_mb": after["peak"]}
    return rows


def measure_synthesis(folder: Path, model: ModelProcess, key: str, questions: Sequence[str]) -> list[dict[str, Any]]:
    """Answer the questions from both levels, with prompts of growing size, by a model that replies at once."""
    rows = []
    for tokens in PROMPT_TOKENS:
        settings = {"LLM": "openai", "LLM_MODEL": "cite", "ANSWER_CONTEXT_TOKENS": str(tokens), "LLM_CONTEXT_TOKENS": "200000"}
        with serving(folder, model.base_url, key, **settings) as server:
            times, sizes = [], []
            for question in questions:
                body = {"query": question, "low_limit": 100, "synthesize": True}
                model.reset()
                result = _data(server.http.post("/search/dual-level", json=body))
                if prompt_tokens := model.stats().total.prompt_tokens:
                    times.append(result["processing_time_ms"]["synthesis"])
                    sizes.append(prompt_tokens)
            memory = server.memory_mb()
        rows.append(
            {
                "context_tokens": tokens,
                "answers": len(times),
                "prompt_tokens": round(median(sizes)) if sizes else 0,
                "synthesis_ms": round(median(times), 1) if times else None,
                "peak_mb": memory["peak"],
            }
        )
        print("synthesis", rows[-1], flush=True)
    return rows


def make_questions(texts: Sequence[str]) -> list[str]:
    """Return questions with the first words of passages."""
    chosen = random.Random(11).sample(list(texts), QUESTIONS)
    return [f"What is said about {' '.join(text.split()[:6])}?" for text in chosen]


def measure(corpora: Path, megabytes: float) -> dict[str, Any]:
    """Fill a data folder and measure servers on it."""
    known = paragraphs(corpora)
    questions = make_questions(known)
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as name, ModelProcess() as model:
        folder = Path(name)
        write_folder(folder / "texts", megabytes, known)
        started = time.perf_counter()
        key, document, chunks = fill(folder, model.base_url, folder / "texts")
        result: dict[str, Any] = {"chunks": chunks, "filled_s": round(time.perf_counter() - started)}
        print(result, flush=True)
        for label, strategies in (("vectors", VECTORS), ("everything", EVERYTHING)):
            with serving(folder, model.base_url, key) as server:
                result[label] = measure_searches(server, strategies, questions)
                if label == "everything":
                    result["large"] = measure_large(server, document, questions[0])
            print(label, result[label], flush=True)
        result["synthesis"] = measure_synthesis(folder, model, key, questions[:20])
    return result


def own_ratio(result: Mapping[str, Any]) -> float:
    """Return the private memory of the server that searched everything ÷ that of the server that searched vectors."""
    return round(float(result["everything"]["after"]["own"] / result["vectors"]["after"]["own"]), 2)


def table(result: Mapping[str, Any]) -> str:
    """Return the tables."""
    lines = ["| server | own memory | resident |", "|---|---|---|"]
    lines += [
        f"| {name}, just started | {row['own']} MB | {row['resident']} MB |" for name, row in [("any", result["vectors"]["idle"])]
    ]
    for name in ("vectors", "everything"):
        row = result[name]["after"]
        lines.append(f"| after searches: {name} | {row['own']} MB | {row['resident']} MB |")
    lines += [
        f"| ratio of own memory | {own_ratio(result)} | |",
        "",
        "| large result | size | growth of the peak |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {row['kilobytes']} kB | {row['peak_growth_mb']} MB |" for name, row in result["large"].items()]
    lines += ["", "| context | prompt | synthesis | peak |", "|---|---|---|---|"]
    for row in result["synthesis"]:
        lines.append(
            f"| {row['context_tokens']} | {row['prompt_tokens']} tokens | {row['synthesis_ms']} ms | {row['peak_mb']} MB |"
        )
    return "\n".join([f"{result['chunks']} chunks", "", *lines])


def failures(result: Mapping[str, Any]) -> list[str]:
    """Return the assertions that fail."""
    ratio = own_ratio(result)
    return [f"graph, communities and tree need {ratio} times the memory, above {MAX_RATIO}"] if ratio > MAX_RATIO else []


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=14.5, help="size of the texts; 14.5 have about 20,000 chunks")
    chosen = parser.parse_args()
    corpora = data()
    if corpora is None:
        return 0
    result = measure(corpora, chosen.megabytes)
    print(json.dumps(result, indent=1))
    return finish("serving", result, table(result), failures(result))


if __name__ == "__main__":
    raise SystemExit(main())
