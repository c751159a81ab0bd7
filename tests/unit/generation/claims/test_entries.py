"""Checks of claims that state a row of a table or a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.generation.claims.base import Verdict
from agentic_rag_backend.generation.claims.lexical import LexicalVerifier
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.context import Passage
from agentic_rag_backend.language.entries.base import EntryValue, sentence_of
from agentic_rag_backend.language.entries.reading import read_entries

LOANS = """| Branch | 2022 | 2023 |
|---|---|---|
| Ellery | 398 | 412 |
| Scarrow | 131 | 118 |
| Sund | | 203 |
"""
BOAT = "## The Ada Finch\n\n- Builder: Pellow Marine Works\n- Length: 14.2 metres\n- Crew: two"


def check(claim: str, text: str = LOANS, header: str = "") -> Verdict:
    passage = Passage(marker=1, chunk_id="c", document_id="d", title="Loans", text=text, start_char=7, score=1.0, header=header)
    return LexicalVerifier((passage,)).check(Claim(claim, (1,)))


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("Ellery – 2023: 412.", "| Ellery | 398 | 412 |"),
        ("Scarrow – 2022: 131; 2023: 118.", "| Scarrow | 131 | 118 |"),
        ("Sund – 2023: 203.", "| Sund | | 203 |"),
    ],
)
def test_a_row_is_quoted_as_the_document_has_it(claim: str, quote: str) -> None:
    verdict = check(claim)
    assert verdict.holds
    assert [support.quote for support in verdict.supports] == [quote]


@pytest.mark.parametrize(
    "claim",
    [
        "Ellery – 2022: 412.",  # of another column
        "Ellery – 2023: 118.",  # of another row
        "Ellery – 2022: 412; 2023: 398.",
        "Scarrow – 2023: 118; 2022: 398.",
        "Sund – 2022: 203.",  # of a column whose cell is blank
        "Ellery – 2023: 41.",
        "Ellery – 2023: 4120.",
        "Ellery – 2023: 412; 2024: 500.",
    ],
)
def test_a_number_of_another_row_or_column_is_refused(claim: str) -> None:
    assert check(claim).reason == "number"


def test_the_header_above_a_passage_names_its_columns() -> None:
    rows, header = "| Ellery | 398 | 412 |\n| Sund | 5 | 203 |", "| Branch | 2022 | 2023 |\n|---|---|---|"
    assert check("Sund – 2023: 203.", rows, header).supports[0].quote == "| Sund | 5 | 203 |"
    assert check("Sund – 2022: 203.", rows, header).reason == "number"


def test_a_list_is_quoted_whole() -> None:
    (support,) = check("The Ada Finch – Length: 14.2 metres.", BOAT).supports
    assert support.quote == BOAT.removeprefix("## ")
    assert check("The Ada Finch – Length: 41.2 metres.", BOAT).reason == "number"
    assert check("The Ada Finch – Builder: Sund Yard.", BOAT).reason == "unsupported"


def test_a_cell_of_several_sentences_may_be_stated_in_part() -> None:
    text = "| Room | Hours | Note |\n|---|---|---|\n| Hall | 9 to 12 | Closed in May. Ask at the desk. |\n"
    assert check("Hall – Hours: 9 to 12; Note: Closed in May.", text).holds
    assert check("Hall – Hours: 9 to 12; Note: Closed in June.", text).reason == "unsupported"


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("In 2023 Ellery had 412.", None),
        ("Ellery had 398 in 2022 and 412 in 2023.", None),
        ("Sund had 203 in 2023.", None),
        ("In 2022 Ellery had 412.", "number"),
        ("Ellery had 118 in 2023.", "number"),
        ("Scarrow had 412 in 2023.", "unsupported"),
    ],
)
def test_sentences_of_a_model_may_use_the_names_of_columns(claim: str, reason: str | None) -> None:
    assert check(claim).reason == reason


def test_a_model_is_understood_in_a_later_part_of_a_table() -> None:
    rows, header = "| Petra Sauvage | C002 | 555 |\n| Bob Lund | A1 | 107 |", "| Name | Room | Phone |\n|---|---|---|"
    (support,) = check("The phone of Bob Lund is 107.", rows, header).supports
    assert support.quote == "| Bob Lund | A1 | 107 |"
    assert check("The phone of Bob Lund is 555.", rows, header).reason == "number"


WORD = st.text(st.sampled_from("abcdefgh"), min_size=3, max_size=6)
CELLS = st.integers(100, 99_999).map(str)


@pytest.mark.sampled
@sampled(gate=80, deep=3_000)
@given(st.data())
def test_exactly_the_cells_of_a_row_are_supported(data: st.DataObject) -> None:
    labels = data.draw(st.lists(WORD.map(str.capitalize), min_size=3, max_size=5, unique=True))
    subjects = data.draw(st.lists(WORD.map(lambda word: f"{word.capitalize()} Works"), min_size=2, max_size=4, unique=True))
    rows = [[subject, *data.draw(st.lists(CELLS, min_size=len(labels) - 1, max_size=len(labels) - 1))] for subject in subjects]
    lines = [labels, ["---"] * len(labels), *rows]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    for entry in read_entries(text).entries:
        chosen = data.draw(st.lists(st.sampled_from(entry.values), min_size=1, unique=True))
        stated = check(sentence_of(entry, chosen), text)
        assert stated.holds
        assert stated.supports[0].quote == text[entry.start : entry.end]
        first, *others = chosen
        number = data.draw(CELLS.filter(lambda number, own=first.text: number != own))
        changed = sentence_of(entry, [EntryValue(first.label, number, 0, 0), *others])
        assert check(changed, text).reason == "number"
