"""The graph store port: the record of knowledge.

Contract, which `testing.stores.graph_store` checks on every adapter:

- every method's first argument is the tenant; anything but a `TenantId` raises `InvalidScope`; nodes and edges of another
  tenant are never read, connected or removed;
- ``write_document`` is one transaction and idempotent: writing the same knowledge again changes nothing, and existing
  entities keep their id and gain aliases;
- an entity or relationship exists while at least one mention or support of any (document, version) is left;
- returned relationships and mentions have supports of *all* versions; the caller selects those that the catalogue shows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.graph import (
    Community,
    Direction,
    DocumentKnowledge,
    Entity,
    GraphDeletion,
    GraphEdge,
    KnowledgeBatch,
    Mention,
    NameUse,
    Naming,
    Relationship,
    StatedFact,
    UseKind,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import ScoredId, Vector


@dataclass(frozen=True, slots=True)
class GraphCounts:
    """Counts of the items in a tenant's graph."""

    entities: int = 0
    relationships: int = 0
    mentions: int = 0


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version that the graph holds knowledge of. ``whole`` if everything that `write_document` wrote is still there."""

    document_id: str
    version: int
    whole: bool


class KnowledgeStore(Protocol):
    """Entities, relationships, and the passages that state them."""

    async def write_document(self, tenant: TenantId, knowledge: DocumentKnowledge) -> None:
        """Add one version's entities, relationships, mentions and supports, all or nothing."""

    async def replace_document(self, tenant: TenantId, knowledge: DocumentKnowledge) -> set[str]:
        """Replace a version's knowledge in one transaction.

        Returns the ids of the relationships that the graph no longer has. Readers see the old or the new knowledge. If the store
        has "read committed" isolation, as Neo4j does, a read that overlaps the commit may miss both.
        """

    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, above: int = 0) -> GraphDeletion:
        """Remove supports and mentions of versions > ``above`` and ≤ ``up_to_version``, and items that have none left.

        The result lists the removed entities and relationships, so that other stores can remove derived data.
        """

    async def find_entities(self, tenant: TenantId, names: Sequence[str]) -> dict[str, list[Entity]]:
        """Return the entities by normalised name (see `normalise_name`). A name matches an entity's name or an alias."""

    async def name_uses(self, tenant: TenantId, names: Sequence[str], kind: UseKind, *, limit: int) -> dict[str, list[NameUse]]:
        """Return the uses of normalised names by document versions, by name, ordered by document, version and entity.

        At most ``limit`` uses of each pair of entity and spelling are read. Names without uses are absent.
        """

    async def documents_naming(self, tenant: TenantId, entity_ids: Sequence[str]) -> list[str]:
        """Return the documents of which a version names one of the entities, ordered by id. Deleted entities included."""

    async def entities(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Entity]:
        """Return the entities among ``ids`` that exist."""

    async def relationships(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Relationship]:
        """Return the relationships among ``ids`` that exist, supports included."""

    async def relationships_of(self, tenant: TenantId, entity_ids: Sequence[str]) -> list[Relationship]:
        """Return the relationships with both ends among ``entity_ids``, supports included."""

    async def edges_at(
        self,
        tenant: TenantId,
        entity_ids: Sequence[str],
        *,
        limit: int,
        direction: Direction = "any",
        relations: Sequence[str] | None = None,
    ) -> dict[str, list[GraphEdge]]:
        """Return the ``limit`` relationships with the largest weights that touch each entity.

        They are ordered by descending weight, then by descending id. The cost depends on ``limit``, not on the number of the
        entity's relationships. Entities without relationships are absent.

        Args:
            direction: ``out`` returns relationships that begin at the entity, ``in`` those that end there.
            relations: only relationships of these types. Types that are rare at an entity cost more.
        """

    async def fact_sentences(self, tenant: TenantId, relationship_ids: Sequence[str]) -> list[StatedFact]:
        """Return the sentences that state the relationships, with their offsets in the chunk."""

    def all_entities(self, tenant: TenantId) -> AsyncIterator[list[Entity]]:
        """Stream every entity, in batches, ordered by id."""

    def all_mentions(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Mention]]:
        """Stream every mention in batches. ``document_ids`` limits the stream to these documents."""

    def all_names(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Naming]]:
        """Stream every name with the version that uses it, in batches, optionally of some documents.

        The entity's current name and type are read at the time of the batch.
        """

    def stream_knowledge(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[KnowledgeBatch]:
        """Stream the content of `all_mentions` and `all_names` in batches of fewer objects, optionally of some documents.

        The names of entities that an editor deleted are left out.
        The labels of entities come after the names that belong to them. They may include other entities.
        """

    def all_relationships(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Relationship]]:
        """Stream every relationship with its supports, in batches. With ``document_ids``, those these support."""

    def all_versions(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[HeldVersion]]:
        """Stream every version that was written, or that has knowledge, in batches ordered by document and version.

        ``document_ids`` limits the stream to these documents. Written versions without knowledge are included.
        """

    async def revision(self, tenant: TenantId) -> str:
        """Return the revision of the tenant's knowledge. Each write and deletion replaces it by a unique value.

        `write_document` and `delete_document` set it in their transaction. Two equal values mean that no knowledge was written
        in between. Empty if the tenant has no knowledge.
        """

    async def counts(self, tenant: TenantId) -> GraphCounts:
        """Count the tenant's entities, relationships and mentions."""

    async def mention_counts(self, tenant: TenantId, entity_ids: Sequence[str]) -> Mapping[str, int]:
        """Return the number of chunks that mention each entity, over all versions."""


class CommunityStore(Protocol):
    """Generations of communities and their members."""

    async def write_communities(self, tenant: TenantId, generation: int, communities: Sequence[Community]) -> None:
        """Replace the communities of ``generation``, in one transaction. Other generations stay."""

    async def communities(
        self,
        tenant: TenantId,
        generation: int,
        *,
        level: int | None = None,
        ids: Sequence[str] | None = None,
        members: bool = True,
    ) -> list[Community]:
        """Return a generation's communities, ordered by level, descending size, id.

        Args:
            members: read ``entity_ids``, too. They are many for communities of coarse levels.
        """

    async def generations(self, tenant: TenantId) -> list[int]:
        """Return the generations that have communities, ascending."""

    async def delete_generations(self, tenant: TenantId, *, below: int) -> int:
        """Remove generations < ``below`` and return the number of removed communities."""


class GraphStore(KnowledgeStore, CommunityStore, Protocol):
    """A store that implements both ports in one engine."""

    async def delete_tenant(self, tenant: TenantId) -> int:
        """Remove all data of the tenant and return the number of removed rows."""

    async def tenants(self) -> list[TenantId]:
        """Return every tenant that has data. For the operator's housekeeping only."""

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the store answers."""

    async def close(self) -> None:
        """Release the store; further calls fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQuestion:
    """A search in a tenant's graph. ``vector`` is the embedding of ``text``. ``limit`` applies to entities and facts each.

    Facts that do not hold at ``moment`` (None: now) are left out. ``filter`` applies to the passages that support a result.
    """

    text: str
    vector: Vector
    limit: int
    moment: datetime | None = None
    filter: Filter | None = None


@dataclass(frozen=True, slots=True)
class GraphFindings:
    """Ids, best first. Scores are > 0 and comparable within one list only. All versions are included: the caller filters."""

    entities: tuple[ScoredId, ...] = ()
    relationships: tuple[ScoredId, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphSearchEngine:
    """A search engine over the graph. ``find`` searches the graph of one tenant."""

    name: str
    find: Callable[[TenantId, GraphQuestion], Awaitable[GraphFindings]]
