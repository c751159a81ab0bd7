"""What documents say, taken in batch by batch as numbers, so that no object is kept for each mention and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agentic_rag_backend.domain.graph import Mention, Naming
from agentic_rag_backend.retrieval.row_pool import Ints


class Texts(dict[str, int]):
    """Texts, each held once, with numbers in the order in which they came."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number

    def numbers(self, texts: Iterable[str], count: int) -> Ints:
        """Return the numbers of ``count`` texts; new ones get the next."""
        return np.fromiter((self[text] for text in texts), dtype=np.int32, count=count)


@dataclass(frozen=True, slots=True)
class Mentions:
    """One number a mention in each array."""

    documents: Ints
    chunks: Ints
    entities: Ints
    about: Ints


@dataclass(frozen=True, slots=True)
class Namings:
    """One number a naming in each array: who calls which entity how, and under which name and type it is filed."""

    documents: Ints
    entities: Ints
    names: Ints
    filed: Ints
    types: Ints


class Knowledge:
    """What some documents say: ``versions`` that are visible now (0: none), and the mentions and names of those.

    Mentions and names of other versions may be among those that are added, and do not count; nor does a mention of what its
    document does not name. Numbers are its own: `documents`, `chunks`, `entities`, `names` and `types` tell whose.
    """

    def __init__(self, versions: Mapping[str, int], mentions: Sequence[Mention] = (), namings: Sequence[Naming] = ()) -> None:
        self.versions = dict(versions)
        self.documents, self.chunks, self.entities, self.names, self.types = Texts(), Texts(), Texts(), Texts(), Texts()
        self._mentions: list[Ints] = []
        self._namings: list[Ints] = []
        self.add_mentions(mentions)
        self.add_namings(namings)

    def add_mentions(self, mentions: Sequence[Mention]) -> None:
        """Take in some mentions."""
        visible = self.versions.get
        kept = [each for each in mentions if visible(each.support.document_id) == each.support.version]
        count = len(kept)
        columns = (
            self.documents.numbers((each.support.document_id for each in kept), count),
            self.chunks.numbers((each.support.chunk_id for each in kept), count),
            self.entities.numbers((each.entity_id for each in kept), count),
            np.fromiter((each.about for each in kept), dtype=np.int32, count=count),
        )
        self._mentions.append(np.stack(columns))

    def add_namings(self, namings: Sequence[Naming]) -> None:
        """Take in some names."""
        visible = self.versions.get
        kept = [each for each in namings if visible(each.document_id) == each.version]
        count = len(kept)
        columns = (
            self.documents.numbers((each.document_id for each in kept), count),
            self.entities.numbers((each.entity_id for each in kept), count),
            self.names.numbers((each.name for each in kept), count),
            self.names.numbers((each.entity_name for each in kept), count),
            self.types.numbers((each.entity_type for each in kept), count),
        )
        self._namings.append(np.stack(columns))

    def forget(self, changed: Mapping[str, int]) -> None:
        """Let other versions be visible, and drop what was taken in of those documents."""
        self.versions |= changed
        gone = np.array([self.documents[id] for id in changed if id in self.documents], dtype=np.int32)
        for columns in (self._mentions, self._namings):
            columns[:] = [each[:, ~np.isin(each[0], gone)] for each in columns]

    @property
    def namings(self) -> Namings:
        """The names taken in."""
        return Namings(*_joined(self._namings))

    @property
    def mentions(self) -> Mentions:
        """The mentions taken in of what their documents name."""
        columns, (documents, entities, *_) = _joined(self._mentions), _joined(self._namings)
        count = np.int64(max(1, len(self.entities)))
        named = np.isin(columns[0].astype(np.int64) * count + columns[2], documents.astype(np.int64) * count + entities)
        return Mentions(*columns[:, named])


def _joined(columns: list[Ints]) -> Ints:
    """Return what was taken in as one, and keep it so."""
    columns[:] = [np.concatenate(columns, axis=1)]
    return columns[0]
