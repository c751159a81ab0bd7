"""After any history, an incrementally updated graph gives the same answers as a rebuilt one, to the last bit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from knowledge_worlds import Says, World
from sampling import sampled
from tenant_graphs import build_tenant_graph

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.knowledge.tenant_graph import entity_names, pagerank, rows
from agentic_rag_backend.knowledge.tenant_graph import ledger as graph_ledger
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.entity_names import EntityNames
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.tenant_graph.ledger import GraphLedger
from agentic_rag_backend.knowledge.tenant_graph.linking import link_question
from agentic_rag_backend.knowledge.tenant_graph.rows import Ints
from agentic_rag_backend.retrieval.hops import expand, prune, score_hops
from agentic_rag_backend.retrieval.passages.hydration import entities_of
from agentic_rag_backend.retrieval.scoring import cover
from agentic_rag_backend.retrieval.strategies.graph import GraphEvidence, direct_scores

DOCUMENTS = ("d1", "d2", "d3", "d4", "d5")
ENTITIES = ("ada", "acme", "bolt", "nuts")
NAMES = {entity: (entity.title(), f"The {entity}", f"{entity} of Carrow", "Carrow") for entity in ENTITIES}
QUESTION = "What has Ada of Carrow to do with Acme and Nuts?"


def answers(graph: TenantGraph) -> dict[str, Any]:
    """Return the readable content of a graph by id, with floats to the last bit."""
    linked = link_question(graph, QUESTION)
    chunks = sorted(graph.chunk_index)
    hybrid = {id: 1 / (3 + place) for place, id in enumerate(chunks) if place % 2}
    evidence = GraphEvidence(np.zeros(1), hybrid, hybrid, linked)
    direct = direct_scores(graph, evidence)
    order = sorted(direct, key=lambda id: (-direct[id], id))
    numbered = {graph.chunk_index[id]: direct[id] for id in order if id in graph.chunk_index}
    links = prune(expand(graph, list(numbered)[:6]), numbered, {}, 0.1)
    terms = {id: frozenset(graph.entity(number).id for number in graph.entities_of(graph.chunk_index[id])) for id in chunks}
    words = {name: place for place, name in enumerate(ENTITIES)}
    coverage = cover(frozenset(words.values()), {id: frozenset(words[name] for name in held) for id, held in terms.items()})
    hops = score_hops(links, numbered, {}, coverage.number_passages(graph.chunk_index))
    return {
        "counts": (graph.chunk_count, graph.node_count),
        "names": {name: [graph.entity(number).id for number in numbers] for name, numbers in graph.names.items()},
        "linked": [(graph.entity(number).id, weight) for number, weight in linked.items()],
        "walk": walk(graph),
        "direct": direct,
        "links": [
            (graph.chunk_ids[link.source], graph.chunk_ids[link.target], graph.entity(link.entity).id, link.weight)
            for link in links
        ],
        "hops": {graph.chunk_ids[target]: (hop.score, hop.link.weight) for target, hop in hops.items()},
        "entities": {id: entities_of(graph, id) for id in chunks},
        "idf": {
            id: (float(graph.idf[number]), int(graph.document_frequency[number])) for id, number in graph.entity_index.items()
        },
        "about": sorted(id for id, number in graph.entity_index.items() if graph.about[number]),
    }


def walk(graph: TenantGraph) -> dict[str, float]:
    """Return the result of a walk from every node, with distinct masses."""
    chunks, entities = np.zeros(graph.chunk_places), np.zeros(graph.entity_places)
    for place, id in enumerate(sorted(graph.chunk_index)):
        chunks[graph.chunk_index[id]] = 0.1 / (7 + place)
    for place, id in enumerate(sorted(graph.entity_index)):
        entities[graph.entity_index[id]] = 0.1 / (3 + place)
    mass = pagerank.personalised_pagerank(graph, chunks, entities)
    return {id: float(mass[number]) for id, number in graph.chunk_index.items()}


SAID = st.builds(
    lambda chunk, entity, name, about: (chunk, entity, name, about),
    st.integers(0, 3),
    st.sampled_from(ENTITIES),
    st.integers(0, 3),
    st.booleans(),
)
STEPS = st.one_of(  # type: ignore[var-annotated]
    st.tuples(st.just("show"), st.sampled_from(DOCUMENTS), st.lists(SAID, max_size=6)),
    st.tuples(st.just("write"), st.sampled_from(DOCUMENTS), st.lists(SAID, max_size=3)),
    st.tuples(st.sampled_from(["hide", "purge", "publish"]), st.sampled_from(DOCUMENTS), st.just([])),
)


def take(world: World, step: tuple[str, str, list[tuple[int, str, int, bool]]], versions: dict[str, int]) -> None:
    """Apply a step to a document, if possible."""
    kind, document, drawn = step
    said = [Says(f"{document}/{chunk}", entity, NAMES[entity][name], about) for chunk, entity, name, about in drawn]
    if kind in {"show", "write"}:
        versions[document] = versions.get(document, 0) + 1
        getattr(world, kind)(document, versions[document], *said)
    elif kind == "publish" and (document, versions.get(document, 0)) in world.said:
        if world.visible.get(document, 0) < versions[document]:
            world.publish(document, versions[document])
    elif kind == "hide" and document in world.visible:
        world.hide(document)
    elif kind == "purge":
        world.purge(document, up_to=world.visible.get(document, versions.get(document, 0) + 1) - 1)


async def compare(tenant: Tenant, steps: list[Any], looks: list[bool]) -> None:
    """Apply the steps, and compare after the selected ones."""
    world, versions = World(), {}  # type: ignore[var-annotated]
    graphs = TenantGraphs(world, world, max_bytes=1 << 30)  # type: ignore[arg-type]
    for step, look in zip(steps, looks, strict=True):
        take(world, step, versions)
        if look:
            kept = await graphs.graph(replace(tenant, state_version=world.state_version))
            assert answers(kept) == answers(build_tenant_graph(world.knowledge()))


@pytest.fixture(params=["dense", "sparse"])
def _walked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Walk small graphs completely and in parts. Rebuild pools and tables always or never."""
    if request.param == "sparse":
        monkeypatch.setattr(pagerank, "DENSE_BELOW", 0)
        monkeypatch.setattr(rows, "SMALL", 8)
        monkeypatch.setattr(entity_names, "_CHANGED_MINIMUM", 2)
    monkeypatch.setattr("agentic_rag_backend.knowledge.tenant_graph.cache.ANEW_SHARE", 10.0)


@pytest.mark.usefixtures("_walked")
@sampled(gate=30, deep=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_history_gives_the_same_graph(tenant: Tenant, data: st.DataObject) -> None:
    steps = data.draw(st.lists(STEPS, min_size=1, max_size=14))
    looks = data.draw(st.lists(st.booleans(), min_size=len(steps) - 1, max_size=len(steps) - 1))
    asyncio.run(compare(tenant, steps, [*looks, True]))


def test_what_a_question_holds_does_not_change() -> None:
    """Snapshots taken in between give the same answers at the end."""
    random = np.random.default_rng(5)
    world, ledger, held = World(), GraphLedger(), []
    for turn in range(60):
        document = f"d{random.integers(0, 9)}"
        if document in world.visible and random.random() < 0.3:
            world.hide(document)
        else:
            said = [
                Says(
                    f"{document}/{random.integers(0, 4)}",
                    entity,
                    NAMES[entity][random.integers(0, 4)],
                    bool(random.integers(0, 2)),
                )
                for entity in random.choice(ENTITIES, 4)
            ]
            world.show(document, turn + 1, *said)
        changed = {document: world.visible.get(document, 0)}
        ledger.apply(world.knowledge(changed))
        graph = ledger.graph()
        held.append((graph, answers(graph)))
    assert all(answers(graph) == then for graph, then in held)


def _frequencies_stay(patch: pytest.MonkeyPatch) -> None:
    """Keep removed chunks in an entity's row."""
    original = GraphLedger._put_links
    patch.setattr(GraphLedger, "_put_links", lambda self, entities, gone, said: original(self, entities, gone[:0], said))


def _names_stay(patch: pytest.MonkeyPatch) -> None:
    """Keep the aliases of a removed document."""
    patch.setattr(EntityNames, "drop", lambda self, numbers: None)


def _names_are_not_found(patch: pytest.MonkeyPatch) -> None:
    """Keep the old meanings of names."""
    original = EntityNames.link

    def link(self: EntityNames, before: Mapping[int, set[str]], after: Iterable[tuple[int, set[str]]]) -> None:
        original(self, {}, [(entity, names - before.get(entity, set())) for entity, names in after])

    patch.setattr(EntityNames, "link", link)


def _shown_as_ever(patch: pytest.MonkeyPatch) -> None:
    """Keep displaying an entity's first name."""
    original = EntityNames.settle

    def settle(self: EntityNames, entities: Ints) -> None:
        original(self, np.array([entity for entity in entities.tolist() if self._shown[entity] < 0], dtype=np.int32))

    patch.setattr(EntityNames, "settle", settle)


def _by_arrival(patch: pytest.MonkeyPatch) -> None:
    """Keep rows in the order in which chunks were added."""
    patch.setattr(graph_ledger, "_find_places", lambda lengths, keys, row, new: np.cumsum(lengths)[row])


@pytest.mark.parametrize("plant", [_frequencies_stay, _names_stay, _names_are_not_found, _shown_as_ever, _by_arrival])
def test_faulty_upkeep_is_found(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    monkeypatch.setattr("agentic_rag_backend.knowledge.tenant_graph.cache.ANEW_SHARE", 10.0)
    plant(monkeypatch)
    random = np.random.default_rng(2)
    steps = []
    for _ in range(150):
        drawn = [
            (int(random.integers(0, 4)), str(random.choice(ENTITIES)), int(random.integers(0, 4)), bool(random.integers(0, 2)))
            for _ in range(4)
        ]
        kind = str(random.choice(["show", "show", "hide", "purge"]))
        steps.append((kind, str(random.choice(DOCUMENTS)), drawn))
    with pytest.raises(AssertionError):
        asyncio.run(compare(tenant, steps, [True] * len(steps)))


def test_answers_see_something(query: Callable[..., Query]) -> None:
    """The comparison is meaningful: questions link, walk and hop in the world of the properties."""
    world = World()
    for number, document in enumerate(DOCUMENTS):
        entities = (ENTITIES[number % 4], ENTITIES[(number + 1) % 4])
        world.show(document, 1, *(Says(f"{document}/0", entity, NAMES[entity][0]) for entity in entities))
    seen = answers(build_tenant_graph(world.knowledge()))
    assert all(seen[name] for name in ("names", "linked", "walk", "direct", "links", "hops", "entities", "idf"))
