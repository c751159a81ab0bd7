from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_passages import hit_of

from agentic_rag_backend.domain.query import EntityRef, FactHit, Hit
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.agentic.plan import (
    MAX_CONSTRAINTS,
    Avoided,
    NegativeConstraint,
    contains_phrase,
    keep_hits,
    parse_constraints,
    unite_constraints,
    written_by_model,
)


def phrase(value: str) -> Avoided:
    return Avoided(NegativeConstraint("phrase", value))


def test_a_phrase_is_whole_words_in_order() -> None:
    for text, value, contained in [
        ("The Senior  nurse wrote.", "senior nurse", True),
        ("The nurse is senior", "senior nurse", False),
        ("Two senior nurses", "senior nurse", True),
        ("The nursery", "nurse", False),
        ("", "nurse", False),
        ("anything", "…", False),
    ]:
        assert contains_phrase(text, value) is contained


def test_an_attribute_is_compared_with_the_metadata_or_else_with_the_text(visible: Callable[..., object]) -> None:
    constraint = Avoided(NegativeConstraint("attribute", "Aldry Hospital", "affiliation"))

    def removed(text: str, **metadata: object) -> bool:
        return constraint.removes(Hit(visible=visible("c", text, **metadata), score=1.0))  # type: ignore[arg-type]

    assert removed("a text", affiliation="aldry hospital")
    assert removed("a text", affiliation=["University", "Aldry Hospital"])
    assert not removed("of Aldry Hospital", affiliation="University")
    assert removed("Rowan Teller of Aldry Hospital")
    assert not removed("Rowan Teller")


def test_an_entity_removes_its_passages_documents_and_facts(hit: Callable[..., Hit]) -> None:
    avoided = Avoided(NegativeConstraint("entity", "e1"), frozenset({"a"}), frozenset({"d:b"}))
    left, counts = keep_hits([hit("a"), hit("b"), hit("c")], [avoided])
    assert ([each.id for each in left], counts) == (["c"], {"e1": 2})
    ref = EntityRef("e1", "One", "person")
    fact = FactHit(id="f", source=ref, relation="r", target=ref, fact="One is.", chunk_id="c", document_id="d:c", score=1.0)
    assert not avoided.removes_fact(fact, set())
    assert avoided.removes_fact(fact, {"c"})
    assert avoided.removes_fact(replace(fact, document_id="d:b"), set())
    assert phrase("one is").removes_fact(fact, set())


@given(st.lists(st.sampled_from(["text of a", "a b", "c", "nurse", "Title"]), max_size=5))
def test_a_filtered_list_is_a_part_in_order_and_filtering_again_changes_nothing(values: list[str]) -> None:
    texts = ["a b c", "nurse", "text of a", "other"]
    hits = [hit_of(text) for text in texts]
    avoided = [phrase(value) for value in values]
    left, counts = keep_hits(hits, avoided)
    assert [hit for hit in hits if hit in left] == left
    assert sum(counts.values()) == len(hits) - len(left)
    assert keep_hits(left, avoided) == (left, {})
    assert not [hit for hit in left for value in values if contains_phrase(hit.visible.chunk.text, value)]


def test_requests_name_entities_attributes_and_phrases() -> None:
    made = parse_constraints(["entity: e1 ", "affiliation = Aldry  Hospital", "senior nurse"])
    assert made == [
        NegativeConstraint("entity", "e1"),
        NegativeConstraint("attribute", "Aldry Hospital", "affiliation"),
        NegativeConstraint("phrase", "senior nurse"),
    ]


@pytest.mark.parametrize("text", ["", "  ", "entity:", "entity: …", "= x", "=", "a=", "a= ...", "...", "\0"])
def test_a_constraint_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"negative_constraints\[1\].*entity:ID, NAME=VALUE or a phrase") as refused:
        parse_constraints(["senior nurse", text])
    assert refused.value.field == "options.negative_constraints[1]"


def test_invalid_constraints_of_a_model_are_dropped_with_a_note() -> None:
    items = [
        {"kind": "phrase", "name": "ignored", "value": "senior  nurse"},
        {"kind": "tenant", "name": "", "value": "other"},
        {"kind": "phrase", "name": "", "value": "a"},
        {"kind": "attribute", "name": " ", "value": "Hospital"},
        {"kind": "phrase", "value": "x" * 500},
        {},
    ]
    valid, notes = written_by_model(items, "reflection")
    assert valid == [NegativeConstraint("phrase", "senior nurse")]
    assert len(notes) == len(items) - 1


def test_a_request_has_a_maximum_number_of_constraints() -> None:
    many = [NegativeConstraint("phrase", f"word {number}") for number in range(MAX_CONSTRAINTS + 3)]
    held, notes = unite_constraints(many[:2], [many[0], *many])
    assert held == many[:MAX_CONSTRAINTS]
    assert notes == [f"negative constraints above the limit of {MAX_CONSTRAINTS} were dropped: 3"]
