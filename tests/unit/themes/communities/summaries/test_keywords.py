"""Keywords: noun phrases that contrast with other facts, and central names."""

from __future__ import annotations

import random
from dataclasses import replace

from agentic_rag_backend.domain.graph import Support
from agentic_rag_backend.themes.communities.summaries.community_evidence import (
    CentralEntity,
    Fact,
    PassagePhrases,
    SummaryEvidence,
)
from agentic_rag_backend.themes.communities.summaries.keywords import MAX_KEYWORDS, MAX_PHRASES, central_names, select_keywords

ENTITIES = (
    CentralEntity("halden", "Halden Institute", "organisation", 0.5),
    CentralEntity("mira", "Mira Voss", "person", 0.3),
    CentralEntity("tidal", "Carrow Bay", "place", 0.2),
)


def fact(statement: str, chunk: str, document: str = "d") -> Fact:
    return Fact(statement, (Support(document, 1, chunk),), frozenset({"halden"}))


def evidence(*facts: Fact, entities: tuple[CentralEntity, ...] = ENTITIES) -> SummaryEvidence:
    return SummaryEvidence(fingerprint="f", entity_count=3, entities=entities, facts=facts, passages=len(facts))


def texts(given: SummaryEvidence, weights: dict[str, float] | None = None) -> list[str]:
    return [label.text for label in select_keywords(given, central_names(given.entities[:1]), weights or {})]


def test_phrases_that_are_rare_elsewhere_come_first_and_central_names_last() -> None:
    facts = [fact(f"The council praised the turbine {n} times near Carrow Bay.", f"c{n}") for n in range(3)]
    found = texts(evidence(*facts), {"council": 0.1, "turbin": 5.0})
    assert found == ["turbine", "council", "Mira Voss", "Carrow Bay"]


def test_verbs_and_generic_words_are_no_keywords() -> None:
    given = evidence(
        fact("The class learns the difference between the default and the content.", "c1"),
        fact("The company announced the duty and the content that they announced.", "c2"),
        fact("People followed across the year and gave the thing a name.", "c3"),
    )
    assert set(texts(given)) <= {"company", "Mira Voss", "Carrow Bay"}


def test_half_of_an_adjective_and_other_languages_are_no_keywords() -> None:
    given = evidence(
        fact("It is a monthly peer-reviewed journal of the society near Carrow Bay.", "c1"),
        fact("Die Datei wird auf der Standardausgabe ausgegeben und in den Ordner geschrieben.", "c2"),
    )
    assert set(texts(given)) <= {"society", "journal", "Mira Voss", "Carrow Bay"}


def test_a_phrase_is_preferred_to_its_words() -> None:
    given = evidence(
        fact("Nine people signed for the fishing corridor.", "c1"), fact("A fishing corridor of 400 metres stays open.", "c2")
    )
    found = texts(given)
    assert found[0] == "fishing corridor"
    assert "corridor" not in found


def test_a_label_rests_on_the_passages_that_contain_its_spelling() -> None:
    given = evidence(
        fact("The council praised the turbine near Carrow Bay.", "c1"),
        fact("The turbine hummed, and the noise grew.", "c2"),
        fact("They sent the turbines to the council.", "c3"),
        entities=(),
    )
    held = {label.text: [source.chunk_id for source in label.sources] for label in select_keywords(given, (), {})}
    assert held["turbine"] == ["c1", "c2"], "not the passage of the plural"
    assert held["council"] == ["c1", "c3"]


def test_phrases_of_passages_count_if_several_documents_have_them() -> None:
    passages = tuple(
        PassagePhrases.from_text(Support(document, 1, f"c{document}"), "The ferry sailed. It passed the lighthouse.")
        for document in ("d1", "d2")
    )
    alone = PassagePhrases.from_text(Support("d1", 1, "c9"), "The orchard was sold.")
    found = texts(replace(evidence(fact("Mira Voss bought a boat.", "c1", "d1")), texts=(*passages, alone)))
    assert {"ferry", "lighthouse"} <= set(found)
    assert "orchard" not in found


def test_the_number_is_bounded_and_the_order_of_facts_does_not_matter() -> None:
    nouns = "harbour ferry turbine bridge lantern orchard quarry anchor compass tunnel".split()  # noqa: SIM905 - a list of words
    facts = [fact(f"They painted the {noun} twice.", f"c{number}") for number, noun in enumerate(nouns)]
    many = tuple(replace(ENTITIES[1], id=name, name=name) for name in ("Ada Finch", "Bo Lund", "Cy Oake", "Di Tull"))
    given = evidence(*facts, entities=(ENTITIES[0], *many))
    found = texts(given)
    assert len(found) == MAX_KEYWORDS
    assert found[MAX_PHRASES:] == ["Ada Finch", "Bo Lund", "Cy Oake"]
    shuffled = [replace(each) for each in given.further]
    random.Random(4).shuffle(shuffled)
    assert texts(replace(given, further=tuple(shuffled))) == found
