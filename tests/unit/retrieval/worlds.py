"""A catalogue and a graph store in memory, for tests of incremental graphs. They can be changed during reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.domain.graph import ChunkMentions, DocumentNames, EntityLabel, KnowledgeBatch, Mention, Naming, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.retrieval.tenant_graph.visible_knowledge import Knowledge
from agentic_rag_backend.stores.catalogue.base import Visibility
from agentic_rag_backend.stores.graph.knowledge_batches import group_knowledge


@dataclass(frozen=True)
class Says:
    """A chunk names an entity; ``about`` if the entity is the chunk's topic."""

    chunk: str
    entity: str
    name: str
    about: bool = False


@dataclass
class World:
    """The documents of one tenant, returned for any tenant. A version's knowledge exists from `write` to `purge`."""

    state_version: int = 0
    visible: dict[str, int] = field(default_factory=dict)
    said: dict[tuple[str, int], tuple[Says, ...]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    log: list[tuple[int, str, int]] = field(default_factory=list)
    on_record: int = 1_000
    reads: list[Sequence[str] | None] = field(default_factory=list)
    failures: int = 0
    before_read: Callable[[], object] = lambda: None
    """Called before each batch of mentions and of names."""

    def write(self, document: str, version: int, *said: Says) -> None:
        """Write a version's knowledge. The first name that any document gives an entity is its stored name."""
        self.said[document, version] = said
        for each in said:
            self.labels.setdefault(each.entity, each.name)

    def publish(self, document: str, version: int) -> None:
        self._changed(document, version)
        self.visible[document] = version

    def show(self, document: str, version: int, *said: Says) -> None:
        """Write and publish a version, and remove the older ones."""
        self.write(document, version, *said)
        self.publish(document, version)
        self.purge(document, up_to=version - 1)

    def hide(self, document: str) -> None:
        self._changed(document, 0)
        del self.visible[document]

    def purge(self, document: str, *, up_to: int) -> None:
        """Remove versions. If no version uses an entity's stored name any more, the first name in use replaces it."""
        touched = set()
        for key in [key for key in self.said if key[0] == document and key[1] <= up_to]:
            touched |= {each.entity for each in self.said.pop(key)}
        for entity in touched:
            names = {each.name for said in self.said.values() for each in said if each.entity == entity}
            if not names:
                del self.labels[entity]
            elif self.labels[entity] not in names:
                self.labels[entity] = min(names)

    def _changed(self, document: str, version: int) -> None:
        self.state_version += 1
        self.log.append((self.state_version, document, version))

    async def visibility(self, tenant: TenantId, *, since: int | None = None) -> Visibility:
        if since is None or not self.state_version - self.on_record <= since <= self.state_version:
            return Visibility(self.state_version, dict(self.visible), whole=True)
        changed = {document: version for at, document, version in self.log if at > since}
        return Visibility(self.state_version, changed, whole=False)

    async def stream_knowledge(
        self, tenant: TenantId, document_ids: Sequence[str] | None = None
    ) -> AsyncIterator[KnowledgeBatch]:
        self.reads.append(document_ids if document_ids is None else tuple(document_ids))
        async for said in group_knowledge(self._all_mentions(document_ids), self._all_names(document_ids)):
            yield said

    async def _all_mentions(self, document_ids: Sequence[str] | None) -> AsyncIterator[list[Mention]]:
        for key in self._asked(document_ids):
            self.before_read()
            if self.failures:
                self.failures -= 1
                raise StoreUnavailable("the graph store is away")
            yield self.mentions(key)

    async def _all_names(self, document_ids: Sequence[str] | None) -> AsyncIterator[list[Naming]]:
        for key in self._asked(document_ids):
            self.before_read()
            yield self.namings(key)

    def _asked(self, document_ids: Sequence[str] | None) -> list[tuple[str, int]]:
        return sorted(key for key in self.said if document_ids is None or key[0] in document_ids)

    def mentions(self, key: tuple[str, int]) -> list[Mention]:
        held: dict[tuple[str, str], bool] = {}
        for each in self.said.get(key, ()):
            held[each.chunk, each.entity] = held.get((each.chunk, each.entity), False) or each.about
        return [Mention(entity, Support(*key, chunk), about=about) for (chunk, entity), about in held.items()]

    def namings(self, key: tuple[str, int]) -> list[Naming]:
        names = dict.fromkeys((each.entity, each.name) for each in self.said.get(key, ()))
        return [
            Naming(
                document_id=key[0],
                version=key[1],
                entity_id=entity,
                name=name,
                entity_name=self.labels[entity],
                entity_type=f"type of {entity}",
            )
            for entity, name in names
        ]

    def knowledge(self, versions: Mapping[str, int] | None = None) -> Knowledge:
        """Return all visible knowledge, or that of some documents."""
        keys: Mapping[str, int] = dict(self.visible) if versions is None else versions
        mentions = [mention for key in keys.items() for mention in self.mentions(key)]
        return known(keys, mentions, [naming for key in keys.items() for naming in self.namings(key)])


def known(versions: Mapping[str, int], mentions: Sequence[Mention] = (), namings: Sequence[Naming] = ()) -> Knowledge:
    """Return the knowledge of documents in one batch."""
    chunks = [ChunkMentions(each.support, [each.entity_id], [each.about]) for each in mentions]
    names = [DocumentNames(each.document_id, each.version, [each.entity_id], [each.name]) for each in namings]
    labels = [EntityLabel(each.entity_id, each.entity_name, each.entity_type) for each in namings]
    return Knowledge(versions, [KnowledgeBatch(chunks, names, labels)])
