"""Diversity: each figure on lists with known results, and bounds for any lists."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.evaluation.datasets import load_questions
from agentic_rag_backend.evaluation.result_diversity import Listing, measure_diversity, measure_sizes


def listing(ids: str, *, texts: tuple[str, ...] = (), communities: str = "", entities: str = "") -> Listing:
    return Listing(
        ids=tuple(ids),
        documents=tuple(id.upper() for id in ids),
        texts=texts,
        communities=tuple(communities),
        entities=tuple(entities),
    )


def test_distinct_things_are_counted_over_all_questions() -> None:
    found = measure_diversity(
        [listing("ab", communities="x", entities="pqp"), listing("bc", communities="x"), listing("")],
        {"documents": 10, "communities": 4, "entities": None},
    )
    assert found.as_result() == {
        "questions": 3,
        "unanswered": 1,
        "diversity_ratio": 0.75,
        "diversity_bound": 1.0,
        "diversity_of_bound": 0.75,
        "identical_pairs": 0.0,
        "intra_list_similarity": None,
        "documents": {"distinct": 3, "places": 4, "ratio": 0.75, "coverage": 0.3},
        "communities": {"distinct": 1, "places": 2, "ratio": 0.5, "coverage": 0.25},
        "entities": {"distinct": 2, "places": 3, "ratio": 0.6667, "coverage": None},
    }


def test_the_ratio_is_bounded_by_the_number_of_documents() -> None:
    few = measure_diversity([listing("ab"), listing("ab"), listing("ab")], {"documents": 3})
    assert (few.ratio, few.documents.bound, few.of_bound) == (pytest.approx(1 / 3), 0.5, pytest.approx(2 / 3))
    assert measure_diversity([listing("abc"), listing("abc")], {"documents": 3}).of_bound == 1.0
    unknown = measure_diversity([listing("ab")], {})
    assert (unknown.documents.bound, unknown.of_bound) == (None, None)
    assert measure_diversity([listing("")], {"documents": 3}).of_bound is None


def test_two_lists_are_identical_in_any_order_and_empty_ones_are_none() -> None:
    found = measure_diversity([listing("ab"), listing("ba"), listing("ac"), listing(""), listing("")], {})
    assert found.identical_pairs == pytest.approx(1 / 3)
    assert measure_diversity([listing("ab"), listing("")], {}).identical_pairs is None
    themes = [listing("", communities="x"), listing("", communities="x")]
    assert measure_diversity(themes, {}).identical_pairs == 1.0


def test_similarity_is_that_of_the_words_of_one_list() -> None:
    same = listing("ab", texts=("Turbines hum at sea.", "At sea hums the turbine."))
    other = listing("cd", texts=("Turbines hum.", "Painters travel."))
    assert measure_diversity([same], {}).intra_list_similarity == pytest.approx(1.0)
    assert measure_diversity([other], {}).intra_list_similarity == 0.0
    assert measure_diversity([same, other, listing("e", texts=("Alone.",))], {}).intra_list_similarity == pytest.approx(0.5)
    half = listing("ab", texts=("Turbines hum.", "Turbines hum, painters travel."))
    assert measure_diversity([half], {}).intra_list_similarity == pytest.approx(2 / math.sqrt(8))


def test_sizes_are_reported_by_level() -> None:
    assert measure_sizes({1: [2], 0: [3, 9, 4]}) == {
        "0": {"communities": 3, "min": 3, "median": 4, "mean": 5.33, "max": 9},
        "1": {"communities": 1, "min": 2, "median": 2, "mean": 2, "max": 2},
    }


@given(st.lists(st.text("abcdef", max_size=5), max_size=12))
def test_shares_are_shares_and_do_not_depend_on_the_order_of_questions(lists: list[str]) -> None:
    listings = [listing(each, texts=tuple(f"word{id} common" for id in each)) for each in lists]
    found = measure_diversity(listings, {"documents": 3})
    for share in (found.ratio, found.identical_pairs, found.intra_list_similarity, found.documents.coverage):
        assert share is None or 0.0 <= share <= 1.0 + 1e-9
    turned = measure_diversity(listings[::-1], {"documents": 3})
    assert (turned.ratio, turned.identical_pairs) == (found.ratio, found.identical_pairs)
    pairs = [(a, b) for n, a in enumerate(lists) for b in lists[n + 1 :] if a and b]
    equal = sum(set(a) == set(b) for a, b in pairs)
    assert found.identical_pairs == (pytest.approx(equal / len(pairs)) if pairs else None)


def test_questions_are_read_from_a_file_or_folder(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "Who?", "id": 1}\n\n{"question": "Why?"}\n')
    assert load_questions(file) == load_questions(tmp_path) == ("Who?", "Why?")
    for wrong in ('{"question": " "}', '{"query": "Who?"}', "no JSON", '["Who?"]'):
        file.write_text(wrong)
        with pytest.raises(InvalidRequest, match=r"questions\.jsonl"):
            load_questions(file)
    with pytest.raises(InvalidRequest):
        load_questions(tmp_path / "absent.jsonl")
