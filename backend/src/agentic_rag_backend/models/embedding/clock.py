"""Measures the working time of an embedder."""

from __future__ import annotations

import threading
import time

from agentic_rag_backend.models.embedding.base import EmbedderStats


class BusyClock:
    """Counts texts, and the wall-clock seconds during which at least one passage was being embedded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._since = 0.0
        self._busy_s = 0.0
        self._counts = {"texts": 0, "windows": 0, "queries": 0}

    def __enter__(self) -> None:
        with self._lock:
            if self._running == 0:
                self._since = time.perf_counter()
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self._busy_s += time.perf_counter() - self._since

    def add_counts(self, **added: int) -> None:
        """Add to the counts."""
        with self._lock:
            for name, number in added.items():
                self._counts[name] += number

    def read_stats(self) -> EmbedderStats:
        """Return the counts and times so far."""
        with self._lock:
            current = time.perf_counter() - self._since if self._running else 0.0
            return EmbedderStats(busy_s=self._busy_s + current, **self._counts)
