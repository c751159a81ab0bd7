"""Documents are read in child processes. A document that exceeds limits or crashes a process affects nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentic_rag_backend.documents.chunking.sentence_units import MAX_UNITS
from agentic_rag_backend.documents.parsing.base import CHECKED_BYTES
from agentic_rag_backend.domain.document import Chunk, ProcessingOptions
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.media_types import EML, FORMATS, PDF, TEXT
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument
from agentic_rag_backend.ingestion.isolation import calls, fork_client, fork_server
from agentic_rag_backend.ingestion.isolation.call_limits import CallLimits
from agentic_rag_backend.ingestion.isolation.calls import CHECK, ReadingOptions
from agentic_rag_backend.ingestion.isolation.worker_pool import KEPT_WORKERS, Isolation, WorkerFault
from agentic_rag_backend.ingestion.prepare.reading import IsolatedExtractor
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from agentic_rag_backend.priority import LONG_RUNNING

TENANT = TenantId("t_" + "1" * 32)
OWNER = (str(TENANT), "document-1", 1)
SMALL = b"# Ada\n\nAda Lovelace wrote to Charles Babbage in London.\n"
LONG = b"A sentence about Ada Lovelace in London. " * 120_000
"""Five megabytes: reading them takes seconds, and tens of megabytes of memory."""

PATIENT = CallLimits(cpu_s=60.0, timeout_s=500.0)
"""Limits for tests of other things. Processes that read documents have a low priority, so a busy machine lets them wait."""

Opened = Callable[..., Awaitable[Isolation]]


@pytest.fixture(autouse=True)
def _own_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start servers of workers as the product does. Other tests fork them (`tests/fixtures/programs.py`)."""
    monkeypatch.setattr(fork_client, "subprocess", subprocess)


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    async with AsyncExitStack() as stack:

        async def open_with(limits: CallLimits, **options: Any) -> Isolation:
            isolation = Isolation(limits, **options)
            stack.push_async_callback(isolation.close)
            await isolation.start()
            return isolation

        yield open_with


async def title(isolation: Isolation, content: bytes = SMALL) -> object:
    found, _ = await isolation.call_worker(
        "check", content, "text/markdown", None, None, True, size_bytes=len(content), tenant=TENANT
    )
    return found


async def read(isolation: Isolation, content: bytes) -> list[Chunk]:
    _, chunks = await isolation.call_worker(
        "read", content, "text/markdown", OWNER, ReadingOptions(ProcessingOptions()), size_bytes=1
    )
    found: list[Chunk] = chunks
    return found


async def test_a_child_reads_what_this_process_would(opened: Opened) -> None:
    isolation = await opened(PATIENT)
    resources = calls.WorkerResources(WordPieceTokenizer())
    parsed, chunks = await isolation.call_worker(
        "read", SMALL, "text/markdown", OWNER, ReadingOptions(ProcessingOptions()), size_bytes=len(SMALL)
    )
    assert (parsed, chunks) == calls.read_file(resources, SMALL, "text/markdown", OWNER, ReadingOptions(ProcessingOptions()))
    parsed_small, code = parsed, b"import a\ndef load(): a.read()\n"
    parsed, _ = await isolation.call_worker(
        "read", code, "text/x-python", OWNER, ReadingOptions(ProcessingOptions()), size_bytes=1
    )
    assert parsed == calls.read_file(resources, code, "text/x-python", OWNER, ReadingOptions(ProcessingOptions()))[0]
    assert len(parsed.code) == 3
    assert await title(isolation) == "Ada"
    extractor = IsolatedExtractor(RuleExtractor(), isolation)
    extractions = RuleExtractor().extract_document("Ada", chunks)
    assert await extractor.extract("Ada", chunks) == extractions
    together = await isolation.call_worker(
        "read_with_rules", SMALL, "text/markdown", OWNER, "Ada", ReadingOptions(ProcessingOptions()), size_bytes=len(SMALL)
    )
    assert together == (parsed_small, chunks, extractions)
    with pytest.raises(UnreadableDocument, match="no text"):
        await title(isolation, b" ")
    with pytest.raises(WorkerFault, match="KeyError"):
        await isolation.call_worker("no such call", size_bytes=1)
    assert await title(isolation) == "Ada"


def test_rules_that_fail_do_not_end_the_reading() -> None:
    class Broken(RuleExtractor):
        error: Exception = ValueError("a fault in a rule")

        def extract_document(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
            raise self.error

    resources = calls.WorkerResources(WordPieceTokenizer(), Broken())
    arguments = (SMALL, "text/markdown", OWNER)
    options = ReadingOptions(ProcessingOptions())
    assert calls.read_with_rules(resources, *arguments, "Ada", options) == (
        *calls.read_file(resources, *arguments, options),
        None,
    )
    Broken.error = MemoryError()
    with pytest.raises(MemoryError):
        calls.read_with_rules(resources, *arguments, "Ada", options)


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        (CallLimits(cpu_s=0.2, timeout_s=500, memory_mb=1024), "0.2 seconds of processor time (PARSE_CPU_S)"),
        (CallLimits(cpu_s=60, timeout_s=0.3, memory_mb=1024), "0.3 seconds (PARSE_TIMEOUT_S)"),
        (CallLimits(cpu_s=60, timeout_s=500, memory_mb=16), "16 MiB of memory (PARSE_MEMORY_MB)"),
    ],
    ids=["processor time", "time", "memory"],
)
async def test_a_limit_ends_the_call_and_names_its_setting(opened: Opened, limits: CallLimits, named: str) -> None:
    isolation = await opened(limits)
    for _ in range(2):
        isolation.limits = limits
        with pytest.raises(ResourceLimit) as ended:
            await read(isolation, LONG)
        assert named in ended.value.message
        assert ended.value.code == "resource_limit"
        # On a busy machine, a small document may also take longer than the limit.
        isolation.limits = replace(limits, cpu_s=PATIENT.cpu_s, timeout_s=PATIENT.timeout_s)
        assert await title(isolation) == "Ada"


async def test_the_check_at_upload_has_a_part_of_the_processor_time(opened: Opened) -> None:
    head = b"Subject: Ada\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    message = head + b"--b\r\n\r\nx\r\n" * 80_000  # it takes seconds to divide
    assert len(message) < CHECKED_BYTES
    isolation = await opened(replace(PATIENT, cpu_s=0.8))
    with pytest.raises(ResourceLimit, match=r"checking the document took more than 0.2 seconds .*PARSE_CPU_S.* 25%"):
        await isolation.call_worker(CHECK, message, EML, None, None, True, size_bytes=len(message))


async def test_a_child_returns_no_more_sentences_than_are_used(opened: Opened) -> None:
    isolation = await opened(PATIENT)
    text = b"Ada sails. " * (2 * MAX_UNITS)
    _, units = await isolation.call_worker("units", text, TEXT, ReadingOptions(ProcessingOptions()), size_bytes=len(text))
    assert len(units) == MAX_UNITS + 1


async def test_the_event_loop_runs_while_a_child_works(opened: Opened) -> None:
    isolation = await opened(PATIENT)
    reading = asyncio.create_task(read(isolation, LONG))
    answered = 0
    while not reading.done():
        assert await title(isolation) == "Ada"
        answered += 1
    assert len(await reading) > 1000
    assert answered > 10


@pytest.mark.parametrize("by", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
async def test_a_child_that_dies_ends_its_document_alone(opened: Opened, by: signal.Signals) -> None:
    isolation = await opened(PATIENT)
    reading = asyncio.create_task(read(isolation, LONG))
    others = [asyncio.create_task(title(isolation)) for _ in range(4)]
    os.kill(await _busy(isolation), by)
    with pytest.raises(ResourceLimit, match=f"ended by {by.name}; its limits are 1024 MiB"):
        await reading
    assert await asyncio.gather(*others) == ["Ada"] * 4


async def test_the_server_of_workers_heals(opened: Opened) -> None:
    isolation = await opened(PATIENT)
    assert await title(isolation) == "Ada"
    reading = asyncio.create_task(read(isolation, LONG))
    await _busy(isolation)
    os.kill(_server(isolation), signal.SIGKILL)
    assert await title(isolation) == "Ada"
    assert len(await reading) > 1000  # not the document's fault


async def test_a_kept_child_that_died_is_no_documents_fault(opened: Opened) -> None:
    isolation = await opened(PATIENT)
    assert await title(isolation) == "Ada"
    for pid in _children(_server(isolation)):
        os.kill(pid, signal.SIGKILL)
    assert await title(isolation) == "Ada"


async def test_a_call_nobody_waits_for_ends(opened: Opened) -> None:
    isolation = await opened(PATIENT)
    reading = asyncio.create_task(read(isolation, LONG))
    pid = await _busy(isolation)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    while pid in _children(_server(isolation)):
        await asyncio.sleep(0.01)


async def test_libraries_are_imported_once_with_the_first_document_of_their_media_type(opened: Opened) -> None:
    isolation = await opened(PATIENT)
    assert await title(isolation) == "Ada"
    assert "pdfium" not in _mapped(_server(isolation))
    for _ in range(2):
        await _refused(isolation, PDF)
    assert "pdfium" in _mapped(_server(isolation))
    workers = _children(_server(isolation))
    assert len(workers) == 2  # the first worker has no PDF library and is kept for others; the second read both PDF files
    assert ["pdfium" in _mapped(pid) for pid in sorted(workers)] == [False, True]


async def test_imports_start_no_threads_and_a_failed_import_ends_nothing(opened: Opened) -> None:
    isolation = await opened(PATIENT)
    assert isolation._server is not None
    isolation._server.send_command(fork_server.IMPORT, len(FORMATS))  # there is no such number
    server = _server(isolation)
    for media_type in FORMATS:
        await _refused(isolation, media_type)
    assert len([*Path(f"/proc/{server}/task").iterdir()]) == 1
    assert _server(isolation) == server
    while len(_children(server)) > KEPT_WORKERS + 1:  # a retired worker ends in its own time
        await asyncio.sleep(0.01)


async def _refused(isolation: Isolation, media_type: str) -> None:
    with pytest.raises(UnreadableDocument):
        await isolation.call_worker("check", b"", media_type, None, None, True, size_bytes=0, tenant=TENANT)


def _mapped(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


async def test_children_hold_no_secret_and_no_socket_of_the_server(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    held = os.open(__file__, os.O_RDONLY)
    try:
        os.set_inheritable(held, True)
        isolation = await opened(PATIENT)
        assert await title(isolation) == "Ada"
        server = _server(isolation)
        for pid in (server, *_children(server)):
            if Path("/proc").exists():
                assert b"sk-secret" not in Path(f"/proc/{pid}/environ").read_bytes()
                links = {str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir()}
                assert not [link for link in links if link.endswith(".py")]
        for pid in _children(server):
            if Path("/proc").exists():
                assert len([*Path(f"/proc/{pid}/fd").iterdir()]) == 4  # three of /dev/null, and its own socket
                assert os.getpgid(pid) == pid
    finally:
        os.close(held)


async def test_children_go_after_what_serves(opened: Opened) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    isolation = await opened(PATIENT, niceness=7)
    reading = asyncio.create_task(read(isolation, LONG))
    pid = await _busy(isolation)
    # Linux may compare niceness within one session only.
    assert os.getsid(pid) == os.getsid(_server(isolation)) == os.getsid(0)
    assert os.getpriority(os.PRIO_PROCESS, _server(isolation)) == max(7, own)
    assert os.getpriority(os.PRIO_PROCESS, pid) >= max(7, own)
    assert os.getpriority(os.PRIO_PROCESS, 0) == own
    while os.getpriority(os.PRIO_PROCESS, pid) < LONG_RUNNING:  # as soon as the call counts as long
        await asyncio.sleep(0.01)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


_ON_A_TERMINAL = """
import asyncio, fcntl, os, termios
from pathlib import Path
from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation

def terminal_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[4])

async def main():
    isolation = Isolation()
    await isolation.call_worker("check", b"# Ada", "text/markdown", None, None, True, size_bytes=5)
    server = isolation.server_pid
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    print(terminal_of("self") != 0, *(terminal_of(pid) for pid in (server, *children)), flush=True)
    await isolation.close()

fcntl.ioctl(0, termios.TIOCSCTTY, 0)
asyncio.run(main())
"""


async def test_children_have_no_terminal() -> None:
    master, terminal = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _ON_A_TERMINAL, stdin=terminal, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        said, _ = await process.communicate()
        assert said.split() == [b"True", b"0", b"0"]
    finally:
        os.close(master)
        os.close(terminal)


async def test_nothing_is_left_when_the_process_ends(opened: Opened) -> None:
    isolation = await opened(PATIENT)
    reading = asyncio.create_task(read(isolation, LONG))
    pid, server = await _busy(isolation), _server(isolation)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await isolation.close()
    for each in (pid, server):
        while _exists(each):
            await asyncio.sleep(0.01)


async def test_nothing_is_left_when_the_process_is_killed() -> None:
    program = """
import asyncio
from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation

async def main():
    isolation = Isolation()
    await isolation.call_worker("check", b"# Ada", "text/markdown", None, None, True, size_bytes=5)
    print(isolation.server_pid, flush=True)
    await isolation.call_worker("check", b"- [a](b)" * 20_000_000, "text/markdown", None, None, True, size_bytes=1)

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    server = int(await process.stdout.readline())
    workers = _children(server)
    assert workers
    process.kill()
    await process.wait()
    for each in (server, *workers):
        while _exists(each):
            await asyncio.sleep(0.01)


def _server(isolation: Isolation) -> int:
    assert isolation.server_pid is not None
    return isolation.server_pid


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def _busy(isolation: Isolation) -> int:
    """Return the worker that has used CPU time."""
    while True:
        for pid in _children(_server(isolation)):
            used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if int(used[11]) > 15:  # in hundredths of a second of CPU time
                return pid
        await asyncio.sleep(0.01)


def _exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
