"""Measures a server with one large tenant: its memory by kind of search, of one very large result, and the time of answers by the
size of the prompt.

Every kind of search runs on a server that was just started, because a tenant's graph, themes and tree are read at their first
use. Vectors and replies come from the scripted model server in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from agentic_rag_testing.models.process import ModelProcess
from memory import paragraphs, write_folder
from own_servers import Server, data_of, serving, wait_for
from report import data, finish

VECTORS = ("dense",)
EVERYTHING = ("dense", "hybrid", "graph", "dual_level", "community", "raptor", "agentic")
QUESTIONS = 60
MAX_RATIO = 1.2
"""Limit of the memory of a server with graph, communities and tree ÷ that of a server that searches vectors only."""
PROMPT_TOKENS = (1_000, 4_000, 16_000, 64_000)


def fill(folder: Path, model_url: str, texts: Path) -> tuple[str, str, int]:
    """Upload the files, build communities and tree, and return the tenant's key, a document and the number of chunks."""
    with serving(folder, model_url) as server:
        key = server.create_tenant("large")
        http = server.connect(key)
        rows = []
        for path in sorted(texts.rglob("*.txt")):
            body = {"text": path.read_text(encoding="utf-8"), "key": path.name, "title": path.name, "media_type": "text/plain"}
            rows.append(data_of(http.post("/documents", json=body)))
        for row in rows:
            wait_for(http, row["job_id"])
        for name in ("communities", "raptor"):
            wait_for(http, data_of(http.post(f"/admin/{name}/rebuild", json={}))["job_id"])
        chunks = int(data_of(http.get("/status"))["counts"]["chunks"])
        return key, str(rows[0]["document_id"]), chunks


def measure_searches(server: Server, strategies: Sequence[str], questions: Sequence[str]) -> dict[str, Any]:
    """Ask each question with each strategy, and return the memory before and after."""
    before = server.memory_mb()
    for strategy in strategies:
        for question in questions:
            data_of(server.http.post("/search", json={"query": question, "strategy": strategy, "limit": 10, "cache": False}))
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
                result = data_of(server.http.post("/search/dual-level", json=body))
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
