"""Measures what the parsing of a small file costs in a child process, by format, compared with parsing in the serving process.

Each format has one file of two paragraphs. *first*: the server of workers imports the libraries of the format. *new*: a worker is
forked for the file. *kept*: a worker takes the file that has read others before. All are medians but *first*, which happens once.
Writes ``results/isolated_parsing.json`` and ``.md``.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from agentic_rag_backend.domain.document import ProcessingOptions
from agentic_rag_backend.domain.media_types import BY_SUFFIX
from agentic_rag_backend.ingestion.isolation import calls, worker_pool
from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from formats import WRITERS
from report import finish, quiet

MAX_OVER_MS = 10.0
"""Time in a kept worker above the time in this process. Checked on an idle machine only, so it is reported and fails nothing."""
ROUNDS = 21
TEXT = "# Notes\n\nPetra Novak leads the plant in Brno since 2019.\n\nThe plant makes turbines for ships."
OWNER = ("t_" + "1" * 32, "document-1", 1)


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process, in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def costs(isolation: Isolation, suffix: str, content: bytes) -> dict[str, float]:
    """Return the milliseconds of one format, and the memory of the server of workers after its first file."""
    media_type, options = BY_SUFFIX[suffix], calls.ReadingOptions(ProcessingOptions())
    resources = calls.WorkerResources(WordPieceTokenizer())

    def here() -> float:
        begin = time.perf_counter()
        calls.read_file(resources, content, media_type, OWNER, options)
        return (time.perf_counter() - begin) * 1000

    async def isolated() -> float:
        begin = time.perf_counter()
        await isolation.call_worker("read", content, media_type, OWNER, options, size_bytes=len(content))
        return (time.perf_counter() - begin) * 1000

    here()
    kept_calls, worker_pool.CALLS_PER_WORKER = worker_pool.CALLS_PER_WORKER, 0  # no worker is kept
    try:
        first = await isolated()
        assert isolation.server_pid is not None
        found = {"first": first, "server_mb": resident_mb(isolation.server_pid)}
        found["new"] = median([await isolated() for _ in range(ROUNDS)])
    finally:
        worker_pool.CALLS_PER_WORKER = kept_calls
    await isolated()
    found["kept"] = median([await isolated() for _ in range(ROUNDS)])
    found["here"] = median([here() for _ in range(ROUNDS)])
    return {name: round(value, 1) for name, value in found.items()}


def table(results: Mapping[str, Any]) -> str:
    """Return the table."""
    shown = [
        "| format | in process, ms | kept worker | new worker | first file | server of workers, MiB |",
        "|---|---|---|---|---|---|",
    ]
    for suffix, cost in results["formats"].items():
        cells = (cost["here"], cost["kept"], cost["new"], cost["first"], cost["server_mb"])
        shown.append(f"| {suffix} | {' | '.join(map(str, cells))} |")
    over = max(cost["kept"] - cost["here"] for cost in results["formats"].values())
    shown.append(f"\nA kept worker takes at most {over:.1f} ms more than this process (aim {MAX_OVER_MS:g}).")
    shown.append(f"The server of workers: {results['idle_mb']} MiB before the first file. Load {results['load']}.")
    return "\n".join(shown)


async def measured() -> dict[str, Any]:
    """Measure every format on one server of workers."""
    isolation = Isolation()
    await isolation.start()
    try:
        assert isolation.server_pid is not None
        results: dict[str, Any] = {"idle_mb": round(resident_mb(isolation.server_pid), 1), "load": round(os.getloadavg()[0], 1)}
        results["formats"] = {suffix: await costs(isolation, suffix, write(TEXT)) for suffix, write in WRITERS.items()}
    finally:
        await isolation.close()
    return results


def main() -> int:
    """Measure, and return the exit code."""
    quiet()
    results = asyncio.run(measured())
    return finish("isolated_parsing", results, table(results), [])


if __name__ == "__main__":
    sys.exit(main())
