"""Stable numbers for ids: an id keeps its number for the lifetime of the table."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.knowledge.tenant_graph.row_pool import Column, Ints

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
