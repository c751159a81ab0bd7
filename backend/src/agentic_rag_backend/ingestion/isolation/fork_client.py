"""Client of the server of workers, in the serving process: it starts the server, forks and kills workers, and tracks ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from agentic_rag_backend.documents.parsing.registry import number_of
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.ingestion.isolation.fork_server import (
    COMMAND,
    DEMOTE,
    ENDED,
    EVENT,
    FORK,
    IMPORT,
    KILL,
    READY,
    STARTED,
)

_MODULE = "agentic_rag_backend.ingestion.isolation.fork_server"
_START_S = 60.0
_FORK_S = 30.0
_STOP_S = 5.0
_PASSED_ON = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Environment variables passed to workers: no secrets, no addresses."""
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


class ServerGone(Exception):
    """The server of workers ended unexpectedly."""


@dataclass(slots=True, eq=False)
class ForkedWorker:
    """A forked process that takes calls over ``connection``. ``ended`` becomes its exit code, or minus a signal's number.

    ``media_types`` are those whose libraries it shares with the server of workers. It imports others by itself, in its own time
    and memory.
    """

    pid: int
    connection: socket.socket
    ended: asyncio.Future[int]
    server: WorkerServer
    media_types: frozenset[str]
    calls: int = 0
    demoted: bool = False
    retiring: asyncio.TimerHandle | None = None

    def demote(self) -> None:
        """Lower the worker's priority, because its call takes long."""
        self.demoted = True
        self.server.send_command(DEMOTE, self.pid)

    def hang_up(self) -> None:
        """Close the connection, so that an idle worker ends."""
        if self.retiring is not None:
            self.retiring.cancel()
        self.connection.close()

    def kill(self) -> None:
        """Kill the worker and its child processes."""
        self.hang_up()
        if self.ended.done():
            return
        if self.server.alive:
            self.server.send_command(KILL, self.pid)
        else:
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)


class WorkerServer:
    """A running server of workers. If it ends, a new one is started."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self._process = process
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._starting: deque[tuple[asyncio.Future[ForkedWorker], socket.socket, frozenset[str]]] = deque()
        self._imported: frozenset[str] = frozenset()
        self._workers: dict[int, ForkedWorker] = {}
        self._buffer = bytearray()
        self.alive = True
        self.pid = process.pid
        self._loop.add_reader(control, self._read_events)

    @classmethod
    async def start(cls, tokenizer_file: Path | None, niceness: int) -> WorkerServer:
        """Start a server and wait until it can fork.

        Raises:
            StoreUnavailable: it does not start.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", _MODULE, str(theirs.fileno()), str(niceness)]
            command += [] if tokenizer_file is None else [str(tokenizer_file)]
            try:
                process = subprocess.Popen(  # noqa: ASYNC220, S603 - this package's own module; it returns in a millisecond
                    command,
                    pass_fds=[theirs.fileno()],
                    env=_make_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    process_group=0,  # Ctrl-C goes to the serving process, which ends this one; see `priority`
                )
            except OSError as error:
                ours.close()
                raise StoreUnavailable(f"the process that reads documents cannot be started: {error}") from error
        ours.setblocking(False)
        server = cls(process, ours)
        try:
            async with asyncio.timeout(_START_S):
                await server._ready
        except (TimeoutError, ServerGone):
            await server.close()
            raise StoreUnavailable("the process that reads documents did not start; stderr has the reason") from None
        except BaseException:
            await server.close()
            raise
        return server

    async def fork(self, media_type: str | None) -> ForkedWorker:
        """Return a fresh worker. The first one for a media type waits until the server has imported the libraries of it.

        Raises:
            ServerGone: the server ended, or cannot fork.
        """
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        future: asyncio.Future[ForkedWorker] = self._loop.create_future()
        if media_type is not None and media_type not in self._imported:
            self._imported |= {media_type}
            self.send_command(IMPORT, number_of(media_type))
        self._starting.append((future, ours, self._imported))
        with theirs:
            try:
                socket.send_fds(self._control, [COMMAND.pack(FORK, 0)], [theirs.fileno()])
            except OSError:
                self._drop_server()
        try:
            async with asyncio.timeout(_FORK_S):
                return await asyncio.shield(future)
        except TimeoutError:
            self._drop_server()
            raise ServerGone from None
        except asyncio.CancelledError:
            future.add_done_callback(_abandon_worker)
            raise

    def send_command(self, command: bytes, number: int) -> None:
        """Send a command about one worker or media type. Without a server, do nothing."""
        with contextlib.suppress(OSError):
            self._control.send(COMMAND.pack(command, number))

    async def close(self) -> None:
        """End the server and all of its workers."""
        self._drop_server()
        try:
            await asyncio.to_thread(self._process.wait, _STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)

    def _read_events(self) -> None:
        try:
            data = self._control.recv(64 * 1024)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop_server()
            return
        self._buffer += data
        while len(self._buffer) >= EVENT.size:
            event, pid, status = EVENT.unpack(self._buffer[: EVENT.size])
            del self._buffer[: EVENT.size]
            self._handle_event(event, pid, status)

    def _handle_event(self, event: bytes, pid: int, status: int) -> None:
        if event == READY and not self._ready.done():
            self._ready.set_result(None)
        elif event == STARTED:
            future, connection, media_types = self._starting.popleft()
            if pid < 0:
                connection.close()
                _fail_future(future)
                return
            worker = ForkedWorker(pid, connection, self._loop.create_future(), self, media_types)
            self._workers[pid] = worker
            future.set_result(worker)
        elif event == ENDED and (ended_worker := self._workers.pop(pid, None)) is not None:
            ended_worker.ended.set_result(status)

    def _drop_server(self) -> None:
        """Drop a server that disconnected or does not answer. Its workers end with it."""
        if not self.alive:
            return
        self.alive = False
        self._loop.remove_reader(self._control)
        self._control.close()
        _fail_future(self._ready)
        for future, connection, _ in self._starting:
            connection.close()
            _fail_future(future)
        self._starting.clear()
        for worker in self._workers.values():
            worker.ended.cancel()
        self._workers.clear()


def _make_environment() -> dict[str, str]:
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    source = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
    return {**passed_on, **_ONE_THREAD, "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": path}


def _fail_future(future: asyncio.Future[ForkedWorker] | asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(ServerGone())
        future.exception()  # a waiting caller still gets it, but none is required


def _abandon_worker(future: asyncio.Future[ForkedWorker]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().kill()
