"""Tables of numbers behind a tenant's graph: stable numbers of ids, rows of any length, and edges in both directions."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    from scipy import sparse

Keys = NDArray[np.uint64]
T = TypeVar("T")

_ENTRY_BYTES = 140
"""Per id, in addition to its text: two pointers, hash, spare places and the number, in a list and a dict."""


class Numbers:
    """Numbers of ids, assigned in order of arrival. Within one call, they are assigned in the order of the ids' keys.

    A key is a hash of the id. Sorting by key makes the order of rows and sums independent of the order of arrival. (Two of a
    million ids share a key with probability 3e-8. Their values might then be summed in another order.)
    """

    __slots__ = ("_keys", "_text_bytes", "ids", "index")

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.index: dict[str, int] = {}
        self._keys = Column(np.uint64)
        self._text_bytes = 0

    def add(self, ids: Iterable[str]) -> None:
        """Assign numbers to ids that have none."""
        unknown = [id for id in dict.fromkeys(ids) if id not in self.index]
        if not unknown:
            return
        keys = np.fromiter((_key_of(id) for id in unknown), dtype=np.uint64, count=len(unknown))
        order = np.argsort(keys, kind="stable")
        offset = len(self.ids)
        new = [unknown[position] for position in order.tolist()]
        # The id is stored before its index entry, so that a concurrent reader finds both or neither.
        self.ids.extend(new)
        for number, id in enumerate(new, offset):
            self.index[id] = number
        self._text_bytes += sum(sys.getsizeof(id) for id in new)
        self._keys.grow(len(self.ids))
        self._keys.view[offset:] = keys[order]

    def numbers(self, ids: Collection[str]) -> Ints:
        """Return the numbers of ids. All ids must have one."""
        return np.fromiter((self.index[id] for id in ids), dtype=np.int32, count=len(ids))

    @property
    def keys(self) -> Keys:
        """Keys by number. Keys never change, so a view of them stays valid."""
        return self._keys.view

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size_bytes(self) -> int:
        """Estimated memory in bytes."""
        return self._text_bytes + _ENTRY_BYTES * len(self.ids) + self._keys.size_bytes


def _key_of(id: str) -> int:
    return int.from_bytes(blake2b(id.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


class Numbered(Mapping[str, int]):
    """Snapshot of the ids in use, with their numbers. Ids that are added later are not included."""

    __slots__ = ("_count", "_in_use", "_index", "_numbers")

    def __init__(self, numbers: Numbers, in_use: NDArray[np.bool_]) -> None:
        self._numbers = numbers
        self._index = numbers.index
        # A search looks up thousands of ids. One byte of `bytes` is read twice as fast as one of an array.
        self._in_use = in_use.tobytes()
        self._count = int(np.count_nonzero(in_use))

    def __getitem__(self, id: str) -> int:
        number = self._index[id]
        if number >= len(self._in_use) or not self._in_use[number]:
            raise KeyError(id)
        return number

    @overload
    def get(self, id: str, default: None = None, /) -> int | None: ...
    @overload
    def get(self, id: str, default: int, /) -> int: ...
    @overload
    def get(self, id: str, default: T, /) -> int | T: ...
    def get(self, id: str, default: Any = None, /) -> Any:
        """Return the number of an id. Faster than that of `Mapping`, which raises and catches for each missing id."""
        number = self._index.get(id)
        return default if number is None or number >= len(self._in_use) or not self._in_use[number] else number

    def among(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the numbers of those of ``ids`` that are in use, in their order. Several times as fast as single lookups."""
        index, in_use, unknown = self._index, self._in_use, len(self._in_use)
        return {id: number for id in ids if (number := index.get(id, unknown)) < unknown and in_use[number]}

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get(id) is not None

    def __iter__(self) -> Iterator[str]:
        return (self._numbers.ids[number] for number in np.flatnonzero(np.frombuffer(self._in_use, dtype=np.bool_)).tolist())

    def __len__(self) -> int:
        return self._count


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


Floats = NDArray[np.float64]


class Edges:
    """Weighted rows. A value is a column number times 2, plus 1 for an *about* edge, which has twice the weight.

    The values of a row are ordered by the keys of their columns, so that sums do not depend on the numbering.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def gather(self, rows: NDArray[np.integer]) -> tuple[Ints, Ints, Floats]:
        """Return (position in ``rows``, column, weight) of every edge of the given rows, concatenated."""
        position, values = self.rows.gather(rows)
        return position, values >> 1, (1 + (values & 1)).astype(np.float64)

    def of(self, row: int) -> Ints:
        """Return the columns of one row."""
        return self.rows.row(row) >> 1


class Transitions:
    """Steps from chunks to entities and back. Each node's mass is divided among its edges.

    From a chunk in proportion to weight × inverse document frequency, from an entity in proportion to weight.
    """

    __slots__ = ("_by_chunk", "_by_entity", "_idf", "_matrices", "_named", "_totals", "chunk_keys", "entity_keys")

    def __init__(self, by_chunk: Edges, by_entity: Edges, *, idf: Floats, totals: Floats, keys: tuple[Keys, Keys]) -> None:
        """``totals`` are the entities' sums of weights. ``keys`` are the keys of chunks and of entities."""
        self._by_chunk = by_chunk
        self._by_entity = by_entity
        self._idf = idf
        self._totals = np.maximum(totals, 1.0)
        self.chunk_keys, self.entity_keys = keys
        # Each chunk's sum of weight × idf. Computed when the walk first needs it, because each added chunk changes all of them.
        self._named = np.full(len(by_chunk.rows.lengths), np.nan)
        self._matrices: tuple[sparse.csr_matrix, sparse.csr_matrix] | None = None

    def to_chunks(self, entities: Floats) -> Floats:
        """Return the mass that all ``entities`` pass to chunks."""
        return np.asarray(self._dense_matrices()[0] @ entities)

    def to_entities(self, chunks: Floats) -> Floats:
        """Return the mass that all ``chunks`` pass to entities."""
        return np.asarray(self._dense_matrices()[1] @ chunks)

    def from_entities(self, rows: NDArray[np.integer]) -> tuple[Ints, Ints, Floats]:
        """Return (position in ``rows``, chunk, share of the entity's mass) of every edge of the given entities."""
        position, chunks, weights = self._by_entity.gather(rows)
        return position, chunks, weights / self._totals[rows][position]

    def from_chunks(self, rows: NDArray[np.integer]) -> tuple[Ints, Ints, Floats]:
        """Return (position in ``rows``, entity, share of the chunk's mass) of every edge of the given chunks."""
        position, entities, weights = self._by_chunk.gather(rows)
        unknown = np.isnan(self._named[rows])
        if unknown.any():
            self._name(rows[unknown])
        return position, entities, weights * self._idf[entities] / self._named[rows][position]

    def _name(self, chunks: NDArray[np.integer]) -> None:
        position, entities, weights = self._by_chunk.gather(chunks)
        sums = np.bincount(position, weights=weights * self._idf[entities], minlength=len(chunks))
        self._named[chunks] = np.where(sums > 0, sums, 1.0)

    def _dense_matrices(self) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        """Return both directions as matrices, by chunk and by entity, for graphs small enough to walk completely."""
        if self._matrices is None:
            self._name(np.arange(len(self._named)))
            self._matrices = (
                _build_matrix(self._by_chunk, np.ones(len(self._named)), self._totals),
                _build_matrix(self._by_entity, self._idf, self._named),
            )
        return self._matrices

    @property
    def size_bytes(self) -> int:
        """Memory in bytes, without the matrices."""
        return int(self._totals.nbytes + self._named.nbytes)


def _build_matrix(edges: Edges, gains: Floats, sums: Floats) -> sparse.csr_matrix:
    """Return the weights as a matrix, multiplied by each row's gain and divided by each column's sum."""
    from scipy import sparse  # 14 MB, loaded only when a graph is walked

    position, columns, weights = edges.gather(np.arange(len(gains)))
    starts = np.concatenate([[0], np.cumsum(edges.rows.lengths, dtype=np.int64)])
    shares = gains[position] * weights / sums[columns]
    return sparse.csr_matrix((shares, columns, starts), shape=(len(gains), len(sums)), copy=False)
