"""Relationships that visible passages state, with the sentences that state them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Relationship, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.visible.support import states_now
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore


@dataclass(frozen=True, slots=True)
class VisibleRelationship:
    """A relationship with one sentence for each visible passage that states it."""

    relationship: Relationship
    sentences: Mapping[Support, str]


class RelationshipReader:
    """Reads relationships as a tenant may see them now."""

    def __init__(self, graph: KnowledgeStore, documents: DocumentCatalogue) -> None:
        self._graph = graph
        self._documents = documents

    async def read(
        self,
        tenant: TenantId,
        ids: Sequence[str],
        *,
        known: Mapping[str, VisibleChunk] | None = None,
        passes: Callable[[VisibleChunk], bool] = lambda _: True,
    ) -> dict[str, VisibleRelationship]:
        """Return the relationships among ``ids`` that a visible passage states.

        Args:
            known: chunks that were read before.
            passes: a passage that does not pass counts as invisible.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        if not ids:
            return {}
        relationships, stated = await asyncio.gather(
            self._graph.relationships(tenant, ids), self._graph.fact_sentences(tenant, ids)
        )
        passages = dict(known or {})
        if unknown := sorted({each.support.chunk_id for each in stated} - passages.keys()):
            found = await self._documents.hydrate(tenant, unknown)
            passages |= {id: passage for id, passage in found.items() if passes(passage)}
        sentences: defaultdict[str, dict[Support, str]] = defaultdict(dict)
        for each in stated:
            if states_now(passages, each.support):
                sentences[each.relationship_id][each.support] = each.fact
        return {id: VisibleRelationship(each, sentences[id]) for id, each in relationships.items() if id in sentences}
