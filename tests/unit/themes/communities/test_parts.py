"""Plans, fingerprints, weights, options and views."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from sample_passages import visible_of

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Community, CommunitySummary, Finding, Label, Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.themes.communities.detection.community_plan import (
    plan_communities,
    previous_detection,
    previous_division,
)
from agentic_rag_backend.themes.communities.detection.hierarchy import DetectionOptions, EntityName, detect_communities
from agentic_rag_backend.themes.communities.detection.knowledge import (
    Edge,
    VisibleKnowledge,
    fingerprint_community,
    graph_digest,
    list_contexts,
    weighted_edges,
)
from agentic_rag_backend.themes.communities.rebuilds.rebuild_options import RebuildOptions
from agentic_rag_backend.themes.communities.theme_index import visible_view

TENANT = TenantId("t_" + "a" * 32)
ENTITIES = {each: EntityName(each.upper(), "thing") for each in "abcxyz"}


def edge(source: str, target: str, passages: int = 1, digest: bytes = b"1") -> Edge:
    return Edge(f"{source}{target}", source, target, "met", passages, f"{source}{target}".encode() + digest)


def knowledge(**changes: Any) -> VisibleKnowledge:
    base = VisibleKnowledge(
        entities=ENTITIES,
        edges=[edge("a", "b"), edge("b", "c"), edge("a", "c"), edge("x", "y"), edge("y", "z"), edge("z", "x")],
        mentions={each: (Support("d1" if each in "abc" else "d2", 1, f"c-{each}"),) for each in ENTITIES},
    )
    return replace(base, **changes)


def planned(given: VisibleKnowledge, tenant: TenantId = TENANT) -> dict[str, Any]:
    detection = detect_communities(
        weighted_edges(given), entities=given.entities, options=DetectionOptions(), contexts=list_contexts(given)
    )
    return {"".join(sorted(each.members)): each for each in plan_communities(tenant, detection, given)}


def test_a_change_touches_only_its_own_community() -> None:
    before = planned(knowledge())
    changed = [edge("a", "b", digest=b"2"), *knowledge().edges[1:]]
    after = planned(knowledge(edges=changed))
    assert after["abc"].id == before["abc"].id
    assert after["abc"].fingerprint != before["abc"].fingerprint
    assert after["xyz"] == before["xyz"]


def test_ids_belong_to_the_tenant() -> None:
    other = TenantId("t_" + "b" * 32)
    assert planned(knowledge())["abc"].id != planned(knowledge(), other)["abc"].id


def test_names_are_part_of_the_fingerprint() -> None:
    for other in [
        {"entities": {**ENTITIES, "a": EntityName("Renamed", "thing")}},
        {"entities": {**ENTITIES, "a": EntityName("A", "person")}},
    ]:
        inside = [edge("a", "b")]
        assert fingerprint_community(knowledge(), "ab", inside) != fingerprint_community(knowledge(**other), "ab", inside)


def test_fingerprint_ignores_order_and_without_relationships_sees_mentions() -> None:
    given = knowledge()
    one, two = edge("a", "b"), edge("b", "c")
    assert fingerprint_community(given, "abc", [one, two]) == fingerprint_community(given, "cba", [two, one])
    moved = knowledge(mentions={**given.mentions, "a": (Support("d9", 1, "c9"),)})
    assert fingerprint_community(given, "ab", []) != fingerprint_community(moved, "ab", [])
    assert fingerprint_community(given, "ab", [one]) == fingerprint_community(moved, "ab", [one])


def test_graph_digest_sees_all_that_detection_depends_on() -> None:
    given, options = knowledge(), DetectionOptions()
    digests = {
        graph_digest(given, options),
        graph_digest(given, replace(options, resolution=2.0)),
        graph_digest(knowledge(edges=given.edges[1:]), options),
        graph_digest(knowledge(mentions={**given.mentions, "a": ()}), options),
        graph_digest(knowledge(entities={**ENTITIES, "a": EntityName("Other", "thing")}), options),
    }
    assert len(digests) == 5
    assert graph_digest(replace(given, edges=list(reversed(given.edges))), options) in digests


def test_weights_grow_with_passages_and_shrink_with_prominence() -> None:
    def weight(passages: int, mentions: int) -> float:
        held = {"a": tuple(Support("d", 1, str(n)) for n in range(mentions)), "b": (Support("d", 1, "0"),)}
        return weighted_edges(VisibleKnowledge(entities=ENTITIES, edges=[edge("b", "a", passages)], mentions=held))[0].weight

    assert weight(1, 1) == pytest.approx(math.log(2))
    assert weight(1, 1) < weight(5, 1) < 5 * weight(1, 1)
    assert weight(1, 1) > weight(1, 10) > weight(1, 1000) > 0


def test_parallel_relationships_are_one_edge() -> None:
    edges = weighted_edges(knowledge(edges=[edge("a", "b"), edge("b", "a"), edge("a", "a")]))
    assert [(each.source_id, each.target_id) for each in edges] == [("a", "b")]
    assert edges[0].weight == pytest.approx(math.log(3))


def test_previous_generation_is_read_back_as_it_was_detected() -> None:
    members = [f"{group}{n}" for group in range(60) for n in range(4)]
    entities = {each: EntityName(each, "x") for each in members}
    edges = [edge(a, b) for a in members for b in members if a < b and a[:-1] == b[:-1]]
    edges += [edge(f"{group}0", f"{group + 1}1") for group in range(59)]
    given = VisibleKnowledge(entities=entities, edges=edges)
    detection = detect_communities(weighted_edges(given), entities=entities, options=DetectionOptions(max_roots=5))
    communities = plan_communities(TENANT, detection, given)
    coarse = [each.id for each in communities if each.level == 0 and not each.base]
    assert coarse
    stored: list[Community] = [each.make_community(1) for each in communities]
    details = {"coarse": coarse, "modularity": 0.5}
    again = previous_detection(sorted(stored, key=lambda each: (each.level, each.id)), details)
    assert {(each.members, each.base, each.level) for each in again.communities} == {
        (each.members, each.base, each.level) for each in detection.communities
    }
    assert {each.id for each in plan_communities(TENANT, again, given)} == {each.id for each in communities}
    assert again.modularity == 0.5
    groups: dict[int, set[str]] = {}
    for entity, number in previous_division(stored, details, given).base.items():
        groups.setdefault(number, set()).add(entity)
    assert {frozenset(each) for each in groups.values()} == {frozenset(c.members) for c in detection.communities if c.base}


def test_fingerprints_identify_unchanged_communities() -> None:
    given = knowledge()
    stored = [each.make_community(1) for each in planned(given).values()]
    whole = {frozenset("abc"), frozenset("xyz")}
    assert previous_division(stored, {}, given).unchanged == whole
    assert previous_division(stored, {}, knowledge(edges=[edge("a", "b", digest=b"2"), *given.edges[1:]])).unchanged == {
        frozenset("xyz")
    }
    gone = {each: name for each, name in ENTITIES.items() if each != "a"}
    left = knowledge(entities=gone, edges=[each for each in given.edges if "a" not in (each.source_id, each.target_id)])
    assert previous_division(stored, {}, left).unchanged == {frozenset("xyz")}
    more = knowledge(entities={**ENTITIES, "n": EntityName("N", "thing")}, edges=[*given.edges, edge("n", "a")])
    assert previous_division(stored, {}, more).unchanged == whole
    assert not previous_division(stored, {}, given, comparable=False).unchanged


def test_options_outside_their_limits_are_refused() -> None:
    for name, value in [
        ("mode", "fast"),
        ("levels", 0),
        ("levels", 11),
        ("max_cluster_size", 2),
        ("min_community_size", 0),
        ("resolution", 0.0),
        ("resolution", math.nan),
        ("resolution", math.inf),
        ("resolution", 101.0),
    ]:
        with pytest.raises(InvalidRequest, match=f"^{name} must be"):
            RebuildOptions(**{name: value})  # type: ignore[arg-type]


def test_options_survive_the_job_row() -> None:
    options = RebuildOptions(mode="full", levels=2, resolution=1.5, dry_run=True, min_community_size=4)
    assert RebuildOptions.from_arguments(options.to_arguments()) == options
    assert RebuildOptions.from_arguments({"mode": "full", "unknown": 1}) == RebuildOptions(mode="full")
    detection = options.override_detection(DetectionOptions())
    assert (detection.max_levels, detection.resolution, detection.min_size, detection.max_cluster_size) == (2, 1.5, 4, 25)


COMMUNITY = Community(id="i", generation=3, level=0, parent_id=None, entity_ids=("a",), fingerprint="f", entity_count=1)
SUMMARY = CommunitySummary(
    fingerprint="f",
    names=(Label("Name", (Support("d1", 1, "c1"),)),),
    summary="Prose.",
    keywords=(Label("word", (Support("d2", 1, "c2"),)), Label("prosaic")),
    findings=(Finding("One.", (Support("d1", 1, "c1"),)), Finding("Both.", (Support("d1", 1, "c1"), Support("d2", 1, "c2")))),
    rating=1.0,
    model="m",
    prompt_version="p",
    sources=(Support("d1", 1, "c1"), Support("d2", 1, "c2")),
)


def passage(id: str, version: int) -> VisibleChunk:
    return visible_of("The name of a word.", id, title="", document_id="d" + id[1:], version=version)


def test_view_withholds_what_rests_on_hidden_passages() -> None:
    whole = visible_view(COMMUNITY, SUMMARY, {"c1": passage("c1", 1), "c2": passage("c2", 1)}, stale=False)
    assert whole is not None
    assert (whole.summary, whole.keywords, whole.withheld, whole.stale, len(whole.findings)) == (
        "Prose.",
        ("word", "prosaic"),
        False,
        False,
        2,
    )
    part = visible_view(COMMUNITY, SUMMARY, {"c1": passage("c1", 4)}, stale=False)
    assert part is not None
    assert (part.name, part.summary, part.keywords, part.withheld, part.stale) == ("Name", "", (), True, True)
    assert [finding.statement for finding in part.findings] == ["One."]
    assert part.sources == (Support("d1", 4, "c1"),), "with the version that is visible now"
    assert visible_view(COMMUNITY, SUMMARY, {}, stale=False) is None
