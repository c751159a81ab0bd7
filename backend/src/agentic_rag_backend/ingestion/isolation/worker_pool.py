"""Runs calls in child processes with limits, so that no document can stop the serving process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import (
    AgenticRagError,
    InvalidRequest,
    NotFound,
    ResourceLimit,
    StoreUnavailable,
    UnreadableDocument,
    UnsupportedMediaType,
)
from agentic_rag_backend.fairness import FairSlots
from agentic_rag_backend.ingestion.isolation.call_limits import CallLimits, OcrTime
from agentic_rag_backend.ingestion.isolation.calls import CHECK, media_type_of
from agentic_rag_backend.ingestion.isolation.fork_client import ForkedWorker, ServerGone, WorkerServer
from agentic_rag_backend.ingestion.isolation.message_frames import HEADER, Reply, pack_value, unpack_value
from agentic_rag_backend.priority import BACKGROUND
from agentic_rag_backend.telemetry.logs import get_logger

MAX_AT_ONCE = 16
"""Concurrent calls of one lane. A fork takes a few milliseconds, so workers are created on demand."""
MAX_PER_TENANT = 4
"""Concurrent calls of one tenant's requests. Its jobs have PREPARE_CONCURRENCY."""
KEPT_WORKERS = 4
KEPT_S = 60.0
CALLS_PER_WORKER = 500
LARGE_BYTES = 1024 * 1024
"""A worker that read a document of this size is not reused: its memory does not shrink."""
SLOW_S = 1.0
"""A call that takes longer continues with lower priority."""
_PACKED_IN_LOOP_BYTES = 256 * 1024
_UNPACKED_IN_LOOP_BYTES = 256 * 1024
_TRIES = 3

_REFUSALS: dict[str, type[AgenticRagError]] = {
    error_class.__name__: error_class
    for error_class in (UnreadableDocument, ResourceLimit, UnsupportedMediaType, InvalidRequest, NotFound)
}
_log = get_logger(__name__)


class WorkerFault(Exception):
    """A call failed by a fault of the code. The message ends with the worker's traceback."""


class _Died(Exception):
    """A worker ended during a call. Its document is at fault unless another call may have caused it."""

    def __init__(self, problem: ResourceLimit) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """A call as it is sent to a worker. ``size_bytes`` is the size of the document that it reads."""

    payload: bytes
    limits: CallLimits
    size_bytes: int
    media_type: str | None


class Isolation:
    """Runs the calls of `isolation.calls`, each within its limits. It belongs to the loop that makes the first call.

    The server of workers is started by the first call, and again by the next one if it is gone.

    Args:
        niceness: niceness of the server of workers and of its workers.
    """

    def __init__(
        self, limits: CallLimits | None = None, *, tokenizer_file: Path | None = None, niceness: int = BACKGROUND
    ) -> None:
        self.limits = limits or CallLimits()
        self._tokenizer_file = tokenizer_file
        self._niceness = niceness
        self._server: WorkerServer | None = None
        self._starting = asyncio.Lock()
        self._idle: list[ForkedWorker] = []
        self._jobs = FairSlots(MAX_AT_ONCE, of_tenant=MAX_AT_ONCE)
        self._requests = FairSlots(MAX_AT_ONCE, of_tenant=MAX_PER_TENANT)
        self._closed = False

    async def call_worker(
        self, name: str, *arguments: Any, size_bytes: int, tenant: TenantId | None = None, ocr: OcrTime | None = None
    ) -> Any:
        """Return the result of the call.

        Args:
            size_bytes: size of the document; larger ones get more time.
            tenant: tenant of the waiting request; None: a job.
            ocr: time in addition, for the recognition of text in pictures.

        Raises:
            ResourceLimit: it took too much time or memory, or its process died.
            UnreadableDocument: the document cannot be read.
            StoreUnavailable: no process can be started.
            WorkerFault: the code has an error.
        """
        async with (self._jobs if tenant is None else self._requests).hold_slot(tenant):
            limits = self.limits.of_check(size_bytes) if name == CHECK else self.limits.limits_for_size(size_bytes, ocr)
            payload = await _pack_call((name, limits, arguments), size_bytes)
            return await self._try_call(
                _Request(payload=payload, limits=limits, size_bytes=size_bytes, media_type=media_type_of(name, arguments))
            )

    @property
    def server_pid(self) -> int | None:
        """The server of workers. None if it does not run."""
        return self._server.pid if self._server is not None and self._server.alive else None

    async def start(self) -> None:
        """Start the server of workers ahead of the first call."""
        await self._running_server()

    async def close(self) -> None:
        """End every worker and the server."""
        self._closed = True
        async with self._starting:
            for worker in self._idle:
                worker.hang_up()
            self._idle.clear()
            if self._server is not None:
                await self._server.close()

    async def _try_call(self, request: _Request) -> Any:
        for remaining in reversed(range(_TRIES)):
            worker = await self._take_worker(request.media_type)
            used, worker.calls = worker.calls > 0, worker.calls + 1
            try:
                kind, payload = await self._send_call(worker, request.payload, request.limits)
            except _Died as died:
                # An earlier call may have left a reused worker too little memory, and a dying server ends all workers.
                if remaining and (used or not worker.server.alive):
                    continue
                raise died.problem from None
            if kind is not Reply.OUT_OF_MEMORY:
                self._keep_worker(worker, request.size_bytes)
                return await _read_answer(kind, payload)
            worker.hang_up()
            if not used:
                break
        raise request.limits.out_of_memory()

    async def _send_call(self, worker: ForkedWorker, request: bytes, limits: CallLimits) -> tuple[Reply, bytearray]:
        loop = asyncio.get_running_loop()
        slow = loop.call_later(SLOW_S, worker.demote)
        try:
            async with asyncio.timeout(limits.timeout_s):
                await loop.sock_sendall(worker.connection, HEADER.pack(0, len(request)))
                await loop.sock_sendall(worker.connection, request)
                kind, length = HEADER.unpack(await _receive_exactly(worker, HEADER.size))
                if length > limits.memory_mb * 1024 * 1024:
                    raise limits.out_of_memory()
                return Reply(kind), await _receive_exactly(worker, length)
        except TimeoutError:
            worker.kill()
            raise limits.out_of_time() from None
        except OSError:  # the worker disconnected: it has ended or is ending
            raise _Died(await self._find_cause(worker, limits)) from None
        except BaseException:
            worker.kill()
            raise
        finally:
            slow.cancel()

    async def _find_cause(self, worker: ForkedWorker, limits: CallLimits) -> ResourceLimit:
        worker.connection.close()
        try:
            async with asyncio.timeout(SLOW_S):
                status = await asyncio.shield(worker.ended)
        except (TimeoutError, asyncio.CancelledError):
            worker.kill()
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            status = -signal.SIGKILL
        _log.warning("reading_process_ended", pid=worker.pid, status=status)
        if status == -signal.SIGXCPU:
            return limits.out_of_cpu()
        return limits.ended_by(signal.Signals(-status).name if status < 0 else f"exit status {status}")

    async def _take_worker(self, media_type: str | None) -> ForkedWorker:
        """Return an idle worker that has the libraries of ``media_type``, otherwise a new one: a fork is faster than imports."""
        for worker in reversed(self._idle.copy()):
            if worker.ended.done() or not worker.server.alive:
                self._retire_worker(worker)
            elif media_type is None or media_type in worker.media_types:
                self._idle.remove(worker)
                if worker.retiring is not None:
                    worker.retiring.cancel()
                return worker
        for _ in range(_TRIES):
            with contextlib.suppress(ServerGone):
                return await (await self._running_server()).fork(media_type)
        raise StoreUnavailable("cannot start a process to read the document")

    async def _running_server(self) -> WorkerServer:
        async with self._starting:
            if self._closed:
                raise StoreUnavailable("no more documents are read: the process is shutting down")
            if self._server is None or not self._server.alive:
                if self._server is not None:
                    _log.warning("reading_server_ended")
                    await self._server.close()
                self._server = await WorkerServer.start(self._tokenizer_file, self._niceness)
            return self._server

    def _keep_worker(self, worker: ForkedWorker, size_bytes: int) -> None:
        worn = worker.demoted or worker.calls >= CALLS_PER_WORKER or size_bytes > LARGE_BYTES
        if self._closed or worn:
            worker.hang_up()
            return
        if len(self._idle) >= min(KEPT_WORKERS, os.cpu_count() or 1) + 1:  # the newest has the libraries of most media types
            self._retire_worker(self._idle[0])
        worker.retiring = asyncio.get_running_loop().call_later(KEPT_S, self._retire_worker, worker)
        self._idle.append(worker)

    def _retire_worker(self, worker: ForkedWorker) -> None:
        if worker in self._idle:
            self._idle.remove(worker)
            worker.hang_up()


async def _receive_exactly(worker: ForkedWorker, count: int) -> bytearray:
    loop = asyncio.get_running_loop()
    buffer = bytearray(count)
    view = memoryview(buffer)
    while view:
        count_read = await loop.sock_recv_into(worker.connection, view)
        if not count_read:
            raise ConnectionResetError("the worker disconnected")
        view = view[count_read:]
    return buffer


async def _pack_call(call: tuple[Any, ...], size_bytes: int) -> bytes:
    return pack_value(call) if size_bytes <= _PACKED_IN_LOOP_BYTES else await asyncio.to_thread(pack_value, call)


async def _read_answer(kind: Reply, payload: bytearray) -> Any:
    value = unpack_value(payload) if len(payload) <= _UNPACKED_IN_LOOP_BYTES else await asyncio.to_thread(unpack_value, payload)
    if kind is Reply.RESULT:
        return value
    name, message = value
    if kind is Reply.REFUSED and name in _REFUSALS:
        raise _REFUSALS[name](message)
    raise WorkerFault(f"{name} in the process that reads documents\n{message}")
