"""What documents say, taken in batch by batch as numbers, so that no object is kept for each mention and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from agentic_rag_backend.domain.graph import Said
from agentic_rag_backend.retrieval.tenant_graph.row_pool import Ints


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
    """One number a naming in each array: who calls which entity how."""

    documents: Ints
    entities: Ints
    names: Ints


@dataclass(frozen=True, slots=True)
class Filings:
    """One number an entity in each array, the newest last: under which name and type it is filed."""

    entities: Ints
    names: Ints
    types: Ints


class Knowledge:
    """What some documents say: ``versions`` that are visible now (0: none), and the mentions and names of those.

    Mentions and names of other versions may be among those that are added, and do not count; nor does a mention of what its
    document does not name. Numbers are its own: `documents`, `chunks`, `entities`, `names` and `types` tell whose.
    """

    def __init__(self, versions: Mapping[str, int], said: Iterable[Said] = ()) -> None:
        self.versions = dict(versions)
        self.documents, self.chunks, self.entities, self.names, self.types = Texts(), Texts(), Texts(), Texts(), Texts()
        nothing = Said()
        self._mentions, self._namings, self._filings = (
            [self._mentioned(nothing)],
            [self._named(nothing)],
            [self._filed(nothing)],
        )
        for some in said:
            self.add(some)

    def add(self, said: Said) -> None:
        """Take some in; what entities are filed under counts for those that were named before."""
        self._mentions.append(self._mentioned(said))
        self._namings.append(self._named(said))
        self._filings.append(self._filed(said))

    def _mentioned(self, said: Said) -> Ints:
        visible = self.versions.get
        kept = [each for each in said.mentions if visible(each.support.document_id) == each.support.version]
        lengths = [len(each.entity_ids) for each in kept]
        count = sum(lengths)
        columns = (
            np.repeat(self.documents.numbers((each.support.document_id for each in kept), len(kept)), lengths),
            np.repeat(self.chunks.numbers((each.support.chunk_id for each in kept), len(kept)), lengths),
            self.entities.numbers((id for each in kept for id in each.entity_ids), count),
            np.fromiter((about for each in kept for about in each.about), dtype=np.int32, count=count),
        )
        return np.stack(columns)

    def _named(self, said: Said) -> Ints:
        visible = self.versions.get
        kept = [each for each in said.names if visible(each.document_id) == each.version]
        lengths = [len(each.entity_ids) for each in kept]
        columns = (
            np.repeat(self.documents.numbers((each.document_id for each in kept), len(kept)), lengths),
            self.entities.numbers((id for each in kept for id in each.entity_ids), sum(lengths)),
            self.names.numbers((name for each in kept for name in each.names), sum(lengths)),
        )
        return np.stack(columns)

    def _filed(self, said: Said) -> Ints:
        kept = [each for each in said.filed if each.entity_id in self.entities]
        columns = (
            self.entities.numbers((each.entity_id for each in kept), len(kept)),
            self.names.numbers((each.name for each in kept), len(kept)),
            self.types.numbers((each.type for each in kept), len(kept)),
        )
        return np.stack(columns)

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
    def filings(self) -> Filings:
        """What entities are filed under, those included that nothing visible names."""
        return Filings(*_joined(self._filings))

    @property
    def mentions(self) -> Mentions:
        """The mentions taken in of what their documents name."""
        columns, (documents, entities, _) = _joined(self._mentions), _joined(self._namings)
        count = np.int64(max(1, len(self.entities)))
        named = np.isin(columns[0].astype(np.int64) * count + columns[2], documents.astype(np.int64) * count + entities)
        return Mentions(*columns[:, named])


def _joined(columns: list[Ints]) -> Ints:
    """Return what was taken in as one, and keep it so."""
    columns[:] = [np.concatenate(columns, axis=1)]
    return columns[0]
