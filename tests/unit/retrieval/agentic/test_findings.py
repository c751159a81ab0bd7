from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.query import EntityRef, FactHit, Hit
from agentic_rag_backend.retrieval.agentic.findings import (
    VerifiedFact,
    by_rules,
    next_plan,
    suggest_constraints,
    verify_facts,
    with_name,
)
from agentic_rag_backend.retrieval.agentic.plan import NegativeConstraint

QUESTION = "When did Rowan Teller join the laboratory?"
FILM, DIRECTOR = EntityRef("e:film", "Slack Water", "work"), EntityRef("e:mara", "Mara Venn", "person")


@pytest.fixture
def hits(visible: Callable[..., Any]) -> list[Hit]:
    """Return two passages with the entities of two people of one name."""
    first = Hit(visible=visible("a", "She joined\n the  laboratory in 2013."), score=1.0)
    second = Hit(visible=visible("b", "The nurse joined in 2009."), score=0.5)
    people = [EntityRef(f"e:{number}", "Rowan Teller", "person") for number in (1, 2)]
    return [replace(hit, entities=(person,)) for hit, person in zip((first, second), people, strict=True)]


def test_facts_are_verified_word_by_word(hits: list[Hit]) -> None:
    quotes: list[Any] = [
        {"passage": 1, "quote": "She joined the laboratory in 2013."},
        {"passage": 1, "quote": "joined the  laboratory"},
        {"passage": 2, "quote": "She joined the laboratory in 2013."},
        {"passage": 3, "quote": "joined"},
        {"passage": True, "quote": "joined"},
        {"passage": 1, "quote": ""},
        {"passage": "1"},
    ]
    facts, wrong = verify_facts({"verified_facts": quotes}, hits, 2)
    assert facts == [VerifiedFact("She joined the laboratory in 2013.", "a", 2), VerifiedFact("joined the laboratory", "a", 2)]
    assert wrong == 5


def test_a_quote_may_have_a_reference_as_prompts_show_it(visible: Callable[..., Any]) -> None:
    hits = [Hit(visible=visible("a", "She joined in 2013, see [3]."), score=1.0)]
    facts, wrong = verify_facts({"verified_facts": [{"passage": 1, "quote": "in 2013, see (3)"}]}, hits, 1)
    assert (facts, wrong) == ([VerifiedFact("in 2013, see [3]", "a", 1)], 0)


def test_constraints_of_passages_may_not_avoid_the_subject_of_the_question(hits: list[Hit]) -> None:
    def reply(*items: tuple[str, str]) -> dict[str, Any]:
        return {"negative_constraints": [{"kind": kind, "name": "affiliation", "value": value} for kind, value in items]}

    both = [{"e:1", "e:2"}]
    valid, notes = suggest_constraints(
        reply(("entity", "e:2"), ("entity", "e:1"), ("entity", "e:9")), hits, QUESTION, both, set()
    )
    assert valid == [NegativeConstraint("entity", "e:2")]
    assert len(notes) == 2
    # A name that only one entity has, and a bearer whose namesake is avoided already.
    assert suggest_constraints(reply(("entity", "e:1")), hits, QUESTION, [{"e:1"}], set())[0] == []
    assert suggest_constraints(reply(("entity", "e:1")), hits, QUESTION, both, {"e:2"})[0] == []
    words = suggest_constraints(
        reply(("phrase", "rowan teller"), ("attribute", "Laboratory"), ("phrase", "nurse")), hits, QUESTION, [], set()
    )
    assert words[0] == [NegativeConstraint("phrase", "nurse")]


def test_the_next_round_searches_new_queries_only() -> None:
    reply = {"search_queries": ["Asked before", "new", "NEW"], "hyde_passage": "In 2013."}
    plan = next_plan(reply, {"asked before"})
    assert plan is not None
    assert (plan.search_queries, plan.hyde_passage, plan.by) == (("new",), "In 2013.", "model")
    assert next_plan(reply, {"asked before", "new"}) is None
    assert next_plan({}, set()) is None


def test_rules_follow_facts_of_the_best_passages_to_the_next_entity(hit: Callable[..., Hit]) -> None:
    fact = FactHit(
        id="f",
        source=FILM,
        relation="directed_by",
        target=DIRECTOR,
        fact="Slack Water was directed by Mara Venn.",
        chunk_id="a",
        document_id="d",
        score=1.0,
    )
    question = "Who is the spouse of the director of Slack Water?"
    made = by_rules(question, [hit("a")], [fact, replace(fact, chunk_id="far")], set(), 1)
    assert made.facts == (VerifiedFact(fact.fact, "a", 1),)
    assert made.plan is not None
    assert made.plan.search_queries == ("Who is the spouse of the director of Mara Venn?",)
    assert made.entities == ("e:mara",)
    asked = {"who is the spouse of the director of mara venn?"}
    again = by_rules(question, [hit("a")], [fact], asked, 2)
    assert (again.plan, again.entities, len(again.facts)) == (None, (), 1)
    assert by_rules(question, [hit("b")], [fact], set(), 1).facts == ()


def test_names_are_replaced_as_whole_words() -> None:
    for known, other, made in [
        ("slack water", "Mara", "the spouse of Mara?"),
        ("Slack", "Mara", "the spouse of Mara Water?"),
        ("lack Water", "Mara", None),
        ("Slack Wat", "Mara", None),
        ("Slack Water", "Spouse", None),
        ("Nobody", "Mara", None),
        ("", "Mara", None),
    ]:
        assert with_name("the spouse of Slack Water?", known, other) == made


@given(st.text(), st.text(), st.text())
def test_any_name_can_be_replaced(question: str, known: str, other: str) -> None:
    made = with_name(question, known, other)
    assert made is None or other in made
