"""The choice of `auto`: by flag, form of the question, tree, time and cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from sample_passages import theme_of

from agentic_rag_backend.domain.query import Hit, Query, Retrieval, ThemeHit, Trace
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.retrieval import caching
from agentic_rag_backend.retrieval.base import QueryEncoder
from agentic_rag_backend.retrieval.strategies.auto import CHEAPER, KEPT, RECENT_S, WITH_TREE, Auto, Latencies, WithSummaries
from agentic_rag_backend.stores.catalogue.base import GenerationPointer

Ask = Callable[..., Query]
FACT, THEME, NAMED = "Who opened the quay?", "Why do projects finish late?", "Why did the World Trade Club move?"
OVERVIEW = "What are these documents about?"


@dataclass
class Named:
    name: str
    hits: tuple[Hit, ...] = ()
    themes: tuple[ThemeHit, ...] = ()
    asked: list[Query] = field(default_factory=list)

    async def find(self, query: Query) -> Retrieval | None:
        return await self.retrieve(query) if query.text == OVERVIEW else None

    async def retrieve(self, query: Query) -> Retrieval:
        self.asked.append(query)
        trace = Trace(strategy=self.name, methods_used=("dense", self.name), fallbacks=("why",), details={"kept": True})
        return Retrieval(hits=self.hits, themes=self.themes, relevance=0.4, trace=trace)


@dataclass
class Held:
    """A graph, and a tree of a generation."""

    known: TenantGraph
    generation: int = 0

    async def graph(self, tenant: object) -> TenantGraph:
        return self.known

    async def pointer(self, tenant: object) -> GenerationPointer:
        return GenerationPointer(generation=self.generation, stale=False)


@pytest.fixture
def auto(graph_of: Callable[..., TenantGraph], hit: Callable[..., Hit]) -> Callable[..., Auto]:
    def make(latencies: Latencies | None = None, generation: int = 0, tokens: int = 0) -> Auto:
        held = cast("Any", Held(graph_of({"one": ["World Trade Club"]}), generation))
        strategies: Mapping[str, Any] = {name: Named(name, (hit("c1"),)) for name in (*CHEAPER, WITH_TREE)}
        encoder = QueryEncoder(cast("Any", SimpleNamespace(query_tokens=lambda text: tokens)))
        overviews = cast("Any", Named("global", (hit("c1"),)))
        return Auto(strategies, overviews=overviews, graphs=held, trees=held, encoder=encoder, latencies=latencies or Latencies())

    return make


async def test_flag_form_and_tree_decide(auto: Callable[..., Auto], query: Ask) -> None:
    for asked, generation, chosen, because in [
        ({"text": FACT, "dual_level": True}, 1, "dual_level", "switched on"),
        ({"text": FACT}, 1, "low_level", "a fact"),
        ({"text": THEME}, 1, "low_level_with_raptor", "has a tree"),
        ({"text": THEME}, 0, "low_level", "names no entity"),
        ({"text": NAMED}, 1, "low_level", "entities that it names"),
        ({"text": OVERVIEW}, 1, "global", "an overview"),
        ({"text": OVERVIEW, "dual_level": True}, 1, "global", "an overview"),
        ({"text": THEME, "options": {"low_strategy": "graph"}}, 1, "low_level", "the request"),
    ]:
        found = await auto(generation=generation).retrieve(query(**asked))
        about = found.trace.details["auto"]
        assert about["strategy"] == chosen
        assert because in about["because"]
        assert (found.trace.strategy, found.trace.methods_used) == ("auto", (chosen, "dense"))
        assert (found.trace.fallback_reason, found.trace.details["kept"], found.relevance) == ("why", True, 0.4)
        assert [each.id for each in found.hits] == ["c1"]


async def test_the_best_strategy_within_the_time(auto: Callable[..., Auto], query: Ask) -> None:
    for taken, allowed, chosen, because in [
        ({}, 1, "dual_level", "switched on"),
        ({"dual_level": 40.0}, 40, "dual_level", "switched on"),
        ({"dual_level": 40.0}, 39, "low_level", "dual_level is expected to take 40 ms"),
        ({"dual_level": 40.0, "low_level": 30.0}, 20, "hybrid", "dual_level is expected to take 40 ms"),
        ({"dual_level": 40.0, "low_level": 30.0, "hybrid": 20.0}, 10, "dense", "dual_level is expected"),
        (dict.fromkeys(CHEAPER, 9.0), 8, "sparse", "every strategy"),
    ]:
        latencies, asked = Latencies(), query(FACT, dual_level=True, options={"max_latency_ms": allowed})
        for name, milliseconds in taken.items():
            for _ in range(3):
                latencies.record(asked.tenant_id, name, milliseconds)
        permission = caching.begin()
        found = await auto(latencies).retrieve(asked)
        assert permission.allows(found) == (chosen == "dual_level"), "a choice for lack of time is not kept"
        assert found.trace.details["auto"]["strategy"] == chosen
        assert because in found.trace.details["auto"]["because"]


async def test_nothing_is_embedded_if_it_costs_too_much(auto: Callable[..., Auto], query: Ask) -> None:
    for tokens, options, chosen in [
        (5, {}, "dual_level"),
        (5, {"max_cost": 5}, "dual_level"),
        (5, {"max_cost": 4}, "sparse"),
        (5, {"max_cost": 0, "max_latency_ms": 1}, "sparse"),
        (0, {"max_cost": 0}, "dual_level"),
    ]:
        found = await auto(tokens=tokens).retrieve(query(FACT, dual_level=True, options=options))
        about = found.trace.details["auto"]
        assert about["strategy"] == chosen
        assert ("expected to cost 5 tokens, more than max_cost" in about["because"]) == (chosen == "sparse")


async def test_a_given_vector_costs_nothing(auto: Callable[..., Auto], query: Ask) -> None:
    asked = query(FACT, options={"max_cost": 0}, embedding=np.ones(3, dtype=np.float32))
    assert (await auto(tokens=5).retrieve(asked)).trace.details["auto"]["strategy"] == "low_level"


async def test_its_own_choices_are_timed(auto: Callable[..., Auto], query: Ask) -> None:
    latencies = Latencies()
    for _ in range(3):
        await auto(latencies).retrieve(query(FACT))
        await auto(latencies).retrieve(query(NAMED))
    assert latencies.estimate_latency(query(FACT).tenant_id, "low_level by agentic") is not None
    assert latencies.estimate_latency(query(FACT).tenant_id, "low_level") is not None
    assert latencies.estimate_latency(query(FACT).tenant_id, "hybrid") is None


def test_nine_of_ten_recent_durations_count(query: Ask) -> None:
    now = 0.0
    latencies, tenant = Latencies(lambda: now), query(FACT).tenant_id
    for milliseconds in range(1, 101):
        latencies.record(tenant, "graph", float(milliseconds))
    # The last ones are 69 to 100.
    assert latencies.estimate_latency(tenant, "graph") == 100 - KEPT + 29
    now = RECENT_S + 1
    assert latencies.estimate_latency(tenant, "graph") is None


class Failing:
    async def retrieve(self, query: Query) -> Retrieval:
        raise StoreUnavailable("away")


async def test_passages_and_summaries_are_found_apart(query: Ask, hit: Callable[..., Hit]) -> None:
    theme = theme_of("t", level=1)
    passages, tree = Named("hybrid", (hit("c1"),)), Named("raptor", (hit("c2"),), (theme,))
    found = await WithSummaries(passages, tree).retrieve(query(THEME))
    assert ([each.id for each in found.hits], found.themes, found.trace.strategy) == (["c1"], (theme,), "hybrid")
    assert found.trace.methods_used == ("dense", "hybrid", "raptor")
    without = await WithSummaries(passages, Failing()).retrieve(query(THEME))
    assert ([each.id for each in without.hits], without.themes) == (["c1"], ())
    assert without.trace.failures == ("the search of themes failed: store_unavailable",)
    only = await WithSummaries(Failing(), tree).retrieve(query(THEME))
    assert (only.hits, only.themes) == ((), (theme,))
    with pytest.raises(StoreUnavailable):
        await WithSummaries(Failing(), Failing()).retrieve(query(THEME))


async def test_facts_are_searched_in_rounds_if_there_is_time(auto: Callable[..., Auto], query: Ask) -> None:
    for asked, taken, low in [
        ({"text": FACT}, {}, "agentic"),
        ({"text": FACT, "dual_level": True}, {}, "agentic"),
        ({"text": NAMED}, {}, None),
        ({"text": FACT, "options": {"low_strategy": "graph"}}, {}, "graph"),
        ({"text": FACT, "options": {"max_latency_ms": 40}}, {"low_level": 30.0}, "agentic"),
        ({"text": FACT, "options": {"max_latency_ms": 40}}, {"low_level": 30.0, "low_level by agentic": 40.0}, "agentic"),
        ({"text": FACT, "options": {"max_latency_ms": 40}}, {"low_level": 30.0, "low_level by agentic": 41.0}, None),
        ({"text": FACT, "options": {"max_latency_ms": 40}}, {"low_level by agentic": 41.0}, None),
    ]:
        latencies, question = Latencies(), query(**asked)
        for name, milliseconds in taken.items():
            for _ in range(3):
                latencies.record(question.tenant_id, name, milliseconds)
        choosing = auto(latencies)
        await choosing.retrieve(question)
        (held,) = (each for each in choosing._strategies.values() if cast("Named", each).asked)
        assert cast("Named", held).asked[0].options.get("low_strategy") == low
