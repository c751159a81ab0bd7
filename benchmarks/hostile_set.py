"""Sends documents that are made to harm through the isolated parser: what becomes of each, its time and its memory.

The files are those of ``tests/fixtures/hostile_documents.py`` in full size. Each is checked, read and chunked with the default
limits, as an upload is. Nothing may connect to the address that the files name. Writes ``results/hostile_set.json`` and
``.md``. Memory is the highest of a worker, of which the program itself is about 60 MiB.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentic_rag_backend.documents.parsing.base import CHECKED_BYTES, SNIFFED_BYTES
from agentic_rag_backend.documents.recognition.ocr import Ocr
from agentic_rag_backend.domain.document import DocumentVersion, ProcessingOptions
from agentic_rag_backend.domain.media_types import media_type_of
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation, WorkerFault
from agentic_rag_backend.ingestion.prepare.reading import IsolatedReader
from report import RESULTS, ROOT, finish, quiet

sys.path.insert(0, str(ROOT / "tests" / "fixtures"))

from hostile_documents import HOSTILE, HostileDocument, Size

TENANT = TenantId("t_" + "1" * 32)
MIB = 1024 * 1024
RESULT = RESULTS / "hostile_set.json"
_SHOWN_CHARACTERS = 170


class Peak:
    """The highest resident memory of a process's children, polled in a thread."""

    def __init__(self, parent: int) -> None:
        self._parent, self._ends = Path(f"/proc/{parent}/task/{parent}/children"), threading.Event()
        self.mb = 0.0

    def _poll(self) -> None:
        while not self._ends.wait(0.002):
            with contextlib.suppress(OSError):
                for pid in self._parent.read_text().split():
                    status = Path(f"/proc/{pid}/status").read_text()
                    if found := re.search(r"VmHWM:\s+(\d+)", status):
                        self.mb = max(self.mb, int(found[1]) / 1024)

    @contextlib.contextmanager
    def polled(self) -> Iterator[None]:
        """Poll during the block."""
        thread = threading.Thread(target=self._poll)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()


async def outcome(isolation: Isolation, document: HostileDocument, content: bytes) -> tuple[str, str]:
    """Return what became of a document, for people, and the text to compare with the expected one."""
    try:
        media_type = media_type_of(None, document.file_name, content[:SNIFFED_BYTES])
        head, whole = content[:CHECKED_BYTES], len(content) <= CHECKED_BYTES
        await isolation.call_worker("check", head, media_type, None, document.file_name, whole, size_bytes=len(head))
        version = DocumentVersion(
            document_id="document-1",
            version=1,
            title="",
            content_hash="",
            media_type=media_type,
            blob_key="",
            options=ProcessingOptions(),
            metadata={},
        )
        parsed, chunks = await IsolatedReader(isolation, Ocr()).read_version(TENANT, version, content)
    except AgenticRagError as error:
        return f"{error.code}: {error.message}", error.message
    except WorkerFault as fault:
        return f"FAULT: {str(fault).strip().splitlines()[-1]}", ""
    return f"read: {len(parsed.text):,} characters, {len(chunks):,} chunks", parsed.text


async def measured(documents: list[HostileDocument], address: str) -> dict[str, Any]:
    """Return the figures of each document. Each has a server of workers of its own, so that no memory is left over."""
    results: dict[str, Any] = {}
    for document in documents:
        content = document.content(size := Size(full=True, address=address))
        isolation = Isolation()
        await isolation.start()
        assert isolation.server_pid is not None
        peak = Peak(isolation.server_pid)
        try:
            with peak.polled():
                begin = time.perf_counter()
                shown, compared = await outcome(isolation, document, content)
                seconds = time.perf_counter() - begin
        finally:
            await isolation.close()
        results[document.name] = {
            "bytes": len(content),
            "outcome": shown,
            "expected": bool(re.search(document.pattern(size), compared)),
            "seconds": round(seconds, 2),
            "peak_mb": round(peak.mb),
        }
        print(document.name, results[document.name], file=sys.stderr, flush=True)
    return results


async def measured_with_listener(documents: list[HostileDocument]) -> tuple[dict[str, Any], int]:
    """Measure with a server at the address that the files name. Return the figures and the number of connections."""
    connections = 0

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()[:2]
        return await measured(documents, f"http://{host}:{port}"), connections


def size_of(count: int) -> str:
    """Return a number of bytes for people."""
    return f"{count / MIB:.1f} MiB" if count >= MIB else f"{count / 1024:.1f} KiB"


def table(results: Mapping[str, Any]) -> str:
    """Return the table."""
    shown = ["| document | size | outcome | s | MiB |", "|---|---|---|---|---|"]
    for name, each in results["documents"].items():
        text = each["outcome"].replace("|", "\\|")
        text = text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
        shown.append(f"| {name} | {size_of(each['bytes'])} | {text} | {each['seconds']} | {each['peak_mb']} |")
    shown.append(f"\nConnections to the address that the files name: {results['connections']}. Load {results['load']}.")
    return "\n".join(shown)


def main() -> int:
    """Measure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only",
        nargs="*",
        default=[""],
        metavar="TEXT",
        help="only documents whose name contains one of these; keep other results",
    )
    given = parser.parse_args()
    quiet()
    chosen = [each for each in HOSTILE if any(text in each.name for text in given.only)]
    load = round(os.getloadavg()[0], 1)
    measured_now, connections = asyncio.run(measured_with_listener(chosen))
    kept = json.loads(RESULT.read_text(encoding="utf-8"))["documents"] if RESULT.exists() else {}
    found = {**kept, **measured_now}
    documents = {each.name: found[each.name] for each in HOSTILE if each.name in found}
    results = {"documents": documents, "connections": connections, "load": load}
    missed = [f"{name}: {each['outcome']}" for name, each in documents.items() if not each["expected"]]
    missed += [f"{connections} connections were made"] if connections else []
    return finish("hostile_set", results, table(results), missed)


if __name__ == "__main__":
    sys.exit(main())
