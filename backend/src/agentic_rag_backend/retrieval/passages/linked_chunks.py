"""Resolves comparisons of entities, types and communities in a filter to the visible passages that they match.

The tenant's graph in memory answers them, so their cost grows with the tenant's own passages only. It holds visible knowledge: a
filter by an entity that only hidden documents name matches nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from agentic_rag_backend.domain.filters import And, ChunkSet, Filter, LinkCondition, Not, Or, list_leaves
from agentic_rag_backend.domain.graph import normalise_name, type_key
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.stores.catalogue.base import CommunityCatalogue
from agentic_rag_backend.stores.graph.base import CommunityStore

MAX_NAMED = 10
"""Unknown values of a filter that warnings name."""


@dataclass(frozen=True, slots=True)
class LinkedChunks:
    """Replaces each `LinkCondition` of a filter by its `ChunkSet`.

    A passage has the entities that it mentions, their types, and the communities of the current generation that contain one of
    them, at any level. An entity is named by its id or by a name or alias, in any case. A type is named in any case
    and in either English spelling, and a community by its id.

    Args:
        graphs: the tenants' graphs of visible knowledge.
        communities: the current generation.
        members: the members of communities.
    """

    graphs: TenantGraphs
    communities: CommunityCatalogue
    members: CommunityStore

    async def resolve(self, tenant: Tenant, filter: Filter | None) -> Filter | None:
        """Return the filter without links.

        Raises:
            StoreUnavailable: the graph cannot be read. The filter is never dropped.
        """
        links = [leaf for leaf in list_leaves(filter) if isinstance(leaf, LinkCondition)] if filter is not None else []
        if filter is None or not links:
            return filter
        graph = await self.graphs.graph(tenant)
        communities = await self._communities(tenant, links)
        sets = await asyncio.to_thread(lambda: {link: _chunk_set(graph, link, communities) for link in dict.fromkeys(links)})
        return _resolve_filter(filter, sets)

    async def _communities(self, tenant: Tenant, links: Iterable[LinkCondition]) -> dict[str, tuple[str, ...]]:
        """Return the members of the communities that the links name, by id. All of them, if a link asks for any."""
        community_links = [link for link in links if link.field == "community"]
        if not community_links:
            return {}
        generation = (await self.communities.pointer(tenant.id)).generation
        if generation == 0:
            return {}
        needs_all = any(link.operator in {"ne", "nin", "exists", "missing"} for link in community_links)
        ids = None if needs_all else sorted({value for link in community_links for value in link.values})
        communities = await self.members.communities(tenant.id, generation, ids=ids)
        return {community.id: community.entity_ids for community in communities}


def unknown_values(filter: Filter | None) -> tuple[str, ...]:
    """Return a warning for each value of a resolved filter that no visible passage has. More than `MAX_NAMED` are counted."""
    sets = (leaf for leaf in list_leaves(filter) if isinstance(leaf, ChunkSet)) if filter is not None else ()
    messages = (
        f"filters: no visible passage has the {chunk_set.link.field} {value!r}"
        for chunk_set in sets
        for value in chunk_set.unknown
    )
    warnings = tuple(dict.fromkeys(messages))
    surplus = len(warnings) - MAX_NAMED
    return warnings if surplus <= 0 else (*warnings[:MAX_NAMED], f"filters: no visible passage has {surplus} more values")


def _resolve_filter(filter: Filter, sets: Mapping[LinkCondition, ChunkSet]) -> Filter:
    if isinstance(filter, And):
        return And(tuple(_resolve_filter(part, sets) for part in filter.filters))
    if isinstance(filter, Or):
        return Or(tuple(_resolve_filter(part, sets) for part in filter.filters))
    if isinstance(filter, Not):
        return Not(_resolve_filter(filter.filter, sets))
    if not isinstance(filter, LinkCondition):
        return filter
    chunk_set = sets[filter]
    if filter.operator == "missing":
        return Not(replace(chunk_set, link=LinkCondition(filter.field, "exists")))
    return chunk_set


def _chunk_set(graph: TenantGraph, link: LinkCondition, communities: Mapping[str, tuple[str, ...]]) -> ChunkSet:
    """Return the passages of a comparison. For ``missing``, these are the passages that have the field."""
    by_value = {value: _entities(graph, link.field, value, communities) for value in link.values}
    chunks_named = _chunks(graph, set().union(*by_value.values()))
    if link.operator in {"eq", "in"}:
        chunks = chunks_named
    else:
        anything = _members(graph, communities.values()) if link.field == "community" else None
        chunks = _chunks(graph, anything) - chunks_named
    return ChunkSet(chunks, link, tuple(value for value, entities in by_value.items() if not entities))


def find_named_entities(graph: TenantGraph, value: str) -> set[int]:
    """Return the entities in visible passages with this id, or else with this name or alias in any case."""
    entity = graph.find_mentioned_number(value)
    if entity is not None:
        return {entity}
    return {number for number in graph.names.get(normalise_name(value), ()) if graph.document_frequency[number] > 0}


def _entities(graph: TenantGraph, field: str, value: str, communities: Mapping[str, tuple[str, ...]]) -> set[int]:
    """Return the entities in visible passages that a value stands for."""
    if field == "community":
        return _members(graph, [communities.get(value, ())])
    if field == "entity_type":
        texts = graph.entity_texts
        key = type_key(value)
        types = [number for number, name in enumerate(texts.types) if type_key(name) == key]
        typed = np.isin(texts.type_of[: graph.entity_places], types) & (graph.document_frequency > 0)
        return set(np.flatnonzero(typed).tolist())
    return find_named_entities(graph, value)


def _members(graph: TenantGraph, groups: Iterable[tuple[str, ...]]) -> set[int]:
    numbers = (graph.find_mentioned_number(id) for ids in groups for id in ids)
    return {number for number in numbers if number is not None}


def _chunks(graph: TenantGraph, entities: set[int] | None) -> frozenset[str]:
    """Return the ids of the passages that mention one of the entities. None: any entity."""
    if entities is None:
        return frozenset(graph.chunk_index)
    if not entities:
        return frozenset()
    _, chunks, _ = graph.links.gather(np.fromiter(entities, dtype=np.int64, count=len(entities)))
    return frozenset(graph.chunk_ids[number] for number in np.unique(chunks).tolist())
