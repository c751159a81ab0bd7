from __future__ import annotations

import pytest
from office_files import mutations, open_document, reads_or_refuses, tables_of

from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.media_types import ODP
from agentic_rag_backend.errors import UnreadableDocument

PARSER = parser_of(ODP)
HIDDEN = (
    '<style:style style:name="h" style:family="drawing-page"><style:drawing-page-properties presentation:visibility="hidden"/>'
    "</style:style>"
)
SIZES = (
    '<style:styles xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" '
    'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"><style:page-layout style:name="L">'
    '<style:page-layout-properties fo:page-height="540pt"/></style:page-layout>'
    '<style:master-page style:name="M" style:page-layout-name="L"/></style:styles>'
)


def frame(content: str, place: str = "10pt 20pt 100pt 30pt", kind: str = "") -> str:
    edges = " ".join(f'svg:{name}="{value}"' for name, value in zip(("x", "y", "width", "height"), place.split(), strict=True))
    return f"<draw:frame {edges} {kind}>{content}</draw:frame>"


def text_box(text: str) -> str:
    return f"<draw:text-box><text:p>{text}</text:p></draw:text-box>"


def table(*rows: str) -> str:
    return f"<table:table>{''.join(f'<table:table-row>{row}</table:table-row>' for row in rows)}</table:table>"


def cells(*texts: str) -> str:
    return "".join(f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in texts)


NORTH = '<table:table-cell table:number-rows-spanned="2"><text:p>North</text:p></table:table-cell>'
ITEMS = "<draw:text-box><text:list><text:list-item><text:p>Oil</text:p></text:list-item><text:list-item><text:p>Tar</text:p>"
ITEMS += "</text:list-item></text:list></draw:text-box>"
SLIDES = (
    '<draw:page draw:master-page-name="M">'
    + frame(
        table(cells("Quay", "Berth"), NORTH + cells("N1"), "<table:covered-table-cell/>" + cells("N2")), "10pt 400pt 100pt 30pt"
    )
    + f"<draw:g>{frame(text_box('right'), '300pt 101pt 50pt 20pt')}{frame(text_box('left'), '10pt 100pt 50pt 20pt')}</draw:g>"
    + '<draw:custom-shape svg:x="1cm" svg:y="50pt"><text:p>drawn</text:p></draw:custom-shape>'
    + frame(text_box("Fleet"), kind='presentation:class="title"')
    + frame(text_box("7"), kind='presentation:class="page-number"')
    + frame(text_box("Click to add"), kind='presentation:placeholder="true"')
    + f"<presentation:notes>{frame(text_box('Say why.'))}</presentation:notes></draw:page>"
    + f'<draw:page draw:style-name="h">{frame(text_box("secret"))}</draw:page>'
    + f"<draw:page>{frame(ITEMS)}<draw:frame><draw:object/></draw:frame></draw:page>"
)


def talk(slides: str = SLIDES) -> bytes:
    return open_document(ODP, f"<office:presentation>{slides}</office:presentation>", HIDDEN, styles_xml=SIZES)


def test_slides_are_pages_in_reading_order_with_boxes() -> None:
    parsed = PARSER.parse(talk())
    assert parsed.text.split("\n\n") == [
        *(
            "Fleet",
            "drawn",
            "left",
            "right",
            "| Quay | Berth |\n| --- | --- |\n| North | N1 |\n| North | N2 |",
            "Notes: Say why.",
        ),
        *("Slide 3", "- Oil\n- Tar"),
    ]
    assert tables_of(parsed) == [[["Quay", "Berth"], ["North", "N1"], ["North", "N2"]]]
    places = {parsed.text[region.start_char : region.end_char]: (region.page, region.box) for region in parsed.regions}
    assert places["left"] == (1, (10, 420, 60, 440))
    assert places["- Oil\n- Tar"] == (3, None)
    assert parsed.metadata["hidden_slides"] == [2]
    assert parsed.warnings == (
        "not in the text: hidden slides (1: slide 2)",
        "not in the text: embedded objects (1: slide 3)",
    )


def test_files_without_slides_are_refused_and_damaged_ones_read_or_refused() -> None:
    with pytest.raises(UnreadableDocument, match="no body"):
        PARSER.parse(open_document(ODP, "<office:text/>"))
    with pytest.raises(UnreadableDocument, match="no text"):
        PARSER.parse(talk("<draw:page/>"))
    assert any(reads_or_refuses(PARSER, damaged) for damaged in mutations(talk(), 100))
