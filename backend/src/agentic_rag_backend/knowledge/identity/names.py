"""The names of one document, and which of them share a chunk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from agentic_rag_backend.language.descriptions import Description


@dataclass(frozen=True, slots=True)
class OwnName:
    """A name as one document uses it. ``aliases`` are its other names outside the document, as written by normalised form."""

    key: str
    type: str
    aliases: Mapping[str, str]
    description: Description


@dataclass(frozen=True, slots=True)
class DocumentNames:
    """The names of a document. ``chunks`` has the numbers of the names that each chunk mentions."""

    names: tuple[OwnName, ...]
    chunks: tuple[tuple[int, ...], ...] = ()

    def chunks_by_name(self) -> dict[int, list[int]]:
        """Return the numbers of the chunks that mention a name, by the name's number."""
        places: defaultdict[int, list[int]] = defaultdict(list)
        for number, mentioned in enumerate(self.chunks):
            for name in mentioned:
                places[name].append(number)
        return places

    def near(self, number: int, chunks: Mapping[int, list[int]]) -> frozenset[str]:
        """Return the document's other names that share a chunk with a name, normalised. ``chunks`` is `chunks_by_name`."""
        neighbours = {neighbour for chunk in chunks.get(number, ()) for neighbour in self.chunks[chunk]} - {number}
        return frozenset(key for neighbour in neighbours for key in (self.names[neighbour].key, *self.names[neighbour].aliases))
