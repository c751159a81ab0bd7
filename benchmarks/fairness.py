"""Measures how long a small tenant's document takes while a large tenant uploads many, compared with an idle server.

Uses HTTP on a real server process. Vectors come from the scripted model server, so that the queue is measured and not an
encoder that shares two cores.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from agentic_rag_backend.evaluation.datasets import CorpusPassage, load_question_set
from agentic_rag_testing.models.process import ModelProcess
from own_servers import Server, data_of, serving, wait_for
from report import data, finish

MAX_RATIO = 10.0
"""Limit of the small tenant's time during the uploads ÷ alone. After all of the large tenant's documents, it would be hundreds.
"""
_POLL_INTERVAL_S = 0.02
_SETTLED_S = 2.1


class Client:
    """A new tenant of a server."""

    def __init__(self, server: Server, name: str) -> None:
        self._http = server.connect(server.create_tenant(name))

    def upload(self, passage: CorpusPassage) -> str:
        """Submit a document and return its job."""
        body = {"text": passage.text, "title": passage.title, "key": passage.id, "media_type": "text/plain"}
        return str(data_of(self._http.post("/documents", json=body))["job_id"])

    def unended(self) -> bool:
        """Return whether any ingestion is queued or running."""
        return any(data_of(self._http.get("/jobs", params={"state": state, "limit": 1})) for state in ("queued", "running"))

    def time_to_ready(self, passage: CorpusPassage) -> float:
        """Submit a document and return the seconds until it can be searched."""
        started = time.perf_counter()
        job = self.upload(passage)
        wait_for(self._http, job, interval_s=_POLL_INTERVAL_S)
        return time.perf_counter() - started


def measure(small_ones: Sequence[CorpusPassage], large_ones: Sequence[CorpusPassage]) -> dict[str, Any]:
    """Time half of ``small_ones`` alone, and the others while another tenant uploads ``large_ones``."""
    half = len(small_ones) // 2
    over = threading.Event()
    with (
        tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as name,
        ModelProcess() as model,
        serving(Path(name), model.base_url) as server,
    ):
        small, large = Client(server, "small"), Client(server, "large")
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
