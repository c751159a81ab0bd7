"""The driver of the agentic loop, on searches of a small corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from scripted_models import PromptedModel as Model
from two_axes import Embedder, Vectors

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import Comparison, matches_filter
from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.domain.search_session import RememberedConstraint, SessionMemory
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelUnavailable, StoreUnavailable
from agentic_rag_backend.models.embedding.calibration import BUNDLED_CALIBRATION, Calibrator
from agentic_rag_backend.prompts import parse
from agentic_rag_backend.retrieval.agentic.plan import NO_MODEL
from agentic_rag_backend.retrieval.agentic.search_rounds import ConstraintResolver
from agentic_rag_backend.retrieval.agentic.sessions import SessionReader
from agentic_rag_backend.retrieval.agentic.stopping import AgenticOptions
from agentic_rag_backend.retrieval.agentic.strategy import (
    EMPTIED,
    FORGOTTEN,
    NO_NEW_QUERY,
    RELAXED,
    SEARCH_FAILED,
    Agentic,
    AgenticParts,
)
from agentic_rag_backend.retrieval.base import QueryEncoder, Stores
from agentic_rag_backend.retrieval.passages.linked_chunks import LinkedChunks
from agentic_rag_backend.retrieval.rewriting import QueryRewriter
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls

Ask = Callable[..., Query]
SPENT = Usage(10, 5, 1)
PLAN = {
    "primary_intent": "the year",
    "hyde_passage": "It was 2013.",
    "search_queries": ["year of joining"],
    "filter_constraints": [],
    "negative_constraints": [],
}
NOTHING = {"verified_facts": [], "negative_constraints": [], "search_queries": [], "hyde_passage": ""}


class Searches:
    """Passages by the text that is searched. They pass the filter of the query."""

    def __init__(self, passages: Mapping[str, Sequence[Hit]], fails: Sequence[str] = ()) -> None:
        self.passages, self.fails = passages, fails
        self.asked: list[tuple[str, Query]] = []

    async def retrieve(self, name: str, query: Query) -> Retrieval:
        self.asked.append((name, query))
        if query.text in self.fails:
            raise StoreUnavailable("away")
        held = self.passages.get(query.text, ())
        passing = [hit for hit in held if query.filters is None or matches_filter(query.filters, hit.visible.fields, hit.id)]
        return Retrieval(hits=tuple(passing), trace=Trace(strategy=name, methods_used=(name,)))


class Graphs:
    async def graph(self, tenant: object) -> Any:
        raise StoreUnavailable("no graph")


class Sessions:
    """Sessions in memory. ``away``: the store does not answer."""

    def __init__(self) -> None:
        self.held: dict[str, SessionMemory] = {}
        self.away = False

    async def recall(self, tenant: object, digest: str) -> SessionMemory | None:
        if self.away:
            raise StoreUnavailable("away")
        return self.held.get(digest)

    async def remember(self, tenant: object, digest: str, more: SessionMemory, *, kept_s: float) -> SessionMemory:
        if self.away:
            raise StoreUnavailable("away")
        self.held[digest] = self.held.get(digest, SessionMemory()).extend_memory(more)
        return self.held[digest]


class Documents:
    """The chunks of hits."""

    def __init__(self, hits: Sequence[Hit]) -> None:
        self.chunks = {hit.id: hit.visible for hit in hits}

    async def hydrate(self, tenant: object, ids: Sequence[str]) -> dict[str, VisibleChunk]:
        return {id: self.chunks[id] for id in ids if id in self.chunks}


def agentic(searches: Searches, model: Model, sessions: SessionReader | None = None, **options: Any) -> Agentic:
    nothing = cast("Any", None)
    encoder = QueryEncoder(cast("Any", Embedder()))
    stores = Stores(
        nothing,
        nothing,
        cast("Any", Vectors()),
        nothing,
        nothing,
        encoder,
        trees=nothing,
        questions=nothing,
        facts=nothing,
        calibrator=Calibrator(nothing, calibration=BUNDLED_CALIBRATION),
    )
    graphs, calls = cast("Any", Graphs()), StructuredCalls(model)
    return Agentic(
        AgenticParts(
            stores=stores,
            graphs=graphs,
            strategies=searches,
            resolver=ConstraintResolver(LinkedChunks(graphs, nothing, nothing), graphs, nothing),
            rewriter=QueryRewriter(graphs, calls),
            calls=calls,
            options=AgenticOptions(**options),
            sessions=sessions,
        )
    )


@pytest.fixture
def passages(hit: Callable[..., Hit]) -> dict[str, list[Hit]]:
    """Return passages by query: 10 of the question, of the first follow-up all new, and of the second one new of 20."""
    first, second = ([hit(f"{name}{number}", 1 - number / 100) for number in range(10)] for name in ("a", "b"))
    return {"When?": first, "year of joining": first[:5], "second": second, "third": [*second[:9], hit("c")]}


def reflect(*queries: str, **more: Any) -> dict[str, Any]:
    return {**NOTHING, "search_queries": list(queries), **more}


def details(found: Retrieval) -> dict[str, Any]:
    held: dict[str, Any] = found.trace.details["agentic"]
    return held


async def test_rounds_go_on_until_one_brings_little_news(query: Ask, passages: dict[str, list[Hit]]) -> None:
    searches = Searches(passages)
    quote = {"passage": 1, "quote": "text of a0"}
    replies = [reflect("second", verified_facts=[quote]), reflect("third"), reflect("fourth")]
    model = Model({"agentic_plan": [PLAN], "agentic_reflection": replies})
    found = await agentic(searches, model).retrieve(query("When?"))
    about = details(found)
    assert [(each["found"], each["new"], each["novelty"]) for each in about["rounds"]] == [
        (10, 10, 1),
        (10, 10, 1),
        (10, 1, 0.05),
    ]
    assert (about["stop_reason"], about["calls"], about["tokens"]) == ("novelty", 3, 45)
    assert about["verified_facts"] == [{"fact": "text of a0", "chunk_id": "a0", "round": 1}]
    assert len(found.hits) == 21
    assert (found.usage.calls, found.trace.fallback_used, found.trace.strategy) == (3, False, "agentic")
    first = [(name, asked.text) for name, asked in searches.asked[:3]]
    assert first == [("dense", "When?"), ("graph", "When?"), ("sparse", "year of joining")]
    # The hypothetical passage is part of the vector, and nothing shows it.
    assert searches.asked[0][1].embedding == pytest.approx(np.array([1.0, 1.0]) / np.sqrt(2))
    assert "It was 2013" not in str(found.trace)


async def test_flags_switch_each_part_off(query: Ask, passages: dict[str, list[Hit]]) -> None:
    nurse = {"kind": "phrase", "name": "", "value": "text of a1"}
    replies = {"agentic_plan": [PLAN], "agentic_reflection": [reflect("second", negative_constraints=[nurse]), reflect("third")]}

    async def ask(**options: Any) -> tuple[Retrieval, Searches, Model]:
        searches, model = Searches(passages), Model(replies)
        return await agentic(searches, model).retrieve(query("When?", options=options)), searches, model

    found, *_ = await ask()
    assert "a1" not in {hit.id for hit in found.hits}
    assert [each["removed"] for each in details(found)["rounds"]] == [{}, {}, {}]
    assert details(found)["negative_constraints"] == [{"kind": "phrase", "value": "text of a1", "source": "reflection"}]

    found, *_ = await ask(negative_memory=False)
    assert "a1" in {hit.id for hit in found.hits}
    assert details(found)["negative_constraints"] == []

    found, searches, model = await ask(query_planning=False, negative_memory=False)
    assert {asked.text for _, asked in searches.asked} == {"When?"}
    assert model.asked == ["agentic_reflection"]
    assert details(found)["stop_reason"] == NO_NEW_QUERY

    found, *_ = await ask(novelty_circuit=False)
    assert (len(details(found)["rounds"]), details(found)["stop_reason"]) == (5, "rounds")

    found, searches, _ = await ask(cascade_recall=False)
    assert {name for name, _ in searches.asked} == {"dense"}


async def test_the_trace_names_the_prompt_that_planned(query: Ask, passages: dict[str, list[Hit]]) -> None:
    replies = {"agentic_plan": [PLAN], "harbour": [PLAN], "agentic_reflection": [NOTHING]}
    own = parse("---\nname: harbour\nversion: 7\n---\n# System\nPlan.\n# User\n{{question}}\n")
    for prompt, model, id in (
        (None, Model(replies), "agentic_plan@1"),
        (own, Model(replies), "harbour@7"),
        (own, Model(None), None),
    ):
        found = await agentic(Searches(passages), model, planner_prompt=prompt).retrieve(query("When?"))
        assert details(found)["planner_prompt"] == id
        assert model.asked[:1] == ([id.split("@")[0]] if id else [])


async def test_without_a_model_rules_plan_and_the_trace_says_so(query: Ask, passages: dict[str, list[Hit]]) -> None:
    found = await agentic(Searches(passages), Model(None)).retrieve(query("When?"))
    assert (details(found)["stop_reason"], details(found)["calls"], len(found.hits)) == (NO_NEW_QUERY, 0, 10)
    assert found.trace.fallbacks == (NO_MODEL,)
    assert found.usage == Usage()


async def test_a_model_that_fails_is_replaced_by_rules(query: Ask, passages: dict[str, list[Hit]]) -> None:
    away = ModelUnavailable("away")
    model = Model({"agentic_plan": [away], "agentic_reflection": [away]})
    found = await agentic(Searches(passages), model).retrieve(query("When?"))
    assert {"planning by the model failed: model_unavailable", "reflection by the model failed: model_unavailable"} <= set(
        found.trace.failures
    )
    assert (details(found)["rounds"][0]["planned_by"], details(found)["reflected_by"]) == ("rules", ["rules"])
    assert len(found.hits) == 10


async def test_budgets_end_the_rounds(query: Ask, passages: dict[str, list[Hit]]) -> None:
    replies = {"agentic_plan": [PLAN], "agentic_reflection": [reflect("second"), reflect("third")]}
    for options, reason, calls in (
        ({"max_calls": 1}, "budget_calls", 1),
        ({"max_calls": 2}, "budget_calls", 2),
        ({"max_tokens": 20}, "budget_tokens", 2),
        ({"max_seconds": 0.0}, "budget_seconds", 0),
        ({"policy": "budget", "max_calls": 3}, "budget", 3),
    ):
        model = Model(replies)
        found = await agentic(Searches(passages), model).retrieve(query("When?", options=options))
        assert (details(found)["stop_reason"], len(model.asked)) == (reason, calls), options


async def test_filters_of_a_plan_narrow_and_are_dropped_if_nothing_passes(query: Ask, passages: dict[str, list[Hit]]) -> None:
    def plan(name: str, value: str) -> Model:
        constraint = {"field": name, "operator": "eq", "values": [value]}
        return Model({"agentic_plan": [{**PLAN, "filter_constraints": [constraint]}], "agentic_reflection": [NOTHING]})

    own = Comparison("key", "in", ("a1", "a2"))
    found = await agentic(Searches(passages), plan("key", "a1")).retrieve(query("When?", filters=own))
    assert [hit.id for hit in found.hits] == ["a1"]
    assert found.trace.warnings == ()
    for name, value, note in (("key", "a5", RELAXED), ("tenant_id", "other", "tenant_id: cannot be filtered on")):
        found = await agentic(Searches(passages), plan(name, value)).retrieve(query("When?", filters=own))
        assert [hit.id for hit in found.hits] == ["a1", "a2"]
        assert any(note in warning for warning in found.trace.warnings)


async def test_constraints_that_would_remove_everything_are_dropped(query: Ask, passages: dict[str, list[Hit]]) -> None:
    injected = reflect("second", negative_constraints=[{"kind": "phrase", "name": "", "value": "text of"}])
    model = Model({"agentic_plan": [PLAN], "agentic_reflection": [injected, NOTHING]})
    found = await agentic(Searches(passages), model).retrieve(query("When?"))
    assert len(found.hits) == 20
    assert "they would remove every passage that was found" in found.trace.warnings[0]
    # A request may remove everything.
    found = await agentic(Searches(passages), Model(None)).retrieve(query("When?", options={"negative_constraints": ["text of"]}))
    assert found.hits == ()
    assert EMPTIED in found.trace.warnings
    found = await agentic(Searches(passages), Model(None)).retrieve(
        query("When?", options={"negative_constraints": ["text of a1"]})
    )
    assert found.hits
    assert EMPTIED not in found.trace.warnings


async def test_a_round_that_fails_leaves_the_results_of_those_before(query: Ask, passages: dict[str, list[Hit]]) -> None:
    replies = {"agentic_plan": [PLAN], "agentic_reflection": [reflect("second")]}
    found = await agentic(Searches(passages, ["second"]), Model(replies)).retrieve(query("When?"))
    assert (details(found)["stop_reason"], len(found.hits)) == (SEARCH_FAILED, 10)
    assert "round 2 failed: store_unavailable" in found.trace.failures
    with pytest.raises(StoreUnavailable):
        await agentic(Searches(passages, ["When?", "year of joining"]), Model(replies)).retrieve(query("When?"))


async def test_an_entity_of_the_request_needs_the_graph(query: Ask, passages: dict[str, list[Hit]]) -> None:
    asked = query("When?", options={"negative_constraints": ["entity:e1"]})
    with pytest.raises(StoreUnavailable):
        await agentic(Searches(passages), Model(None)).retrieve(asked)
    plan = {**PLAN, "negative_constraints": [{"kind": "entity", "name": "", "value": "e:1"}]}
    model = Model({"agentic_plan": [plan], "agentic_reflection": [NOTHING]})
    found = await agentic(Searches(passages), model).retrieve(replace(asked, options={}))
    assert "a negative constraint was dropped: store_unavailable" in found.trace.warnings


async def test_a_session_carries_facts_and_constraints(query: Ask, passages: dict[str, list[Hit]]) -> None:
    quote = {"passage": 1, "quote": "text of a0"}
    replies = {"agentic_plan": [PLAN], "agentic_reflection": [reflect(verified_facts=[quote])]}
    sessions, documents = Sessions(), Documents([hit for hits in passages.values() for hit in hits])
    reader = SessionReader(cast("Any", sessions), cast("Any", documents), kept_s=60)

    async def ask(session: str | None, **options: Any) -> tuple[Retrieval, dict[str, Any]]:
        asked = query("When?", options=options, session=session)
        found = await agentic(Searches(passages), Model(replies), reader).retrieve(asked)
        return found, details(found)

    assert "session" not in (await ask(None))[1]
    assert sessions.held == {}
    _, first = await ask("s", negative_constraints=["text of a1"])
    assert first["session"]["continued"] is False
    assert first["session"]["kept"] == {"facts": 1, "negative_constraints": 1}
    found, second = await ask("s")
    assert second["session"]["facts"] == [{"fact": "text of a0", "chunk_id": "a0"}]
    assert second["session"]["negative_constraints"] == [{"kind": "phrase", "value": "text of a1", "source": "session"}]
    assert second["verified_facts"][0] == {"fact": "text of a0", "chunk_id": "a0", "round": 0}
    assert "a1" not in {hit.id for hit in found.hits}
    found, other = await ask("another")
    assert (other["session"]["continued"], other["session"]["facts"]) == (False, [])
    assert "a1" in {hit.id for hit in found.hits}
    # A constraint of this request removes the passage of a fact, and the fact with it.
    _, third = await ask("s", negative_constraints=["text of a0"])
    assert (third["session"]["facts"], third["session"]["facts_left_out"]) == ([], 1)
    found, off = await ask("s", negative_memory=False)
    assert off["session"]["negative_constraints"] == []
    assert "a1" in {hit.id for hit in found.hits}


async def test_a_session_never_costs_the_results(query: Ask, passages: dict[str, list[Hit]]) -> None:
    sessions = Sessions()
    reader = SessionReader(cast("Any", sessions), cast("Any", Documents([])), kept_s=60)
    sessions.held["s"] = SessionMemory((), (RememberedConstraint("phrase", "text"),))
    found = await agentic(Searches(passages), Model(None), reader).retrieve(query("When?", session="s"))
    assert (len(found.hits), FORGOTTEN in found.trace.warnings) == (10, True)
    assert details(found)["session"]["negative_constraints"] == []
    sessions.away = True
    found = await agentic(Searches(passages), Model(None), reader).retrieve(query("When?", session="s"))
    assert len(found.hits) == 10
    failures = {f"the session could not be {what}: store_unavailable" for what in ("read", "written")}
    assert failures <= set(found.trace.failures)
