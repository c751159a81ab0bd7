"""The graph store port: the record of knowledge.

Contract, which `testing.graph_store` checks on every adapter:

- every method's first argument is the tenant; anything but a `TenantId` raises `InvalidScope`; another tenant's nodes
  and edges are never read, joined to or removed;
- ``write_document`` is one transaction and repeatable: the same knowledge again changes nothing, entities already there
  keep their id and gain aliases;
- an entity or relationship lives as long as one mention or support of any (document, version) is left;
- returned relationships and mentions carry supports of *all* versions; the caller keeps those that the catalogue shows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.graph import (
    Community,
    DocumentKnowledge,
    Entity,
    GraphDeletion,
    Mention,
    Naming,
    Relationship,
    RelationshipSupport,
    Said,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import ScoredId, Vector


@dataclass(frozen=True, slots=True)
class GraphCounts:
    """How much a tenant's graph holds."""

    entities: int = 0
    relationships: int = 0
    mentions: int = 0


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A version that something in the graph rests on; ``whole`` if it is as much as `write_document` left of it."""

    document_id: str
    version: int
    whole: bool


class KnowledgeStore(Protocol):
    """Entities, relationships and where they were said."""

    async def write_document(self, tenant: TenantId, knowledge: DocumentKnowledge) -> None:
        """Add one version's knowledge: entities, relationships, mentions and supports, whole or not at all."""

    async def delete_document(self, tenant: TenantId, document_id: str, *, up_to_version: int, above: int = 0) -> GraphDeletion:
        """Remove the supports and mentions of versions > ``above`` and ≤ ``up_to_version``, and what is left without any.

        The result names the entities and relationships that went, for the stores that hold something derived from them.
        """

    async def find_entities(self, tenant: TenantId, names: Sequence[str]) -> dict[str, list[Entity]]:
        """Return, for each normalised name (see `normalise_name`), the entities that have it as name or alias."""

    async def entities(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Entity]:
        """Return the entities among ``ids`` that exist."""

    async def relationships(self, tenant: TenantId, ids: Sequence[str]) -> dict[str, Relationship]:
        """Return the relationships among ``ids`` that exist, supports included."""

    async def relationships_of(self, tenant: TenantId, entity_ids: Sequence[str]) -> list[Relationship]:
        """Return the relationships with both ends among ``entity_ids``, supports included."""

    async def fact_sentences(self, tenant: TenantId, relationship_ids: Sequence[str]) -> list[RelationshipSupport]:
        """Return the sentences that say the relationships, with their offsets in the chunk."""

    def all_entities(self, tenant: TenantId) -> AsyncIterator[list[Entity]]:
        """Stream every entity, in batches, ordered by id."""

    def all_mentions(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Mention]]:
        """Stream every mention, in batches; of some documents if given."""

    def all_names(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Naming]]:
        """Stream every name with the version that uses it, in batches; of some documents if given.

        An entity's present name and type are those at the time of the batch.
        """

    def all_said(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[Said]:
        """Stream what `all_mentions` and `all_names` do, in batches of fewer objects; of some documents if given.

        What entities are filed under comes after the names that it belongs to, and may be told of other entities too.
        """

    def all_relationships(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[Relationship]]:
        """Stream every relationship with its supports, in batches; those that some documents support if given."""

    def all_versions(self, tenant: TenantId, document_ids: Sequence[str] | None = None) -> AsyncIterator[list[HeldVersion]]:
        """Stream every version that was written, or that anything rests on, in batches ordered by document and version.

        Of some documents if given. Versions that say nothing are among those written.
        """

    async def revision(self, tenant: TenantId) -> str:
        """Return what `write_document` and `delete_document` replace by a value that never was, in their transaction.

        Where it is equal at two moments, the tenant's knowledge was not written between them. Empty where none is held.
        """

    async def counts(self, tenant: TenantId) -> GraphCounts:
        """Count what the tenant has."""

    async def mention_counts(self, tenant: TenantId, entity_ids: Sequence[str]) -> Mapping[str, int]:
        """Return in how many chunks each entity is mentioned, over all versions."""


class CommunityStore(Protocol):
    """Generations of communities and their members."""

    async def write_communities(self, tenant: TenantId, generation: int, communities: Sequence[Community]) -> None:
        """Replace what ``generation`` holds, in one transaction; other generations stay."""

    async def communities(
        self, tenant: TenantId, generation: int, *, level: int | None = None, ids: Sequence[str] | None = None
    ) -> list[Community]:
        """Return a generation's communities, ordered by level, falling size, id; members included."""

    async def generations(self, tenant: TenantId) -> list[int]:
        """Return the generations that have communities, ascending."""

    async def delete_generations(self, tenant: TenantId, *, below: int) -> int:
        """Remove generations < ``below`` and return how many communities went."""


class GraphStore(KnowledgeStore, CommunityStore, Protocol):
    """One engine answers both ports."""

    async def delete_tenant(self, tenant: TenantId) -> int:
        """Remove everything of the tenant and return how many rows went."""

    async def tenants(self) -> list[TenantId]:
        """Return every tenant of whom anything is held: for the operator's housekeeping alone."""

    async def ping(self) -> None:
        """Raise `StoreUnavailable` unless the store answers."""

    async def close(self) -> None:
        """Release the store; further calls fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphQuestion:
    """What to look for in a tenant's graph. ``vector`` is that of ``text``; ``limit`` counts entities and facts each.

    Facts that do not hold at ``moment`` (None: now) are left out; ``filter`` is for the passages that lead to anything.
    """

    text: str
    vector: Vector
    limit: int
    moment: datetime | None = None
    filter: Filter | None = None


@dataclass(frozen=True, slots=True)
class GraphFindings:
    """Ids, best first, with scores > 0 that compare within one list only. Of all versions: the caller keeps what is visible."""

    entities: tuple[ScoredId, ...] = ()
    relationships: tuple[ScoredId, ...] = ()


class GraphSearch(Protocol):
    """A search engine's own way into a tenant's graph, beside the store; retrieval does without where it fails."""

    @property
    def name(self) -> str:
        """What traces call it."""

    async def find(self, tenant: TenantId, question: GraphQuestion) -> GraphFindings:
        """Return what the question is about.

        Raises:
            StoreUnavailable: a store that it asks does not answer.
        """
