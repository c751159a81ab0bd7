"""Detection covers everything, does not depend on the order of its input, and gives a well-formed hierarchy."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace

import pytest
from cpu_time import cpu_s
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.domain.graph import WeightedEdge
from agentic_rag_backend.themes.communities.detection import top_level
from agentic_rag_backend.themes.communities.detection.hierarchy import (
    Detection,
    DetectionOptions,
    EntityName,
    detect_communities,
)
from agentic_rag_backend.themes.communities.detection.leiden import PreviousDivision
from agentic_rag_backend.themes.communities.detection.small_clusters import CoOccurrence
from agentic_rag_backend.themes.communities.detection.top_level import DocumentMentions


def edge(source: str, target: str, weight: float = 1.0) -> WeightedEdge:
    return WeightedEdge(source, target, weight)


def names(*ids: str) -> dict[str, EntityName]:
    return {each: EntityName(f"Name {each}", "thing") for each in ids}


def names_of(edges: list[WeightedEdge]) -> dict[str, EntityName]:
    return names(*sorted({end for each in edges for end in (each.source_id, each.target_id)}))


def planted(groups: int, size: int, *, seed: int = 1, degree: int = 4, between: int = 1) -> list[WeightedEdge]:
    """A graph of ``groups`` dense groups with few edges between them."""
    generator = random.Random(seed)
    edges = []
    for group in range(groups):
        members = [f"{group:03d}-{member:03d}" for member in range(size)]
        for index, member in enumerate(members):
            edges += [edge(member, other, 2.0) for other in generator.sample(members[:index], min(index, degree))]
        for _ in range(between):
            other = generator.randrange(groups)
            if other != group:
                edges.append(
                    edge(
                        generator.choice(members),
                        f"{other:03d}-{generator.randrange(size):03d}",
                    )
                )
    return edges


def roots(detection: Detection) -> list[frozenset[str]]:
    return [frozenset(each.members) for each in detection.communities if each.parent is None]


def shape(detection: Detection) -> list[tuple[object, ...]]:
    return [(each.level, each.parent, each.members, each.base) for each in detection.communities]


def check_hierarchy(detection: Detection, entities: dict[str, EntityName], options: DetectionOptions) -> None:
    covered = [member for root in roots(detection) for member in root]
    assert sorted(covered) == sorted(entities), "every entity is in exactly one root"
    children: dict[int, list[str]] = defaultdict(list)
    for index, each in enumerate(detection.communities):
        assert 0 <= each.level < options.max_levels
        assert len(set(each.members)) == len(each.members) > 0
        if each.parent is None:
            assert each.level == 0
        else:
            assert each.parent < index
            assert detection.communities[each.parent].level == each.level - 1
            children[each.parent] += each.members
    for parent, members in children.items():
        assert sorted(members) == sorted(detection.communities[parent].members), "children divide their parent"
    sets = [frozenset(each.members) for each in detection.communities]
    assert len(set(sets)) == len(sets), "no community repeats another"


@st.composite
def graphs(
    draw: st.DrawFn,
) -> tuple[list[WeightedEdge], dict[str, EntityName], list[CoOccurrence]]:
    count = draw(st.integers(1, 25))
    ids = [f"e{number}" for number in range(count)]
    entities = {
        each: EntityName(
            draw(st.sampled_from(["Ada", "Bo", "Cy"])) + each * draw(st.integers(0, 1)),
            "x",
        )
        for each in ids
    }
    pair = st.tuples(st.sampled_from(ids), st.sampled_from(ids), st.floats(0.01, 10))
    edges = [edge(*each) for each in draw(st.lists(pair, max_size=60))]
    contexts = draw(st.lists(st.lists(st.sampled_from(ids), unique=True, max_size=6), max_size=6))
    return edges, entities, [CoOccurrence(1, tuple(members)) for members in contexts]


@settings(max_examples=60)
@given(graphs(), st.randoms(use_true_random=False), st.integers(1, 4), st.integers(3, 8))
def test_hierarchy_is_whole_and_independent_of_order(
    graph: tuple[list[WeightedEdge], dict[str, EntityName], list[CoOccurrence]],
    generator: random.Random,
    levels: int,
    largest: int,
) -> None:
    edges, entities, contexts = graph
    options = DetectionOptions(max_cluster_size=largest, max_levels=levels, max_roots=2)
    found = detect_communities(edges, entities=entities, options=options, contexts=contexts)
    check_hierarchy(found, entities, options)
    shuffled = [edge(e.target_id, e.source_id, e.weight) if generator.random() < 0.5 else e for e in edges]
    generator.shuffle(shuffled)
    ids = list(entities)
    generator.shuffle(ids)
    turned = [CoOccurrence(each.weight, tuple(reversed(each.members))) for each in reversed(contexts)]
    again = detect_communities(
        shuffled,
        entities={each: entities[each] for each in ids},
        options=options,
        contexts=turned,
    )
    assert shape(again) == shape(found)


def test_ids_do_not_matter() -> None:
    """Two tenants with the same graph get the same communities, independent of the order of their ids."""
    edges = planted(12, 40)
    entities = names_of(edges)
    generator = random.Random(5)
    other = {each: f"{generator.random()}" for each in entities}
    first = detect_communities(edges, entities=entities, options=DetectionOptions())
    second = detect_communities(
        [edge(other[e.source_id], other[e.target_id], e.weight) for e in edges],
        entities={other[each]: name for each, name in entities.items()},
        options=DetectionOptions(),
    )
    back = {renamed: each for each, renamed in other.items()}
    assert [tuple(back[m] for m in c.members) for c in second.communities] == [c.members for c in first.communities]
    assert second.modularity == first.modularity


def test_planted_groups_are_found() -> None:
    edges = planted(8, 15)
    found = detect_communities(edges, entities=names_of(edges), options=DetectionOptions())
    base = [each for each in found.communities if each.base]
    assert len(base) == 8
    assert all(len({member[:3] for member in each.members}) == 1 for each in base)
    assert found.modularity > 0.8


def test_empty_graph_has_no_communities() -> None:
    assert detect_communities([], entities={}, options=DetectionOptions()) == Detection()


def test_entities_without_edges_are_kept() -> None:
    found = detect_communities([], entities=names("a", "b"), options=DetectionOptions())
    assert sorted(map(sorted, roots(found))) == [["a"], ["b"]]
    assert found.modularity == 0


def test_disconnected_components_stay_apart() -> None:
    edges = [
        edge("a", "b"),
        edge("b", "c"),
        edge("a", "c"),
        edge("x", "y"),
        edge("y", "z"),
        edge("x", "z"),
        edge("p", "q"),
    ]
    found = detect_communities(edges, entities=names_of(edges), options=DetectionOptions())
    assert sorted(map(sorted, roots(found))) == [
        ["a", "b", "c"],
        ["p", "q"],
        ["x", "y", "z"],
    ]


def test_an_entity_without_edges_joins_those_it_occurs_with_most() -> None:
    edges = [
        edge("a", "b"),
        edge("b", "c"),
        edge("a", "c"),
        edge("x", "y"),
        edge("y", "z"),
        edge("x", "z"),
    ]
    entities = names("a", "b", "c", "x", "y", "z", "lone")
    contexts = [
        CoOccurrence(1, ("lone", "a")),
        CoOccurrence(1, ("lone", "x", "y")),
        CoOccurrence(1, ("lone", "z")),
    ]
    found = detect_communities(edges, entities=entities, options=DetectionOptions(), contexts=contexts)
    assert sorted(map(sorted, roots(found))) == [
        ["a", "b", "c"],
        ["lone", "x", "y", "z"],
    ]


def test_entities_without_edges_gather_by_context() -> None:
    contexts = [CoOccurrence(1, ("a", "b", "c")), CoOccurrence(1, ("x", "y"))]
    found = detect_communities(
        [],
        entities=names("a", "b", "c", "x", "y", "lone"),
        options=DetectionOptions(),
        contexts=contexts,
    )
    assert sorted(map(sorted, roots(found))) == [["a", "b", "c"], ["lone"], ["x", "y"]]


def test_large_clusters_are_divided_and_depth_is_bounded() -> None:
    edges = planted(1, 400, degree=3)
    entities = names_of(edges)
    for levels in (1, 2, 3):
        options = DetectionOptions(max_levels=levels, max_cluster_size=8)
        found = detect_communities(edges, entities=entities, options=options)
        check_hierarchy(found, entities, options)
        assert max(each.level for each in found.communities) == levels - 1
    parents = {each.parent for each in found.communities}
    divided = [each for index, each in enumerate(found.communities) if index in parents]
    assert all(len(each.members) > 8 for each in divided)
    assert all(len(each.members) >= 3 for each in found.communities)


def test_many_roots_get_a_coarser_level() -> None:
    edges = planted(80, 8, between=3)
    entities = names_of(edges)
    grouped = detect_communities(edges, entities=entities, options=DetectionOptions())
    check_hierarchy(grouped, entities, DetectionOptions())
    flat = detect_communities(edges, entities=entities, options=DetectionOptions(max_roots=1_000))
    assert len(roots(flat)) > 50 >= len(roots(grouped))
    assert {each.members for each in flat.communities if each.base} == {each.members for each in grouped.communities if each.base}


def test_unconnected_clusters_are_grouped_by_documents() -> None:
    """Clusters of one document share a root, and so do clusters of similar documents. Without documents they stay apart."""
    edges = [edge(f"{cluster:02}{a}", f"{cluster:02}{b}") for cluster in range(12) for a, b in ("xy", "yz", "xz")]
    entities, options = names_of(edges), DetectionOptions(max_roots=4)
    mentions = [{f"{cluster:02}{member}": 2 for cluster in (number, 11 - number) for member in "xyz"} for number in range(6)]
    similar = [(0, 1, 0.5), (2, 3, 0.5), (4, 5, 0.5)]
    for documents, expected in [
        (DocumentMentions(), 12),
        (DocumentMentions(mentions), 6),
        (DocumentMentions(mentions, similar), 3),
    ]:
        found = detect_communities(edges, entities=entities, options=options, documents=documents)
        check_hierarchy(found, entities, options)
        assert len(roots(found)) == expected
    assert {member[:2] for member in roots(found)[0]} == {"00", "01", "10", "11"}


def test_no_root_swallows_most_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of unconnected groups keep the number of roots high, although all others can be joined."""
    edges = planted(200, 5, between=4)
    for pair in range(52):
        sides = [[f"pair-{pair}-{side}-{member}" for member in range(4)] for side in "ab"]
        edges += [edge(one, other, 2.0) for group in sides for one in group for other in group if one < other]
        edges.append(edge(sides[0][0], sides[1][0], 0.1))
    entities, options = names_of(edges), DetectionOptions(resolution=8.0)
    largest = []
    for share in (1.0, 0.2):
        monkeypatch.setattr(top_level, "LARGEST_SHARE", share)
        found = detect_communities(edges, entities=entities, options=options)
        check_hierarchy(found, entities, options)
        assert any(not each.base for each in found.communities if each.level == 0)
        largest.append(max(map(len, roots(found))) / len(entities))
    assert largest[0] > 0.2 >= largest[1]


def test_weights_decide() -> None:
    ends = [("a", "b"), ("c", "d"), ("a", "c"), ("b", "d")]
    strong = DetectionOptions(min_size=1)
    first = detect_communities(
        [edge(s, t, 9.0 if n < 2 else 1.0) for n, (s, t) in enumerate(ends)],
        entities=names(*"abcd"),
        options=strong,
    )
    second = detect_communities(
        [edge(s, t, 1.0 if n < 2 else 9.0) for n, (s, t) in enumerate(ends)],
        entities=names(*"abcd"),
        options=strong,
    )
    assert sorted(map(sorted, roots(first))) == [["a", "b"], ["c", "d"]]
    assert sorted(map(sorted, roots(second))) == [["a", "c"], ["b", "d"]]


def test_parallel_edges_add_up_and_loops_are_ignored() -> None:
    single = [edge("a", "b", 3.0), edge("b", "c", 1.0)]
    parallel = [
        edge("b", "a", 1.0),
        edge("a", "b", 2.0),
        edge("c", "b", 1.0),
        edge("a", "a", 50.0),
    ]
    options = DetectionOptions()
    assert shape(detect_communities(single, entities=names(*"abc"), options=options)) == shape(
        detect_communities(parallel, entities=names(*"abc"), options=options)
    )


@pytest.mark.parametrize("weight", [math.nan, math.inf, -1.0, 0.0])
def test_weights_must_be_finite_and_positive(weight: float) -> None:
    with pytest.raises(ValueError, match="finite number above 0"):
        detect_communities(
            [edge("a", "b", weight)],
            entities=names("a", "b"),
            options=DetectionOptions(),
        )


def test_edges_must_name_known_entities() -> None:
    with pytest.raises(ValueError, match="not given"):
        detect_communities([edge("a", "b")], entities=names("a"), options=DetectionOptions())


def test_namesakes_are_ordered_by_whom_they_are_linked_to() -> None:
    entities = {each: EntityName("John Smith", "person") for each in ("s1", "s2", "s3")} | names(*"abcdef")
    edges = [
        edge("s1", "a"),
        edge("a", "b"),
        edge("s2", "c"),
        edge("c", "d"),
        edge("s3", "e"),
        edge("e", "f"),
    ]
    renamed = {"s1": "s3", "s2": "s1", "s3": "s2"}
    turned = [edge(renamed.get(e.source_id, e.source_id), e.target_id, e.weight) for e in edges]
    first = detect_communities(edges, entities=entities, options=DetectionOptions())
    second = detect_communities(turned, entities=entities, options=DetectionOptions())
    expected = [tuple(renamed.get(member, member) for member in each.members) for each in first.communities]
    assert [each.members for each in second.communities] == expected


def test_starting_from_its_own_result_changes_nothing() -> None:
    edges = planted(30, 30, between=40)
    entities = names_of(edges)
    found = detect_communities(edges, entities=entities, options=DetectionOptions())
    base = [each for each in found.communities if each.base]
    starting = {member: number for number, each in enumerate(base) for member in each.members}
    again = detect_communities(edges, entities=entities, options=DetectionOptions(), previous=PreviousDivision(starting))
    assert {each.members for each in again.communities} == {each.members for each in found.communities}


def previous_of(found: Detection, *, changed: Collection[str] = ()) -> PreviousDivision:
    """Return the input of a next detection. Communities with any of ``changed`` have changed."""
    levels: dict[int, dict[str, int]] = defaultdict(dict)
    for number, each in enumerate(found.communities):
        levels[each.level].update(dict.fromkeys(each.members, number))
    base = {member: number for number, each in enumerate(found.communities) if each.base for member in each.members}
    unchanged = frozenset(frozenset(each.members) for each in found.communities if not set(changed) & set(each.members))
    return PreviousDivision(base, levels, unchanged)


def strays(previous: PreviousDivision, edges: Iterable[WeightedEdge]) -> set[str]:
    """Return the entities that are linked more with one other community than with their own, at any level."""
    linked: defaultdict[tuple[str, int], defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for level, clusters in [(-1, previous.base), *previous.levels.items()]:
        for edge in edges:
            if edge.source_id in clusters and edge.target_id in clusters:
                linked[edge.source_id, level][clusters[edge.target_id]] += edge.weight
                linked[edge.target_id, level][clusters[edge.source_id]] += edge.weight
    communities = {-1: previous.base, **previous.levels}
    return {
        entity
        for (entity, level), weights in linked.items()
        if max(weights.values()) > weights.get(communities[level][entity], 0.0)
    }


def test_a_stray_member_leaves_an_unchanged_community() -> None:
    """Without e1, e2 has its only link to e3, which has a weaker one to its own community."""
    entities = names("e0", "e1", "e2", "e3", "e4")
    edges = [edge("e0", "e3"), edge("e0", "e4"), edge("e1", "e2", 3.0), edge("e2", "e3", 2.0)]
    options = DetectionOptions(min_size=2, max_cluster_size=2)
    before = detect_communities(edges, entities=entities, options=options)
    del entities["e1"]
    fewer = [each for each in edges if "e1" not in (each.source_id, each.target_id)]
    given = previous_of(before, changed={"e1", "e2"})
    assert strays(given, fewer) & frozenset({"e0", "e3", "e4"}) == {"e3"}
    after = detect_communities(fewer, entities=entities, options=options, previous=given)
    assert members(after) == {frozenset({"e0", "e4"}), frozenset({"e2", "e3"})}


def members(found: Detection) -> set[frozenset[str]]:
    return {frozenset(each.members) for each in found.communities}


@settings(max_examples=60)
@given(graphs(), st.data(), st.integers(2, 6))
def test_what_did_not_change_is_not_divided(
    graph: tuple[list[WeightedEdge], dict[str, EntityName], list[CoOccurrence]], data: st.DataObject, largest: int
) -> None:
    """After any change, an unchanged community is found again, alone or inside another one, unless a stray member leaves it."""
    edges, entities, contexts = graph
    options = DetectionOptions(min_size=2, max_cluster_size=largest)
    before = detect_communities(edges, entities=entities, options=options, contexts=contexts)
    gone = data.draw(st.sets(st.sampled_from(sorted(entities)), max_size=2))
    left = {each: name for each, name in entities.items() if each not in gone}
    fewer = [each for each in edges if each.source_id in left and each.target_id in left]
    touched = gone | {end for each in edges if each not in fewer for end in (each.source_id, each.target_id)}
    given = previous_of(before, changed=touched)
    after = detect_communities(fewer, entities=left, options=options, contexts=contexts, previous=given)
    check_hierarchy(after, left, options)
    held = [kept for kept in given.unchanged if not kept & strays(given, fewer)]
    assert after.afresh or all(any(kept <= found for found in members(after)) for kept in held)


def test_a_change_moves_only_nearby_entities() -> None:
    edges = planted(40, 30, degree=2, between=30)
    entities = names_of(edges)
    options = DetectionOptions(max_cluster_size=10)
    before = detect_communities(edges, entities=entities, options=options)
    gone = before.communities[0].members[0]
    touched = {end for each in edges if gone in (each.source_id, each.target_id) for end in (each.source_id, each.target_id)}
    fewer = [each for each in edges if gone not in (each.source_id, each.target_id)]
    left = {each: name for each, name in entities.items() if each != gone}
    after = detect_communities(fewer, entities=left, options=options, previous=previous_of(before, changed=touched))
    assert not after.afresh
    fresh = members(after) - members(before)
    assert len(fresh) <= 0.05 * len(after.communities)
    # without the information what changed, much more of it moves
    careless = replace(previous_of(before), unchanged=frozenset(), levels={})
    assert len(fresh) < len(
        members(detect_communities(fewer, entities=left, options=options, previous=careless)) - members(before)
    )


def test_an_entity_that_is_linked_more_elsewhere_moves_there() -> None:
    edges = [edge(f"{side}{a}", f"{side}{b}") for side in "ab" for a in range(8) for b in range(a)]
    before = detect_communities([*edges, edge("a0", "b0", 0.1)], entities=names_of(edges), options=DetectionOptions())
    stronger = [*edges, *(edge("a0", f"b{number}", 3.0) for number in range(8))]
    after = detect_communities(stronger, entities=names_of(edges), options=DetectionOptions(), previous=previous_of(before))
    assert frozenset({"a0", *(f"b{number}" for number in range(8))}) in roots(after)


def test_a_cluster_that_was_divided_is_divided_from_what_it_was() -> None:
    edges = planted(12, 40, degree=2, between=3)
    entities = names_of(edges)
    options = DetectionOptions(max_cluster_size=12)
    before = detect_communities(edges, entities=entities, options=options)
    assert {each.level for each in before.communities} >= {0, 1}
    base = [each for each in before.communities if each.base]
    starting = {member: number for number, each in enumerate(base) for member in each.members}
    divided: dict[int, dict[str, int]] = defaultdict(dict)
    for number, each in enumerate(before.communities):
        divided[each.level].update(dict.fromkeys(each.members, number))
    again = detect_communities(edges, entities=entities, options=options, previous=PreviousDivision(starting, divided))
    assert {each.members for each in again.communities} == {each.members for each in before.communities}
    fewer = edges[:-1]
    after = detect_communities(fewer, entities=entities, options=options, previous=PreviousDivision(starting, divided))
    kept = {each.members for each in after.communities} & {each.members for each in before.communities}
    assert len(kept) >= 0.8 * len(before.communities)
    check_hierarchy(after, entities, options)


def test_starting_from_before_a_change_keeps_most_communities() -> None:
    edges = planted(30, 30, between=40)
    before = detect_communities(edges[:-4], entities=names_of(edges), options=DetectionOptions())
    base = [each for each in before.communities if each.base]
    starting = {member: number for number, each in enumerate(base) for member in each.members}
    after = detect_communities(edges, entities=names_of(edges), options=DetectionOptions(), previous=PreviousDivision(starting))
    old = {each.members for each in before.communities}
    assert sum(each.members in old for each in after.communities) > 0.9 * len(after.communities)


@sampled(gate=50, deep=500)
@given(graphs(), st.lists(st.integers(0, 30), min_size=25, max_size=25))
def test_any_assignment_may_be_started_from(
    graph: tuple[list[WeightedEdge], dict[str, EntityName], list[CoOccurrence]], labels: list[int]
) -> None:
    """Also an assignment whose clusters are no longer connected. The result is about as good as from nothing."""
    edges, entities, contexts = graph
    options = DetectionOptions(min_size=1)
    starting = {each: label for each, label in zip(entities, labels, strict=False) if label < 25}
    found = detect_communities(edges, entities=entities, options=options, contexts=contexts, previous=PreviousDivision(starting))
    check_hierarchy(found, entities, options)
    best = detect_communities(edges, entities=entities, options=options, contexts=contexts).modularity
    assert found.modularity >= 0.99 * best - 1e-9
    turned = [edge(each.target_id, each.source_id, each.weight) for each in reversed(edges)]
    assert shape(
        detect_communities(turned, entities=entities, options=options, contexts=contexts, previous=PreviousDivision(starting))
    ) == shape(found)


def test_time_grows_with_edges_about_linearly() -> None:
    def seconds(groups: int) -> float:
        edges = planted(groups, 20)
        entities = names_of(edges)
        return cpu_s(lambda: detect_communities(edges, entities=entities, options=DetectionOptions()), runs=2)

    small, large = seconds(20), seconds(130)
    assert large < 6.5 * 8 * small, f"6.5 × the edges (10,000) took {large / small:.1f} × the time"
