"""A file next to the database that lists the running workflows of this process, for recovery after a kill.

It is written at every start and end of a workflow. It is a file, not a table: an appended line costs microseconds and outlives
the process. A power loss may lose lines, but no workflow causes a power loss.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentic_rag_backend.telemetry.logs import get_logger

_LONGEST_BYTES = 256 * 1024

_log = get_logger(__name__)


class RunningJournal:
    """Lines of JSON: ``{"kills": {id: n}}`` first, then ``["+", id]`` (began), ``["-", id]`` (ended), ``["0", id]`` (forgiven).

    Args:
        path: None if no journal is needed. Then nothing is written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: int | None = None
        self._written = 0
        self._running: set[str] = set()
        self._kills: dict[str, int] = {}

    @property
    def kills(self) -> Mapping[str, int]:
        """Number of kills that each workflow was present at."""
        return self._kills

    def read_earlier(self) -> frozenset[str]:
        """Read the journal of an earlier process, and return the workflows that ran at its end. Also sets `kills`."""
        running: set[str] = set()
        for line in self._read_lines():
            with contextlib.suppress(ValueError, TypeError, AttributeError, LookupError):  # the last line may be incomplete
                entry = json.loads(line)
                if isinstance(entry, dict):
                    self._kills = {str(workflow): int(kills) for workflow, kills in entry["kills"].items()}
                elif entry[0] == "+":
                    running.add(str(entry[1]))
                elif entry[0] == "0":
                    self._kills.pop(str(entry[1]), None)
                else:
                    running.discard(str(entry[1]))
        return frozenset(running)

    def begin_process(self, kills: Mapping[str, int]) -> None:
        """Start the journal of a new process, in which no workflow runs yet."""
        self._kills = dict(kills)
        self._running.clear()
        self._rewrite_file()

    def record_start(self, workflow: str) -> None:
        """Record that a workflow is running."""
        self._running.add(workflow)
        self._append_line("+", workflow)

    def record_end(self, workflow: str) -> None:
        """Record that a workflow has stopped."""
        self._running.discard(workflow)
        self._append_line("-", workflow)

    def forgive_kills(self, workflow: str) -> None:
        """Forget the kills of a workflow."""
        self._kills.pop(workflow, None)
        self._append_line("0", workflow)

    def close(self) -> None:
        """Close the file and keep its content."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read_lines(self) -> list[str]:
        if self._path is None or not self._path.exists():
            return []
        return self._path.read_text(encoding="utf-8", errors="replace").splitlines()

    def _append_line(self, what: str, workflow: str) -> None:
        if self._file is None:
            return
        line = (json.dumps([what, workflow]) + "\n").encode()
        with self._as_warning():
            os.write(self._file, line)
        self._written += len(line)
        if self._written > _LONGEST_BYTES:
            self._rewrite_file()

    def _rewrite_file(self) -> None:
        if self._path is None:
            return
        lines = [json.dumps({"kills": self._kills}), *(json.dumps(["+", workflow]) for workflow in sorted(self._running))]
        text = "".join(f"{line}\n" for line in lines)
        fresh = self._path.with_name(f"{self._path.name}.new")
        self._written = 0
        with self._as_warning():
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(self._path)
            self.close()
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    @contextlib.contextmanager
    def _as_warning(self) -> Iterator[None]:
        """Log an error of the file and continue: the journal only helps to recover from a crash."""
        try:
            yield
        except OSError as error:
            _log.warning("running_journal_not_written", path=str(self._path), reason=str(error))
