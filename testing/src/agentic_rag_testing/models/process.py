"""The scripted model server as a process of its own: a harness may kill the product, the server's counts stay.

    with ModelProcess() as server:
        product = start(OPENAI_BASE_URL=server.base_url, LLM_MODEL="cite+latency-50ms", …)
        product.kill()
        …
        assert server.stats().paid_again() == {}

``python -m agentic_rag_testing.models.process --port 9000`` runs it from a shell, until it is interrupted.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.request import Request, urlopen

from agentic_rag_testing.models.counts import Stats
from agentic_rag_testing.models.server import ModelServer

_ANSWER_S = 30.0
_END_S = 15.0


class ModelProcess:
    """A server in a separate process and session. A context manager. The process ends with the process that started it.

    Args:
        port: 0 picks a free port.
        recordings: see `ModelServer`.
    """

    def __init__(self, *, port: int = 0, recordings: Path | None = None) -> None:
        self._command = [sys.executable, "-m", __spec__.name, "--port", str(port), "--until-input-ends"]
        if recordings is not None:
            self._command += ["--recordings", str(recordings)]
        self.base_url = ""

    def __enter__(self) -> ModelProcess:
        self._process = subprocess.Popen(  # noqa: S603 - this very module
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        stdout = self._process.stdout
        self.base_url = stdout.readline().strip() if stdout is not None else ""
        if not self.base_url:
            raise RuntimeError(f"the model server ended at its start with {self._process.wait(_END_S)}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            self._process.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def stats(self) -> Stats:
        """Return the counts."""
        return Stats.from_json(self._ask("GET", "_stats"))

    def reset(self) -> None:
        """Reset all counts, including the counts that end faults such as ``status-500x2``."""
        self._ask("POST", "_reset")

    def _ask(self, method: str, path: str) -> Any:
        url = f"{self.base_url.removesuffix('v1')}{path}"
        with urlopen(Request(url, method=method), timeout=_ANSWER_S) as answer:  # noqa: S310 - a loopback address of our own
            return json.load(answer)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="A scriptable OpenAI-compatible model server, on loopback only.")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 picks a free one")
    parser.add_argument("--recordings", type=Path, help="folder of the evaluation sets that recorded-NAME replays")
    parser.add_argument("--until-input-ends", action="store_true", help="end with what holds the other end of the input")
    chosen = parser.parse_args(arguments)
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    if chosen.until_input_ends:
        threading.Thread(target=_await_end_of_input, args=(over,), daemon=True).start()
    with ModelServer(port=chosen.port, recordings=chosen.recordings) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        over.wait()


def _await_end_of_input(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


if __name__ == "__main__":
    main()
