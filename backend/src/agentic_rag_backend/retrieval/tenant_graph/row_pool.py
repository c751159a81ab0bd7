"""Rows of numbers of any length that are replaced whole, so that a snapshot of them costs no copy of what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

SPARE = 1.25
"""Room that a column takes when it grows, as a multiple of what it needs: growing costs a constant per number."""
GARBAGE = 1.5
"""Replaced values that a pool may hold beside those in use, as a multiple of them, before it is packed."""
SMALL = 4096


class Column:
    """A growing array with one number a place; new places hold zero.

    Growing moves it, and what was read before stays as it was; until then, readers of a view see what is assigned to it.
    """

    __slots__ = ("_count", "_values")

    def __init__(self, dtype: DTypeLike) -> None:
        self._values: NDArray[Any] = np.zeros(0, dtype=dtype)
        self._count = 0

    def grow(self, count: int) -> None:
        """Have at least ``count`` places."""
        if count > len(self._values):
            moved = np.zeros(int(count * SPARE) if self._count else count, dtype=self._values.dtype)
            moved[: self._count] = self.view
            self._values = moved
        self._count = max(self._count, count)

    @property
    def view(self) -> NDArray[Any]:
        """The places there are."""
        return self._values[: self._count]

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """Memory held, spare places included."""
        return int(self._values.nbytes)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as they were at one moment: row i is ``values[starts[i] : starts[i] + lengths[i]]``."""

    starts: Longs
    lengths: Ints
    values: Ints

    def row(self, number: int) -> Ints:
        """Return one row."""
        start = self.starts[number]
        return self.values[start : start + self.lengths[number]]

    def gather(self, rows: NDArray[Any]) -> tuple[Ints, Ints]:
        """Return (position in ``rows``, value) of all values of the given rows, concatenated in their order."""
        lengths = self.lengths[rows].astype(np.int64)
        position = np.repeat(np.arange(len(rows), dtype=np.int32), lengths)
        before = self.starts[rows] - (np.cumsum(lengths) - lengths)
        index = np.arange(len(position), dtype=np.int64) + np.repeat(before, lengths)
        return position, self.values[index]

    @property
    def size_bytes(self) -> int:
        """Memory of what tells where the rows are; their values belong to the pool."""
        return int(self.starts.nbytes + self.lengths.nbytes)


class RowPool:
    """Rows that are written behind each other; a replaced one stays where it was for the snapshots that know it.

    Packed once the replaced ones take too much room, which costs a constant per value written.
    """

    __slots__ = ("_lengths", "_starts", "_used", "_values")

    def __init__(self) -> None:
        self._starts = Column(np.int64)
        self._lengths = Column(np.int32)
        self._values = Column(np.int32)
        self._used = 0

    def grow(self, rows: int) -> None:
        """Have at least that many rows; new ones are empty."""
        self._starts.grow(rows)
        self._lengths.grow(rows)

    def replace(self, rows: NDArray[Any], lengths: NDArray[Any], values: NDArray[Any]) -> None:
        """Give ``rows``, all different, the lengths and, concatenated in that order, the values."""
        self._used += len(values) - int(self._lengths.view[rows].sum())
        start = len(self._values)
        self._values.grow(start + len(values))
        self._values.view[start:] = values
        self._starts.view[rows] = start + np.cumsum(lengths) - lengths
        self._lengths.view[rows] = lengths
        if len(self._values) - self._used > GARBAGE * self._used + SMALL:
            self._pack()

    def _pack(self) -> None:
        lengths = self._lengths.view.astype(np.int64)
        _, held = self.now().gather(np.arange(len(lengths)))
        self._values = Column(np.int32)
        self._values.grow(len(held))
        self._values.view[:] = held
        # In place it would move the rows of a view: a snapshot has copied them, `now` must not outlive a change.
        self._starts.view[:] = np.cumsum(lengths) - lengths

    def now(self) -> Rows:
        """Return the rows as they are, without a copy: good until the next change."""
        return Rows(self._starts.view, self._lengths.view, self._values.view)

    def snapshot(self) -> Rows:
        """Return the rows as they are, for good; copied is only where each row is."""
        return Rows(self._starts.view.copy(), self._lengths.view.copy(), self._values.view)

    @property
    def size_bytes(self) -> int:
        """Memory held, replaced and spare values included."""
        return self._starts.size_bytes + self._lengths.size_bytes + self._values.size_bytes
