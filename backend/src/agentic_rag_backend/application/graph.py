"""The knowledge graph of a caller's tenant, and the themes above it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.contradictions import Contradiction
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.knowledge.contradictions.contradiction_finder import ContradictionFilter
from agentic_rag_backend.knowledge.editing import EditStatus, Split
from agentic_rag_backend.knowledge.paths.base import PathOptions, PathsFound
from agentic_rag_backend.knowledge.paths.neighbourhood import Neighbourhood, NeighbourhoodOptions
from agentic_rag_backend.knowledge.paths.neighbourhood_map import merge_neighbourhoods, place_entities
from agentic_rag_backend.knowledge.visible.entity_reader import ListedEntity, VisibleEntity
from agentic_rag_backend.stores.catalogue.base import Page
from agentic_rag_backend.themes.communities.theme_index import CommunityView
from agentic_rag_backend.themes.raptor.node_views import TreeNodeView


@dataclass(frozen=True, slots=True)
class GraphService:
    """Reads what visible documents state, and edits it. An entity of another tenant does not exist: `NotFound`."""

    container: Container

    @requires(Scope.READ, filtered=True)
    async def list_entities(
        self,
        caller: Principal,
        *,
        name: str | None = None,
        type: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ListedEntity]:
        """List entities by decreasing number of mentions. See `EntityReader.page`."""
        return await self.container.entities.page(caller.tenant, name=name, type=type, limit=limit, cursor=cursor)

    @requires(Scope.READ, filtered=True)
    async def get_entity(
        self,
        caller: Principal,
        entity_id: str,
        *,
        limit: int = 20,
        relations: Sequence[str] | None = None,
        as_of: datetime | None = None,
    ) -> VisibleEntity:
        """Return an entity with its names, chunks and relationships, at most ``limit`` (1–100) of both."""
        return await self.container.entities.entity(caller.tenant, entity_id, limit=limit, relations=relations, as_of=as_of)

    @requires(Scope.READ, filtered=True)
    async def read_neighbourhood(
        self,
        caller: Principal,
        entity_id: str,
        options: NeighbourhoodOptions,
        *,
        also: Sequence[str] = (),
        positions: bool = False,
    ) -> Neighbourhood:
        """Return the entities around an entity, and the relationships between them.

        ``also`` has up to 19 further entities to unite with. ``positions``: each entity has a place on a map.
        """
        centres = dict.fromkeys([entity_id, *also])
        parts = [await self.container.neighbourhoods.around(caller.tenant, id, options) for id in centres]
        neighbourhood = parts[0] if len(parts) == 1 else merge_neighbourhoods(parts)
        return await asyncio.to_thread(place_entities, neighbourhood) if positions else neighbourhood

    @requires(Scope.READ, filtered=True)
    async def find_paths(
        self, caller: Principal, sources: Sequence[str], targets: Sequence[str], options: PathOptions
    ) -> PathsFound:
        """Return the best paths between entities, which are given by id or name."""
        return await self.container.paths.between(caller.tenant, sources, targets, options)

    @requires(Scope.READ, filtered=True)
    async def find_paths_of_question(self, caller: Principal, question: str, options: PathOptions) -> PathsFound:
        """Return the best paths among the entities that a question names."""
        return await self.container.paths.of_question(caller.tenant, question, options)

    @requires(Scope.READ, filtered=True)
    async def list_contradictions(
        self, caller: Principal, filter: ContradictionFilter, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Contradiction]:
        """List statements that cannot both be true. A page may be short or empty, and still have a next one."""
        return await self.container.contradictions.page(caller.tenant, filter, limit=limit, cursor=cursor)

    @requires(Scope.READ, filtered=True)
    def export_graph(
        self, caller: Principal, format: str = "graphml", *, as_of: datetime | None = None
    ) -> AsyncGenerator[str, None]:
        """Yield the visible graph as a file, in parts."""
        return self.container.graph_export.stream(caller.tenant, format, as_of=as_of)

    @requires(Scope.WRITE)
    async def merge_entities(
        self, caller: Principal, entity_id: str, merged_ids: Sequence[str], *, reason: str = ""
    ) -> EditStatus:
        """Make other entities this one. Later documents follow it, too."""
        return await self.container.graph_editor.merge(caller.tenant, entity_id, merged_ids, reason=reason)

    @requires(Scope.WRITE)
    async def split_entity(self, caller: Principal, entity_id: str, split: Split, *, reason: str = "") -> EditStatus:
        """Take documents, names or merged entities out of an entity."""
        return await self.container.graph_editor.split(caller.tenant, entity_id, split, reason=reason)

    @requires(Scope.WRITE)
    async def rename_entity(
        self, caller: Principal, entity_id: str, *, name: str = "", type: str = "", reason: str = ""
    ) -> EditStatus:
        """Give an entity another name or type."""
        return await self.container.graph_editor.rename(caller.tenant, entity_id, name=name, type=type, reason=reason)

    @requires(Scope.WRITE)
    async def delete_entity(self, caller: Principal, entity_id: str, *, reason: str = "") -> EditStatus:
        """Delete an entity with its mentions and relationships. Documents stay."""
        return await self.container.graph_editor.delete(caller.tenant, entity_id, reason=reason)

    @requires(Scope.WRITE)
    async def undo_edit(self, caller: Principal, number: int) -> EditStatus:
        """Undo an edit. Later edits stay in effect."""
        return await self.container.graph_editor.undo(caller.tenant, number)

    @requires(Scope.READ)
    async def get_edit(self, caller: Principal, number: int) -> EditStatus:
        """Return an edit, also one that was undone."""
        return await self.container.graph_editor.edit(caller.tenant, number)

    @requires(Scope.READ)
    async def list_edits(self, caller: Principal, *, limit: int = 50, cursor: str | None = None) -> Page[EditStatus]:
        """List edits, newest first, with those that were undone."""
        return await self.container.graph_editor.page(caller.tenant, limit=limit, cursor=cursor)

    @requires(Scope.READ, filtered=True)
    async def list_communities(
        self, caller: Principal, *, level: int | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[CommunityView]:
        """List the current generation of communities by level and decreasing size."""
        return await self.container.communities.list(caller.tenant.id, level=level, limit=limit, cursor=cursor)

    @requires(Scope.READ, filtered=True)
    async def get_community(self, caller: Principal, community_id: str) -> CommunityView:
        """Return a community of the current generation."""
        return await self.container.communities.get(caller.tenant.id, community_id)

    @requires(Scope.READ, filtered=True)
    async def list_nodes(
        self, caller: Principal, *, level: int | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[TreeNodeView]:
        """List the nodes of the current tree by level and decreasing size."""
        return await self.container.raptor.list(caller.tenant.id, level=level, limit=limit, cursor=cursor)

    @requires(Scope.READ, filtered=True)
    async def get_node(self, caller: Principal, node_id: str) -> TreeNodeView:
        """Return a node of the current tree."""
        return await self.container.raptor.get(caller.tenant.id, node_id)
