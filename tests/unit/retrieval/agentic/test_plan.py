from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.filters import Comparison, LinkCondition, list_leaves, matches_filter, narrow_filter
from agentic_rag_backend.retrieval.agentic.plan import (
    MAX_QUERIES,
    NegativeConstraint,
    filters_of,
    plan_by_rules,
    plan_of,
)
from agentic_rag_backend.retrieval.agentic.stopping import AgenticOptions, Budget

REPLY = {
    "primary_intent": "the  founder",
    "hyde_passage": "It was founded by X.",
    "search_queries": ["who founded it", "WHO?", "yard", 7, " ", "ferry", "more"],
    "filter_constraints": [
        {"field": "year", "operator": "gte", "values": ["2019"]},
        {"field": "tenant_id", "operator": "eq", "values": ["other"]},
        {"field": "year", "operator": "like", "values": ["x"]},
        {"field": "year", "operator": "eq", "values": []},
    ],
    "negative_constraints": [{"kind": "phrase", "name": "", "value": "senior nurse"}, {"kind": "drop", "value": "all"}],
}


def test_a_plan_is_validated_and_the_question_comes_first() -> None:
    plan = plan_of(REPLY, "Who?")
    assert plan.search_queries == ("Who?", "who founded it", "yard", "ferry")
    assert (plan.primary_intent, plan.hyde_passage, plan.by) == ("the founder", "It was founded by X.", "model")
    assert plan.negative_constraints == (NegativeConstraint("phrase", "senior nurse"),)
    assert len(plan.notes) == 4
    assert "tenant_id: cannot be filtered on" in plan.notes[0]
    assert plan.filter_constraints is not None
    assert matches_filter(plan.filter_constraints, {"year": 2020})
    assert matches_filter(plan.filter_constraints, {"year": "2019"})
    assert not matches_filter(plan.filter_constraints, {"year": 2018})


@given(st.dictionaries(st.sampled_from(list(REPLY)), st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text()))))
def test_any_reply_gives_a_plan(parsed: dict[str, Any]) -> None:
    plan = plan_of(parsed, "Who?")
    assert plan.search_queries[0] == "Who?"
    assert 1 <= len(plan.search_queries) <= MAX_QUERIES


def test_numbers_are_compared_as_text_and_as_numbers() -> None:
    for item, fields, passes in [
        ({"field": "year", "operator": "ne", "values": ["2019"]}, {"year": 2019}, False),
        ({"field": "year", "operator": "ne", "values": ["2019"]}, {"year": "2019"}, False),
        ({"field": "year", "operator": "ne", "values": ["2019"]}, {"year": 2020}, True),
        ({"field": "year", "operator": "in", "values": ["2019", "1.5"]}, {"year": 1.5}, True),
        ({"field": "title", "operator": "contains", "values": ["2019"]}, {"title": "In 2019"}, True),
        ({"field": "year", "operator": "exists", "values": []}, {}, False),
    ]:
        found, notes = filters_of([item])
        assert found is not None
        assert (matches_filter(found, fields), notes) == (passes, [])


def test_entities_are_compared_by_name() -> None:
    found, _ = filters_of([{"field": "entity", "operator": "eq", "values": ["2019"]}])
    assert found == LinkCondition("entity", "eq", ("2019",))


fields = st.fixed_dictionaries({}, optional={"year": st.integers(2018, 2021), "title": st.sampled_from(["a", "b"])})
items = st.lists(
    st.fixed_dictionaries(
        {
            "field": st.sampled_from(["year", "title", "tenant_id", "", "not", "or"]),
            "operator": st.sampled_from(["eq", "ne", "in", "missing", "exists", "drop", "title"]),
            "values": st.lists(st.sampled_from(["2019", "a", ""]), max_size=3),
        }
    ),
    max_size=4,
)


@given(items=items, fields=fields, year=st.integers(2018, 2021))
def test_a_plan_never_widens_the_filter_of_a_request(items: list[dict[str, Any]], fields: dict[str, Any], year: int) -> None:
    own = Comparison("year", "eq", year)
    both = narrow_filter(own, filters_of(items)[0])
    assert both is not None
    assert own in list(list_leaves(both))
    assert not matches_filter(both, fields) or matches_filter(own, fields)


def test_rules_search_the_question_and_its_other_wordings() -> None:
    plan = plan_by_rules("Who leads the SFA?", ["Who leads the Scarrow Fishers' Association?", "who leads the sfa?"])
    assert plan.search_queries == ("Who leads the SFA?", "Who leads the Scarrow Fishers' Association?")
    assert (plan.by, plan.filter_constraints, plan.negative_constraints) == ("rules", None, ())


def test_options_of_a_request_replace_those_of_the_deployment() -> None:
    deployed = AgenticOptions(max_rounds=3, epsilon=0.1, negative_memory=False, budget=Budget(9, 900, 9.0))
    own = deployed.of({})
    assert (own.stop_policy, own.limits.rounds, own.epsilon, own.negative_memory) == ("novelty", 3, 0.1, False)
    asked = deployed.of({"novelty_circuit": False, "negative_memory": True, "max_calls": 2, "max_seconds": 100}, timeout_s=10.0)
    assert (asked.stop_policy, asked.limits.rounds, asked.negative_memory) == ("fixed_rounds", 5, True)
    assert asked.budget == Budget(2, 900, 8.0)
    assert deployed.of({"policy": "budget", "max_rounds": 5, "novelty_circuit": False}).stop_policy == "budget"
    assert deployed.of({"policy": "fixed_rounds", "max_rounds": 2}).limits.rounds == 2
