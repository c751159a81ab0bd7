"""Reranking over HTTP: the forms of `rerank`, their limits, and the list of rerankers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World

from agentic_rag_backend.retrieval.rerank.registry import RERANKERS

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Why was the tidal barrage delayed?"


def ids(found: dict[str, Any]) -> list[str]:
    return [result["id"] for result in found["results"]]


async def search(client: Client, rerank: Any, strategy: str = "hybrid", **body: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    response = await client.post("/search", {"query": QUESTION, "strategy": strategy, "rerank": rerank, **body})
    assert response.status_code == 200, response.text
    return response.json()["data"], response.json()["meta"]


async def test_any_strategy_is_reranked_and_says_so(world: World) -> None:
    changed = False
    for strategy in ("dense", "sparse", "hybrid", "graph", "raptor", "auto"):
        plain, _ = await search(world.alpha_reader, False, strategy)
        found, meta = await search(world.alpha_reader, {"name": "mmr", "lambda": 0.1}, strategy)
        assert set(ids(found)) == set(ids(plain)), "there are few chunks, and all are candidates"
        changed |= ids(found) != ids(plain)
        assert meta["methods_used"][-1] == "mmr"
        assert found["trace"]["details"]["rerank"]["lambda"] == 0.1
        assert meta["processing_time_ms"]["rerank"] <= meta["processing_time_ms"]["retrieval"]
        scores = [result["score"] for result in found["results"]]
        assert scores == sorted(scores, reverse=True)
        assert scores == [result["scores"]["rerank"] for result in found["results"]]
    assert changed


async def test_top_n_and_least_score(world: World) -> None:
    whole, _ = await search(world.alpha_reader, "mmr")
    few, _ = await search(world.alpha_reader, {"name": "mmr", "top_n": 2})
    assert ids(few) == ids(whole)[:2]
    least = whole["results"][1]["score"]
    good, _ = await search(world.alpha_reader, {"name": "mmr", "min_score": least})
    assert ids(good) == [result["id"] for result in whole["results"] if result["score"] >= least]
    assert 2 <= len(good["results"]) < len(whole["results"])


async def test_the_centre_of_the_graph_may_be_named(world: World) -> None:
    found, meta = await search(world.alpha_reader, {"name": "graph", "by": "mentions", "center": ["Fish Market", "Nowhere"]})
    assert found["results"][0]["title"] == "Fish market"
    assert found["trace"]["details"]["rerank"]["center"] == ["Fish market"]
    assert meta["warnings"] == ["rerank.center: the graph knows no 'Nowhere'"]


async def test_answers_and_explanations_are_reranked(world: World) -> None:
    rerank = {"name": "graph", "by": "mentions", "center": ["Fish Market"]}
    body = {"query": QUESTION, "strategy": "dense", "rerank": rerank}
    found, _ = await search(world.alpha_reader, rerank, "dense")
    answer = await world.alpha.data("POST", "/answers", json=body)
    assert answer["trace"]["methods_used"][-1] == "graph"
    market = world.documents["alpha"]["market"]["id"]
    told = await world.alpha.data("POST", "/search/explain", json={**body, "document_id": market, "limit": 1})
    assert (told["rank"], told["returned"]) == (1, True)
    assert told["best"] == found["results"][0]


async def test_bad_requests_are_refused_with_their_reason(world: World) -> None:
    for rerank, code, detail in [
        ({"top_n": "many"}, "invalid_request", "rerank.top_n must be an integer from 1 to 100; got 'many'"),
        ("llm", "reranker_unavailable", "LLM=openai"),
        ("http", "reranker_unavailable", "RERANK_URL"),
        ({"name": "cross_encoder"}, "reranker_unavailable", "CROSS_ENCODER_MODEL_PATH"),
        (7, "invalid_request", "rerank must be true, false, a name or an object; got 7"),
    ]:
        for route in ("/search", "/answers"):
            response = await world.alpha_reader.post(route, {"query": QUESTION, "rerank": rerank})
            assert (response.status_code, response.json()["code"]) == (422, code)
            assert detail in response.text


async def test_the_list_says_which_are_available(world: World) -> None:
    rows = {row["name"]: row for row in await world.alpha_reader.data("GET", "/rerankers")}
    assert list(rows) == list(RERANKERS)
    assert {name for name, row in rows.items() if row["available"]} == {"none", "mmr", "graph", "late_interaction"}
    assert all((row["why_not"] is None) == row["available"] for row in rows.values())
    assert rows["mmr"]["options"]["properties"]["lambda"]["maximum"] == 1
    nobody = await world.nobody.get("/rerankers")
    assert nobody.status_code == 401
