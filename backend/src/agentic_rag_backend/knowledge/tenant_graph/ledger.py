"""Mutable source of a tenant's graph, organised by document, so that an update costs in proportion to the changed documents.

Only the copies of a few arrays with one number per chunk or entity are proportional to the whole graph; see `rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.knowledge.tenant_graph.entity_names import EntityNames
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph, inverse_frequencies
from agentic_rag_backend.knowledge.tenant_graph.pagerank import DENSE_BELOW
from agentic_rag_backend.knowledge.tenant_graph.rows import Column, Edges, Ints, Keys, Numbered, Numbers, RowPool, Transitions
from agentic_rag_backend.knowledge.tenant_graph.visible_knowledge import EntityLabels, Knowledge, Namings, Texts

WORN_MINIMUM = 1000
"""Unused numbers up to this count never cause a rebuild."""
_DENSE_EDGE_BYTES = 24
"""Per edge in the two matrices for the walk over a small graph."""


@dataclass(frozen=True, slots=True)
class _NewEdges:
    """New edges, distinct, ordered by chunk and then by the entity's key, with their documents. Uses the ledger's numbers."""

    documents: Ints
    chunks: Ints
    entities: Ints
    about: Ints


class GraphLedger:
    """Keeps a graph up to date. Not thread-safe. Graphs that `graph` returned earlier never change.

    After a failure in `apply` the ledger must be discarded.
    """

    def __init__(self) -> None:
        self._documents, self._chunks, self._entities = Numbers(), Numbers(), Numbers()
        self._versions = Column(np.int32)
        self._chunks_of, self._namings_of = RowPool(), RowPool()
        self._mentions, self._links = RowPool(), RowPool()
        self._about = Column(np.int32)
        self._names = EntityNames(self._entities.ids)

    def version(self, document_id: str) -> int:
        """Return the visible version of a document. 0 if none is visible."""
        number = self._documents.index.get(document_id)
        return 0 if number is None else int(self._versions.view[number])

    @property
    def document_ids(self) -> Iterable[str]:
        """Ids of the visible documents."""
        return (self._documents.ids[number] for number in np.flatnonzero(self._versions.view).tolist())

    @property
    def document_count(self) -> int:
        """Number of visible documents."""
        return int(np.count_nonzero(self._versions.view))

    def apply(self, knowledge: Knowledge) -> None:
        """Replace the knowledge of the documents in ``knowledge.versions``."""
        versions = {id: version for id, version in knowledge.versions.items() if version or self.version(id)}
        self._documents.add(versions)
        documents = self._documents.numbers(versions)
        for rows in (self._chunks_of, self._namings_of, self._versions):
            rows.grow(len(self._documents))
        _, removed_chunks = self._chunks_of.now().gather(documents)
        _, unnamed = self._namings_of.now().gather(documents)
        _, removed_links = self._mentions.now().gather(removed_chunks)
        namings = self._number_namings(knowledge)
        edges = self._number_mentions(knowledge)
        linked = np.unique(np.concatenate([removed_links >> 1, edges.entities]))
        touched = np.unique(np.concatenate([linked, namings.entities, self._names.entities_of(unnamed)]))
        before = dict(self._found_by(touched))
        self._names.drop(unnamed)
        _put_groups(self._namings_of, documents, namings.documents, self._names.use(namings, knowledge))
        self._names.set_labels(self._number_labels(knowledge), knowledge)
        self._names.settle(touched)
        self._put_chunks(documents, removed_chunks, edges)
        self._put_links(linked, removed_chunks, edges)
        self._versions.view[documents] = list(versions.values())
        self._names.link(before, self._found_by(touched))

    def _number_namings(self, knowledge: Knowledge) -> Namings:
        """Return the namings with the ledger's numbers of documents and entities. Text numbers are unchanged."""
        namings = knowledge.namings
        entities = _number_ids(self._entities, knowledge.entities, namings.entities)
        for column in (self._links, self._about, self._names):
            column.grow(len(self._entities))
        return replace(namings, documents=_number_ids(self._documents, knowledge.documents, namings.documents), entities=entities)

    def _number_labels(self, knowledge: Knowledge) -> EntityLabels:
        """Return the labels of entities that have a number here. Other entities belong to no visible document."""
        labels = knowledge.entity_labels
        index = self._entities.index
        numbers = np.fromiter((index.get(id, -1) for id in knowledge.entities), dtype=np.int32, count=len(knowledge.entities))
        entities = numbers[labels.entities]
        is_numbered = entities >= 0
        return EntityLabels(entities[is_numbered], labels.names[is_numbered], labels.types[is_numbered])

    def _number_mentions(self, knowledge: Knowledge) -> _NewEdges:
        mentions = knowledge.mentions
        chunks = _number_ids(self._chunks, knowledge.chunks, mentions.chunks)
        self._mentions.grow(len(self._chunks))
        entities = _number_ids(self._entities, knowledge.entities, mentions.entities)
        # A chunk can both mention an entity and be about it. The stronger edge counts.
        order = np.lexsort((-mentions.about, entities, self._entities.keys[entities], chunks))
        pairs = np.stack([chunks[order], entities[order]])
        order = order[np.r_[True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)]] if len(order) else order
        documents = _number_ids(self._documents, knowledge.documents, mentions.documents[order])
        return _NewEdges(documents, chunks[order], entities[order], mentions.about[order])

    def _found_by(self, entities: Ints) -> Iterator[tuple[int, set[str]]]:
        """Yield the searchable names of entities. Entities that no chunk mentions are not searchable."""
        mentioned = entities[self._links.now().lengths[entities] > 0]
        return ((entity, self._names.normalise_names(entity)) for entity in mentioned.tolist())

    def _put_chunks(self, documents: Ints, removed_chunks: Ints, edges: _NewEdges) -> None:
        chunks, first_places, lengths = np.unique(edges.chunks, return_index=True, return_counts=True)
        _put_groups(self._chunks_of, documents, edges.documents[first_places], chunks)
        _empty_rows(self._mentions, np.unique(removed_chunks))
        self._mentions.replace(chunks, lengths, edges.entities * 2 + edges.about)

    def _put_links(self, entities: Ints, removed_chunks: Ints, edges: _NewEdges) -> None:
        position, values = self._links.now().gather(entities)
        is_gone = np.zeros(len(self._chunks), dtype=bool)
        is_gone[removed_chunks] = True
        stays = ~is_gone[values >> 1]
        position, values = position[stays], values[stays]
        keys = self._chunks.keys
        row, chunks = np.searchsorted(entities, edges.entities), edges.chunks
        order = np.lexsort((keys[chunks], row))
        row, chunks, about = row[order], chunks[order], edges.about[order]
        at = _find_places(np.bincount(position, minlength=len(entities)), keys[values >> 1], row, keys[chunks])
        position, values = np.insert(position, at, row), np.insert(values, at, chunks * 2 + about)
        self._links.replace(entities, np.bincount(position, minlength=len(entities)), values)
        self._about.view[entities] = np.bincount(position, weights=values & 1, minlength=len(entities))

    def graph(self) -> TenantGraph:
        """Return the current graph."""
        mentions, links, texts = self._mentions.snapshot(), self._links.snapshot(), self._names.texts()
        chunk_index = Numbered(self._chunks, mentions.lengths > 0)
        entity_index = Numbered(self._entities, texts.name_of >= 0)
        idf = inverse_frequencies(len(chunk_index), links.lengths)
        by_chunk, by_entity = Edges(mentions), Edges(links)
        chunk_keys, entity_keys = self._chunks.keys, self._entities.keys
        transitions = Transitions(
            by_chunk, by_entity, idf=idf, totals=links.lengths + self._about.view * 1.0, keys=(chunk_keys, entity_keys)
        )
        arrays: tuple[NDArray[np.generic], ...] = (idf, texts.name_of, texts.type_of)
        small = len(chunk_index) + len(entity_index) <= DENSE_BELOW
        return TenantGraph(
            chunk_ids=self._chunks.ids,
            chunk_index=chunk_index,
            entity_index=entity_index,
            entity_texts=texts,
            names=self._names.names(),
            idf=idf,
            document_frequency=links.lengths,
            about=self._about.view > 0,
            mentions=by_chunk,
            links=by_entity,
            chunk_keys=chunk_keys,
            entity_keys=entity_keys,
            transitions=transitions,
            size_bytes=self.size_bytes
            + mentions.size_bytes
            + links.size_bytes
            + sum(array.nbytes for array in arrays)
            + transitions.size_bytes
            + (_DENSE_EDGE_BYTES * int(links.lengths.sum()) if small else 0),
        )

    @property
    def worn(self) -> bool:
        """Whether most numbers are unused, so that a rebuild is worth its cost."""
        used = (
            (self._documents, np.count_nonzero(self._versions.view)),
            (self._chunks, np.count_nonzero(self._mentions.now().lengths)),
        )
        return self._names.worn or any(len(numbers) > 2 * count + WORN_MINIMUM for numbers, count in used)

    @property
    def size_bytes(self) -> int:
        """Estimated memory in bytes."""
        tables = self._documents.size_bytes + self._chunks.size_bytes + self._entities.size_bytes + self._names.size_bytes
        pools = (self._chunks_of, self._namings_of, self._mentions, self._links)
        return tables + self._versions.size_bytes + self._about.size_bytes + sum(pool.size_bytes for pool in pools)


def _empty_rows(pool: RowPool, rows: Ints) -> None:
    pool.replace(rows, np.zeros(len(rows), dtype=np.int64), np.zeros(0, dtype=np.int32))


def _put_groups(pool: RowPool, rows: Ints, of: Ints, values: Ints) -> None:
    """Replace each of ``rows`` by the values that belong to it according to ``of``. Rows without values become empty."""
    _empty_rows(pool, rows)
    order = np.argsort(of, kind="stable")
    groups, lengths = np.unique(of, return_counts=True)
    pool.replace(groups, lengths, values[order])


def _find_places(lengths: NDArray[np.int64], keys: Keys, row: NDArray[np.int64], new: Keys) -> NDArray[np.int64]:
    """Return the positions at which to insert new values into concatenated rows, each sorted by key.

    Args:
        lengths: lengths of the rows; ``keys`` are the keys of their values.
        row: row of each new value, ascending; ``new`` is its key, ascending within a row.
    """
    starts = np.cumsum(lengths) - lengths
    at = starts[row]
    groups, first_places, counts = np.unique(row, return_index=True, return_counts=True)
    grown = lengths[groups] > 0
    for number, begin, count in zip(groups[grown].tolist(), first_places[grown].tolist(), counts[grown].tolist(), strict=True):
        row_keys = keys[starts[number] : starts[number] + lengths[number]]
        at[begin : begin + count] += np.searchsorted(row_keys, new[begin : begin + count])
    return at


def _number_ids(numbers: Numbers, texts: Texts, used: Ints) -> Ints:
    """Return the ``numbers`` of ids that are given as places in ``texts``. New ids are added."""
    places = np.unique(used)
    ids = list(texts)
    used_ids = [ids[position] for position in places.tolist()]
    numbers.add(used_ids)
    numbers_of = np.zeros(len(ids), dtype=np.int32)
    numbers_of[places] = numbers.numbers(used_ids)
    return np.asarray(numbers_of[used])
