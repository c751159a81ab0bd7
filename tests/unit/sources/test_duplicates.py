"""Sketches estimate the similarity of texts. The finder returns the earlier document with the same content."""

from __future__ import annotations

import random

import numpy as np
import pytest

from agentic_rag_backend.sources import duplicates as module
from agentic_rag_backend.sources.duplicates import SHINGLE_WORDS, DuplicateFinder, Sketcher, estimate_similarity

VOCABULARY = [f"word{number}" for number in range(5000)]
TOLERANCE = 0.12
"""More than four standard errors of an estimate with 128 minima."""


def _words(seed: int, count: int = 300) -> list[str]:
    return random.Random(seed).choices(VOCABULARY, k=count)


def _shingles(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + SHINGLE_WORDS]) for start in range(len(words) - SHINGLE_WORDS + 1)}


def _estimate(one: str, other: str) -> float:
    sketches = [Sketcher().sketch_text(text) for text in (one, other)]
    low = [sketch.astype(np.uint8) for sketch in sketches if sketch is not None]
    assert len(low) == 2
    return estimate_similarity(low[0], low[1])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("changes", [1, 3, 6, 15, 40])
def test_an_estimate_is_near_the_similarity_of_the_shingles(seed: int, changes: int) -> None:
    words = _words(seed)
    edited = list(words)
    for place in random.Random(seed).sample(range(len(words)), changes):
        edited[place] = "edited"
    one, other = _shingles(words), _shingles(edited)
    assert _estimate(" ".join(words), " ".join(edited)) == pytest.approx(len(one & other) / len(one | other), abs=TOLERANCE)


def test_the_same_is_1_and_nothing_in_common_is_about_0() -> None:
    text = " ".join(_words(1))
    assert _estimate(text, text) == 1.0
    assert _estimate(text, text.upper().replace(" ", ", ")) == 1.0
    assert _estimate(text, " ".join(_words(2))) < 0.05


def test_a_text_of_few_words_is_one_shingle_and_of_none_has_no_sketch() -> None:
    assert _estimate("two words", "Two words!") == 1.0
    assert _estimate("two words", "two others") < 0.05
    assert Sketcher().sketch_text(" … ") is None


def test_scripts_without_spaces_are_compared_by_characters() -> None:
    text = "港湾局は二〇一九年五月に港の浚渫を始めた。銀行は港湾局に資金を貸した。" * 3
    assert _estimate(text, text.replace("五月", "六月", 1)) > 0.7
    assert _estimate(text, "春眠暁を覚えず処処啼鳥を聞く夜来風雨の声花落つること知る多少") < 0.05


def test_a_long_text_is_the_sum_of_its_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(_words(3, 3000))
    whole = Sketcher().sketch_text(text)
    monkeypatch.setattr(module, "_PIECE", 50)
    monkeypatch.setattr(module, "_WORDS_KEPT", 10)
    assert np.array_equal(whole, Sketcher().sketch_text(text))  # type: ignore[arg-type]


def test_near_and_exact_duplicates_are_found_among_many_and_others_are_not() -> None:
    finder = DuplicateFinder(max_pairs=100)
    for number in range(400):
        assert finder.add_document(f"d{number}", " ".join(_words(number)).encode()) is None
    edited = _words(123)
    edited[150] = "edited"
    near = finder.add_document("near", " ".join(edited).encode())
    exact = finder.add_document("exact", " ".join(_words(7)).encode())
    assert near is not None
    assert (near.key, near.of, near.exact) == ("near", "d123", False)
    assert near.similarity == pytest.approx(291 / 301, abs=TOLERANCE)
    assert exact is not None
    assert (exact.of, exact.similarity, exact.exact) == ("d7", 1.0, True)
    less = _words(50)
    less[::10] = ["edited"] * 30
    assert finder.add_document("less", " ".join(less).encode()) is None
    assert (finder.pairs, finder.found, finder.compared) == ([near, exact], 2, 403)


def test_of_similar_texts_at_the_threshold_few_are_missed() -> None:
    finder = DuplicateFinder(max_pairs=0)
    for number in range(60):
        words = _words(number, 1000)
        finder.add_document(f"d{number}", " ".join(words).encode())
        words[500] = "edited"
        assert finder.add_document(f"e{number}", " ".join(words).encode()) is not None
    assert (finder.found, finder.pairs) == (60, [])


def test_what_is_kept_is_bounded() -> None:
    finder = DuplicateFinder(max_pairs=2, max_compared=10)
    texts = [" ".join(_words(number)).encode() for number in range(20)]
    for number, text in enumerate(texts):
        finder.add_document(f"d{number}", text)
    assert finder.remembered == 10
    assert finder.add_document("old", texts[9]) is not None
    assert finder.add_document("new", texts[15]) is None
    for number in range(5):
        finder.add_document(f"again{number}", texts[number])
    assert (finder.found, len(finder.pairs), finder.remembered) == (6, 2, 10)


def test_utf_16_is_compared_as_the_text_it_is() -> None:
    finder = DuplicateFinder(max_pairs=1)
    text = " ".join(_words(1))
    finder.add_document("8", text.encode())
    found = finder.add_document("16", text.encode("utf-16"))
    assert found is not None
    assert (found.of, found.similarity, found.exact) == ("8", 1.0, False)
