from __future__ import annotations

import random

import pytest
from office_files import reads_or_refuses, tables_of

from agentic_rag_backend.domain.media_types import RTF
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument
from agentic_rag_backend.ingestion.parsing.office import rtf
from agentic_rag_backend.ingestion.parsing.registry import parser_of

PARSER = parser_of(RTF)
LETTER = rb"""{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial;}}
{\info{\title A letter}{\author Ann}}{\*\generator secret}{\header Running}
\pard\outlinelevel0 Greeting\par
\pard Dear Zo\'eb, price 5 \u8364? {\v hidden}{\b bold}.\par
{\f1 \'cf\'f0\'e8\'e2\'e5\'f2}\par
\trowd\cellx1000\cellx2000\pard\intbl City\cell People\cell\row
\trowd\cellx1000\cellx2000\pard\intbl Lyon\cell 522250\cell\row
\pard See {\field{\*\fldinst{HYPERLINK "http://example.org"}}{\fldrslt the site}}.\par
{\pict 89504e47}Emoji \u-10179?\u-8704?\par}"""


def test_paragraphs_headings_and_tables_are_in_order() -> None:
    parsed = PARSER.parse(LETTER)
    assert parsed.text.split("\n\n") == [
        "Greeting", "Dear Zoë, price 5 € bold.", "Привет",
        "| City | People |\n| --- | --- |\n| Lyon | 522250 |", "See the site.", "Emoji 😀",
    ]  # fmt: skip
    assert tables_of(parsed) == [[["City", "People"], ["Lyon", "522250"]]]
    assert [(each.level, each.title) for each in parsed.headings] == [(1, "Greeting")]
    assert parsed.title == PARSER.check(LETTER, is_whole=False).title == "A letter"
    assert parsed.metadata["author"] == "Ann"


def test_scripts_notes_and_numbers_are_text_and_what_is_left_out_is_counted() -> None:
    note = rb"{\super\chftn}{\footnote\pard\plain {\super\chftn} Built in 1911.\par Twice.}"
    for body, text, warnings in (
        (rb"10{\super 6} cells, H{\sub 2}O, 3 metres{\super 12}\super 1\nosupersub .", "10^6 cells, H2O, 3 metres[121].", []),
        (rb"The pier" + note + rb" burns.\par Next", "The pier[1] burns.\n\n[1] Built in 1911.\nTwice.\n\nNext", []),
        (
            rb"\trowd\intbl A" + note + rb"\cell B\cell\row\pard",
            "|  |  |\n| --- | --- |\n| A[1] | B |\n\n[1] Built in 1911.\nTwice.", [],
        ),
        (rb"\u-3913? item, \u-3999?", "• item, α", []),
        (rb"{\pntext\f1 2.1 }Operator{\deleted gone}", "2.1 Operator", []),
        (
            rb"{\header Run{\b ning} on}{\header }{\*\annotation why}Text{\v a{\b b}c}", "Text",
            ["headers and footers (1)", "comments (1)", "hidden text (1)"],
        ),
        (
            rb"{\mmath{\*\moMathPara{\*\moMath{\mr L=}{\mf{\mfPr{\mctrlPr\i }}{\mnum{\mr 3W}}{\mden{\mr 8}}}}}{\mmathPict no}} "
            rb"t, {\mmath{\*\moMath{\mnary{\mnaryPr{\mchr \u8721?}{\mlimLoc undOvr}}{\msub{\mr i}}{\msup{\mr n}}{\me{\mr x}}}}}",
            "L=(3W)/8 t, ∑_i^n x", [],
        ),
    ):  # fmt: skip
        parsed = PARSER.parse(rb"{\rtf1 " + body + b"}")
        assert parsed.text == text
        assert list(parsed.warnings) == [f"not in the text: {warning}" for warning in warnings]


def row_of(cells: str, *definitions: str) -> str:
    """Return a row. A definition is the right edge of a cell after its marks, such as ``clvmgf 1000``."""
    return "\\trowd" + "".join(f"\\{d.replace(' ', chr(92) + 'cellx')}" for d in definitions) + f"\\pard\\intbl {cells}\\row\n"


def test_cells_stand_in_every_row_and_column_that_they_cover() -> None:
    depths = (
        row_of(r"Port\cell Depth\cell", "clvmgf 1000", "clvertalt 3000")
        + row_of(r"\cell summer\cell winter\cell", "clvmrg 1010", "clvertalt 2000", "clvertalt 3005")
        + row_of(r"Brno\cell 2 m\cell 3 m\cell", "clvmgf 1000", "clvertalt 2000", "clvertalt 3000")
        + row_of(r"\cell 4 m\cell\cell", "clvmrg 1000", "clmgf 2000", "clmrg 3000")
    )
    nested = (
        row_of(r"Ship\cell Parts\cell", "clvertalt 1000", "clvertalt 2000")
        + r"\trowd\clvertalt\cellx1000\clvertalt\cellx2000\pard\intbl Heron\cell see\par"
        + r"\pard\intbl\itap2 Part\nestcell Code\nestcell"
        + r"{\*\nesttableprops\trowd\cellx500\cellx900\nestrow}{\nonesttables\par}rudder\nestcell R5\nestcell\nestrow"
        + r"\pard\intbl below\cell\row"
    )
    parsed = PARSER.parse(rf"{{\rtf1 {depths}\pard Between.\par {nested}\pard End.\par}}".encode())
    assert tables_of(parsed) == [
        [["Port", "Depth – summer", "Depth – winter"], ["Brno", "2 m", "3 m"], ["Brno", "4 m", "4 m"]],
        [["Ship", "Parts"], ["Heron", "see below"]],
        [["Part", "Code"], ["rudder", "R5"]],
    ]


def test_deep_and_empty_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rtf, "MAX_FORMULA_PARTS", 500)
    for count, message in ((300, "formula are nested more than 256"), (501, "more than 500 parts")):
        parts = rb"{\mr" * count if count == 300 else rb"{\mr x}" * count
        with pytest.raises(ResourceLimit, match=message):
            PARSER.parse(rb"{\rtf1 {\*\moMath " + parts)
    with pytest.raises(ResourceLimit, match="more than 10000 deep"):
        PARSER.parse(rb"{\rtf1 " + b"{" * 20_000 + b"text")
    with pytest.raises(UnreadableDocument, match="no text"):
        PARSER.parse(rb"{\rtf1 {\pict 00}}")
    with pytest.raises(UnreadableDocument, match="not an RTF file"):
        PARSER.parse(b"text")


def test_hostile_links_take_linear_time() -> None:
    assert PARSER.parse(rb"{\rtf1 text " + rb'{\field{\*\fldinst{HYPERLINK "' * 3_000).text == "text"


def test_damaged_files_are_read_or_refused() -> None:
    chance = random.Random(7)
    for _ in range(300):
        changed = bytearray(LETTER)
        for _ in range(chance.randint(1, 8)):
            start = chance.randrange(5, len(changed))
            changed[start : start + chance.randint(0, 9)] = chance.choice(
                [b"", b"{", b"}", b"\\u99999999 ", b"\\'", b"\\ansicpg65001 "]
            )
        reads_or_refuses(PARSER, bytes(changed))
