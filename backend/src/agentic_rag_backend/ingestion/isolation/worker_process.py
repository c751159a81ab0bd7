"""A worker: a forked process that runs one call at a time, each within its limits."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.isolation.call_limits import CallLimits
from agentic_rag_backend.ingestion.isolation.calls import CALLS, WorkerResources
from agentic_rag_backend.ingestion.isolation.message_frames import HEADER, Reply, pack_value

OPEN_FILES = 64
_MIB = 1024 * 1024
_PAGES = Path("/proc/self/statm")


def confine_process() -> None:
    """Remove access that reading does not need: other processes' terminals, files, core dumps."""
    signal.set_wakeup_fd(-1)
    for signal_number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, signal.SIG_DFL)
    # Close the server's file descriptors, so that the fork holds only its own socket.
    quiet = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(quiet, standard)
    os.close(quiet)
    _limit_resource(resource.RLIMIT_CORE, 0)
    _limit_resource(resource.RLIMIT_FSIZE, 0)
    _limit_resource(resource.RLIMIT_NOFILE, OPEN_FILES)
    with contextlib.suppress(OSError):  # Linux only: if the machine runs out of memory, this process is killed first
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def serve_calls(connection: socket.socket, resources: WorkerResources) -> None:
    """Answer calls until the other side disconnects. After a lack of memory, end: the process is no longer reliable."""
    while (frame := receive_frame(connection)) is not None:
        _, payload = frame
        name, limits, arguments = pickle.loads(payload)  # noqa: S301 - from the serving process
        del payload, frame
        kind, answer = _answer_call(name, limits, arguments, resources)
        del arguments
        try:
            connection.sendall(HEADER.pack(kind, len(answer)))
            connection.sendall(answer)
        except OSError:  # the caller has gone
            return
        if kind is Reply.OUT_OF_MEMORY:
            return


def _answer_call(name: str, limits: CallLimits, arguments: tuple[Any, ...], resources: WorkerResources) -> tuple[Reply, bytes]:
    try:
        with _apply_limits(limits):
            return Reply.RESULT, pack_value(CALLS[name](resources, *arguments))
    except MemoryError:
        return Reply.OUT_OF_MEMORY, b""
    except AgenticRagError as error:
        return Reply.REFUSED, pack_value((type(error).__name__, error.message))
    except Exception as error:  # noqa: BLE001
        # The error boundary of the job is in the calling process. The error is passed on to it with its traceback.
        return Reply.FAULT, pack_value((type(error).__name__, traceback.format_exc()))


@contextlib.contextmanager
def _apply_limits(limits: CallLimits) -> Any:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit_resource(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime + limits.cpu_s) + 1, soft_only=True)
    size = _address_space_bytes()
    if size:
        _limit_resource(resource.RLIMIT_AS, size + limits.memory_mb * _MIB, soft_only=True)
    try:
        yield
    finally:
        if size:
            _limit_resource(resource.RLIMIT_AS, resource.RLIM_INFINITY, soft_only=True)


def _address_space_bytes() -> int:
    """Return the mapped bytes. 0 if the system (macOS) does not report them; it does not enforce a limit either."""
    try:
        return int(_PAGES.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _limit_resource(what: int, limit: int, *, soft_only: bool = False) -> None:
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY and (limit == resource.RLIM_INFINITY or limit > hard):
        limit = hard
    with contextlib.suppress(ValueError, OSError):  # macOS refuses some of them
        resource.setrlimit(what, (limit, hard if soft_only else limit))


def receive_frame(connection: socket.socket) -> tuple[int, bytearray] | None:
    """Return the kind and payload of the next frame. None if the other side disconnected."""
    header = _receive_exactly(connection, HEADER.size)
    if header is None:
        return None
    kind, length = HEADER.unpack(header)
    payload = _receive_exactly(connection, length)
    return None if payload is None else (kind, payload)


def _receive_exactly(connection: socket.socket, count: int) -> bytearray | None:
    buffer = bytearray(count)
    view = memoryview(buffer)
    while view:
        try:
            count_read = connection.recv_into(view)
        except OSError:
            return None
        if not count_read:
            return None
        view = view[count_read:]
    return buffer


def run_worker(connection: socket.socket, resources: WorkerResources) -> None:
    """Run a worker in a process that was just forked. Never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        confine_process()
        os.closerange(3, connection.fileno())
        os.closerange(connection.fileno() + 1, 1024)
        serve_calls(connection, resources)
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)
