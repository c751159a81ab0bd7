"""Ids of communities: each continued community keeps its id, and each id is used once."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.graph import Community
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.themes.communities.detection.community_plan import KEPT_ABOVE, community_ids
from agentic_rag_backend.themes.communities.detection.hierarchy import DetectedCommunity

TENANT = TenantId("t_" + "a" * 32)


def found(members: str, level: int = 0) -> DetectedCommunity:
    return DetectedCommunity(level=level, parent=None, members=tuple(members), base=True)


def ids(communities: list[DetectedCommunity], previous: list[Community] | None = None) -> list[str]:
    return community_ids(TENANT, communities, previous or [])


def held(communities: list[DetectedCommunity], named: list[str]) -> list[Community]:
    return [
        Community(
            id=name,
            generation=1,
            level=each.level,
            parent_id=None,
            entity_ids=each.members,
            fingerprint="",
            entity_count=len(each.members),
        )
        for each, name in zip(communities, named, strict=True)
    ]


def grown(before: list[DetectedCommunity], after: list[DetectedCommunity]) -> tuple[list[str], list[str]]:
    first = ids(before)
    return first, ids(after, held(before, first))


def test_a_community_that_grows_or_shrinks_keeps_its_id() -> None:
    first, second = grown([found("abcd"), found("wxyz")], [found("abcde"), found("xyz")])
    assert second == first


def test_of_two_halves_neither_keeps_it_and_of_unequal_parts_the_larger() -> None:
    first, halves = grown([found("abcd")], [found("ab"), found("cd")])
    assert first[0] not in halves
    first, parts = grown([found("abcde")], [found("de"), found("abc")])
    assert parts[1] == first[0] != parts[0]


def test_two_that_merge_go_on_as_the_larger() -> None:
    first, merged = grown([found("abcde"), found("xyz")], [found("abcdexyz")])
    assert merged == [first[0]]


def test_one_inside_the_other_keep_theirs() -> None:
    before = [found("abcdefgh"), found("abcdef", 1), found("gh", 1)]
    first, second = grown(before, [found("abcdefghi"), found("abcdefi", 1), found("gh", 1)])
    assert second == first


def test_of_equal_overlaps_the_same_level_counts() -> None:
    before = held([found("abcde", 1), found("abcdf", 0)], ["inner", "outer"])
    assert ids([found("abcd", 0), found("abcd", 1)], before) == ["outer", "inner"]


def test_an_id_is_not_given_twice_when_old_members_come_back() -> None:
    first, second = grown([found("abcd")], [found("abcde")])
    assert second == first
    third, fourth = grown([found("abcd")], [found("abcd"), found("e")])
    assert third == fourth[:1]
    # one continued as "first" while its members changed; a new one has the original members
    drifted = held([found("uvwxy")], first)
    again = ids([found("uvwxy"), found("abcd")], drifted)
    assert again[0] == first[0] != again[1]


partitions = st.lists(st.integers(0, 5), min_size=12, max_size=12)


def clusters(labels: list[int], level: int = 0) -> list[DetectedCommunity]:
    groups: dict[int, str] = {}
    for entity, label in zip("abcdefghijkl", labels, strict=True):
        groups[label] = groups.get(label, "") + entity
    return [found(members, level) for members in groups.values()]


@settings(max_examples=200)
@given(partitions, partitions, st.randoms(use_true_random=False))
def test_exactly_those_that_overlap_by_more_than_half_keep_it(before: list[int], after: list[int], order: object) -> None:
    old, new = clusters(before), clusters(after)
    names = [f"old-{number}" for number in range(len(old))]
    given_ids = ids(new, held(old, names))
    assert len(set(given_ids)) == len(new)
    for each, name in zip(new, given_ids, strict=True):
        mine = set(each.members)
        overlapping = [
            called
            for called, one in zip(names, old, strict=True)
            if len(mine & set(one.members)) / len(mine | set(one.members)) > KEPT_ABOVE
        ]
        assert overlapping == ([name] if name in names else [])
    shuffled = list(zip(old, names, strict=True))
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert ids(new, held([one for one, _ in shuffled], [name for _, name in shuffled])) == given_ids
