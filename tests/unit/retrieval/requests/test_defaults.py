"""Defaults of a request are the same for every entry point."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from agentic_rag_backend.domain.query import LegWeights, LevelWeights
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.options.leg_weights import RequestOverrides
from agentic_rag_backend.retrieval.requests.builder import RequestDefaults, Resolved
from agentic_rag_backend.tenancy.features import AUTO_WEIGHTS, DUAL_LEVEL, LOW_WEIGHT, Features, FlagDefault

ON = {DUAL_LEVEL: True}
QUESTION = "harbour quay"


@pytest.fixture
def defaults() -> RequestDefaults:
    features = Features(
        {
            DUAL_LEVEL: FlagDefault(False, "default", False, ""),
            AUTO_WEIGHTS: FlagDefault(False, "default", False, ""),
            LOW_WEIGHT: FlagDefault(0.5, "environment", 0.6, ""),
        }
    )
    return RequestDefaults(features, low_limit=7, high_limit=3, weights=LevelWeights(0.5, 0.5))


def resolve(defaults: RequestDefaults, strategy: str, flags: dict[str, Any] | None = None, **overrides: Any) -> Resolved:
    return defaults.resolve(RequestOverrides(**overrides), strategy=strategy, question=QUESTION, flags=flags or {})


def test_limits(defaults: RequestDefaults) -> None:
    for strategy, flags, overrides, limits in [
        ("dual_level", ON, {}, (7, 3)),
        ("auto", ON, {}, (7, 3)),
        ("auto", {}, {}, (5, 3)),
        ("graph", ON, {}, (5, 3)),
        ("hybrid", {}, {"limit": 12}, (12, 3)),
        ("dual_level", ON, {"limit": 1}, (1, 1)),
        ("dual_level", ON, {"limit": 20}, (20, 3)),
        ("dual_level", ON, {"low_limit": 2}, (2, 3)),
        ("dual_level", ON, {"high_limit": 50}, (7, 50)),
        ("auto", ON, {"limit": 2}, (2, 2)),
        ("raptor", {}, {"limit": 1}, (1, 1)),
        ("drift", {}, {"limit": 1}, (1, 1)),
        ("community", {}, {}, (5, 3)),
        ("community", {}, {"limit": 30}, (30, 30)),
        ("global", {}, {}, (5, 100)),
        ("global", {}, {"limit": 1}, (1, 1)),
    ]:
        resolved = resolve(defaults, strategy, flags, **overrides)
        assert (resolved.limit, resolved.high_limit) == limits


def test_a_request_wins_over_its_preset_that_over_the_tenant_and_that_over_the_deployment(defaults: RequestDefaults) -> None:
    def low(flags: dict[str, Any], question: str = QUESTION, **overrides: Any) -> float:
        resolved = defaults.resolve(RequestOverrides(**overrides), strategy="dual_level", question=question, flags=flags)
        return round(resolved.weights.low, 6)

    assert low({}) == 0.5
    assert low({LOW_WEIGHT: 0.8}) == 0.8
    assert low({LOW_WEIGHT: 0.8}, preset="factoid") == 0.8
    assert low({LOW_WEIGHT: 0.1}, preset="factoid") == 0.8
    assert low({LOW_WEIGHT: 0.1}, preset="factoid", high=0.7) == 0.3
    assert low({AUTO_WEIGHTS: True}, "Why was the harbour closed?") == 0.3
    assert low({AUTO_WEIGHTS: True}) == 0.5
    assert low({LOW_WEIGHT: 0.9}, "Why was the harbour closed?", preset="auto") == 0.3
    assert defaults.weights.of_tenant({LOW_WEIGHT: 0.8}) == LevelWeights(0.8, pytest.approx(0.2))
    assert defaults.weights.of_tenant({}) == LevelWeights(0.5, 0.5)


def test_hybrid_takes_the_weights_of_its_legs(defaults: RequestDefaults) -> None:
    assert resolve(defaults, "hybrid").leg_weights is None
    assert resolve(defaults, "hybrid", dense=0.25).leg_weights == LegWeights(0.25, 0.75)
    assert resolve(defaults, "hybrid", sparse=1.0).leg_weights == LegWeights(0.0, 1.0)
    with capture_logs() as logged:
        resolved = resolve(defaults, "hybrid", dense=0.9, sparse=0.9)
    assert resolved.leg_weights == LegWeights(0.5, 0.5)
    assert resolved.warnings == ("weights 0.9 and 0.9 sum to 1.8, not 1: normalised",)
    assert [entry["event"] for entry in logged] == ["hybrid_weights_normalised"]
    with pytest.raises(InvalidRequest, match=r"weights\.dense and weights\.sparse must not both be 0"):
        resolve(defaults, "hybrid", dense=0, sparse=0)


def test_weights_that_would_not_act_are_refused(defaults: RequestDefaults) -> None:
    for strategy, overrides, message in [
        ("hybrid", {"low": 0.5}, r"'hybrid' takes the weights dense, sparse; got weights\.low"),
        ("hybrid", {"preset": "factoid", "dense": 1}, r"'hybrid' takes the weights dense, sparse; got weights\.preset"),
        ("dual_level", {"dense": 0.5}, r"'dual_level' takes the weights low, high, preset; got weights\.dense"),
        ("graph", {"low": 0.5, "high": 0.5}, r"'graph' takes no weights; got weights\.low, weights\.high"),
        ("dense", {"dense": 0.5}, r"'dense' takes no weights"),
    ]:
        with pytest.raises(InvalidRequest, match=message):
            resolve(defaults, strategy, ON, **overrides)


def test_level_weights_of_auto_without_dual_level_are_said_to_have_no_effect(defaults: RequestDefaults) -> None:
    assert "no effect" in resolve(defaults, "auto", low=0.5).warnings[0]
    assert resolve(defaults, "auto", ON, low=0.5).warnings == ()
    assert resolve(defaults, "auto").warnings == ()
