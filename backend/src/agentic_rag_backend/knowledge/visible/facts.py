"""Relationships as visible passages state them: weight and validity of hidden versions are left out, like their sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import GraphEdge, Relationship, StatedFact, Support
from agentic_rag_backend.domain.periods import end_of
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.visible.support import states_now
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore

MAX_PASSAGES = 20
"""Passages of a relationship that are read: those that give it most weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleFact:
    """A relationship with the visible sentences that state it, at most `MAX_PASSAGES`, best first. There is at least one.

    ``weight`` is the largest of its visible passages. It holds from the earliest of their times to their common end (`end_of`).
    """

    id: str
    source: EntityRef
    target: EntityRef
    relation: str
    passages: tuple[StatedFact, ...]

    @property
    def fact(self) -> str:
        """The sentence of the best passage."""
        return self.passages[0].fact

    @property
    def weight(self) -> float:
        """The largest weight."""
        return max(passage.weight for passage in self.passages)

    @property
    def valid_at(self) -> datetime | None:
        """The beginning; None: unknown."""
        return min((each.valid_at for each in self.passages if each.valid_at is not None), default=None)

    @property
    def invalid_at(self) -> datetime | None:
        """The end, exclusive; None: it has not ended, or the end is unknown."""
        return end_of([(each.valid_at, each.invalid_at) for each in self.passages])

    def holds(self, moment: datetime) -> bool:
        """Return whether the fact holds at a moment. Without times, it always does."""
        begin, end = self.valid_at, self.invalid_at
        return (begin is None or begin <= moment) and (end is None or moment < end)


def edge_of(relationship: Relationship) -> GraphEdge:
    """Return a relationship without its passages."""
    ends = (relationship.source_id, relationship.target_id)
    return GraphEdge(relationship.id, *ends, relationship.relation, relationship.weight)


class FactReader:
    """Reads the facts that a tenant's visible passages state."""

    def __init__(self, graph: KnowledgeStore, documents: DocumentCatalogue) -> None:
        self._graph = graph
        self._documents = documents

    async def read(
        self,
        tenant: TenantId,
        shown: TenantGraph,
        edges: Sequence[GraphEdge],
        *,
        moment: datetime,
        most: int = MAX_PASSAGES,
        known: Mapping[str, VisibleChunk] | None = None,
        passes: Callable[[VisibleChunk], bool] | None = None,
    ) -> dict[str, VisibleFact]:
        """Return the facts among ``edges`` that visible passages state and that hold at ``moment``, in the order of ``edges``.

        Args:
            shown: the tenant's visible graph. A fact without both ends in it is absent.
            most: passages to read of each fact, at most `MAX_PASSAGES`.
            known: chunks that were read before.
            passes: a passage that does not pass counts as hidden. All passages are then read, because the heaviest may not pass.

        Raises:
            StoreUnavailable: the graph store or the catalogue did not answer.
        """
        ends = {edge.id: pair for edge in edges if (pair := _ends(shown, edge)) is not None}
        if not ends:
            return {}
        stated: dict[str, list[StatedFact]] = {}
        for each in await self._graph.fact_sentences(tenant, list(ends)):
            stated.setdefault(each.relationship_id, []).append(each)
        limit = min(most, MAX_PASSAGES) if passes is None else None
        chosen = {id: _heaviest(shown, found, limit) for id, found in stated.items()}
        passages = dict(known or {})
        if chunks := sorted({each.support.chunk_id for found in chosen.values() for each in found} - passages.keys()):
            read = await self._documents.hydrate(tenant, chunks)
            passages |= {id: chunk for id, chunk in read.items() if passes is None or passes(chunk)}
        facts = {}
        for edge in edges:
            visible = _one_each(each for each in chosen.get(edge.id, ()) if states_now(passages, each.support))
            if visible:
                source, target = ends[edge.id]
                fact = VisibleFact(id=edge.id, source=source, target=target, relation=edge.relation, passages=visible)
                if fact.holds(moment):
                    facts[edge.id] = fact
        return facts


def _ends(shown: TenantGraph, edge: GraphEdge) -> tuple[EntityRef, EntityRef] | None:
    source, target = shown.mentioned(edge.source_id), shown.mentioned(edge.target_id)
    return None if source is None or target is None else (shown.entity(source), shown.entity(target))


def _heaviest(shown: TenantGraph, stated: Iterable[StatedFact], most: int | None) -> list[StatedFact]:
    """Return the sentences of the ``most`` chunks (None: all) with the largest weights, without hidden chunks.

    All versions of a chunk are included: the catalogue decides which one is visible.
    """
    known = [each for each in stated if each.support.chunk_id in shown.chunk_index]
    known.sort(key=lambda each: (-each.weight, each.support.document_id, each.support.chunk_id, each.start_char))
    chunks = list(dict.fromkeys(each.support.chunk_id for each in known))[:most]
    return [each for each in known if each.support.chunk_id in chunks]


def _one_each(passages: Iterable[StatedFact]) -> tuple[StatedFact, ...]:
    """Return the first sentence of each passage."""
    first: dict[Support, StatedFact] = {}
    for each in passages:
        first.setdefault(each.support, each)
    return tuple(first.values())
