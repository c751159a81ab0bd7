"""Values of form fields, comments, and XFA forms."""

from __future__ import annotations

import pytest
from pdf_files import Page, pdf_of, stream_of

from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.pdf.forms import annotations as form_annotations
from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser
from agentic_rag_backend.errors import UnreadableDocument

TICK = "/AP << /N << /On 4 0 R /Off 4 0 R >> >>"
"""Appearances of a tick, whose names are its values."""


def parse_form(page: Page, *objects: str, catalog: str = "") -> ParsedDocument:
    """Parse a page whose annotations are ``objects``, all of which may be fields."""
    page.annotations = " ".join(f"{number} 0 R" for number in range(5, 5 + len(objects)))
    return PdfParser().parse(
        pdf_of(page, catalog=f"/AcroForm << /Fields [{page.annotations}] >> {catalog}", more_objects=objects)
    )


def field_of(kind: str, name: str, y: int, entries: str, x: int = 200) -> str:
    return f"<< /Type /Annot /Subtype /Widget /FT /{kind} /T ({name}) /Rect [{x} {y} {x + 150} {y + 14}] {entries} >>"


def annotation_of(subtype: str, contents: str, entries: str = "") -> str:
    return f"<< /Type /Annot /Subtype /{subtype} /Rect [72 600 300 620] /Contents ({contents}) {entries} >>"


def test_values_of_fields_stand_beside_their_labels() -> None:
    page = Page()
    for number, label in enumerate(("Boat name:", "Berth:", "Services:", "", "Secret:", "Hidden:")):
        page.shows(72, 703 - 30 * number, label)
    page.shows(230, 523, "Insurance wanted").shows(230, 493, "Crew wanted")
    document = parse_form(
        page,
        field_of("Tx", "boat", 700, "/V (HERON II) /DA (/Helv 10 Tf)"),
        field_of("Ch", "berth", 670, "/Ff 131072 /Opt [(North 6) (North 7)] /V (North 7)"),
        field_of("Ch", "services", 640, "/Ff 2097152 /Opt [(Water) (Power) (Fuel)] /V [(Water) (Fuel)]"),
        field_of("Tx", "code", 560, "/V (hunter2) /Ff 8192"),
        field_of("Tx", "inner", 550, "/V (inner value) /F 2"),
        field_of("Btn", "insured", 520, f"/V /On /AS /On {TICK}"),
        field_of("Btn", "crew", 490, f"/V /Off /AS /Off {TICK}"),
        field_of("Tx", "lost", 100, "/TU (Port of call) /V (Tarnmouth)"),
    )
    assert document.text.split("\n\n") == [
        "Boat name: HERON II",
        "Berth: North 7",
        "Services: Water, Fuel",
        "Secret:",
        "Hidden:",
        "[x] Insurance wanted",
        "[ ] Crew wanted",
        "Port of call: Tarnmouth",
    ]
    assert document.warnings == ("not in the text: hidden annotations (1: page 1)",)
    assert document.regions[0].box is not None
    assert document.regions[0].box[2] >= 240


def test_texts_and_comments_on_a_page_are_read() -> None:
    document = parse_form(
        Page().shows(72, 700, "The gate is shut."),
        annotation_of("FreeText", "Opened again in May"),
        annotation_of("Highlight", "Which gate?", "/T (Mara Venn)"),
        annotation_of("Link", "To the harbour"),
    )
    assert document.text.split("\n\n") == ["The gate is shut.", "Opened again in May", "Comment by Mara Venn: Which gate?"]


def test_the_characters_of_annotations_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form_annotations, "MAX_PAGE_CHARACTERS", 40)
    document = parse_form(Page().shows(72, 700, "The gate is shut."), *[annotation_of("Text", "A long remark")] * 4)
    assert document.text.count("A long remark") == 3
    assert document.warnings == ("not in the text: annotations beyond a limit of characters (1: page 1)",)


def xfa_of(template: str, data: str) -> str:
    return stream_of(
        '<xdp:xdp xmlns:xdp="http://ns.adobe.com/xdp/">'
        f'<template xmlns="http://www.xfa.org/schema/xfa-template/3.0/"><subform>{template}</subform></template>'
        '<xfa:datasets xmlns:xfa="http://www.xfa.org/schema/xfa-data/1.0/"><xfa:data><form>'
        f"{data}</form></xfa:data></xfa:datasets></xdp:xdp>"
    )


def parse_xfa(xml: str) -> ParsedDocument:
    catalog = "/NeedsRendering true /AcroForm << /Fields [] /XFA 5 0 R >>"
    return PdfParser().parse(pdf_of(Page().shows(72, 700, "Please wait..."), catalog=catalog, more_objects=[xml]))


def test_a_form_of_xml_has_its_data_and_not_its_placeholder() -> None:
    def field(name: str, caption: str, ui: str, more: str = "") -> str:
        return f'<field name="{name}"><ui><{ui}/></ui><caption><value><text>{caption}</text></value></caption>{more}</field>'

    def items(*texts: str, attributes: str = "") -> str:
        return f"<items {attributes}>{''.join(f'<text>{text}</text>' for text in texts)}</items>"

    template = (
        "<draw><value><text>Berth form</text></value></draw>"
        '<draw presence="hidden"><value><text>Not shown</text></value></draw>'
        "<draw><value><image>aGFyYm91cg==</image></value></draw>"
        + field("boat", "Boat name:", "textEdit")
        + field("berth", "Berth", "choiceList", items("North 7", "North 8") + items("7", "8", attributes='save="1"'))
        + field("insured", "Insurance wanted", "checkButton", items("1", "0"))
        + f'<exclGroup name="crew">{field("a", "Crew wanted", "checkButton", items("yes"))}'
        + field("b", "No crew", "checkButton", items("no"))
        + "</exclGroup>"
    )
    data = "<boat>HERON II</boat><berth>8</berth><insured>1</insured><crew>no</crew><port>Tarnmouth</port>"
    assert parse_xfa(xfa_of(template, data)).text.split("\n\n") == [
        "Berth form",
        "Boat name: HERON II",
        "Berth: North 8",
        "[x] Insurance wanted",
        "[ ] Crew wanted",
        "[x] No crew",
        "port: Tarnmouth",
    ]
    for xml in (stream_of("no XML"), stream_of("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"), xfa_of("", "")):
        with pytest.raises(UnreadableDocument, match="XFA"):
            parse_xfa(xml)
