"""Names of manuals, forms and lists: what labels a document is no name, and things have types of their own."""

from __future__ import annotations

import pytest
from cpu_time import cpu_s
from tests.unit.knowledge.conftest import MakeChunks

from agentic_rag_backend.domain.graph import Alias, Extraction
from agentic_rag_backend.knowledge.extraction.names.aliases import without_legal_form
from agentic_rag_backend.knowledge.extraction.names.label_lines import bare_heading, find_label_lines
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor

EXTRACTOR = RuleExtractor()


def extract(chunks: MakeChunks, text: str, title: str = "Guide", headings: tuple[str, ...] = ()) -> Extraction:
    return EXTRACTOR.extract_document(title, chunks(text, headings=headings))[0]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("3.1. Specific Options ... 4\nThe Orion Gate opens.", ["3.1. Specific Options ... 4"]),
        ("- Home\n- Menu\n- Download\n- Support\n\nAsk Orla.", ["- Home", "- Menu", "- Download", "- Support"]),
        ("- Home\n- Menu\n- Download\n\nAsk Orla.", []),
        ("| Stage | Planned |\n|---|---|\n| Design | June |", ["| Stage | Planned |"]),
        ("3.9.3. Rationale\n\nRationale is given.", ["3.9.3. Rationale"]),
        (
            "He paused ... and then Anna Marsh spoke" + ", at last" * 12 + " 4",
            [],
        ),
    ],
)
def test_label_lines_are_headings_contents_column_names_and_lists_of_single_words(text: str, labels: list[str]) -> None:
    lines = find_label_lines(text, {bare_heading("2. Rationale")})
    assert [text[start:end].strip() for start, end in zip(lines.starts, lines.ends, strict=True)] == labels
    assert lines.covers(0) is bool(labels and text.startswith(labels[0]))


def test_a_name_that_only_labels_give_is_left_out(chunks: MakeChunks) -> None:
    text = (
        "1. Scope ... 2\n2. Orion Gate ... 5\n\n- Home\n- Menu\n- Magyar\n- Tromso\n\nThe parser reads Orion Gate in Tromso.\n\n"
        "| Part | Supplier |\n|---|---|\n| pump | Axel Marine Works |"
    )
    names = {mention.name for mention in extract(chunks, text).mentions} - {"Guide"}
    assert names == {"Orion Gate", "Tromso", "Axel Marine Works"}
    text = "The options are many. The specific options are listed.\n\nSpecific Options\n\nNone is set. SELECT: select less."
    found = extract(chunks, text, "fhs-3.0", ("Specific Options",))
    assert not found.mentions
    assert {mention.name for mention in extract(chunks, "python-docx reads files.", "python-docx").mentions} == {"python-docx"}


def test_the_fields_of_a_form_end_names(chunks: MakeChunks) -> None:
    text = (
        "Cashier: Emily Hart Register: 7\nPrimary Contact: Sarah Lowe\nProduct Desc: Holiday\n"
        "Insured name Gabriel Dorn Year 2022\nKestrel AG Somestreet 42\nREWARDS MEMBER\n"
        "Ida Lind\nFrom: Barry Holm <barry@example.org>"
    )
    names = {mention.name for mention in extract(chunks, text).mentions}
    assert {"Emily Hart", "Sarah Lowe", "Gabriel Dorn", "Kestrel AG", "Ida Lind", "Barry Holm"} <= names


@pytest.mark.parametrize(
    ("text", "name", "type_"),
    [
        ("We use the library Kestrelbase in production.", "Kestrelbase", "software"),
        ("MarkWell is a tool that converts files.", "MarkWell", "software"),
        ("The pumps follow ISO 9001 in all plants.", "ISO 9001", "standard"),
        ("They signed the Narrows Accord in spring.", "Narrows Accord", "law"),
        ("The plan uses Gradient Descent. A gradient is followed in descent.", "Gradient Descent", "concept"),
        ("She sent the Harbour Permit Form to the office.", "Harbour Permit Form", "form"),
        ("He spoke at the Tidal Power Conference in May.", "Tidal Power Conference", "event"),
        ("The company buys the phone Orbit Nine.", "Orbit Nine", "product"),
    ],
)
def test_things_have_types_of_their_own(chunks: MakeChunks, text: str, name: str, type_: str) -> None:
    assert {mention.name: mention.type for mention in extract(chunks, text).mentions}.get(name) == type_


def test_the_bare_name_of_a_company_is_its_main_name(chunks: MakeChunks) -> None:
    found = extract(chunks, "Acme Inc delivered the pumps. Acme sent the bill.")
    assert found.aliases == (Alias(name="Acme", alias="Acme Inc", type="organisation"),)
    assert {mention.type for mention in found.mentions if mention.name == "Acme"} == {"organisation"}
    forms = {
        "ACME Incorporated": "ACME",
        "Hart & Co": "Hart & Co",
        "Orr Foods Co Ltd": "Orr Foods",
        "Ltd": "Ltd",
        "Nord, Inc": "Nord",
    }
    assert {name: without_legal_form(name) for name in forms} == forms
    found = extract(chunks, "I.B.M. and International Business Machines are one company.")
    assert {"I.B.M.", "International Business Machines"} <= {mention.name for mention in found.mentions}


def test_a_title_is_a_name_before_its_description_and_no_subject_if_it_is_a_phrase(chunks: MakeChunks) -> None:
    found = extract(chunks, "She was born in Leeds.", "Ann Marsh, botanist")
    assert [(mention.name, mention.type) for mention in found.mentions if mention.about] == [("Ann Marsh", "person")]
    assert [(entry.name, entry.text) for entry in found.descriptions] == [("Ann Marsh", "botanist")]
    cases = {
        "A quay, at last": "It was attended by Friends of the Harbour.",
        "Appointment of the harbour master": "The house on Fish Street was sold in 2011.",
        "Minutes": "Mr Orr said that a stage built in three days by crews from Carrowby holds. "
        "Ann Lee, who joined us as lecturer in January 2013, spoke.",
    }
    facts = {
        (fact.source, fact.relation)
        for title, text in cases.items()
        for fact in extract(chunks, text, title).relationships
        if fact.relation != "related_to"
    }
    assert facts == set()


def test_label_lines_cost_time_in_proportion_to_the_text() -> None:
    small, large = ("- Home\n" * count for count in (20_000, 80_000))
    assert cpu_s(lambda: find_label_lines(large, set())) < 12 * max(cpu_s(lambda: find_label_lines(small, set())), 0.005)
