"""Parsing of a model's text, complete and in pieces."""

from __future__ import annotations

import pytest
from cpu_time import cpu_s
from hypothesis import example, given
from hypothesis import strategies as st

from agentic_rag_backend.answering.claims.reading import MAX_MARKERS, Claim, ClaimReader, read_claims


def test_claims_and_markers() -> None:
    for text, expected in [
        ("Tides rise. [1]", [("Tides rise.", (1,))]),
        ("Tides rise [1].", [("Tides rise.", (1,))]),
        ("Tides rise. [1] Boats leave [2].", [("Tides rise.", (1,)), ("Boats leave.", (2,))]),
        ("Tides rise [1, 2]. Boats leave.[1][3]", [("Tides rise.", (1, 2)), ("Boats leave.", (1, 3))]),
        ("Tides rise [1-3].", [("Tides rise.", (1, 2, 3))]),
        ("Tides rise [2–3; 5].", [("Tides rise.", (2, 3, 5))]),
        ("Tides rise 【4】. Moss [passage 2] grows.", [("Tides rise.", (4,)), ("Moss grows.", (2,))]),
        ("Tides [1] rise [1].", [("Tides rise.", (1,))]),
        ("Yes. Both are towns [1][2].", [("Yes. Both are towns.", (1, 2))]),
        ("Dr. A. Voss left the U.S. in 1994 [1].", [("Dr. A. Voss left the U.S. in 1994.", (1,))]),
        ("It is [sic] a town.", [("It is [sic] a town.", ())]),
        ("Yes.", [("Yes.", ())]),
        ("", []),
        ("[1]", []),
        ("Tides rise (1). Moss grows (2)", [("Tides rise.", (1,)), ("Moss grows", (2,))]),
        ("The rule is in section (2). See step (4)!", [("The rule is in section (2).", ()), ("See step (4)!", ())]),
        ("Tides rise. [1][", [("Tides rise.", (1,))]),
        ("Tides rise. [1", [("Tides rise.", ())]),
        ("Tides rise. [passage", [("Tides rise.", ())]),
    ]:
        assert [(claim.text, claim.markers) for claim in read_claims(text)] == expected


def test_a_range_makes_no_work() -> None:
    (claim,) = read_claims("All of it [1-999999].")
    assert len(claim.markers) == MAX_MARKERS


def test_lists_keep_their_lines() -> None:
    claims = read_claims("Main points:\n- Tides rise. [1]\n- Boats leave. [2]")
    assert [(claim.separator, claim.text, claim.markers) for claim in claims][1:] == [
        ("\n- ", "Tides rise.", (1,)),
        ("\n- ", "Boats leave.", (2,)),
    ]


_PIECES = st.lists(
    st.sampled_from(
        [
            "Tides rise",
            ".",
            " [1]",
            "[2, 3]",
            " ",
            "\n",
            "\n- ",
            "Yes.",
            " Dr. A. Voss",
            " U.S.",
            " The",
            "odore",
            " [",
            "4",
            "]",
            "! Then",
            " 3.5",
            "Inc. ",
            "\n# Boats",
            "\n| a | b |",
            "\n\n",
            "\r",
            "2. Moss ",
            " (2)",
            "section",
            "潮。",
            '{"answer": ',
            "<passage 2>",
            " " + "tide " * 220,
        ]
    ),
    max_size=30,
)


@example(["Inc. ", " [", " [1]", " [1]", "Tides rise"])
@given(_PIECES)
def test_pieces_give_the_claims_of_the_whole(pieces: list[str]) -> None:
    reader = ClaimReader()
    claims = [claim for piece in pieces for claim in reader.feed(piece)] + reader.finish()
    assert claims == read_claims("".join(pieces))


@pytest.mark.parametrize(
    "sentence",
    ["The captain sold mill 3 to Dr. Voss in the spring, at low tide [1]. ", "- A mill. It is old.\n", "| a | b |\n", "Inc. "],
)
def test_the_work_grows_with_the_length_of_the_text(sentence: str) -> None:
    def read_in_pieces(length: int) -> None:
        text, reader = (sentence * (length // len(sentence) + 1))[:length], ClaimReader()
        for start in range(0, length, 4):
            reader.feed(text[start : start + 4])

    assert cpu_s(lambda: read_in_pieces(16_000)) < 16 * cpu_s(lambda: read_in_pieces(2_000))


def test_a_sentence_is_given_as_soon_as_the_next_has_begun() -> None:
    reader = ClaimReader()
    assert reader.feed("Tides rise. [1") == []
    assert reader.feed("] ") == []
    assert [claim.markers for claim in reader.feed("Boats leave ")] == [(1,)]
    assert [claim.text for claim in reader.finish()] == ["Boats leave"]


def test_a_marker_between_two_words_does_not_join_them() -> None:
    assert [claim.text for claim in read_claims("In the U.S. The[1]tide rises.")] == ["In the U.S.", "The tide rises."]


def test_forms_of_markers() -> None:
    for marker in [
        "[2]",
        "[Passage 2]",
        "[source 2]",
        "[^2]",
        "【2】",
        "(2)",
        "(passage 2)",
        "<passage 2>",
        '<passage id="2" title="Tides">',
        "[2, 2]",
        "**[2]**",
    ]:
        assert read_claims(f"Mira Voss founded it {marker}. It studies tides.") == [
            Claim("Mira Voss founded it.", (2,)),
            Claim("It studies tides.", ()),
        ]


def test_what_models_write_around_an_answer_is_no_part_of_it() -> None:
    for text, expected in [
        ("</passage> [1]", []),
        ("<passage 2>\nIt studies tides.\n</passage>\n[2]", [("It studies tides.", (2,))]),
        ("Answer: It studies tides [1].", [("It studies tides.", (1,))]),
        ("According to [2], it studies tides.", [("It studies tides.", (2,))]),
        (
            'Use <b>bold</b> in <div class="a">. A <source src="a"> ends [1].',
            [('Use <b>bold</b> in <div class="a">.', ()), ('A <source src="a"> ends.', (1,))],
        ),
        ("Call f(1). The list (2) is long.", [("Call f(1).", ()), ("The list (2) is long.", ())]),
    ]:
        assert [(claim.text, claim.markers) for claim in read_claims(text)] == expected


OBJECT = '{"answer": "It studies tides [1]."}'
TIDES = Claim("It studies tides.", (1,))


def test_an_answer_in_an_object_is_unwrapped() -> None:
    for text, before in [
        (OBJECT, []),
        (f"```json\n{OBJECT}\n```", []),
        ('{"answer": "It studies tides [1].", "sources": [1]}', []),
        ('{"reply": "It studies tides [1].", "sources": [1]}', []),
        (f'[{{"response": {OBJECT}}}]', []),
        ('{"answer": "It studies tides [1].",', []),
        (f"Here is the JSON: {OBJECT}", []),
        (f"Sure! Here it is as JSON:\n\n```json\n{OBJECT}\n```\nI hope this helps.", ["Sure!"]),
        (f"As {{asked}}: {OBJECT}\n{OBJECT}", []),
        ("Moss grows [2]. Here:\n{'answer': 'It studies tides [1].'}", ["Moss grows."]),
    ]:
        for size in (1, 3, len(text)):
            reader = ClaimReader()
            pieces = [text[start : start + size] for start in range(0, len(text), size)]
            *others, last = [claim for piece in pieces for claim in reader.feed(piece)] + reader.finish()
            assert [claim.text for claim in others] == before
            assert last == TIDES
            assert reader.text.endswith("It studies tides [1].")


@pytest.mark.parametrize("text", ['Send {"name": "Moss"} to it [1].', '{"answer": "It stu', "{} is empty [1].", "[{x}]"])
def test_an_object_without_an_answer_stays_as_it_is(text: str) -> None:
    reader = ClaimReader()
    assert [claim for character in text for claim in reader.feed(character)] + reader.finish() == read_claims(text)
