"""Facts of one wording become one fact."""

from __future__ import annotations

from cpu_time import cpu_s

from agentic_rag_backend.domain.graph import Support
from agentic_rag_backend.themes.communities.summaries.community_evidence import Fact, merge_facts


def fact(statement: str, number: int, *entities: str) -> Fact:
    return Fact(statement, (Support(f"d{number}", 1, f"c{number}"),), frozenset(entities))


def test_facts_of_one_wording_have_the_sources_and_entities_of_all() -> None:
    facts = [fact("A leads B.", 1, "a", "b"), fact("C sails.", 1, "c"), fact("A  leads\nB.", 2, "a"), fact("A leads B.", 1, "d")]
    leads, sails = merge_facts(facts)
    assert (leads.statement, sails) == ("A leads B.", facts[1])
    assert [source.chunk_id for source in leads.sources] == ["c1", "c2"]
    assert leads.entity_ids == {"a", "b", "d"}


def test_one_wording_in_many_passages_costs_in_proportion_to_their_number() -> None:
    def seconds(count: int) -> float:
        facts = [fact("A leads B.", number, f"e{number}") for number in range(count)]
        return cpu_s(lambda: merge_facts(facts))

    assert seconds(4_000) < 10 * seconds(1_000)
