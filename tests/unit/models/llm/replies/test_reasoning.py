"""Reasoning is removed from replies, and nothing else is, however a reply is split into pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.models.llm.replies.reasoning import ReasoningFilter, without_reasoning

FRAGMENTS = (
    "```",
    *(
        "<think>",
        "</think>",
        "\n</think>\n",
        "<thinking>",
        "</thinking>",
        "[THINK]",
        "[/THINK]",
        "◁think▷",
        "◁/think▷",
        "analysis",
    ),
    *(
        "<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
        "assistantfinal",
        "<|end|>",
        "<|im_end|>",
        "</s>",
        "<",
        "[1]",
    ),
    *("A sentence.", " word", "\n", " ", "`", "İ"),
)


def visible(pieces: list[str], *, hold: bool = False) -> str:
    """Return what is left of a stream."""
    reading, text = ReasoningFilter(hold=hold), ""
    for piece in pieces:
        for part in reading.feed_piece(piece):
            text = ("" if part.restart else text) + part.text
    for part in reading.finish_reply():
        text = ("" if part.restart else text) + part.text
    return text


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join), st.lists(st.integers(1, 9), min_size=1), st.booleans())
def test_any_split_of_a_reply_gives_the_same_text(text: str, sizes: list[int], hold: bool) -> None:
    pieces, start = list[str](), 0
    while start < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[start : start + size])
        start += size
    assert visible(pieces, hold=hold) == without_reasoning(text)[0]


@given(st.text(alphabet="abc .\n[1]`", max_size=60))
def test_a_text_without_marks_stays_as_it_is(text: str) -> None:
    assert visible([*text]) == text.lstrip()


def test_what_counts_as_reasoning() -> None:
    for reply, expected in [
        ("<think>a</think>\n\nHello [1].", "Hello [1]."),
        ("  <THINK>a</Think>Hello", "Hello"),
        ("First I look.\n</think>\n\nHello", "Hello"),
        ("I looked.</think>Hello", "Hello"),
        ("<think>never closed", ""),
        ("Hello. <think> stays, and so does </think> here.", "Hello. <think> stays, and so does </think> here."),
        ("Write `</think>` at its end.", "Write `</think>` at its end."),
        ("a\n</think>\nb\n</think>\nc", "c"),
        ("Write:\n```\n<think>\na\n</think>\n```\nDone.", "Write:\n```\n<think>\na\n</think>\n```\nDone."),
        ("Try:\n```\na\n```\nRight.\n</think>\nDone.", "Done."),
        ("analysis of the frame", "analysis of the frame"),
        ("Hello <|im_end|> more", "Hello "),
        ("a </s> b", "a </s> b"),
        ("", ""),
    ]:
        assert without_reasoning(reply)[0] == expected
        assert visible([*reply]) == expected


def test_a_stream_is_not_held_back_longer_than_a_mark() -> None:
    reading = ReasoningFilter()
    shown = "".join(part.text for piece in ("The", " lifting", " frame [", "1]. <b") for part in reading.feed_piece(piece))
    assert shown == "The lifting frame [1]. <b"
    assert [part.text for part in reading.feed_piece(" </thi")] == [" "]
