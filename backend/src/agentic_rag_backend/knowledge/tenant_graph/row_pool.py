"""Pool of integer rows of any length. Rows are replaced as a whole, so a snapshot does not copy their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

SPARE = 1.25
"""Capacity of a growing column, as a multiple of its required size. Makes the cost per added number constant."""
GARBAGE = 1.5
"""Replaced values that a pool may hold before it is packed, as a multiple of the values in use."""
SMALL = 4096


class Column:
    """A growing array with one number per place. New places are zero.

    Growing reallocates: earlier views keep the old values. Until then, views show later assignments.
    """

    __slots__ = ("_count", "_values")

    def __init__(self, dtype: DTypeLike) -> None:
        self._values: NDArray[Any] = np.zeros(0, dtype=dtype)
        self._count = 0

    def grow(self, count: int) -> None:
        """Grow to at least ``count`` places."""
        if count > len(self._values):
            moved = np.zeros(int(count * SPARE) if self._count else count, dtype=self._values.dtype)
            moved[: self._count] = self.view
            self._values = moved
        self._count = max(self._count, count)

    @property
    def view(self) -> NDArray[Any]:
        """View of all places."""
        return self._values[: self._count]

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """Memory in bytes, including spare places."""
        return int(self._values.nbytes)


@dataclass(frozen=True, slots=True)
class Rows:
    """Snapshot of rows: row i is ``values[starts[i] : starts[i] + lengths[i]]``."""

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
        """Memory of the row positions in bytes. The values belong to the pool."""
        return int(self.starts.nbytes + self.lengths.nbytes)


class RowPool:
    """Rows stored one after another. A replaced row keeps its place for snapshots that refer to it.

    The pool is packed when replaced rows take too much room. The cost per written value is constant.
    """

    __slots__ = ("_lengths", "_starts", "_used", "_values")

    def __init__(self) -> None:
        self._starts = Column(np.int64)
        self._lengths = Column(np.int32)
        self._values = Column(np.int32)
        self._used = 0

    def grow(self, rows: int) -> None:
        """Grow to at least this many rows. New rows are empty."""
        self._starts.grow(rows)
        self._lengths.grow(rows)

    def replace(self, rows: NDArray[Any], lengths: NDArray[Any], values: NDArray[Any]) -> None:
        """Replace ``rows``, which must be distinct, by ``values``, which are concatenated rows of the given ``lengths``."""
        self._used += len(values) - int(self._lengths.view[rows].sum())
        start = len(self._values)
        self._values.grow(start + len(values))
        self._values.view[start:] = values
        self._starts.view[rows] = start + np.cumsum(lengths) - lengths
        self._lengths.view[rows] = lengths
        if len(self._values) - self._used > GARBAGE * self._used + SMALL:
            self._pack_rows()

    def _pack_rows(self) -> None:
        lengths = self._lengths.view.astype(np.int64)
        _, values = self.now().gather(np.arange(len(lengths)))
        self._values = Column(np.int32)
        self._values.grow(len(values))
        self._values.view[:] = values
        # This changes the positions in views: snapshots have copies, and the result of `now` is only valid until a change.
        self._starts.view[:] = np.cumsum(lengths) - lengths

    def now(self) -> Rows:
        """Return the current rows without a copy. Valid until the next change."""
        return Rows(self._starts.view, self._lengths.view, self._values.view)

    def snapshot(self) -> Rows:
        """Return an immutable snapshot of the rows. Only the rows' positions are copied."""
        return Rows(self._starts.view.copy(), self._lengths.view.copy(), self._values.view)

    @property
    def size_bytes(self) -> int:
        """Memory in bytes, including replaced and spare values."""
        return self._starts.size_bytes + self._lengths.size_bytes + self._values.size_bytes
