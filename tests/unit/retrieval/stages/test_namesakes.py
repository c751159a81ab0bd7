"""Passages of further bearers of a name are put among the first results, in order and once."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from sample_passages import hit_of

from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.retrieval.stages.namesakes import FIRST, insert_hits

SCORES = st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])
FOUND = st.lists(st.tuples(st.integers(0, 20), SCORES), max_size=12, unique_by=lambda pair: pair[0])
FURTHER = st.lists(st.tuples(st.integers(0, 30), SCORES), max_size=FIRST - 1, unique_by=lambda pair: pair[0])


def hit(number: int, score: float) -> Hit:
    return hit_of(f"c{number}", score)


@given(found=FOUND, further=FURTHER)
def test_every_further_passage_is_among_the_first_and_scores_fall(
    found: list[tuple[int, float]], further: list[tuple[int, float]]
) -> None:
    hits = sorted((hit(*each) for each in found), key=lambda each: -each.score)
    extra = [hit(*each) for each in further]
    ids_of_extra = {each.id for each in extra}
    first = [each for each in hits if each.id not in ids_of_extra][:FIRST]
    needed = {each.id for each in first[max(0, len(first) - (FIRST - len(extra))) :]}
    result = insert_hits(hits, extra, needed)
    ids = [each.id for each in result]
    assert len(set(ids)) == len(ids)
    assert set(ids) == {each.id for each in (*hits, *extra)}
    assert {each.id for each in extra} | needed <= set(ids[:FIRST])
    assert all(one.score >= other.score for one, other in pairwise(result))


@given(found=FOUND, further=FURTHER, more=st.integers(1, 5))
def test_a_longer_list_begins_with_the_shorter_one(
    found: list[tuple[int, float]], further: list[tuple[int, float]], more: int
) -> None:
    hits: list[Hit] = sorted((hit(*each) for each in found), key=lambda each: -each.score)
    extra = [hit(*each) for each in further]
    first = [held.id for held in insert_hits(hits, extra)[:FIRST]]
    assert first == [held.id for held in insert_hits(hits[: FIRST + more], extra)[:FIRST]]
