"""Contract of every graph store for the relationships that touch an entity: order, limit, direction, types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentic_rag_backend.domain.graph import DocumentKnowledge, GraphEdge
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_testing.stores.graph_samples import A, B, Check, Statement, entity_id, equal, knowledge

AROUND: Sequence[Statement] = (
    ("Hub", "made", "Ada"),
    ("Hub", "made", "Bolt"),
    ("Ada", "knows", "Hub"),
    ("Nuts", "knows", "Hub"),
    ("Hub", "rates", "Hub"),
    ("Ada", "knows", "Bolt"),
)
WEIGHTS = (0.5, 2.0, 1.5, 0.25, 3.0, 1.0)


def weighed(document: str, weights: Sequence[float] = WEIGHTS, version: int = 1) -> DocumentKnowledge:
    """Return a document that states `AROUND`, with these weights."""
    whole = knowledge(document, AROUND[: len(weights)], version=version)
    pairs = zip(whole.relationships, weights, strict=True)
    return replace(whole, relationships=tuple(replace(each, weight=weight) for each, weight in pairs))


def _edge(number: int, weight: float | None = None) -> GraphEdge:
    source, relation, target = AROUND[number]
    id = weighed("any").relationships[number].id
    return GraphEdge(id, entity_id(source), entity_id(target), relation, WEIGHTS[number] if weight is None else weight)


async def the_heaviest_edges_of_an_entity_are_returned(store: GraphStore) -> None:
    """Edges come by descending weight, at most ``limit`` of each entity, in the directions and of the types requested."""
    await store.write_document(A, weighed("one"))
    await store.write_document(B, weighed("one", (9.0,)))
    hub, ada, nobody = entity_id("Hub"), entity_id("Ada"), entity_id("Nobody")
    equal(await store.edges_at(A, [hub, nobody], limit=9), {hub: [_edge(4), _edge(1), _edge(2), _edge(0), _edge(3)]})
    equal(await store.edges_at(A, [hub, ada, hub], limit=2), {hub: [_edge(4), _edge(1)], ada: [_edge(2), _edge(5)]})
    equal(await store.edges_at(A, [hub], limit=2, direction="out"), {hub: [_edge(4), _edge(1)]})
    equal(await store.edges_at(A, [hub], limit=9, direction="in"), {hub: [_edge(4), _edge(2), _edge(3)]})
    equal(await store.edges_at(A, [hub], limit=1, relations=["made", "knows"]), {hub: [_edge(1)]})
    equal(await store.edges_at(A, [hub], limit=9, direction="in", relations=["knows"]), {hub: [_edge(2), _edge(3)]})
    equal(await store.edges_at(A, [hub], limit=9, relations=[]), {})


async def equal_weights_are_ordered_by_id(store: GraphStore) -> None:
    """Of equal weights, the larger id comes first, so that a limit does not depend on the order of writes."""
    await store.write_document(A, weighed("one", (1.0, 1.0, 1.0, 1.0)))
    ids = sorted((each.id for each in weighed("one").relationships[:4]), reverse=True)
    for limit in (1, 2, 4):
        found = await store.edges_at(A, [entity_id("Hub")], limit=limit)
        equal([edge.id for edge in found[entity_id("Hub")]], ids[:limit])


async def the_weight_of_an_edge_follows_its_supports(store: GraphStore) -> None:
    """An edge's weight is the sum over its documents of the largest that a version gives it. Sentences have their document's."""
    hub = entity_id("Hub")

    async def weights() -> Mapping[str, float]:
        found = await store.edges_at(A, [hub], limit=9)
        return {edge.id: edge.weight for edge in found.get(hub, ())}

    first, second = weighed("one").relationships[:2]
    await store.write_document(A, weighed("one", (1.0, 1.0)))
    await store.write_document(A, weighed("two", (4.0,)))
    equal(await weights(), {first.id: 5.0, second.id: 1.0})
    sentences = await store.fact_sentences(A, [first.id])
    equal([(each.support.document_id, each.weight) for each in sentences], [("one", 1.0), ("two", 4.0)])
    equal({id: each.weight for id, each in (await store.relationships(A, [first.id])).items()}, {first.id: 5.0})
    await store.write_document(A, weighed("one", (5.1, 0.5)))
    equal(await weights(), {first.id: 9.1, second.id: 0.5})
    await store.write_document(A, weighed("one", (0.25,), version=2))
    equal(await weights(), {first.id: 9.1, second.id: 0.5})
    await store.delete_document(A, "one", up_to_version=1)
    equal(await weights(), {first.id: 4.25})
    await store.delete_document(A, "one", up_to_version=2)
    equal(await weights(), {first.id: 4.0})
    await store.delete_document(A, "two", up_to_version=1)
    equal(await weights(), {})


CHECKS: tuple[Check, ...] = (
    the_heaviest_edges_of_an_entity_are_returned,
    equal_weights_are_ordered_by_id,
    the_weight_of_an_edge_follows_its_supports,
)
