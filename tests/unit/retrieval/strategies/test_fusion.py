"""Fusion of strategies: weights, the order of fused hits, and strategies that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.errors import InvalidRequest, ModelUnavailable, StoreUnavailable
from agentic_rag_backend.retrieval.strategies.fusion import PRESETS, Fusion, method_weights

Ask = Callable[..., Query]
MakeHit = Callable[..., Hit]


class Strategies:
    """Strategies that return the hits that a test sets, or fail. Each waits until all have begun."""

    def __init__(self, found: Mapping[str, tuple[Hit, ...] | Exception]) -> None:
        self.found = found
        self.asked: dict[str, Query] = {}

    async def retrieve(self, name: str, query: Query) -> Retrieval:
        self.asked[name] = query
        async with asyncio.timeout(30):
            while len(self.asked) < len(self.found):
                await asyncio.sleep(0)
        found = self.found[name]
        if isinstance(found, Exception):
            raise found
        return Retrieval(hits=found, relevance=len(found) / 10, trace=Trace(strategy=name, methods_used=("leg", name)))


async def test_strategies_search_at_the_same_time_and_are_fused_by_weight(query: Ask, hit: MakeHit) -> None:
    strategies = Strategies({"dense": (hit("a", 0.9), hit("b", 0.8)), "graph": (hit("b", 1.0), hit("c", 0.1))})
    options = {"weights": {"dense": 0.25, "graph": 0.75}, "fusion": "rrf"}
    found = await Fusion(strategies).retrieve(query("what?", options=options))
    assert [each.id for each in found.hits] == ["b", "c", "a"]
    assert found.hits[0].scores == {"dense": 0.8, "graph": 1.0, "combined": found.hits[0].score}
    assert found.trace.methods_used == ("dense", "leg", "graph")
    assert found.trace.details["weights"] == {"dense": 0.25, "graph": 0.75}
    assert (found.trace.fusion, found.trace.fallback_used, found.relevance) == ("rrf", False, 0.2)


async def test_a_strategy_that_fails_does_not_affect_the_others(query: Ask, hit: MakeHit) -> None:
    options = {"methods": ["dense", "graph"]}
    strategies = Strategies({"dense": (hit("a"),), "graph": StoreUnavailable("away")})
    found = await Fusion(strategies).retrieve(query(options=options))
    assert [each.id for each in found.hits] == ["a"]
    assert found.trace.fallback_reason == "graph failed: store_unavailable"
    assert found.trace.hidden == ("graph failed: store_unavailable",)
    failing = Strategies({"dense": StoreUnavailable("one"), "graph": ModelUnavailable("other")})
    with pytest.raises(StoreUnavailable, match="one"):
        await Fusion(failing).retrieve(query(options=options))
    refusing = Strategies({"dense": (hit("a"),), "graph": InvalidRequest("not so")})
    with pytest.raises(InvalidRequest, match="not so"):
        await Fusion(refusing).retrieve(query(options=options))


def test_weights() -> None:
    for options, expected in [
        ({"preset": "question"}, {"dense": 0.2, "graph": 0.2, "question": 0.6}),
        ({"methods": ["dense", "sparse"]}, {"dense": 0.5, "sparse": 0.5}),
        ({"methods": ["sparse", "dense"], "weights": {"dense": 0.9, "sparse": 0.1}}, {"sparse": 0.1, "dense": 0.9}),
        ({"weights": {"dense": 1, "graph": 0}, "preset": "question"}, {"dense": 1.0, "graph": 0.0}),
    ]:
        weights = method_weights(options)
        assert list(weights) == list(expected)
        assert weights == pytest.approx(expected)


def test_bad_weights_are_refused() -> None:
    for options, message in [
        ({"methods": ["dense", "dense"]}, "2 to 5 different strategies; got dense, dense"),
        ({"weights": {"dense": 1.0}}, "2 to 5 different strategies; got dense"),
        ({"methods": ["dense", "graph"], "weights": {"dense": 1.0}}, "one weight for each of dense, graph; got dense"),
        ({"weights": {"dense": 0, "graph": 0}}, "must not all be 0; got dense 0, graph 0"),
    ]:
        with pytest.raises(InvalidRequest, match=message):
            method_weights(options)


@given(st.dictionaries(st.sampled_from(["dense", "graph", "sparse", "raptor"]), st.floats(0.001, 1), min_size=2))
def test_weights_sum_to_one(weights: dict[str, float]) -> None:
    assert sum(method_weights({"weights": weights}).values()) == pytest.approx(1.0)
    assert all(sum(preset.values()) == pytest.approx(1.0) for preset in PRESETS.values())
