"""Extractive summaries: selection, readability, and verbatim sentences."""

from __future__ import annotations

import random
from dataclasses import replace

from agentic_rag_backend.domain.graph import Label, Support, contains_name
from agentic_rag_backend.themes.communities.detection.hierarchy import EntityName
from agentic_rag_backend.themes.communities.generations import embedded_text, searchable_text
from agentic_rag_backend.themes.communities.summaries.community_evidence import (
    CentralEntity,
    Fact,
    SummaryEvidence,
    central_entities,
    merge_facts,
    telling_facts,
)
from agentic_rag_backend.themes.communities.summaries.extractive_summaries import extractive_summary, rate_passages
from agentic_rag_backend.themes.communities.summaries.keywords import central_names


def fact(statement: str, *entities: str, chunk: str = "c") -> Fact:
    return Fact(statement, (Support("d", 1, chunk),), frozenset(entities))


def central(*pairs: tuple[str, float]) -> tuple[CentralEntity, ...]:
    return tuple(CentralEntity(name.casefold(), name, "thing", share) for name, share in pairs)


FACTS = [
    fact("Mira Voss founded the Halden Institute in Brennmoor.", "mira", "halden", "brennmoor", chunk="c1"),
    fact("Mira Voss founded the Halden Institute in 2014 in Brennmoor.", "mira", "halden", chunk="c2"),
    fact("The Halden Institute built the Tidal Array for the town of Carrow Bay.", "halden", "tidal", "carrow", chunk="c3"),
    fact("He liked the Tidal Array and Carrow Bay.", "tidal", "carrow", chunk="c4"),
    fact("Osric sails.", "osric", chunk="c5"),
]
ENTITIES = (
    CentralEntity("halden", "Halden Institute", "organisation", 0.5),
    CentralEntity("mira", "Mira Voss", "person", 0.3),
    CentralEntity("tidal", "Tidal Array", "work", 0.2),
    CentralEntity("carrow", "Carrow Bay", "place", 0.1),
    CentralEntity("osric", "Osric", "person", 0.05),
    CentralEntity("brennmoor", "Brennmoor", "place", 0.05),
)


def evidence(facts: list[Fact] | None = None) -> SummaryEvidence:
    chosen = telling_facts(FACTS if facts is None else facts, ENTITIES, limit=8)
    return SummaryEvidence(fingerprint="f", entity_count=9, entities=ENTITIES, facts=chosen, passages=50)


def test_facts_cover_the_central_entities_without_repeating() -> None:
    chosen = telling_facts(FACTS, ENTITIES, limit=8)
    statements = [each.statement for each in chosen]
    assert statements[0] == FACTS[0].statement
    assert FACTS[1].statement not in statements, "says the same as the first"
    assert statements.index(FACTS[2].statement) < statements.index(FACTS[3].statement), "a dangling pronoun counts less"


def test_choice_does_not_depend_on_the_order_given() -> None:
    generator = random.Random(3)
    expected = telling_facts(FACTS, ENTITIES, limit=8)
    for _ in range(10):
        shuffled = list(FACTS)
        generator.shuffle(shuffled)
        assert telling_facts(shuffled, ENTITIES, limit=8) == expected


def test_one_wording_in_several_passages_is_one_fact_with_all_sources() -> None:
    merged = merge_facts(
        [fact("A met B.", "a", chunk="c1"), fact("A  met B.", "b", chunk="c2"), fact("A met B.", "a", chunk="c1")]
    )
    assert len(merged) == 1
    assert [each.chunk_id for each in merged[0].sources] == ["c1", "c2"]
    assert merged[0].entity_ids == {"a", "b"}
    assert merged[0].statement == "A met B."


def test_summary_is_verbatim_and_its_sources_are_those_of_its_sentences() -> None:
    summary = extractive_summary(evidence(), {})
    assert summary.summary.startswith(FACTS[0].statement)
    used = [each for each in FACTS if each.statement in summary.summary]
    assert len(used) >= 2
    assert set(summary.sources) == {source for each in used for source in each.sources}
    assert {finding.statement for finding in summary.findings} <= {each.statement for each in FACTS}
    assert all(finding.sources for finding in summary.findings)
    assert (summary.model, summary.prompt_version, summary.fingerprint) == ("extractive", "extractive@8", "f")


def test_sentences_end_and_are_on_one_line() -> None:
    summary = extractive_summary(evidence([fact("the Halden Institute\nmet Mira Voss", "halden", "mira")]), {})
    assert summary.summary == "The Halden Institute met Mira Voss."
    assert summary.findings[0].statement == "the Halden Institute\nmet Mira Voss"


def test_without_facts_the_members_are_listed() -> None:
    summary = extractive_summary(evidence([]), {})
    assert summary.summary == "Halden Institute, Mira Voss, Tidal Array, Carrow Bay, Osric and 4 more."
    assert (summary.findings, summary.sources) == ((), ())


def named(entities: tuple[CentralEntity, ...]) -> str:
    given = SummaryEvidence(fingerprint="f", entity_count=len(entities), entities=entities, facts=(), passages=0)
    return extractive_summary(given, {}).name


def test_name_takes_the_entities_that_stand_out() -> None:
    assert named(central(("Halden Institute", 0.5), ("Mira Voss", 0.4), ("Tidal Array", 0.3), ("X", 0.3))) == (
        "Halden Institute, Mira Voss and Tidal Array"
    )
    assert named(central(("Halden Institute", 0.5), ("Halden", 0.4), ("Mira Voss", 0.3))) == "Halden Institute and Mira Voss"
    assert named(central(("Halden Institute", 0.9), ("Mira Voss", 0.3), ("Tidal Array", 0.1))) == "Halden Institute and Mira Voss"
    assert named(central(("Halden Institute", 1.0))) == "Halden Institute"
    assert named(()) == ""


def test_where_nothing_names_well_what_reads_well_does() -> None:
    def kind(type: str, *names: str) -> tuple[CentralEntity, ...]:
        return tuple(CentralEntity(name, name, type, 0.1) for name in names)

    others = kind("other", "Scouts", "Tellers")
    file = kind("work", "archive-of-the-sea-transcripts")
    assert named((*file, *others)) == "Scouts and Tellers"
    assert named((*file, *others, *kind("place", "Greenholm"))) == "Greenholm"
    assert named(file) == "Archive of the sea transcripts"
    assert named(kind("code", "feed-forward")) == "feed-forward"


def test_a_file_read_as_words_is_still_said_by_its_passages() -> None:
    (label,) = central_names((CentralEntity("f", "archive-of-the-sea-transcripts", "work", 1.0),))
    assert contains_name("archive-of-the-sea-transcripts", label.text)


def test_central_entities_by_weight_inside() -> None:
    names = {each: EntityName(each.upper(), "x") for each in "abc"}
    found = central_entities(["c", "b", "a"], names, [("a", "b", 3.0), ("b", "c", 1.0)], limit=2)
    assert [each.name for each in found] == ["B", "A"]
    assert [each.share for each in found] == [0.5, 0.375]


def test_rating_grows_and_stays_below_ten() -> None:
    assert rate_passages(0) == 0
    assert rate_passages(10) < rate_passages(50) < rate_passages(500) < 10


def test_lists_rows_and_headings_are_used_only_without_sentences() -> None:
    present = fact("Present: Mira Voss (chair), Ola Brandt, Tor Lund, Ada Finch.", "mira", "halden", "tidal", "carrow")
    row = fact("| Halden Institute | Mira Voss | Tidal Array |.", "mira", "halden", "tidal")
    said = fact("The town of Carrow Bay paid for all of it.", "carrow")
    assert telling_facts([present, row, said], ENTITIES, limit=1) == (said,)
    assert telling_facts([present], ENTITIES, limit=1) == (present,)


def test_a_theme_is_called_by_what_a_reader_knows() -> None:
    central = (
        CentralEntity("f", "archive-of-the-sea-transcripts", "other", 0.4),
        CentralEntity("t", "Technical note 7: the flow package", "work", 0.4),
        CentralEntity("c", "load_wind()", "code", 0.4),
        CentralEntity("o", "Memory", "other", 0.3),
        CentralEntity("h", "Halden Institute", "organisation", 0.2),
    )
    assert named(central) == "Halden Institute"
    assert named(central[:1]) == "Archive of the sea transcripts"


def test_prose_is_shown_without_marks_of_emphasis() -> None:
    said = fact("- **Mira Voss**, of the *Halden Institute*, built snake_case_names for Carrow Bay.", "mira")
    given = SummaryEvidence(fingerprint="f", entity_count=9, entities=ENTITIES, facts=(said,), passages=5)
    assert extractive_summary(given, {}).summary == "Mira Voss, of the Halden Institute, built snake_case_names for Carrow Bay."


def test_only_the_beginning_is_embedded() -> None:
    summary = replace(extractive_summary(themed(), {}), summary="First of all. Then the second. At last the third.")
    text = embedded_text(summary)
    assert summary.name in text
    assert all(label.text in text for label in summary.names)
    assert "Then the second." in text
    assert "the third" not in text
    assert "the third" in searchable_text(summary)


def themed(documents: int = 2) -> SummaryEvidence:
    """Return a theme of several documents, with years."""
    places = [Support(f"d{number % documents}", 1, f"c{number}") for number in range(3)]
    facts = (
        Fact("The Halden Institute moored a tidal array in 2014.", (places[0],), frozenset({"halden"})),
        Fact("Mira Voss mended the tidal array in 2009.", (places[1],), frozenset({"mira"})),
        Fact("Fishers asked the council for a fishing corridor.", (places[2],), frozenset({"carrow"})),
    )
    entities = tuple(replace(each, passages=places[:1]) for each in ENTITIES[:2])
    return SummaryEvidence(fingerprint="f", entity_count=2, entities=entities, facts=facts, passages=3)


def test_title_is_the_central_entities_and_the_phrase_that_contrasts_most() -> None:
    summary = extractive_summary(themed(), {"tidal": 3.0, "arrai": 3.0, "council": 1.0})
    assert summary.name == "Halden Institute and Mira Voss: tidal array"
    assert summary.title == Label(summary.name), "without passages, so it is shown and withheld with the prose"
    assert {Support("d0", 1, "c0")} <= set(summary.sources), "the prose rests on the passages of the title's words"


def test_title_differs_from_the_titles_of_the_children() -> None:
    child = extractive_summary(themed(), {})
    parent = extractive_summary(replace(themed(), fingerprint="p", children=(child,)), {})
    assert parent.name != child.name
    assert parent.name.startswith("Halden Institute")


def test_introduction_counts_documents_and_years_and_rests_on_them() -> None:
    summary = extractive_summary(themed(), {"tidal": 3.0, "arrai": 3.0})
    first = summary.summary.split(". ")[0]
    assert first.startswith(
        "The 2 documents of this theme (2009 to 2014) speak mostly of Halden Institute and Mira Voss: tidal array"
    )
    assert {source.chunk_id for source in summary.sources} >= {"c0", "c1"}, "the passages that name the years"


def test_a_theme_of_one_document_has_no_introduction() -> None:
    assert not extractive_summary(themed(documents=1), {}).summary.startswith("The ")


def test_sentences_with_dates_are_in_order_of_time() -> None:
    text = extractive_summary(themed(), {}).summary
    assert text.index("in 2009") < text.index("in 2014")
