"""Index of names by the acronyms that abbreviate them, for questions that use an acronym that is no name."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.knowledge.extraction.names.aliases import acronyms_of

LONGEST = 8
"""Letters of an acronym."""
_MOST_ENTRIES = 1_000_000
"""Pairs of acronym and name: 20 MB. Names beyond them, in alphabetical order, are not indexed."""


class Acronyms:
    """Normalised names by acronym. Built at the first use, in the caller's thread: 1 s for 200,000 names."""

    __slots__ = ("_acronyms", "_building", "_built", "_names", "_ordered", "_positions")

    def __init__(self, names: Iterable[str]) -> None:
        """``names`` must not change."""
        self._names = names
        self._ordered: list[str] = []
        self._acronyms: NDArray[np.bytes_] = np.zeros(0, dtype=f"S{LONGEST}")
        self._positions: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._built = False
        self._building = threading.Lock()

    def names(self, short: str) -> Iterator[str]:
        """Yield the names that begin with the first letter of ``short`` and that it abbreviates, in alphabetical order."""
        with self._building:
            if not self._built:
                self._build_index()
        acronym = short.lower().encode()
        if len(acronym) > LONGEST:
            return
        start, end = np.searchsorted(self._acronyms, [acronym]), np.searchsorted(self._acronyms, [acronym], side="right")
        for position in self._positions[int(start[0]) : int(end[0])].tolist():
            yield self._ordered[position]

    def _build_index(self) -> None:
        ordered = sorted(self._names)
        acronyms: list[bytes] = []
        positions: list[int] = []
        for position, name in enumerate(ordered):
            words = name.split()
            if len(words) < 2 or len(acronyms) >= _MOST_ENTRIES:
                continue
            for acronym in acronyms_of(words, longest=LONGEST):
                if acronym[0] == name[0]:
                    acronyms.append(acronym.encode())
                    positions.append(position)
        unsorted = np.array(acronyms, dtype=f"S{LONGEST}")
        order = np.argsort(unsorted, kind="stable")
        self._acronyms, self._positions = unsorted[order], np.array(positions, dtype=np.int32)[order]
        self._names, self._ordered, self._built = (), ordered, True
