"""The server of workers: a single-threaded process that imports what workers need, and forks a worker on request.

Started as ``python -m agentic_rag_backend.ingestion.isolation.fork_server <fd> <niceness> [<tokenizer file>]``. Over the socket
``fd`` it receives ``I number`` (import the libraries of a media type, by its number in ``parsing.registry``), ``F`` with a
worker's socket attached (fork a worker), ``K pid`` (kill a worker's process group) and ``D pid`` (lower a worker's priority). It
reports ``R`` (ready), ``S pid`` (started) and ``X pid status`` (ended). If the other side disconnects, the server and all workers
end.

Commands run in order, so a worker that is requested after an import has the libraries, and shares their memory with the others.
A library must not start threads when it is imported: a fork has only one of them, and waits forever for locks that others held.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import signal
import socket
import struct
import sys
import termios
from pathlib import Path

from agentic_rag_backend.documents.parsing import registry
from agentic_rag_backend.domain.document import ProcessingOptions
from agentic_rag_backend.ingestion.isolation import worker_process
from agentic_rag_backend.ingestion.isolation.calls import ReadingOptions, WorkerResources, extract_chunks, read_file
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from agentic_rag_backend.priority import LONG_RUNNING, lower_process

COMMAND = struct.Struct("!ci")
EVENT = struct.Struct("!cii")
IMPORT, FORK, KILL, DEMOTE = b"I", b"F", b"K", b"D"
READY, STARTED, ENDED = b"R", b"S", b"X"


class ForkServer:
    """Forks, reaps and kills workers."""

    def __init__(self, control: socket.socket, resources: WorkerResources) -> None:
        self._control = control
        self._resources = resources
        self._alive: set[int] = set()
        self._ended, wake = socket.socketpair()
        wake.setblocking(False)
        self._ended.setblocking(False)
        self._wake = wake
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        """Serve until the other side disconnects."""
        self._report_event(READY, 0, 0)
        try:
            while True:
                readable, _, _ = select.select([self._control, self._ended], [], [])
                if self._ended in readable:
                    with contextlib.suppress(BlockingIOError):
                        self._ended.recv(4096)
                    self._reap_children()
                if self._control in readable and not self._handle_command():
                    return
        finally:
            signal.set_wakeup_fd(-1)
            for pid in tuple(self._alive):
                _kill_worker(pid)

    def _handle_command(self) -> bool:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._control, COMMAND.size, 1)
        except OSError:  # reset: the other side ended and left reports unread
            return False
        if len(message) < COMMAND.size:
            return False
        command, number = COMMAND.unpack(message)
        if command == FORK and descriptors:
            self._fork_worker(socket.socket(fileno=descriptors[0]))
        elif command == IMPORT:
            _import_libraries(number)
        elif number in self._alive and command == KILL:
            _kill_worker(number)
        elif number in self._alive and command == DEMOTE:
            lower_process(LONG_RUNNING, number)
        return True

    def _fork_worker(self, connection: socket.socket) -> None:
        try:
            pid = os.fork()
        except OSError:  # no process or memory available: the closed connection reports it
            pid = -1
        if pid == 0:
            worker_process.run_worker(connection, self._resources)
        connection.close()
        if pid > 0:
            self._alive.add(pid)
        self._report_event(STARTED, pid, 0)

    def _reap_children(self) -> None:
        while True:
            try:
                child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if child is None:
                return
            # Programs that a worker started end with it. Its number is not reused before it is reaped.
            _kill_worker(child.si_pid)
            _, status = os.waitpid(child.si_pid, 0)
            self._alive.discard(child.si_pid)
            self._report_event(ENDED, child.si_pid, os.waitstatus_to_exitcode(status))

    def _report_event(self, event: bytes, pid: int, status: int) -> None:
        with contextlib.suppress(OSError):
            self._control.sendall(EVENT.pack(event, pid, status))


def _kill_worker(pid: int) -> None:
    """Kill a worker and its child processes. A worker leads its own process group as soon as it runs."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _warm_calls(resources: WorkerResources) -> None:
    """Run each call once, so that modules and data are loaded here and shared by every worker."""
    owner = ("t_" + "0" * 32, "warm", 1)
    options = ReadingOptions(ProcessingOptions())
    _, chunks = read_file(resources, b"# Warm\n\nThe first call of Ada Lovelace in London.\n", "text/markdown", owner, options)
    extract_chunks(resources, "Warm", chunks)


def _import_libraries(number: int) -> None:
    """Import the libraries of a media type. A worker repeats an import that fails, and reports the error."""
    with contextlib.suppress(Exception):
        registry.load_libraries(number)
    _share_objects()


def _share_objects() -> None:
    """Keep the collector from writing to, and so copying, every page that workers share."""
    gc.collect()
    gc.freeze()


def _leave_terminal() -> None:
    """Give up the controlling terminal of this process and its forks: a document must not access it."""
    with contextlib.suppress(OSError):  # there is no terminal
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        try:
            fcntl.ioctl(terminal, termios.TIOCNOTTY)
        finally:
            os.close(terminal)


def main(arguments: list[str]) -> None:
    """Serve on the inherited socket."""
    _leave_terminal()
    control = socket.socket(fileno=int(arguments[0]))
    resources = WorkerResources(WordPieceTokenizer(Path(arguments[2]) if len(arguments) > 2 else None))
    _warm_calls(resources)
    _share_objects()
    lower_process(int(arguments[1]))  # from now on, because callers wait for the start
    ForkServer(control, resources).run()


if __name__ == "__main__":
    main(sys.argv[1:])
