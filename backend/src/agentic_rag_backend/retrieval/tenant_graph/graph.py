"""A tenant's chunk–entity graph in memory: what the walk and the hops read, visible knowledge only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.retrieval.tenant_graph.numbering import Keys, Numbered
from agentic_rag_backend.retrieval.tenant_graph.row_pool import Ints
from agentic_rag_backend.retrieval.tenant_graph.transitions import Edges, Floats, Transitions

__all__ = ["ABOUT_WEIGHT", "EntityTexts", "Floats", "Ints", "Names", "TenantGraph", "inverse_frequencies"]

ABOUT_WEIGHT = 2.0
"""A chunk whose title or heading is the entity is where a mention of it should lead: twice a mention's weight."""

V = TypeVar("V")


class Names(Mapping[str, tuple[int, ...]]):
    """Entities by normalised name: a large mapping that stays, and beside it what changed since; () means gone."""

    __slots__ = ("_changed", "_settled")

    def __init__(self, settled: Mapping[str, tuple[int, ...]], changed: Mapping[str, tuple[int, ...]]) -> None:
        self._settled = settled
        self._changed = changed

    def __getitem__(self, name: str) -> tuple[int, ...]:
        found = self._changed.get(name)
        if found is None:
            found = self._settled.get(name, ())
        if not found:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys((*self._settled, *self._changed))
        return (name for name in names if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, slots=True)
class EntityTexts:
    """What entities are called and of what type: numbers of texts, by entity."""

    ids: Sequence[str]
    names: Sequence[str]
    types: Sequence[str]
    name_of: Ints
    type_of: Ints


@dataclass(frozen=True, slots=True)
class TenantGraph:
    """Chunks and entities as numbers, which say nothing about their order: equal knowledge gives equal answers, to the bit.

    It never changes; the graph after a change of documents is another one that shares what stayed. Numbers may be out of
    use: arrays by number are as long as the largest number given, ``chunk_count`` is how many chunks there are.
    """

    chunk_ids: Sequence[str]
    """By number; may go on beyond this graph's chunks."""
    chunk_index: Numbered
    entity_index: Numbered
    entity_texts: EntityTexts
    names: Names
    idf: Floats
    document_frequency: Ints
    about: NDArray[np.bool_]
    """Whether any chunk is about the entity."""
    mentions: Edges
    """By chunk: the entities it mentions; weight 1, or `ABOUT_WEIGHT` for what it is about."""
    links: Edges
    """By entity: the chunks that mention it, with the same weights."""
    chunk_keys: Keys
    entity_keys: Keys
    """What puts equal candidates in order, whatever their numbers."""
    transitions: Transitions
    size_bytes: int
    """An estimate of the memory held, with what is held to bring the graph up to date."""

    @property
    def chunk_count(self) -> int:
        """How many chunks there are that mention anything."""
        return len(self.chunk_index)

    @property
    def node_count(self) -> int:
        """How many chunks and entities there are."""
        return len(self.chunk_index) + len(self.entity_index)

    @property
    def chunk_places(self) -> int:
        """Length of an array by chunk number."""
        return len(self.mentions.rows.lengths)

    @property
    def entity_places(self) -> int:
        """Length of an array by entity number."""
        return len(self.idf)

    def entities_of(self, chunk: int) -> Ints:
        """Return the entities of one chunk."""
        return self.mentions.of(chunk)

    def entity(self, number: int) -> EntityRef:
        """Return an entity as answers show it."""
        texts = self.entity_texts
        return EntityRef(texts.ids[number], texts.names[texts.name_of[number]], texts.types[texts.type_of[number]])


def inverse_frequencies(chunks: int, document_frequency: Ints) -> Floats:
    """Return ``log(1 + chunks ÷ df)`` of each entity; looked up by df, so that equal ones are equal to the bit."""
    largest = int(document_frequency.max(initial=0))
    table = np.log1p(chunks / np.maximum(np.arange(largest + 1), 1))
    return np.asarray(table[document_frequency])
