from __future__ import annotations

import io
from typing import Any

import pptx
import pytest
from office_files import mutations, reads_or_refuses, tables_of
from pptx.oxml import parse_xml
from pptx.util import Pt

from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.media_types import PPTX
from agentic_rag_backend.errors import UnreadableDocument

PARSER = parser_of(PPTX)
REFERENCES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def saved(presentation: Any) -> bytes:
    target = io.BytesIO()
    presentation.save(target)
    return target.getvalue()


def presentation_of() -> tuple[Any, Any, Any]:
    """Return a presentation of 720 × 540 points, a layout with title and body, and an empty layout."""
    presentation = pptx.Presentation()
    return presentation, presentation.slide_layouts[1], presentation.slide_layouts[6]


def add_text(shapes: Any, text: str, left: float, top: float, width: float = 100, height: float = 20) -> None:
    shapes.add_textbox(Pt(left), Pt(top), Pt(width), Pt(height)).text_frame.text = text


def talk() -> bytes:
    presentation, with_body, empty = presentation_of()
    first = presentation.slides.add_slide(with_body)
    first.shapes.title.text = "Results"
    first.placeholders[1].text_frame.text = "Faster\nSmaller"
    first.notes_slide.notes_text_frame.text = "Say why."
    hidden = presentation.slides.add_slide(with_body)
    hidden.shapes.title.text = "Backup"
    hidden._element.set("show", "0")
    third = presentation.slides.add_slide(empty)
    table = third.shapes.add_table(2, 2, Pt(100), Pt(200), Pt(200), Pt(40)).table
    for row, cells in enumerate([["City", "People"], ["Lyon", "522250"]]):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    add_text(third.shapes, "right", 400, 99)
    add_text(third.shapes, "left", 50, 100)
    add_text(third.shapes, "above", 300, 10)
    presentation.core_properties.title = "Yearly talk"
    return saved(presentation)


def test_scripts_and_formulas_are_text_on_the_line_and_diagrams_are_counted() -> None:
    presentation, _, empty = presentation_of()
    slide = presentation.slides.add_slide(empty)
    add_text(slide.shapes, "", 0, 0)
    paragraph = slide.shapes[0].text_frame.paragraphs[0]
    for text, baseline in (("10", "0"), ("1", "30000"), ("2", "30000"), (" cells, H", None), ("2", "-25000"), ("O, ", None)):
        run = paragraph.add_run()
        run.text = text
        if baseline:
            run._r.get_or_add_rPr().set("baseline", baseline)
    namespaces = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" xmlns:a14="urn:a14"'
    square = "<m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    paragraph._p.append(parse_xml(f"<a14:m {namespaces}><m:oMath>{square}</m:oMath></a14:m>"))
    add_text(slide.shapes, "new", 0, 50)
    newer = slide.shapes[1]._element
    choice = parse_xml('<m:AlternateContent xmlns:m="urn:m"><m:Choice/><m:Fallback/></m:AlternateContent>')
    newer.addprevious(choice)
    choice[0].append(newer)
    table = slide.shapes.add_table(1, 1, Pt(0), Pt(90), Pt(9), Pt(9))._element
    data = table.find(".//{*}graphicData")
    diagram = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
    data.set("uri", diagram)
    data.replace(data[0], parse_xml(f'<d:relIds xmlns:d="{diagram}" xmlns:r="{REFERENCES}" r:dm="missing"/>'))
    parsed = PARSER.parse(saved(presentation))
    assert parsed.text == "Slide 1\n\n10^12 cells, H2O, x^2\n\nnew"
    assert parsed.warnings == ("not in the text: drawings that cannot be read (1: slide 1)",)


def test_slides_are_pages_in_reading_order() -> None:
    parsed = PARSER.parse(talk())
    assert parsed.text.split("\n\n") == [
        "Results", "- Faster\n- Smaller", "Notes: Say why.",
        "Slide 3", "above", "left", "right", "| City | People |\n| --- | --- |\n| Lyon | 522250 |",
    ]  # fmt: skip
    assert [(each.title, each.level) for each in parsed.headings] == [("Results", 1), ("Slide 3", 1)]
    assert parsed.title == PARSER.check(talk(), is_whole=True).title == "Yearly talk"
    assert parsed.metadata["hidden_slides"] == [2]
    assert tables_of(parsed) == [[["City", "People"], ["Lyon", "522250"]]]


def test_shapes_and_rows_have_boxes_from_the_lower_left_corner() -> None:
    parsed = PARSER.parse(talk())
    places = {parsed.text[each.start_char : each.end_char]: (each.page, each.box) for each in parsed.regions}
    assert places["left"] == (3, (50, 420, 150, 440))
    assert places["| City | People |"] == (3, (100, 320, 300, 340))
    assert places["| Lyon | 522250 |"] == (3, (100, 300, 300, 320))
    assert places["Notes: Say why."] == (1, None)
    assert places["Results"][1] is not None


def test_groups_are_read_with_the_scale_of_their_coordinates() -> None:
    presentation, _, empty = presentation_of()
    slide = presentation.slides.add_slide(empty)
    group = slide.shapes.add_group_shape()
    add_text(group.shapes, "in a group", 0, 0, 100, 50)
    group.left, group.top, group.width, group.height = Pt(200), Pt(40), Pt(50), Pt(25)
    parsed = PARSER.parse(saved(presentation))
    assert parsed.text == "Slide 1\n\nin a group"
    assert parsed.regions[1].box == (200, 475, 250, 500)


def test_cells_stand_in_every_row_and_column_that_they_cover() -> None:
    presentation, _, empty = presentation_of()
    table = presentation.slides.add_slide(empty).shapes.add_table(4, 3, Pt(0), Pt(0), Pt(200), Pt(80)).table
    rows = [["Port", "Depth", ""], ["", "summer", "winter"], ["Brno", "2 m", "3 m"], ["", "4 m", "5 m"]]
    for row, cells in enumerate(rows):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    for first, last in (((0, 1), (0, 2)), ((0, 0), (1, 0)), ((2, 0), (3, 0))):
        table.cell(*first).merge(table.cell(*last))
    parsed = PARSER.parse(saved(presentation))
    assert tables_of(parsed) == [[["Port", "Depth – summer", "Depth – winter"], ["Brno", "2 m", "3 m"], ["Brno", "4 m", "5 m"]]]
    assert [region.box for region in parsed.regions[1:3]] == [(0, 500, 200, 540), (0, 480, 200, 500)]


def test_empty_presentations_are_refused() -> None:
    presentation, _, empty = presentation_of()
    presentation.slides.add_slide(empty)
    with pytest.raises(UnreadableDocument, match="no text"):
        PARSER.parse(saved(presentation))


def test_damaged_presentations_are_read_or_refused() -> None:
    found = [reads_or_refuses(PARSER, damaged) for damaged in mutations(talk(), 60)]
    assert any(found)
    assert not all(found)
