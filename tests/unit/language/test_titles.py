"""Titles that were taken from a text name nothing."""

from __future__ import annotations

import pytest
from sample_passages import chunk_of

from agentic_rag_backend.documents.chunking.passages import passage_text
from agentic_rag_backend.documents.parsing.base import Preview
from agentic_rag_backend.documents.parsing.registry import title_of
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.knowledge.contradictions.passages import is_topic
from agentic_rag_backend.knowledge.extraction.relations.code_relations import module_name
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.language.times import document_date
from agentic_rag_backend.language.titles import is_excerpt

TEXT = "Mara Venn founded Greenholm Kelp in 2011."
REFERENCES = "References\n\n[1] M. Keller and J. Oduya. Tidal flow in narrow straits. Journal of Coasts, 2014."


def extracted(title: str, text: str) -> Extraction:
    (extraction,) = RuleExtractor().extract_document(title, [chunk_of(text)])
    return extraction


def taken(text: str) -> str:
    return title_of(Preview(title=None, text=text), None)


@pytest.mark.parametrize(
    "text", [TEXT, "name: Mara Venn\ncompany: Greenholm Kelp", "Mara Venn, founder of Greenholm Kelp, " + "x " * 99]
)
def test_a_title_that_was_taken_from_the_text_is_no_entity_and_swallows_no_name(text: str) -> None:
    found = extracted(taken(text), text)
    given = extracted("Kelp", text)
    assert {"Mara Venn", "Greenholm Kelp"} <= {each.name for each in found.mentions}
    assert not any(each.about for each in found.mentions)
    assert [each for each in given.mentions if not each.about] == list(found.mentions)
    assert given.relationships == found.relationships != ()
    assert "Kelp" in {each.name for each in given.mentions if each.about}


def test_a_title_of_the_owner_or_the_file_names_an_entity() -> None:
    assert {each.name for each in extracted("Greenholm Kelp", TEXT).mentions if each.about} == {"Greenholm Kelp"}
    assert title_of(Preview(title="Greenholm Kelp", text=TEXT), None) == "Greenholm Kelp"
    assert title_of(Preview(title=None, text=TEXT), "kelp.txt") == "kelp"


def test_documents_without_any_title_share_no_entity() -> None:
    title = taken(" ")
    assert is_excerpt(title)
    assert not any(each.about for each in extracted(title, TEXT).mentions)


def test_an_excerpt_is_not_repeated_above_its_text_and_has_no_date() -> None:
    assert passage_text(taken(TEXT), chunk_of(TEXT)) == TEXT
    assert passage_text(taken(TEXT * 9), chunk_of(TEXT * 9)) == TEXT * 9
    assert passage_text("Kelp", chunk_of(TEXT)) == f"Kelp\n{TEXT}"
    assert document_date("Annual report 2014", {}) == "2014"
    assert document_date(taken("Annual report 2014"), {}) == ""


def test_an_excerpt_is_no_work_no_module_and_no_topic() -> None:
    assert extracted("Straits of the north", REFERENCES).relationships
    assert not any(each.relation == "cites" for each in extracted("Straits of the north…", REFERENCES).relationships)
    assert (module_name("locks.py"), module_name("import os…")) == ("locks", "file")

    def passage(title: str) -> VisibleChunk:
        return VisibleChunk(chunk=chunk_of(TEXT), document_title=title, document_key=None, metadata={})

    assert is_topic(passage("Mara Venn"), ["Mara Venn"])
    assert not is_topic(passage("Mara Venn…"), ["Mara Venn"])
