"""Reads which names share a chunk with a name in some documents."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph.base import KnowledgeStore

_MAX_ITEMS = 100_000
"""Names and mentions of documents that are kept for the next name."""


@dataclass(slots=True)
class _DocumentKnowledge:
    """The names and the mentions of one document, by entity."""

    names: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    bearing: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The entities by name."""
    chunks: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The chunks by entity."""
    entities: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The entities by chunk."""
    items: int = 0

    def near(self, name: str) -> frozenset[str]:
        bearing = self.bearing.get(name, set())
        chunks = set[str]().union(*(self.chunks.get(entity, ()) for entity in bearing))
        neighbours = set[str]().union(*(self.entities[chunk] for chunk in chunks)) - bearing
        return frozenset(set[str]().union(*(self.names.get(entity, ()) for entity in neighbours)) - {"", name})


class NearNames:
    """Reads documents of a tenant for several names. Each document is read once, while the graph does not change.

    It keeps at most `_MAX_ITEMS` names and mentions, those of the documents that it used last.
    """

    def __init__(self, store: KnowledgeStore, tenant: TenantId) -> None:
        self._store = store
        self._tenant = tenant
        self._documents: OrderedDict[str, _DocumentKnowledge] = OrderedDict()
        self._items = 0

    async def near(self, name: str, document_ids: Iterable[str]) -> dict[str, frozenset[str]]:
        """Return the names that share a chunk with a name, by document. All are normalised. Documents without any are absent."""
        by_document: dict[str, frozenset[str]] = {}
        for document_id in document_ids:
            document = await self._read_document(document_id)
            if names := document.near(name):
                by_document[document_id] = names
        return by_document

    async def _read_document(self, document_id: str) -> _DocumentKnowledge:
        document = self._documents.get(document_id)
        if document is None:
            document = self._documents[document_id] = await self._load_document(document_id)
            self._items += document.items
            while self._items > _MAX_ITEMS and len(self._documents) > 1:
                _, oldest = self._documents.popitem(last=False)
                self._items -= oldest.items
        self._documents.move_to_end(document_id)
        return document

    async def _load_document(self, document_id: str) -> _DocumentKnowledge:
        document = _DocumentKnowledge()
        of: Sequence[str] = [document_id]
        async for namings in self._store.all_names(self._tenant, of):
            document.items += len(namings)
            for naming in namings:
                key = normalise_name(naming.name)
                document.names[naming.entity_id].add(key)
                document.bearing[key].add(naming.entity_id)
        async for mentions in self._store.all_mentions(self._tenant, of):
            document.items += len(mentions)
            for mention in mentions:
                document.chunks[mention.entity_id].add(mention.support.chunk_id)
                document.entities[mention.support.chunk_id].add(mention.entity_id)
        return document
