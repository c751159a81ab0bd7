"""Measures peak resident memory and open files of ``agentic-rag ingest FOLDER``, for folders of growing size and many small
files.

Vectors come from the scripted model server in a separate process, so that the product is measured and not an encoder. The texts
are paragraphs of the evaluation corpora in random order, so that names recur as in real folders.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentic_rag_testing.models.process import ModelProcess
from report import data, finish

CORPORA = ("podcasts", "musique", "hotpotqa")
DIMENSIONS = 384
FILE_BYTES = 50_000
SMALL_CHARACTERS = 400
MB = 1_000_000
MAX_GROWTH = 12.0
"""Maximum bytes of its own memory per additional byte of text. The vector engine uses most of them: it keeps words, filters and
ids of points in memory until they are indexed, from some 50,000 points on. The ingested text itself must not stay in memory.
"""
_COMMAND = "from agentic_rag_backend.cli.app import main; main()"
_POLL_INTERVAL_S = 0.25


def paragraphs(folder: Path) -> list[str]:
    """Return the passages of the corpora, without blank lines."""
    found = []
    for name in CORPORA:
        for line in (folder / name / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found.append(" ".join(f"{row.get('title', '')}. {row['text']}".split()))
    return found


def write_folder(folder: Path, size_mb: float, known: Sequence[str], *, seed: int = 7) -> int:
    """Write text files of about 50 kB each, ``size_mb`` in all. Return their number."""
    random_ = random.Random(seed)
    written = number = 0
    while written < size_mb * MB:
        path = folder / f"{number // 200:03}" / f"file-{number:06}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"File {number}\n\n" + "\n\n".join(_up_to(FILE_BYTES, known, random_))
        path.write_text(text, encoding="utf-8")
        written += len(text.encode())
        number += 1
    return number


def write_small(folder: Path, count: int, known: Sequence[str]) -> float:
    """Write ``count`` files of a short paragraph each. Return their size in MB."""
    short = [text for text in known if len(text) < SMALL_CHARACTERS]
    for number in range(count):
        path = folder / f"{number // 200:03}" / f"file-{number:06}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"File {number}\n\n{short[number % len(short)]}", encoding="utf-8")
    return round(sum(path.stat().st_size for path in folder.rglob("*.txt")) / MB, 2)


def _up_to(size: int, known: Sequence[str], random_: random.Random) -> Iterator[str]:
    while size > 0:
        paragraph = random_.choice(known)
        size -= len(paragraph)
        yield paragraph


def measure(size_mb: float, known: Sequence[str], server: ModelProcess, *, small_files: int = 0) -> dict[str, Any]:
    """Ingest one folder into a new data folder: of ``size_mb``, or of ``small_files``."""
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as name:
        root = Path(name)
        if small_files:
            size_mb = write_small(root / "folder", small_files, known)
        files = small_files or write_folder(root / "folder", size_mb, known)
        server.reset()
        environment = {
            **os.environ,
            "DATA_DIR": str(root / "data"),
            "EMBEDDER": "openai",
            "OPENAI_BASE_URL": server.base_url,
            "EMBEDDING_MODEL": f"hashed+dimensions-{DIMENSIONS}",
            "EMBEDDING_DIMENSIONS": str(DIMENSIONS),
            "COMMUNITY_AUTO_REBUILD": "false",
            "LOG_LEVEL": "warning",
        }
        started = time.perf_counter()
        command = [sys.executable, "-c", _COMMAND, "ingest", str(root / "folder"), "--json-lines", "--no-report-duplicates"]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, cwd=root)
        quarters_mb, most_open = _watch(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        total_s = time.perf_counter() - started
        if os.waitstatus_to_exitcode(status):
            raise SystemExit(f"the ingestion of {size_mb} MB ended with {os.waitstatus_to_exitcode(status)}")
        stored = sum(path.stat().st_blocks * 512 for path in (root / "data").rglob("*") if path.is_file())
        return {
            "megabytes": size_mb,
            "files": files,
            "chunks": server.stats().embedded_texts,
            "peak_mb": round(usage.ru_maxrss * 1024 / MB),
            "own_mb": max(quarters_mb),
            "own_mb_by_quarter": quarters_mb,
            "most_files_open": most_open,
            "stored_mb": round(stored / MB),
            "total_s": round(total_s, 1),
            "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        }


def _watch(pid: int) -> tuple[list[int], int]:
    """Return, for each quarter of a process's time, its peak private memory in MB, and its peak number of open files.

    Memory-mapped files do not count: the system evicts them when necessary.
    """
    seen, most_open = [0], 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        seen += [round(int(line.split()[1]) * 1024 / MB) for line in lines if line.startswith("RssAnon:")]
        with contextlib.suppress(FileNotFoundError):  # It has ended.
            most_open = max(most_open, sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))
        time.sleep(_POLL_INTERVAL_S)
    quarters = [max(seen[len(seen) * quarter // 4 : len(seen) * (quarter + 1) // 4] or [0]) for quarter in range(4)]
    return quarters, most_open


def growth(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return the private memory in bytes per byte of text, between the smallest and the largest folder."""
    first, last = rows[0], rows[-1]
    if last["megabytes"] == first["megabytes"]:
        return None
    return round(float(last["own_mb"] - first["own_mb"]) / float(last["megabytes"] - first["megabytes"]), 3)


def measure_all(folder: Path, sizes: Sequence[float], small_files: int) -> list[dict[str, Any]]:
    """Measure folders of ``sizes`` megabytes one after another, and first one of ``small_files`` if any."""
    known = paragraphs(folder)
    rows = []
    with ModelProcess() as server:
        if small_files:
            print("small files", measure(0, known, server, small_files=small_files), flush=True)
        for size in sorted(sizes):
            rows.append(measure(size, known, server))
            print("memory", rows[-1], flush=True)
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join([*lines, "", f"own memory for each further byte of text: {growth(rows)}"])


def failures(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the assertions that fail."""
    slope = growth(rows)
    if slope is None or slope <= MAX_GROWTH:
        return []
    return [f"each byte of text adds {slope} bytes of memory, above {MAX_GROWTH}"]


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", nargs="*", type=float, default=[5, 25], help="sizes of folders")
    parser.add_argument("--small-files", type=int, default=0, help="first, a folder of as many files of a paragraph each")
    chosen = parser.parse_args()
    folder = data()
    if folder is None:
        return 0
    rows = measure_all(folder, chosen.megabytes, chosen.small_files)
    if not rows:
        return 0
    return finish("memory", {"rows": rows, "growth": growth(rows)}, table(rows), failures(rows))


if __name__ == "__main__":
    raise SystemExit(main())
