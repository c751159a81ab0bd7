"""Ids as numbers that stay: the same id keeps its number for as long as the table lives."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.retrieval.tenant_graph.row_pool import Column, Ints

Keys = NDArray[np.uint64]

_ENTRY_BYTES = 140
"""Of one id in a list and a dict beside its text: two pointers, hash, spare places and the number."""


class Numbers:
    """Numbers of ids, given in the order in which ids come; within one call, in the order of their keys.

    A key is a hash of the id: sorted by it, rows and sums come in one order whatever came first. (Two of a million ids share
    a key with probability 3e-8, and would at most be added in another order.)
    """

    __slots__ = ("_keys", "_text_bytes", "ids", "index")

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.index: dict[str, int] = {}
        self._keys = Column(np.uint64)
        self._text_bytes = 0

    def add(self, ids: Iterable[str]) -> None:
        """Number those that have no number yet."""
        unknown = [id for id in dict.fromkeys(ids) if id not in self.index]
        if not unknown:
            return
        keys = np.fromiter((_key(id) for id in unknown), dtype=np.uint64, count=len(unknown))
        order = np.argsort(keys, kind="stable")
        first = len(self.ids)
        new = [unknown[place] for place in order.tolist()]
        # First the id, then what leads to it: a reader beside this finds both or none.
        self.ids.extend(new)
        for number, id in enumerate(new, first):
            self.index[id] = number
        self._text_bytes += sum(sys.getsizeof(id) for id in new)
        self._keys.grow(len(self.ids))
        self._keys.view[first:] = keys[order]

    def numbers(self, ids: Collection[str]) -> Ints:
        """Return the numbers of ids that all have one."""
        return np.fromiter((self.index[id] for id in ids), dtype=np.int32, count=len(ids))

    @property
    def keys(self) -> Keys:
        """The keys by number; they never change, so a view of them is good for ever."""
        return self._keys.view

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size_bytes(self) -> int:
        """An estimate of the memory held."""
        return self._text_bytes + _ENTRY_BYTES * len(self.ids) + self._keys.size_bytes


def _key(id: str) -> int:
    return int.from_bytes(blake2b(id.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


class Numbered(Mapping[str, int]):
    """The ids of a table that were in use at one moment, with their numbers; what came later is not among them."""

    __slots__ = ("_count", "_in_use", "_numbers")

    def __init__(self, numbers: Numbers, in_use: NDArray[np.bool_]) -> None:
        self._numbers = numbers
        self._in_use = in_use
        self._count = int(np.count_nonzero(in_use))

    def __getitem__(self, id: str) -> int:
        number = self._numbers.index[id]
        if number >= len(self._in_use) or not self._in_use[number]:
            raise KeyError(id)
        return number

    def __iter__(self) -> Iterator[str]:
        return (self._numbers.ids[number] for number in np.flatnonzero(self._in_use).tolist())

    def __len__(self) -> int:
        return self._count
