"""Excerpts hold their matches, share no chunk, have at most so many chunks, and do not move with weaker matches."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.retrieval.passages.excerpts import MATCHED_SHARE, NEIGHBOURS, Excerpt, Match, excerpts, window


def match(ordinal: int, score: float = 1.0, *, document: str = "d", parent: str | None = None) -> Match:
    return Match(f"{document}:{ordinal}", document, ordinal, parent, score)


def shown(found: Sequence[Excerpt]) -> list[tuple[int, int, list[int]]]:
    return [(each.first, each.last, [held.ordinal for held in each.matches]) for each in found]


def test_a_window_is_around_its_chunk() -> None:
    for ordinal, reach, most, expected in [
        (5, 0, 10, (5, 5)),
        (5, 2, 10, (3, 7)),
        (5, 9, 4, (4, 7)),
        (5, 9, 1, (5, 5)),
        (1, 3, 10, (0, 4)),
        (5, 1, 2, (5, 6)),
    ]:
        assert window(ordinal, reach, most) == expected


def test_matches_whose_windows_touch_are_one_excerpt() -> None:
    assert shown(excerpts([match(5), match(8)], reach=1, limit=10)) == [(4, 9, [5, 8])]
    assert shown(excerpts([match(5), match(9)], reach=1, limit=10)) == [(4, 6, [5]), (8, 10, [9])]
    assert shown(excerpts([match(5), match(5, document="e")], reach=1, limit=10)) == [(4, 6, [5]), (4, 6, [5])]


def test_a_full_excerpt_takes_no_more_and_keeps_its_chunks() -> None:
    assert shown(excerpts([match(5), match(7)], reach=1, limit=3)) == [(4, 6, [5]), (7, 8, [7])]


def test_a_much_weaker_match_is_context() -> None:
    assert shown(excerpts([match(5), match(6, MATCHED_SHARE - 0.1)], reach=1, limit=10)) == [(4, 6, [5])]
    assert shown(excerpts([match(5), match(8, MATCHED_SHARE - 0.1)], reach=1, limit=10)) == [(4, 6, [5]), (7, 9, [8])]


def test_a_parent_has_one_excerpt() -> None:
    found = [match(5, parent="p"), match(20, parent="p"), match(30, parent="q"), match(31, 0.1, parent="p")]
    assert shown(excerpts(found, reach=0, limit=10)) == [(5, 5, [5]), (30, 30, [30])]
    assert shown(excerpts(found, reach=None, limit=10)) == [(5, 5, [5, 20]), (30, 30, [30])]


def test_without_a_number_neighbours_are_read_around_a_match_without_a_parent() -> None:
    assert shown(excerpts([match(5)], reach=None, limit=10)) == [(5 - NEIGHBOURS, 5 + NEIGHBOURS, [5])]


MATCHES = st.lists(
    st.builds(
        lambda ordinal, document, parent: (ordinal, document, f"{document}{ordinal // 7}" if parent else None),
        st.integers(0, 40),
        st.sampled_from("ab"),
        st.booleans(),
    ),
    unique_by=lambda place: place[:2],
    max_size=30,
)


@given(MATCHES, st.integers(0, 5), st.integers(1, 12), st.integers(0, 30))
def test_excerpts_are_apart_and_do_not_move_with_weaker_matches(
    places: list[tuple[int, str, str | None]], reach: int, most: int, cut: int
) -> None:
    # A document is cut with parents or without them.
    with_parents = {document for _, document, parent in places if parent}
    matches = [
        match(
            ordinal, 1 / (1 + rank), document=document, parent=f"{document}{ordinal // 7}" if document in with_parents else None
        )
        for rank, (ordinal, document, _) in enumerate(places)
    ]
    found = excerpts(matches, reach=reach, limit=most)
    for excerpt in found:
        assert excerpt.last - excerpt.first < most
        assert all(excerpt.holds(held.ordinal) for held in excerpt.matches)
    read = [(s.best.document_id, s.best.parent_id, n) for s in found for n in range(s.first, s.last + 1)]
    assert len(read) == len(set(read))
    taken = {(s.best.document_id, s.best.parent_id) for s in found}
    assert taken == {(each.document_id, each.parent_id) for each in matches}
    # Fewer matches give the beginning of the excerpts, in the same places of their best matches.
    fewer = excerpts(matches[:cut], reach=reach, limit=most)
    assert [excerpt.best for excerpt in fewer] == [excerpt.best for excerpt in found][: len(fewer)]
