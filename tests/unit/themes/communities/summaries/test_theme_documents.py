"""Names and prose of a theme from the documents that it is about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentic_rag_backend.domain.graph import Support
from agentic_rag_backend.themes.communities.summaries.community_evidence import (
    CentralEntity,
    Fact,
    SummaryEvidence,
    ThemeDocument,
)
from agentic_rag_backend.themes.communities.summaries.extractive_summaries import extractive_summary
from agentic_rag_backend.themes.communities.summaries.keywords import central_names
from agentic_rag_backend.themes.communities.summaries.theme_documents import name_documents, select_opening, shorten_title


def document(title: str, share: float, opening: str = "") -> ThemeDocument:
    source = Support(title, 1, f"c-{title}")
    return ThemeDocument(title, share, (source,), Fact(opening, (source,), frozenset()) if opening else None)


@pytest.mark.parametrize(
    ("title", "short"),
    [
        ("Microsoft - Wikipedia", "Microsoft"),
        ("7. Beyond Packaging — developers-reference 12.18 documentation", "Beyond Packaging"),
        ("AutoGen: Enabling Next-Gen Applications", "AutoGen"),
        ("Review: The Slack Water Year", "Review: The Slack Water Year"),
        ("MEDRPT-2024-PAT-3847_medical_report_scan", "medical report scan"),
        ("SEATTLE GENERAL HOSPITAL", "Seattle General Hospital"),
        ("Journal of Infrared, Millimeter, and Terahertz Waves", "Journal of Infrared, Millimeter, and Terahertz Waves"),
        ("Re: [Quay] Tide gauge", "Tide gauge"),
        ("Annual report 2018 (extract)", "Annual report 2018"),
        ("p-12", ""),
        ("Untitled", ""),
        ("The boy stood on the burning …", ""),
    ],
)
def test_titles_are_shortened_to_their_subject(title: str, short: str) -> None:
    assert shorten_title(title) == short


def test_documents_name_a_theme_by_a_common_term_or_by_their_titles() -> None:
    for titles, name in [
        (("Postfix Basic Configuration", "Postfix Bottleneck Analysis"), "Postfix: Basic Configuration, Bottleneck Analysis"),
        (("Write-Ahead Logging", "Isolation In SQLite", "Limits For SQLite"), "SQLite: Write-Ahead Logging, Isolation"),
        (("graphlib", "sched"), "graphlib and sched"),
        (("Journal of Tides", "Journal of Winds"), "Journal of Tides and Journal of Winds"),
        (("Mary, mother and queen", "Sims"), "Mary, mother and queen; Sims"),
        (("Tide Tables",), "Tide Tables"),
    ]:
        documents = tuple(document(title, 1 / len(titles)) for title in titles)
        evidence = SummaryEvidence(fingerprint="f", entity_count=2, entities=(), facts=(), passages=1, documents=documents)
        assert extractive_summary(evidence, {}).name == name
    labels, title = name_documents([document(title, 0.5) for title in ("Postfix One", "Postfix Two")], ["Postfix: One, Two"])
    assert ([label.text for label in labels], title) == (["Postfix", "One", "Two"], None), "a child has the title already"
    manuals = [f"Postfix {number}" for number in ("One", "Two", "Three")]
    documents = tuple(document(title, 0.3) for title in manuals)
    evidence = SummaryEvidence(fingerprint="f", entity_count=2, entities=(), facts=(), passages=1, documents=documents)
    child = extractive_summary(replace(evidence, documents=documents[:2]), {})
    summary = extractive_summary(replace(evidence, children=(child,)), {})
    assert summary.name == "Postfix: One, Two, Three"
    assert {source.document_id for source in summary.sources} == set(manuals), "the name goes when a document goes"


def test_prose_says_what_the_documents_say_and_no_code() -> None:
    text = (
        "Read this first. The tide turns twice a day in the narrow channel. Tide tables list the hours of high water for a year."
    )
    opening = select_opening("Tide Tables", [(Support("d", 1, "c"), text)])
    assert opening is not None
    assert opening.statement == "Tide tables list the hours of high water for a year."
    setting = Fact(
        "/etc/tide/main.cf: tide_interfaces = virtual.host.tld (virtual Tide) tide_interfaces = $myhostname", (), frozenset()
    )
    said = document("Tide Tables", 0.9, opening.statement)
    evidence = SummaryEvidence(fingerprint="f", entity_count=2, entities=(), facts=(setting,), passages=1, documents=(said,))
    summary = extractive_summary(evidence, {})
    assert summary.summary == opening.statement
    assert summary.findings[0].statement == opening.statement
    assert (
        select_opening("Tide Tables", [(Support("d", 1, "c"), "This document covers the following parts of the tide tables:")])
        is None
    )


def test_a_small_document_opens_no_summary() -> None:
    facts = (Fact("Mira Voss moored the tidal array at Carrow Bay in the spring.", (Support("d", 1, "c"),), frozenset()),)
    documents = (document("Array", 0.9), document("Letter", 0.05, "Left justified picture with paragraph anchor."))
    evidence = SummaryEvidence(fingerprint="f", entity_count=2, entities=(), facts=facts, passages=1, documents=documents)
    assert extractive_summary(evidence, {}).summary.endswith(facts[0].statement)
    code = replace(facts[0], statement="queue = self._queue[:]; heapq.heappop(queue)")
    entities = (CentralEntity("q", "Queue", "place", 0.3),)
    summary = extractive_summary(replace(evidence, documents=(), facts=(code,), entities=entities), {})
    assert summary.summary == "Queue and 1 more.", "code says nothing"


def test_peoples_countries_and_second_names_name_no_theme() -> None:
    def entity(name: str, type: str, share: float = 0.3) -> CentralEntity:
        return CentralEntity(name, name, type, share, (Support("d", 1, "c"),))

    union = entity("European Union", "organisation", 0.5)
    for entities, names in [
        ((entity("Swedish", "place"), entity("U.S.", "place"), entity("Carrowby", "place")), ["Carrowby"]),
        ((entity("France", "place"),), ["France"]),
        ((union, entity("EU", "organisation", 0.4), entity("European Unions", "organisation", 0.3)), ["European Union"]),
        ((entity("Maiden Rock", "other", 0.31), entity("Mira Voss", "person")), ["Mira Voss", "Maiden Rock"]),
        ((entity("Microsoft", "organisation"), entity("Microsoft Teams", "organisation", 0.1)), ["Microsoft"]),
    ]:
        assert [label.text for label in central_names(entities)] == names


def test_a_word_that_only_begins_sentences_and_a_keyword_name_no_theme() -> None:
    passages = (Support("d", 1, "c"),)
    entities = [CentralEntity(name, name, "place", 0.3, passages) for name in ("Healthy", "None", "Carrowby")]
    statements = ["Healthy queues are empty.", "The call returns None in Carrowby."]
    assert [label.text for label in central_names(entities, statements)] == ["Carrowby"]
    people = [CentralEntity(name, name, "person", 0.3, passages) for name in ("Jacob", "JACOB COLLIER")]
    assert [label.text for label in central_names(people)] == ["Jacob Collier"]
