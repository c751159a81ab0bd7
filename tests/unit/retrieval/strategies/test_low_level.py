from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.retrieval.strategies.dual_level import LowLevel, low_strategy_for

Ask = Callable[..., Query]
THEME, NAME = "How do the fishers and the energy company get on?", "Who opened the quay?"


@dataclass
class Named:
    name: str
    hits: tuple[Hit, ...] = ()
    asked: list[Query] = field(default_factory=list)

    async def retrieve(self, query: Query) -> Retrieval:
        self.asked.append(query)
        return Retrieval(
            hits=self.hits, trace=Trace(strategy=self.name, fallbacks=("no entity",), details={"linked_entities": 1})
        )


def test_the_form_of_a_question_tells_what_finds_its_passages() -> None:
    for question, strategy in [
        (THEME, "hybrid"),
        ("Why was the harbour closed?", "hybrid"),
        ("What role does the bank play?", "hybrid"),
        (NAME, "graph"),
        ("When was the quay opened?", "graph"),
        ("How many boats are there?", "graph"),
        ("harbour quay", "graph"),
    ]:
        assert low_strategy_for(question) == strategy


async def test_the_request_wins_over_the_setting_and_that_over_the_form(query: Ask, hit: Callable[..., Hit]) -> None:
    for question, options, default, strategy, chosen_by in [
        (THEME, {}, "auto", "hybrid", "form"),
        (NAME, {}, "auto", "graph", "form"),
        (THEME, {"entities": ["Mira Voss"]}, "auto", "graph", "entities"),
        (THEME, {"entities": []}, "auto", "hybrid", "form"),
        (THEME, {}, "graph", "graph", "setting"),
        (NAME, {}, "hybrid", "hybrid", "setting"),
        (THEME, {"low_strategy": "graph"}, "auto", "graph", "request"),
        (NAME, {"low_strategy": "hybrid"}, "graph", "hybrid", "request"),
        (NAME, {"low_strategy": "hybrid", "entities": ["Mira Voss"]}, "auto", "hybrid", "request"),
        (THEME, {"low_strategy": "auto"}, "graph", "hybrid", "form"),
    ]:
        graph, hybrid = Named("graph", (hit("c1"),)), Named("hybrid", (hit("c2"),))
        asked = query(question, options=options)
        found = await LowLevel({"graph": graph, "hybrid": hybrid}, default=default).retrieve(asked)
        chosen, other = (graph, hybrid) if strategy == "graph" else (hybrid, graph)
        assert (chosen.asked, other.asked) == ([asked], [])
        assert (found.hits, found.trace.strategy) == (chosen.hits, strategy)
        assert not found.trace.fallback_used
        assert found.trace.details == {"linked_entities": 1, "low_level": {"strategy": strategy, "chosen_by": chosen_by}}


async def test_rounds_of_the_low_level_call_no_model(query: Ask, hit: Callable[..., Hit]) -> None:
    agentic = Named("agentic", (hit("c1"),))
    found = await LowLevel({"agentic": agentic}).retrieve(query(NAME, options={"low_strategy": "agentic", "entities": ["Mira"]}))
    assert found.trace.strategy == "agentic"
    assert agentic.asked[0].options == {"low_strategy": "agentic", "entities": ["Mira"], "max_calls": 0}
