"""A tenant's chunk–entity graph in memory, with visible knowledge only. The walk and the hops read it.

Index of names by the acronyms that abbreviate them, for questions that use an acronym that is no name.

Entities that share chunks with an entity, bounded at hubs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.graph import EntityRef
from agentic_rag_backend.knowledge.extraction.names.aliases import acronyms_of
from agentic_rag_backend.knowledge.tenant_graph.rows import Edges, Floats, Ints, Keys, Numbered, Transitions

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


__all__ = ["ABOUT_WEIGHT", "EntityTexts", "Floats", "Ints", "Names", "TenantGraph", "inverse_frequencies"]

ABOUT_WEIGHT = 2.0
"""Twice a mention's weight: an entity leads first to the chunks whose title or heading it is."""

D = TypeVar("D")
V = TypeVar("V")


class Names(Mapping[str, tuple[int, ...]]):
    """Entities by normalised name: a large shared mapping, and changes to it that take precedence. () marks a removed name."""

    __slots__ = ("_acronyms", "_changed", "_changed_acronyms", "_settled")

    def __init__(
        self, settled: Mapping[str, tuple[int, ...]], changed: Mapping[str, tuple[int, ...]], acronyms: Acronyms | None = None
    ) -> None:
        """``acronyms`` is the index of ``settled``, which successive mappings share."""
        self._settled = settled
        self._changed = changed
        self._acronyms = acronyms or Acronyms(settled)
        self._changed_acronyms = Acronyms(changed)

    def __getitem__(self, name: str) -> tuple[int, ...]:
        entities = self.get(name)
        if not entities:
            raise KeyError(name)
        return entities

    @overload
    def get(self, name: str, /) -> tuple[int, ...] | None: ...
    @overload
    def get(self, name: str, /, default: tuple[int, ...] | D) -> tuple[int, ...] | D: ...
    def get(self, name: str, /, default: object = None) -> object:
        """See `Mapping`. A question looks up every run of its words, so a name that is absent costs no exception."""
        entities = self._changed.get(name)
        return (self._settled.get(name) if entities is None else entities) or default

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys((*self._settled, *self._changed))
        return (name for name in names if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def expand_abbreviation(self, short: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the names that an acronym abbreviates, with their entities. The first call builds the index."""
        for name in self._acronyms.names(short):
            if name not in self._changed:
                yield name, self._settled[name]
        for name in self._changed_acronyms.names(short):
            if entities := self._changed[name]:
                yield name, entities

    def matching(self, words: str) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the names with a word that ``words`` begin at, with their entities. The cost is that of all names."""
        inside = f" {words}"
        for name, entities in self._settled.items():
            if (name.startswith(words) or inside in name) and name not in self._changed:
                yield name, entities
        for name, entities in self._changed.items():
            if (name.startswith(words) or inside in name) and entities:
                yield name, entities


@dataclass(frozen=True, slots=True)
class EntityTexts:
    """Displayed names and types of entities, as text numbers by entity.

    ``entity_of`` is the entity of each name, and ``uses`` the number of visible documents that use the name for it.
    """

    ids: Sequence[str]
    names: Sequence[str]
    types: Sequence[str]
    name_of: Ints
    type_of: Ints
    entity_of: Ints
    uses: Ints


@dataclass(frozen=True, slots=True)
class TenantGraph:
    """Chunks and entities as numbers. Results do not depend on the numbering: equal knowledge gives bit-identical results.

    The graph is immutable. An updated graph is a new object that shares unchanged parts. Numbers may be unused: arrays are as
    long
    as the largest number, ``chunk_count`` is the number of chunks.
    """

    chunk_ids: Sequence[str]
    """By number. May extend beyond this graph's chunks."""
    chunk_index: Numbered
    entity_index: Numbered
    entity_texts: EntityTexts
    names: Names
    idf: Floats
    document_frequency: Ints
    about: NDArray[np.bool_]
    """Whether any chunk is about the entity."""
    mentions: Edges
    """By chunk: the entities it mentions, with weight 1, or `ABOUT_WEIGHT` if the chunk is about the entity."""
    links: Edges
    """By entity: the chunks that mention it, with the same weights."""
    chunk_keys: Keys
    entity_keys: Keys
    """Orders equal candidates independently of their numbers."""
    transitions: Transitions
    size_bytes: int
    """Estimated memory in bytes, including the data for incremental updates."""
    shown: dict[int, tuple[EntityRef, ...]] = field(default_factory=dict, compare=False, repr=False)
    """Entities of chunks in the form used in answers, by chunk: a cache that readers fill."""

    @property
    def chunk_count(self) -> int:
        """Number of chunks that mention any entity."""
        return len(self.chunk_index)

    @property
    def node_count(self) -> int:
        """Number of chunks and entities."""
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

    def find_mentioned_number(self, id: str) -> int | None:
        """Return the number of an entity that a visible chunk mentions; None otherwise. Other entities are as good as unknown."""
        number = self.entity_index.get(id)
        return number if number is not None and self.document_frequency[number] > 0 else None

    def entity(self, number: int) -> EntityRef:
        """Return an entity in the form used in answers."""
        texts = self.entity_texts
        return EntityRef(texts.ids[number], texts.names[texts.name_of[number]], texts.types[texts.type_of[number]])

    def names_of(self, number: int) -> list[str]:
        """Return the names that visible documents use for an entity: the displayed name, then the most used ones."""
        texts = self.entity_texts
        used = np.flatnonzero((texts.entity_of == number) & (texts.uses > 0)).tolist()
        display_name = texts.name_of[number]
        used.sort(key=lambda name: (name != display_name, -texts.uses[name], texts.names[name]))
        return [texts.names[name] for name in used]


def inverse_frequencies(chunks: int, document_frequency: Ints) -> Floats:
    """Return ``log(1 + chunks ÷ df)`` of each entity.

    Computed once for each df, so that equal frequencies give bit-identical values.
    """
    largest = int(document_frequency.max(initial=0))
    table = np.log1p(chunks / np.maximum(np.arange(largest + 1), 1))
    return np.asarray(table[document_frequency])


READ_CHUNKS = 300
"""Chunks of a hub whose entities are read. The keys of the chunks select them, so the choice is always the same."""


def sharing_chunks(graph: TenantGraph, number: int, *, limit: int) -> Mapping[int, int]:
    """Return the entities that share most chunks with an entity, with the number of shared chunks, at most ``limit``.

    Of equal ones, rarer entities come first. Of entities with many chunks, `READ_CHUNKS` are read.
    """
    _, entities, _ = graph.mentions.gather(_select_chunks(graph, graph.links.of(number)))
    neighbours, shared = np.unique(entities[entities != number], return_counts=True)
    order = np.lexsort((graph.entity_keys[neighbours], graph.document_frequency[neighbours], -shared))[:limit]
    return dict(zip(neighbours[order].tolist(), shared[order].tolist(), strict=True))


def shared_count(graph: TenantGraph, entity_a: int, entity_b: int) -> int:
    """Return the number of chunks that mention both entities."""
    return len(np.intersect1d(graph.links.of(entity_a), graph.links.of(entity_b)))


def shared_chunk(graph: TenantGraph, entity_a: int, entity_b: int) -> str | None:
    """Return the id of a chunk that mentions both entities, None without any. The key of the chunk selects it."""
    common = np.intersect1d(graph.links.of(entity_a), graph.links.of(entity_b))
    return None if not len(common) else graph.chunk_ids[int(common[np.argmin(graph.chunk_keys[common])])]


def first_chunks(graph: TenantGraph, number: int, *, limit: int) -> list[str]:
    """Return the ids of chunks that mention an entity, those about it first, at most ``limit``."""
    _, chunks, weights = graph.links.gather(np.array([number]))
    order = np.lexsort((graph.chunk_keys[chunks], -weights))[:limit]
    return [graph.chunk_ids[chunk] for chunk in chunks[order].tolist()]


def _select_chunks(graph: TenantGraph, chunks: Ints) -> Ints:
    if len(chunks) <= READ_CHUNKS:
        return chunks
    return np.asarray(chunks[np.argpartition(graph.chunk_keys[chunks], READ_CHUNKS)[:READ_CHUNKS]])
