from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentic_rag_backend.knowledge.tenant_graph.graph import ABOUT_WEIGHT, TenantGraph
from agentic_rag_backend.retrieval.hops import (
    CANDIDATES,
    COVERAGE_WEIGHT,
    HALF_LINK,
    HUB_MINIMUM,
    HUB_SHARE,
    LEAST_BEST,
    SHARING,
    HopLink,
    HopLinks,
    expand,
    prune,
    reached_by_hop,
    score_hops,
    strength,
    to_other_subjects,
    with_hops,
)
from agentic_rag_backend.retrieval.scoring import cover

Build = Callable[..., TenantGraph]


def brute_force(graph: TenantGraph, beam: list[int]) -> dict[tuple[int, int], tuple[float, int]]:
    """Return the weight and the strongest entity of every link, computed by definition."""
    chunks_of: dict[int, dict[int, float]] = {}
    for entity in graph.entity_index.values():
        _, chunks, weights = graph.links.gather(np.array([entity]))
        chunks_of[entity] = dict(zip(chunks.tolist(), weights.tolist(), strict=True))
    hub = max(HUB_MINIMUM, HUB_SHARE * graph.chunk_count)
    parts: dict[tuple[int, int], list[tuple[float, int]]] = defaultdict(list)
    for source in beam:
        for entity, holders in chunks_of.items():
            if source in holders and len(holders) <= hub:
                for target in holders.keys() - {source}:
                    parts[source, target].append((holders[target] / (len(holders) - 1) ** SHARING, entity))

    def first(pair: tuple[float, int]) -> tuple[float, int]:
        return -pair[0], int(graph.entity_keys[pair[1]])

    return {key: min(links, key=first) for key, links in parts.items()}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**16),
    chunks=st.integers(1, 120),
    entities=st.integers(4, 90),
    beam=st.sets(st.integers(0, 119)),
)
def test_expand_agrees_with_its_definition(random_graph: Build, seed: int, chunks: int, entities: int, beam: set[int]) -> None:
    graph = random_graph(chunks=chunks, entities=entities, per_chunk=3, seed=seed)
    inside = sorted(number for number in beam if number < graph.chunk_places)
    links = expand(graph, inside)
    expected = brute_force(graph, inside)
    assert {(link.source, link.target) for link in links} == set(expected)
    assert len(links) == len(expected)
    for link in links:
        weight, entity = expected[link.source, link.target]
        assert link.weight == pytest.approx(weight)
        assert link.entity == entity


def weights_from(graph: TenantGraph, source: str) -> dict[str, float]:
    """Return the weight of the link to each chunk that a chunk is linked to."""
    return {graph.chunk_ids[link.target]: link.weight for link in expand(graph, [graph.chunk_index[source]])}


def test_links_weigh_what_chunks_share(graph_of: Build) -> None:
    graph = graph_of({"source": ["Institute"], "about": ["*Institute"], "mentions": ["Institute"]})
    weights = weights_from(graph, "source")
    assert weights["about"] == pytest.approx(ABOUT_WEIGHT * weights["mentions"])

    graph = graph_of({"c1": ["Rare", "Shared"], "c2": ["Rare"], **{f"s{number}": ["Shared"] for number in range(8)}})
    weights = weights_from(graph, "c1")
    assert weights["c2"] == 1.0
    assert weights["s0"] == pytest.approx(8**-SHARING)

    # Many weak links do not make a strong one.
    shared = [f"Shared {number}" for number in range(8)]
    graph = graph_of({"c1": ["Rare", *shared], "rare": ["Rare"], "c2": shared, "c3": shared, "c4": shared})
    weights = weights_from(graph, "c1")
    assert weights["rare"] > weights["c2"] == pytest.approx(3**-SHARING)


def test_dates_are_not_followed(graph_of: Build) -> None:
    graph = graph_of({"c1": ["1952", "Tulsa"], "c2": ["1952"], "c3": ["Tulsa"]})
    types = ["date" if name == "1952" else "place" for name in graph.entity_texts.names]
    texts = replace(graph.entity_texts, types=types, type_of=graph.entity_texts.name_of)
    assert set(weights_from(replace(graph, entity_texts=texts), "c1")) == {"c3"}


@pytest.mark.parametrize(("holders", "followed"), [(HUB_MINIMUM, True), (HUB_MINIMUM + 1, False)])
def test_hubs_are_not_followed(graph_of: Build, holders: int, followed: bool) -> None:
    graph = graph_of({f"c{number:02d}": ["Everywhere"] for number in range(holders)})
    assert bool(expand(graph, [0])) is followed


def test_a_hop_leads_to_another_subject(graph_of: Build) -> None:
    graph = graph_of(
        {
            "source": ["*Rhine", "Basel"],
            "same": ["*Rhine", "Basel"],
            "section": ["*Rhine", "*Tributaries", "Basel"],
            "other": ["*Basel"],
            "none": ["Basel", "Rhine"],
            "alike": ["Basel", "Rhine"],
        }
    )
    number = graph.chunk_index

    def reached(source: str) -> set[str]:
        links = to_other_subjects(graph, expand(graph, [number[source]]))
        assert all(link.source == number[source] for link in links)
        return {graph.chunk_ids[link.target] for link in links}

    assert reached("source") == {"section", "other", "none", "alike"}
    assert reached("none") == set(number) - {"none"}, "passages without a subject are linked to all others"
    assert len(to_other_subjects(graph, HopLinks.of())) == 0


@pytest.mark.parametrize("beam", [[], [0]])
def test_nothing_to_follow(graph_of: Build, beam: list[int]) -> None:
    graph = graph_of({"c1": ["Alone"], "c2": ["Other"]})
    assert len(expand(graph, beam)) == 0


def test_strength_is_below_one_and_grows() -> None:
    values = [strength(HopLink(0, 1, weight, 0)) for weight in (0.0, 1.0, HALF_LINK, 1e6)]
    assert values == sorted(set(values))
    assert values[0] == 0.0
    assert values[2] == 0.5
    assert values[3] < 1.0


def test_prune_keeps_the_most_promising_targets_with_all_their_links() -> None:
    links = [HopLink(source, target, float(target), 0) for target in range(2, CANDIDATES + 12) for source in (0, 1)]
    kept = prune(HopLinks.of(links), {0: 1.0, 1: 0.25}, {}, floor=0.3)
    targets = {link.target for link in kept}
    assert targets == set(range(12, CANDIDATES + 12))
    assert len(kept) == 2 * CANDIDATES
    assert kept == [link for link in links if link.target in targets]


def test_prune_takes_the_first_of_equals() -> None:
    links = [HopLink(0, target, 1.0, 0) for target in reversed(range(1, CANDIDATES + 5))]
    assert {link.target for link in prune(HopLinks.of(links), {0: 1.0}, {}, floor=0.3)} == set(range(5, CANDIDATES + 5))


def test_prune_takes_a_known_cosine_before_the_floor() -> None:
    links = [HopLink(0, target, 1.0, 0) for target in range(1, CANDIDATES + 2)]
    last = CANDIDATES + 1
    assert last not in {link.target for link in prune(HopLinks.of(links), {0: 1.0}, {}, floor=0.3)}
    assert last in {link.target for link in prune(HopLinks.of(links), {0: 1.0}, {last: 0.31}, floor=0.3)}
    assert 1 not in {link.target for link in prune(HopLinks.of(links), {0: 1.0}, {1: 0.29}, floor=0.3)}


LINKS = st.lists(st.builds(HopLink, st.integers(0, 2), st.integers(3, 9), st.floats(0.01, 50), st.integers(0, 5)), max_size=20)


@given(links=LINKS, cosines=st.dictionaries(st.integers(3, 9), st.floats(-1, 1)))
def test_hops_are_scaled_and_lead_to_targets(links: list[HopLink], cosines: dict[int, float]) -> None:
    hops = score_hops(links, {0: 1.0, 1: 0.5, 2: 0.1}, cosines, cover(frozenset({1}), {3: frozenset({1})}))
    assert set(hops) <= {link.target for link in links}
    assert all(0.0 <= hop.score <= 1.0 for hop in hops.values())
    assert all(hop.link in links and hop.link.target == target for target, hop in hops.items())
    reachable = any(cosines.get(link.target, 0.0) > 0 or link.target == 3 for link in links)
    if not reachable:
        assert hops == {}


def test_a_hop_is_judged_by_source_link_cosine_and_new_words() -> None:
    coverage = cover(frozenset({1, 2}), {0: frozenset({1}), 2: frozenset({1}), 3: frozenset({2})})
    links = [HopLink(0, 2, HALF_LINK, 0), HopLink(1, 2, HALF_LINK, 1), HopLink(0, 3, HALF_LINK, 0)]
    hops = score_hops(links, {0: 1.0, 1: 0.25}, {2: 0.4, 3: -0.2}, coverage)
    plain = 0.5 * 0.4
    worse = 0.25 * 0.5 * (0.4 + COVERAGE_WEIGHT * coverage.weights[1])
    new_words = 0.5 * COVERAGE_WEIGHT * coverage.weights[2]
    best = max(plain, worse, new_words)
    assert hops[2].score == pytest.approx(max(plain, worse) / best)
    assert hops[2].link == (links[0] if plain >= worse else links[1])
    assert hops[3].score == pytest.approx(new_words / best)


@pytest.mark.parametrize(("weight", "best"), [(HALF_LINK, 1.0), (HALF_LINK / 99, 0.01 / LEAST_BEST)])
def test_the_best_hop_scores_one_unless_all_are_weak(weight: float, best: float) -> None:
    hops = score_hops([HopLink(0, 1, weight, 0)], {0: 1.0}, {1: 1.0}, cover(frozenset(), {}))
    assert hops[1].score == pytest.approx(best)


def test_a_hop_adds_to_the_direct_score() -> None:
    scores = with_hops({"both": 0.4, "direct": 0.4}, {"both": 1.0, "hop": 1.0})
    assert scores == pytest.approx({"both": 0.6, "direct": 0.4 / 1.5, "hop": 0.5 / 1.5})
    assert reached_by_hop({"both": 0.6, "direct": 0.4}, {"both": 1.0, "hop": 1.0}) == {"hop"}
