"""The sentence that a search shows of a fact."""

from __future__ import annotations

from datetime import UTC, datetime

from agentic_rag_backend.domain.graph import StatedFact, Support
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.knowledge.visible.facts import VisibleFact
from agentic_rag_backend.retrieval.legs import _fact

MOMENT = datetime(2021, 1, 1, tzinfo=UTC)


def stated(chunk: str, *, begin: datetime | None = None, end: datetime | None = None) -> StatedFact:
    support = Support("d", 1, chunk)
    return StatedFact(
        relationship_id="r", support=support, fact=f"says {chunk}", start_char=0, end_char=1, valid_at=begin, invalid_at=end
    )


def shown(*passages: StatedFact, near: frozenset[str] = frozenset()) -> str:
    ends = EntityRef("a", "Ann", "person"), EntityRef("b", "Acme", "organisation")
    fact = VisibleFact(id="r", source=ends[0], target=ends[1], relation="works_at", weight=1.0, passages=passages)
    return _fact(fact, 0.5, near).chunk_id


def test_a_passage_near_the_question_comes_first_but_one_that_only_ends_the_fact_last() -> None:
    states, later, ends = stated("b"), stated("c", begin=MOMENT), stated("a", end=MOMENT)

    assert shown(later, states) == "b"
    assert shown(states, later, near=frozenset({"c"})) == "c"
    assert shown(ends, states, later, near=frozenset({"a"})) == "b"
    assert shown(ends) == "a"
    assert shown(states, stated("a", begin=MOMENT, end=MOMENT)) == "a"
