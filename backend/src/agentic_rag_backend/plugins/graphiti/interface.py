"""Graphiti's searches on our vector store: it finds the nearest items, which are then read from the graph by uuid.

The vector store indexes the words of facts and passages, and the vectors of passages, but no entity names (ADR 10). So

- *edge fulltext* is BM25 over facts; *edge similarity* returns the facts that the passages nearest to the question state;
- *node fulltext* returns entities that the query names, then the ends of the facts it finds; *node similarity* returns the
  entities that the nearest passages name;
- *episode fulltext* is BM25 over passages.

Each is one search of the vector store and one indexed statement, whatever the tenant's size. No vector crosses Bolt.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from agentic_rag_backend.domain.graph import name_words
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.language.words import STOP_WORDS
from agentic_rag_backend.plugins.graphiti.driver import GraphReader, require_group, to_edge, to_episode, to_node
from agentic_rag_backend.plugins.graphiti.filters import edge_passes, holds_at, node_passes
from agentic_rag_backend.plugins.graphiti.sdk import EntityEdge, EntityNode, EpisodicNode, SearchFilters, SearchInterface
from agentic_rag_backend.stores.graph.bolt import Record
from agentic_rag_backend.stores.graph.nodes import graph_uuid
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch

_NAME_WORDS = 10
_QUERY_WORDS = 64
"""Maximum number of query words that are searched for names."""
_PASSAGES = 20
_PER_PASSAGE = 20
_MORE = 4
"""Factor of candidates to read in a second try if the filter left too few."""

Read = Callable[[int], Awaitable[list[Record]]]


class TenantSearch(SearchInterface):
    """Searches one tenant at one moment. It applies the group, the validity and Graphiti's own filters.

    Attributes:
        reader: reads the tenant's graph (`GraphReader`).
        vectors: holds its facts and passages (`VectorStore`).
        moment: facts that do not hold at this time are never returned, whatever the search's own filter allows.
        passages: filter on the passages through which results are found (`Filter`), or None.
    """

    reader: GraphReader
    vectors: Any
    moment: datetime
    passages: Any = None

    async def edge_fulltext_search(
        self, driver: Any, query: str, search_filter: SearchFilters, group_ids: list[str] | None = None, limit: int = 100
    ) -> list[EntityEdge]:
        """Return facts by BM25 over their sentences."""
        tenant = self._tenant(group_ids)

        async def read(count: int) -> list[Record]:
            return await self._rows("graphiti_edges", uuids=await self._facts(query, count))

        return [to_edge(row, tenant) for row in await self._edges(read, search_filter, limit)]

    async def edge_similarity_search(
        self,
        driver: Any,
        search_vector: list[float],
        source_node_uuid: str | None,
        target_node_uuid: str | None,
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
        min_score: float = 0.7,
    ) -> list[EntityEdge]:
        """Return the facts that the nearest passages state, optionally from or to given entities."""
        tenant = self._tenant(group_ids)
        ends = {"source": source_node_uuid, "target": target_node_uuid}
        passages = await self._near(search_vector, min_score)

        async def read(count: int) -> list[Record]:
            rows = await self._rows("graphiti_edges_of_passages", passages=passages, per_passage=_PER_PASSAGE, limit=count)
            return [row for row in rows if all(end is None or row[name] == end for name, end in ends.items())]

        return [to_edge(row, tenant) for row in await self._edges(read, search_filter, limit)]

    async def node_fulltext_search(
        self, driver: Any, query: str, search_filter: SearchFilters, group_ids: list[str] | None = None, limit: int = 100
    ) -> list[EntityNode]:
        """Return the entities that the query names, longest name first, then the ends of the facts it finds."""
        tenant = self._tenant(group_ids)
        names = list_candidate_names(query)

        async def read(count: int) -> list[Record]:
            facts = await self._facts(query, count)
            return await self._rows("graphiti_nodes_by_name", names=names, edges=facts, limit=count)

        return [to_node(row, tenant) for row in await self._nodes(read, search_filter, limit)]

    async def node_similarity_search(
        self,
        driver: Any,
        search_vector: list[float],
        search_filter: SearchFilters,
        group_ids: list[str] | None = None,
        limit: int = 100,
        min_score: float = 0.7,
    ) -> list[EntityNode]:
        """Return the entities that the nearest passages name."""
        tenant = self._tenant(group_ids)
        passages = await self._near(search_vector, min_score)

        async def read(count: int) -> list[Record]:
            return await self._rows("graphiti_nodes_of_passages", passages=passages, per_passage=_PER_PASSAGE, limit=count)

        return [to_node(row, tenant) for row in await self._nodes(read, search_filter, limit)]

    async def episode_fulltext_search(
        self, driver: Any, query: str, search_filter: SearchFilters, group_ids: list[str] | None = None, limit: int = 100
    ) -> list[EpisodicNode]:
        """Return passages by BM25."""
        tenant = self._tenant(group_ids)
        search = VectorSearch(kind=NodeKind.CHUNK, text=query, limit=limit, filter=self.passages)
        (legs,) = await self.vectors.search(tenant, Collection.CHUNKS, [search])
        uuids = [graph_uuid(tenant, item.id) for item in legs.sparse]
        return [to_episode(row, tenant) for row in await self._rows("graphiti_episodes", uuids=uuids)]

    def _tenant(self, group_ids: Sequence[str] | None) -> TenantId:
        require_group(self.reader.tenant, group_ids)
        return self.reader.tenant

    async def _rows(self, statement: str, **values: Any) -> list[Record]:
        """Return a statement's rows. No query runs if there is nothing to look up."""
        if not any(values.get(name) for name in ("uuids", "names", "edges", "passages")):
            return []
        return await self.reader.rows(statement, **values)

    async def _edges(self, read_rows: Read, filters: SearchFilters, limit: int) -> list[Record]:
        return await _enough(read_rows, lambda row: holds_at(row, self.moment) and edge_passes(row, filters), limit)

    async def _nodes(self, read_rows: Read, filters: SearchFilters, limit: int) -> list[Record]:
        return await _enough(read_rows, lambda row: node_passes(row, filters), limit)

    async def _facts(self, query: str, limit: int) -> list[str]:
        tenant = self.reader.tenant
        search = VectorSearch(kind=NodeKind.FACT, text=query, limit=limit)
        (legs,) = await self.vectors.search(tenant, Collection.NODES, [search])
        return [graph_uuid(tenant, item.id) for item in legs.sparse]

    async def _near(self, vector: Sequence[float], min_score: float) -> list[str]:
        tenant = self.reader.tenant
        dense = np.asarray(vector, dtype=np.float32)
        search = VectorSearch(kind=NodeKind.CHUNK, dense=dense, limit=_PASSAGES, filter=self.passages)
        (legs,) = await self.vectors.search(tenant, Collection.CHUNKS, [search])
        return [graph_uuid(tenant, item.id) for item in legs.dense if item.score >= min_score]


async def _enough(read_rows: Read, passes: Callable[[Record], bool], limit: int) -> list[Record]:
    """Return the first ``limit`` rows that pass. If too few pass, read more rows and try a second time."""
    rows = await read_rows(limit)
    matching_rows = [row for row in rows if passes(row)]
    if len(rows) >= limit > len(matching_rows):
        matching_rows = [row for row in await read_rows(limit * _MORE) if passes(row)]
    return matching_rows[:limit]


def list_candidate_names(query: str) -> list[str]:
    """Return possible names in ``query``, normalised: runs of up to ten words, longest first, without duplicates."""
    words = [word for raw in query.split() for word in name_words(raw)][:_QUERY_WORDS]
    runs = [
        " ".join(words[start : start + length])
        for length in range(min(_NAME_WORDS, len(words)), 0, -1)
        for start in range(len(words) - length + 1)
        if any(word not in STOP_WORDS for word in words[start : start + length])
    ]
    return list(dict.fromkeys(runs))
