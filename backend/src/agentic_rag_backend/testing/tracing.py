"""Measures the cost of one operation: time in each store method, and virtual machine steps of each SQLite statement.

Time is noisy on a shared machine. Steps are not, because SQLite counts them. A statement that reads one more row per document of
the corpus shows it at any corpus size.
"""

from __future__ import annotations

import inspect
import re
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

_GRANULE = 20
"""Virtual machine steps between two counts. A statement with fewer steps counts as zero."""
_LITERAL = re.compile(r"'(?:[^']|'')*'|x'[0-9a-f]*'|\b\d+(?:\.\d+)?\b", re.IGNORECASE)
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_LIST = re.compile(r"\?(?:, *\?)+")
_QUEUE_TABLES = re.compile(r"workflow_|operation_outputs|notifications|queues|\bpragma\b", re.IGNORECASE)


class TraceCounts:
    """Counts since the last `take`. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps: Counter[str] = Counter()
        self._statements: Counter[str] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)
        self._calls: Counter[str] = Counter()

    @contextmanager
    def watching_sqlite(self) -> Iterator[None]:
        """Count in every SQLite connection that is opened in this context, for the lifetime of the connection."""
        original = sqlite3.connect

        @wraps(original)
        def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = original(*args, **kwargs)
            self._watch(connection)
            return connection

        # The catalogue's engine imports it from the inner module, the graph store from the outer one.
        with patch.object(sqlite3, "connect", connect), patch.object(sqlite3.dbapi2, "connect", connect):
            yield

    def watch_methods(self, name: str, watched: object) -> None:
        """Time the public coroutine methods of the class of ``watched``, as ``name.method``."""
        kind = type(watched)
        for attribute in dir(kind):
            method = inspect.getattr_static(kind, attribute)
            if not attribute.startswith("_") and inspect.iscoroutinefunction(method):
                setattr(kind, attribute, self._timed(f"{name}.{attribute}", method))

    def take(self) -> dict[str, dict[str, float]]:
        """Return the counts and reset them: ``steps`` and ``statements`` by statement, ``ms`` and ``calls`` by method.

        Statements of the job queue, which polls continuously, are left out.
        """
        with self._lock:
            taken: dict[str, dict[str, float]] = {
                "steps": _of_the_product(self._steps.items()),
                "statements": _of_the_product(self._statements.items()),
                "ms": {name: seconds * 1000 for name, seconds in self._seconds.items()},
                "calls": {name: float(count) for name, count in self._calls.items()},
            }
            for counts in (self._steps, self._statements, self._calls):
                counts.clear()
            self._seconds.clear()
        return taken

    def _watch(self, connection: sqlite3.Connection) -> None:
        running = ""

        def began(statement: str) -> None:
            nonlocal running
            running = _shape(statement)
            with self._lock:
                self._statements[running] += 1

        def stepped() -> int:
            with self._lock:
                self._steps[running] += _GRANULE
            return 0

        connection.set_trace_callback(began)
        connection.set_progress_handler(stepped, _GRANULE)

    def _timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        async def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return await method(*args, **kwargs)
            finally:
                with self._lock:
                    self._seconds[name] += time.perf_counter() - started
                    self._calls[name] += 1

        return timed


def _shape(statement: str) -> str:
    """Return a statement on one line, without its values."""
    return " ".join(_LIST.sub("?…", _LITERAL.sub("?", _COMMENT.sub("", statement))).split())


def _of_the_product(counts: Iterable[tuple[str, int]]) -> dict[str, float]:
    return {statement: count for statement, count in counts if not _QUEUE_TABLES.search(statement)}
