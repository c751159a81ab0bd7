"""Reranking of texts in the form of Cohere and Jina."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.api.conftest import World

from agentic_rag_backend.retrieval.rerank.registry import RERANKERS
from agentic_rag_backend.retrieval.rerank.text_reranking import TEXT_RERANKERS

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUERY = "What caused the delay of the barrage?"
TEXTS = ["Eels swim in the estuary.", "The delay was caused by a cracked caisson.", {"text": "The market has two halls."}]


async def rank(world: World, path: str = "//v1/rerank", **body: Any) -> Any:
    response = await world.alpha_reader.post(path, {"query": QUERY, "documents": TEXTS, **body})
    assert response.status_code == 200, response.text
    return response.json()


async def test_texts_are_ordered(world: World) -> None:
    for path, version in (("//v1/rerank", "1"), ("//v2/rerank", "2")):
        ranked = await rank(world, path)
        assert ranked["model"] == "late_interaction"
        assert ranked["results"][0]["index"] == 1
        scores = [item["relevance_score"] for item in ranked["results"]]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        assert scores[0] > scores[1]
        assert sorted(item["index"] for item in ranked["results"]) == [0, 1, 2]
        assert ranked["meta"]["api_version"]["version"] == version
        assert ranked["usage"]["total_tokens"] > 0
    best = await rank(world, top_n=1, return_documents=True, max_tokens_per_doc=100, model="auto")
    assert best["results"] == [{**ranked["results"][0], "document": {"text": TEXTS[1]}}]


async def test_equal_texts_are_two_and_do_not_depend_on_their_place(world: World) -> None:
    ranked = await rank(world, documents=["Eels.", "Eels.", "A barrage was delayed."])
    scores = {item["index"]: item["relevance_score"] for item in ranked["results"]}
    assert scores[0] == scores[1] < scores[2]
    turned = await rank(world, documents=["A barrage was delayed.", "Eels."])
    assert [item["relevance_score"] for item in turned["results"]] == [scores[2], scores[0]]


async def test_only_rerankers_of_texts_are_models(world: World) -> None:
    assert set(RERANKERS) - set(TEXT_RERANKERS) == {"none", "mmr", "graph"}
    for model, status, expected in (
        ("graph", 422, "auto, late_interaction"),
        ("rerank-v3.5", 422, "auto, late_interaction"),
        ("cross_encoder", 422, "CROSS_ENCODER"),
        ("http", 422, "RERANK_URL"),
        ("llm", 422, "LLM=openai"),
    ):
        response = await world.alpha_reader.post("//v1/rerank", {"model": model, "query": QUERY, "documents": TEXTS})
        assert response.status_code == status, response.text
        assert expected in response.json()["message"]


async def test_limits_are_named(world: World) -> None:
    for body, expected in (
        ({"documents": []}, "documents"),
        ({"documents": ["x"] * 101}, "100"),
        ({"documents": ["x" * 8001]}, "8000"),
        ({"documents": [""]}, "documents"),
        ({"query": "x" * 8001}, "8000"),
        ({"top_n": 0}, "top_n"),
    ):
        response = await world.alpha_reader.post("//v1/rerank", {"query": QUERY, "documents": TEXTS, **body})
        assert response.status_code == 422, body
        assert expected in response.json()["message"], response.text
    response = await world.nobody.post("//v1/rerank", {"query": QUERY, "documents": TEXTS})
    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
