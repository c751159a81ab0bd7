"""``fields`` and ``min_score`` of searches and answers, and where the trace of a search is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

Events = Callable[[httpx.Response], list[tuple[str, str, dict[str, Any]]]]
QUESTION = "Why was the barrage delayed?"
SUMMARY = {"strategy", "methods_used", "fusion", "fallback_used", "fallback_reason", "processing_time_ms", "warnings"}
"""Names of the contract in ``meta`` of a search, besides those of the envelope."""


@pytest_asyncio.fixture(loop_scope="module", scope="module", autouse=True)
async def _dual_level(world: World) -> None:
    await world.alpha.data("PATCH", "/features", json={"DUAL_LEVEL_RETRIEVAL_ENABLED": True})


async def _body(client: Client, path: str = "/search", **body: Any) -> dict[str, Any]:
    response = await client.post(path, {"query": QUESTION, **body})
    assert response.status_code == 200, response.text
    whole: dict[str, Any] = response.json()
    return whole


async def test_meta_has_the_summary_and_data_the_trace(world: World) -> None:
    for path in ("/search", "/answers", "/search/dual-level"):
        body = await _body(world.alpha, path)
        assert body["meta"].keys() == SUMMARY | {"requestId", "timestamp"}, path
    weighted = {"strategy": "hybrid", "weights": {"dense": 1, "sparse": 1}}
    for path in ("/search", "/answers"):
        body = await _body(world.alpha, path, **weighted)
        assert any("normalised" in warning for warning in body["meta"]["warnings"])
        assert body["data"]["trace"]["warnings"] == body["meta"]["warnings"], path


async def test_a_search_returns_the_parts_and_fields_that_it_names(world: World) -> None:
    whole = await _body(world.alpha, strategy="graph")
    cases: list[tuple[list[str], set[str], set[str]]] = [
        (["results"], {"results"}, set(whole["data"]["results"][0])),
        (["title", "content", "score"], {"results"}, {"title", "content", "score"}),
        (["results", "results.id", "trace.strategy", "facts"], {"results", "trace", "facts"}, {"id"}),
    ]
    for fields, parts, of_result in cases:
        body = await _body(world.alpha, strategy="graph", fields=fields)
        assert body["data"].keys() == parts, fields
        assert body["meta"].keys() == whole["meta"].keys()
        for result, complete in zip(body["data"]["results"], whole["data"]["results"], strict=True):
            assert result == {name: complete[name] for name in of_result}, fields
    assert body["data"]["trace"] == {"strategy": "graph"}
    assert body["data"]["facts"] == whole["data"]["facts"]

    sizes = {}
    for chosen in (None, ["title", "content", "score"]):
        response = await world.alpha.post("/search", {"query": QUESTION, "strategy": "graph", "fields": chosen})
        sizes[chosen is None] = len(response.content)
    assert sizes[False] * 3 < sizes[True]


async def test_unknown_names_are_refused_with_the_known_ones(world: World) -> None:
    for fields, path, named in [
        (["results", "colour"], "fields.1", "fields has the unknown name 'colour'; known are results, facts, themes, "),
        (["results.colour"], "fields.0", "of results: id, kind, document_id, "),
        (["results."], "fields.0", "'results.'"),
        (["trace.details.x"], "fields.0", "'trace.details.x'"),
        (["processing_time_ms.total"], "fields.0", "'processing_time_ms.total'"),
        ([""], "fields.0", "at least 1 character"),
        ([], "fields", "at least 1 item"),
        (["id"] * 51, "fields", "at most 50 items"),
        ("id", "fields", "list"),
    ]:
        response = await world.alpha.post("/search", {"query": QUESTION, "fields": fields})
        assert response.status_code == 422
        problem = response.json()
        assert named in problem["detail"]
        assert [error["path"] if "path" in error else error["field"] for error in problem["errors"]] == [path]


async def test_answers_and_dual_level_searches_take_names_of_their_own(world: World, sse: Events) -> None:
    body = await _body(world.alpha, "/answers", fields=["answer", "citations.quote", "sources.id", "trace"])
    assert body["data"].keys() == {"answer", "citations", "sources", "trace"}
    assert body["data"]["citations"][0].keys() == {"quote"}
    both = await _body(world.alpha, "/search/dual-level", fields=["synthesized_answer", "content"])
    assert both["data"].keys() == {"synthesized_answer", "low_level_results"}
    assert both["data"]["low_level_results"][0].keys() == {"content"}
    refused = await world.alpha.post("/search/dual-level", {"query": QUESTION, "fields": ["results"]})
    assert "of low_level_results: id, content, " in refused.json()["detail"]

    asked = {"query": QUESTION, "stream": True, "fields": ["answer", "sources.id"]}
    events = {name: data for _, name, data in sse(await world.alpha.post("/answers", asked))}
    assert events["done"].keys() == {"v", "answer", "sources"}
    assert events["retrieval"].keys() == {"v", "results"}
    assert events["retrieval"]["results"] == events["done"]["sources"] == body["data"]["sources"]


async def test_min_score_is_the_least_score_of_a_result(world: World) -> None:
    whole = (await _body(world.alpha, strategy="hybrid"))["data"]["results"]
    least = whole[1]["score"]
    for path, results in (("/search", "results"), ("/answers", "sources")):
        kept = (await _body(world.alpha, path, strategy="hybrid", min_score=least))["data"][results]
        assert [item["id"] for item in kept] == [item["id"] for item in whole if item["score"] >= least]
        assert 0 < len(kept) < len(whole)
    both = await _body(world.alpha, "/search/dual-level", synthesize=False)
    scores = [item["score"] for item in both["data"]["low_level_results"]]
    kept = (await _body(world.alpha, "/search/dual-level", synthesize=False, min_score=max(scores)))["data"]["low_level_results"]
    assert [item["score"] for item in kept] == [score for score in scores if score >= max(scores)]
    reranked = await _body(world.alpha, strategy="dense", rerank="mmr", min_score=0.5)
    assert all(item["score"] >= 0.5 for item in reranked["data"]["results"])


async def test_a_min_score_without_effect_or_results_is_named(world: World) -> None:
    none = await _body(world.alpha, strategy="dense", min_score=1)
    best = (await _body(world.alpha, strategy="dense"))["data"]["results"][0]["score"]
    assert none["data"]["results"] == []
    assert none["meta"]["warnings"] == [f"min_score 1 leaves no result; the best score is {best:.4f}"]
    themes = await _body(world.alpha, strategy="community", min_score=0.5)
    assert "min_score has no effect: strategy 'community' returns no passages" in themes["meta"]["warnings"]
    for value, named in ((1.5, "at most 1"), (-0.1, "at least 0"), ("1", "number"), (True, "number")):
        refused = await world.alpha.post("/search", {"query": QUESTION, "min_score": value})
        assert (refused.status_code, named in refused.json()["detail"]) == (422, True), refused.text


async def test_an_explanation_names_min_score(world: World) -> None:
    document = world.documents["alpha"]["tide"]["id"]
    asked = {"document_id": document, "strategy": "dense"}
    free = (await _body(world.alpha, "/search/explain", **asked))["data"]
    assert (free["returned"], free["dropped_by"]) == (True, [])
    score = free["best"]["score"]
    dropped = (await _body(world.alpha, "/search/explain", **asked, min_score=1))["data"]
    assert (dropped["returned"], dropped["rank"]) == (False, free["rank"])
    assert dropped["dropped_by"] == [{"by": "min_score", "detail": f"its score is {score:.4f}; min_score is 1"}]
    refused = await world.alpha.post("/search/explain", {"query": QUESTION, **asked, "fields": ["id"]})
    assert refused.status_code == 422
