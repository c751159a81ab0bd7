"""Knowledge of documents as arrays of numbers, added in batches, so that there is no object per mention and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from agentic_rag_backend.domain.graph import KnowledgeBatch
from agentic_rag_backend.knowledge.tenant_graph.rows import Ints
from agentic_rag_backend.knowledge.visible.facts import is_visible, supports_now


class Texts(dict[str, int]):
    """Distinct texts, numbered in order of arrival."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number

    def numbers(self, texts: Iterable[str], count: int) -> Ints:
        """Return the numbers of ``count`` texts. New texts get the next numbers."""
        return np.fromiter((self[text] for text in texts), dtype=np.int32, count=count)


@dataclass(frozen=True, slots=True)
class Mentions:
    """One number per mention in each array."""

    documents: Ints
    chunks: Ints
    entities: Ints
    about: Ints


@dataclass(frozen=True, slots=True)
class Namings:
    """One number per naming in each array: a document uses a name for an entity."""

    documents: Ints
    entities: Ints
    names: Ints


@dataclass(frozen=True, slots=True)
class EntityLabels:
    """One number per entity in each array, the newest last: the name and type of the entity in the graph store."""

    entities: Ints
    names: Ints
    types: Ints


class Knowledge:
    """Knowledge of some documents: ``versions`` that are visible now (0: none), and their mentions and names.

    Mentions and names of other versions may be added and are ignored, as are mentions of entities that the document does not
    name. `documents`, `chunks`, `entities`, `names` and `types` resolve the numbers of this object.
    """

    def __init__(self, versions: Mapping[str, int], batches: Iterable[KnowledgeBatch] = ()) -> None:
        self.versions = dict(versions)
        self.documents, self.chunks, self.entities, self.names, self.types = Texts(), Texts(), Texts(), Texts(), Texts()
        nothing = KnowledgeBatch()
        self._mentions, self._namings, self._entity_labels = (
            [self._add_mentions(nothing)],
            [self._add_names(nothing)],
            [self._add_labels(nothing)],
        )
        for batch in batches:
            self.add(batch)

    def add(self, batch: KnowledgeBatch) -> None:
        """Add a batch. Labels only count for entities that were named before."""
        self._mentions.append(self._add_mentions(batch))
        self._namings.append(self._add_names(batch))
        self._entity_labels.append(self._add_labels(batch))

    def _add_mentions(self, batch: KnowledgeBatch) -> Ints:
        visible = [mention for mention in batch.mentions if supports_now(self.versions, mention.support)]
        lengths = [len(row.entity_ids) for row in visible]
        count = sum(lengths)
        columns = (
            np.repeat(self.documents.numbers((row.support.document_id for row in visible), len(visible)), lengths),
            np.repeat(self.chunks.numbers((row.support.chunk_id for row in visible), len(visible)), lengths),
            self.entities.numbers((id for row in visible for id in row.entity_ids), count),
            np.fromiter((about for row in visible for about in row.about), dtype=np.int32, count=count),
        )
        return np.stack(columns)

    def _add_names(self, batch: KnowledgeBatch) -> Ints:
        visible = [name for name in batch.names if is_visible(self.versions, name.document_id, name.version)]
        lengths = [len(row.entity_ids) for row in visible]
        columns = (
            np.repeat(self.documents.numbers((row.document_id for row in visible), len(visible)), lengths),
            self.entities.numbers((id for row in visible for id in row.entity_ids), sum(lengths)),
            self.names.numbers((name for row in visible for name in row.names), sum(lengths)),
        )
        return np.stack(columns)

    def _add_labels(self, batch: KnowledgeBatch) -> Ints:
        visible = [label for label in batch.labels if label.entity_id in self.entities]
        columns = (
            self.entities.numbers((row.entity_id for row in visible), len(visible)),
            self.names.numbers((row.name for row in visible), len(visible)),
            self.types.numbers((row.type for row in visible), len(visible)),
        )
        return np.stack(columns)

    def forget(self, changed: Mapping[str, int]) -> None:
        """Change visible versions, and drop the added knowledge of those documents."""
        self.versions |= changed
        documents = np.array([self.documents[id] for id in changed if id in self.documents], dtype=np.int32)
        for columns in (self._mentions, self._namings):
            columns[:] = [column[:, ~np.isin(column[0], documents)] for column in columns]

    @property
    def namings(self) -> Namings:
        """All added namings."""
        return Namings(*_join_columns(self._namings))

    @property
    def entity_labels(self) -> EntityLabels:
        """All added labels, including those of entities that no visible document names."""
        return EntityLabels(*_join_columns(self._entity_labels))

    @property
    def mentions(self) -> Mentions:
        """All added mentions of entities that their documents name."""
        columns, (documents, entities, _) = _join_columns(self._mentions), _join_columns(self._namings)
        count = np.int64(max(1, len(self.entities)))
        names = np.isin(columns[0].astype(np.int64) * count + columns[2], documents.astype(np.int64) * count + entities)
        return Mentions(*columns[:, names])


def _join_columns(columns: list[Ints]) -> Ints:
    """Join the batches into one array, and store it as the only batch."""
    columns[:] = [np.concatenate(columns, axis=1)]
    return columns[0]
