"""Reading rows of tables and lists, each value with its label."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.language.entries.base import sentence_of
from agentic_rag_backend.language.entries.reading import Headers, blocks_of, header_at, header_text, read_entries

PIPES = """Contacts of the archive:

| Name | Role | Room |
|:-----|:----:|-----:|
| **Petra Sauvage** | Archivist \\| deputy | C002 |
| Bob Lund | [Porter](https://example.org) | |
| Ines Okafor |

After the table.
"""
MARKUP = """<table><caption>Loans by <b>branch</b></caption>
<thead><tr><th rowspan=2>Branch<th colspan="2">Loans</tr><tr><th>2022</th><th>2023</th></tr></thead>
<tr><td rowspan=2>Ellery</td><td>398</td><td>412</td></tr>
<tr><td>12<td>&lt;5</td></tr></table> After the table."""


def sentences(text: str, header: str = "") -> list[str]:
    return [sentence_of(entry) for entry in read_entries(text, header).entries]


def test_rows_and_lists_are_stated_with_their_labels() -> None:
    for text, expected in [
        (PIPES, ["Petra Sauvage – Role: Archivist | deputy; Room: C002.", "Bob Lund – Role: Porter.", "Ines Okafor."]),
        (" name | n\n------+---\n a | 1\n b | 2\n", ["a – n: 1.", "b – n: 2."]),
        (MARKUP, ["Ellery – Loans 2022: 398; Loans 2023: 412.", "Ellery – Loans 2022: 12; Loans 2023: <5."]),
        (
            'Year,Loans,Note\n2022,398,"a, ""b"""\n2023,412,-\n',
            ['Year 2022 – Loans: 398; Note: a, "b".', "Year 2023 – Loans: 412."],
        ),
        ("Branch\t2022\t2023\nEllery\t398\t412\n\t1\t\n", ["Ellery – 2022: 398; 2023: 412.", "2022: 1."]),
        ("Name;Room;Key\nPetra;C002;4\n", ["Petra – Room: C002; Key: 4."]),
        ("## Petra Sauvage\n\n- **Role:** Archivist\n- Room: C002\n", ["Petra Sauvage – Role: Archivist; Room: C002."]),
        ("Petra Sauvage\nRole: Archivist\nRoom: C002\n", ["Petra Sauvage – Role: Archivist; Room: C002."]),
        ("It moved. It is open on:\n\n* Monday 9 to 12\n* Friday\n", ["It is open on: Monday 9 to 12; Friday."]),
        ("- Bob Lund\n  - Role: Porter\n  - Room: A1\n", ["Bob Lund – Role: Porter; Room: A1."]),
        (
            "<table><caption>Petra</caption><tr><th>Role:</th><td>Archivist</td></tr><tr><th>Room</th><td>C002</td></tr></table>",
            ["Petra – Role: Archivist; Room: C002."],
        ),
    ]:
        assert sentences(text) == expected


def test_prose_is_no_table() -> None:
    for text in [
        "He came, saw, and left\nshe stayed, wrote, and slept\nthey met, talked, and ate\n",
        "- The archive was founded in 1931.\n- It moved to the customs house in 2004.\n",
        "Q: Where was it?\nA: In the harbour.\nQ: When?\nA: In 1931.\n",
        "a | b\n1 | 2\n",
        "1,2\n3,4\n5,6\n",
        "- a reader's card\n- a form\n",
        "the <table> tag and the <td> tag",
    ]:
        reading = read_entries(text)
        assert reading.entries == ()
        assert reading.sentences


def test_sentences_around_tables_stay_sentences() -> None:
    assert [each.text for each in read_entries(PIPES).sentences] == ["Contacts of the archive:", "After the table."]
    assert [each.text for each in read_entries(MARKUP).sentences] == ["After the table."]


def test_a_blank_cell_is_known_as_blank() -> None:
    _, bob, ines = read_entries(PIPES).entries
    assert bob.blank == ("Room",)
    assert ines.blank == ("Role", "Room")


CELL = st.text(st.sampled_from("abc019 .,;:|<&\"'-"), min_size=1, max_size=8).map(lambda text: f"x{text.strip()}y")
GRIDS = st.integers(2, 5).flatmap(lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=2, max_size=6))


def _pipes(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _delimited(delimiter: str, header: list[str], rows: list[list[str]]) -> str:
    return "\n".join(delimiter.join('"' + cell.replace('"', '""') + '"' for cell in line) for line in (header, *rows))


def _markup(header: list[str], rows: list[list[str]]) -> str:
    def row(name: str, cells: list[str]) -> str:
        return "<tr>" + "".join(f"<{name}>{html.escape(cell)}</{name}>" for cell in cells) + "</tr>\n"

    return "<table>\n" + row("th", header) + "".join(row("td", cells) for cells in rows) + "</table>"


FORMS = {
    "pipes": _pipes,
    "commas": lambda header, rows: _delimited(",", header, rows),
    "semicolons": lambda header, rows: _delimited(";", header, rows),
    "tabs": lambda header, rows: _delimited("\t", header, rows),
    "markup": _markup,
}


@pytest.mark.sampled
@pytest.mark.parametrize("form", FORMS)
@sampled(gate=60, deep=2_000)
@given(GRIDS)
def test_every_cell_has_its_own_label(form: str, rows: list[list[str]]) -> None:
    header = [f"Column {'abcde'[number]}" for number in range(len(rows[0]))]
    # A "<" before a letter begins an element of Markdown.
    rows = [[cell.replace("<", "") if form != "markup" else cell for cell in row] for row in rows]
    rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    plain = [[html.unescape(cell) if form != "markup" else cell for cell in row] for row in rows]
    text = FORMS[form](header, rows)
    whole = read_entries(f"Before it.\n\n{text}\n\nAfter it.")
    assert [(each.subject, [(value.label, value.text) for value in each.values]) for each in whole.entries] == [
        (row[0], list(zip(header[1:], row[1:], strict=True))) for row in plain
    ]
    # The rows of a later passage have the same labels, and offsets in that passage.
    block = blocks_of(text)[0]
    for number, cut in enumerate(block.cuts, 1):
        rest = text[cut:]
        later = read_entries(rest, header_at(text, "", cut)).entries
        assert [each.subject for each in later] == [row[0] for row in plain[number:]]
        for entry in later:
            assert 0 <= entry.start < entry.end <= len(rest)
            for value in entry.values:
                assert value.text[0] == "x"
                assert rest[value.start : value.end].strip('"')[0] == "x"


def test_a_header_is_that_of_the_row_at_which_a_passage_begins() -> None:
    headers = Headers(PIPES, blocks_of(PIPES))
    second, between = PIPES.index("| Bob"), PIPES.index("[Porter]")
    assert headers.header_at(second) == "| Name | Role | Room |\n|:-----|:----:|-----:|"
    assert headers.header_at(between) == headers.header_at(PIPES.index("After")) == ""
    assert headers.is_whole(second)
    assert not headers.is_whole(between)
    assert header_text(headers.header_at(second)) == "| Name | Role | Room |"
    assert header_text("<table><tr><th>Name</th><th>Room</th></tr>") == "Name Room"


def test_a_passage_that_begins_within_a_row_gives_no_wrong_label() -> None:
    assert sentences("398\t412\nSund\t1\t2", "Branch\t2022\t2023") == ["Sund – 2022: 1; 2023: 2."]


def test_a_long_list_is_several_entries_with_the_same_subject() -> None:
    items = "\n".join(f"- Room {number}: {'x' * 60}" for number in range(20))
    entries = read_entries(f"The rooms are:\n{items}\n").entries
    assert len(entries) > 1
    assert {entry.subject for entry in entries} == {"The rooms are"}
    assert sum(len(entry.values) for entry in entries) == 20
