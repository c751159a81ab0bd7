"""The `rerank` of a request: its forms, defaults and limits."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agentic_rag_backend.domain.query import Rerank
from agentic_rag_backend.errors import InvalidRequest, ModelUnavailable, RerankerUnavailable
from agentic_rag_backend.retrieval.requests.builder import RerankDefaults, RerankRequests, RerankValue
from agentic_rag_backend.retrieval.rerank.registry import RERANKERS, RerankerParts, RerankerRegistry
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls


class Silent:
    """A model that writes nothing."""

    generative = False


class Away:
    """A scorer that cannot be reached."""

    name = "away"

    def check(self) -> None:
        raise ModelUnavailable("the reranker 'away' failed at attempt 2: HTTP 503")


def registry(**parts: Any) -> RerankerRegistry:
    unused = cast("Any", None)
    calls = StructuredCalls(cast("Any", Silent()))
    return RerankerRegistry(
        RerankerParts(vectors=unused, graphs=unused, calls=calls, tokens=unused, token_cache=unused, calibrator=unused, **parts)
    )


def resolve(
    value: RerankValue, strategy: str = "dense", limit: int = 5, *, hybrid: str | None = "graph", **parts: Any
) -> Rerank | None:
    defaults = RerankDefaults(reranker="graph", hybrid=hybrid, timeout_s=10)
    return RerankRequests(registry(**parts), defaults).resolve(value, strategy=strategy, limit=limit)


@pytest.mark.parametrize("value", [None, True, {}, {"top_n": 3}])
def test_a_reranker_by_default_that_cannot_be_reached_is_no_error(value: RerankValue) -> None:
    requests = RerankRequests(registry(endpoint=Away()), RerankDefaults(reranker="http", hybrid="http"))
    resolved = requests.resolve(value, strategy="hybrid", limit=5)
    assert resolved is not None
    assert resolved.name == "http"


def test_forms_of_a_request() -> None:
    graph = Rerank(name="graph", candidates=60, timeout_s=10)
    assert resolve(None) is resolve(False) is resolve("none") is resolve(None, "hybrid", hybrid=None) is None
    assert resolve(True) == resolve("graph") == resolve({"name": "graph"}) == resolve({}) == resolve(None, "hybrid") == graph
    assert resolve(False, "hybrid") is resolve("none", "hybrid") is None
    given = {"name": "mmr", "top_n": 3, "candidates": 7, "min_score": 0.25, "timeout_ms": 1500, "lambda": 0.4}
    expected = Rerank(name="mmr", candidates=7, top_n=3, min_score=0.25, timeout_s=1.5, own_timeout=True, options={"lambda": 0.4})
    assert resolve(given) == expected


def test_three_candidates_for_each_result() -> None:
    for limit, name, candidates in [
        (1, "mmr", 30),
        (10, "mmr", 30),
        (11, "mmr", 33),
        (100, "mmr", 300),
        (20, "graph", 60),
        (21, "graph", 63),
        (100, "late_interaction", 60),
    ]:
        found = resolve(name, limit=limit)
        assert found is not None
        assert found.candidates == candidates <= RERANKERS[name].most


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nonsense", "unknown reranker 'nonsense'; known are none, mmr"),
        (7, "rerank must be true, false, a name or an object; got 7"),
        (["mmr"], "rerank must be true, false, a name or an object; got ['mmr']"),
        ({"name": 3}, "rerank.name must be a text; got 3"),
        ({"name": None}, "rerank.name must be a text; got None"),
        ({"name": "mmr", "lambda": 1.5}, "rerank.lambda must be a number from 0 to 1; got 1.5"),
        ({"name": "mmr", "lambda": True}, "rerank.lambda must be a number from 0 to 1; got True"),
        ({"name": "mmr", "by": "mass"}, "reranker 'mmr' has no option 'by'; it has lambda"),
        ({"name": "graph", "by": "luck"}, "rerank.by must be one of mass, distance, mentions; got 'luck'"),
        ({"name": "graph", "center": "Ada"}, "rerank.center must be a list of at most 20 names; got 'Ada'"),
        ({"name": "none", "top_n": 0}, "rerank.top_n must be an integer from 1 to 100; got 0"),
        ({"candidates": 301}, "rerank.candidates must be an integer from 1 to 300; got 301"),
        ({"min_score": float("nan")}, "rerank.min_score must be a number from 0 to 1; got nan"),
        ({"timeout_ms": 1.5}, "rerank.timeout_ms must be an integer from 1 to 600000; got 1.5"),
        ({"name": "mmr", "k": 5}, "reranker 'mmr' has no option 'k'"),
        ({"name": "none", "k": 5}, "reranker 'none' has no option 'k'; it has none"),
    ],
)
def test_bad_values_are_refused_with_limit_and_value(value: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        resolve(value)
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize(
    ("name", "remedy"), [("llm", "LLM=openai"), ("http", "RERANK_URL"), ("cross_encoder", "CROSS_ENCODER_MODEL_PATH")]
)
def test_an_unavailable_reranker_is_refused_with_its_remedy(name: str, remedy: str) -> None:
    with pytest.raises(RerankerUnavailable, match=remedy):
        resolve(name)
    listed = {row["name"]: row for row in registry().describe()}
    assert list(listed) == list(RERANKERS)
    assert not listed[name]["available"]
    assert remedy in listed[name]["why_not"]
    assert listed["mmr"]["available"]
    assert listed["mmr"]["why_not"] is None


def test_a_model_that_is_down_is_refused_as_unavailable() -> None:
    with pytest.raises(ModelUnavailable, match="HTTP 503"):
        resolve("http", endpoint=Away())
