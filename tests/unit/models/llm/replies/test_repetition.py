"""A reply that repeats itself is noticed, however it is split; ordinary texts are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.models.llm.replies.reasoning import LoopDetector, without_loop

START = "The report has two parts. "
SENTENCE = "The lifting frame was bent by the tide. "


def test_the_text_before_the_repetition_is_kept() -> None:
    for loop, kept in [
        (SENTENCE * 6, START + SENTENCE.strip()),
        ("and so on " * 60, START + "and so on"),
        ("\n" * 500, START.strip()),
        ('{"name": "Sandpiper", "type": "boat"}, ' * 12, START + '{"name": "Sandpiper", "type": "boat"},'),
    ]:
        text, looped = without_loop(START + loop)
        assert looped
        assert text == kept


def test_ordinary_texts_have_no_loop() -> None:
    for text in [
        START + SENTENCE * 2,
        START + "|---" * 40,
        START + "." * 120,
        "".join(f"{number}. {SENTENCE}" for number in range(1, 9)),
        "".join(f'{{"passage": {number}, "grade": 3}}, ' for number in range(1, 21)),
        "\n".join(f"| {number} | 0.0 | 0.0 |" for number in range(40)),
    ]:
        assert without_loop(text) == (text, False)


@pytest.mark.parametrize("mark", ["-", " "])
def test_wide_columns_of_a_table_are_no_loop_wherever_they_end(mark: str) -> None:
    for size in range(48):
        assert not without_loop("x" * size + ("|" + mark * 30) * 7)[1]


def test_two_sentences_are_no_loop_wherever_they_end() -> None:
    for size in range(48):  # the detector reads steps of this length
        assert not without_loop(START[:5] + "z" * size + " " + SENTENCE * 2)[1]


@given(st.integers(0, 80), st.lists(st.integers(1, 30), min_size=1))
def test_the_split_of_a_text_does_not_matter(before: int, sizes: list[int]) -> None:
    text = "x" + "".join(map(str, range(before))) + " " + SENTENCE * 6
    whole, pieces = LoopDetector(), LoopDetector()
    start, number = 0, 0
    while start < len(text):
        size = sizes[number % len(sizes)]
        pieces.feed_piece(text[start : start + size])
        start, number = start + size, number + 1
    whole.feed_piece(text)
    assert whole.start is not None
    assert whole.start == pieces.start
