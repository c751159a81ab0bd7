"""The strategies that hold others, over HTTP: with a scripted model, and without one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client, Template, model_at

from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Who supplied the broken caisson?"
WORDING = "Which company had delivered the cracked caisson of the tidal barrage?"
REPLIES = {
    "hypothetical passages": {"passages": [{"text": "The cracked caisson was delivered by the builder of the barrage."}]},
    "search queries": {"queries": [{"query": WORDING}]},
    "found passages that answer": {"grades": [{"passage": 1, "grade": 5}]},
}
"""Replies by a phrase of the prompt."""


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    matchers = [(lambda text, phrase=phrase: phrase in text, json.dumps(reply)) for phrase, reply in REPLIES.items()]
    with ModelServer(matchers=matchers) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(template: Template, folder: Path, open_world: Any, server: ModelServer) -> AsyncIterator[Client]:
    """A tenant with a model."""
    async with open_world(folder, **model_at(server.base_url)) as (_, http):
        yield template.client(http)


async def search(client: Client, strategy: str, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await client.post("/search", {"query": QUESTION, "strategy": strategy, **body})).json()
    return found


async def test_a_model_writes_passages_and_wordings_and_grades(client: Client, server: ModelServer) -> None:
    server.reset()
    hyde = await search(client, "hyde", options={"base": "dense", "passages": 1})
    assert hyde["data"]["results"][0]["title"] == "Tidal barrage"
    assert hyde["data"]["trace"]["details"]["hyde"] == {"base": "dense", "passages": 1}
    assert "delivered by the builder" not in json.dumps(hyde)
    several = await search(client, "multi_query")
    assert several["data"]["trace"]["details"]["multi_query"]["queries"] == [QUESTION, WORDING]
    graded = await search(client, "corrective", options={"base": "multi_query"}, limit=2)
    assert graded["data"]["trace"]["sufficient"] is True
    assert graded["data"]["results"][0]["scores"]["grade"] == 1.0
    assert [found["meta"]["fallback_used"] for found in (hyde, several, graded)] == [False] * 3
    assert server.stats().total.calls == 4


async def test_any_strategy_is_corrected(client: Client) -> None:
    by_strategy = await search(client, "corrective", options={"base": "graph", "min_relevant": 10})
    by_field = await search(client, "graph", corrective={"min_relevant": 10})
    assert [each["id"] for each in by_field["data"]["results"]] == [each["id"] for each in by_strategy["data"]["results"]]
    for found in (by_field, by_strategy):
        assert found["data"]["trace"]["sufficient"] is False
        assert [each["query"] for each in found["data"]["trace"]["details"]["corrective"]["attempts"]] == [QUESTION, WORDING]
    # The strategy keeps its own `base`, and the results of the correction are reranked.
    deep = await search(client, "hyde", options={"base": "graph"}, corrective=True, rerank="mmr")
    assert deep["data"]["trace"]["details"]["hyde"]["base"] == "graph"
    assert deep["meta"]["methods_used"][-1] == "mmr"
    assert "rerank" in deep["data"]["results"][0]["scores"]
    assert "corrective" not in (await search(client, "graph", corrective=False))["data"]["trace"]["details"]
    for corrective, message in (("yes", "corrective must be true, false or an object"), ({"attempts": 1}, "has no option")):
        refused = await client.post("/answers", {"query": QUESTION, "corrective": corrective})
        assert refused.status_code == 422
        assert message in refused.json()["detail"]


async def test_answers_count_the_calls_of_retrieval(client: Client, server: ModelServer) -> None:
    server.reset()
    answered = await client.data("POST", "/answers", json={"query": QUESTION, "strategy": "hyde"})
    assert answered["usage"]["calls"] == server.stats().total.calls > 1


async def test_a_passage_of_neighbours_is_read_and_cited(client: Client) -> None:
    found = await search(client, "parent_child", options={"context_window": 2}, limit=3)
    documents: dict[str, set[tuple[int, int]]] = {}
    for result in found["data"]["results"]:
        passage, matched, context = result["parent"], result["matched_chunks"], result["context_chunks"]
        assert result["id"] == matched[0]["id"]
        assert passage["start_char"] <= min(each["start_char"] for each in (*matched, *context))
        assert len(passage["content"]) == passage["end_char"] - passage["start_char"]
        own = {(each["ordinal"], each["ordinal"]) for each in (*matched, *context)}
        assert not own & documents.setdefault(result["document_id"], set())
        documents[result["document_id"]] |= own
    asked = {"query": "What caused the delay of the barrage?", "strategy": "parent_child"}
    answered = await client.data("POST", "/answers", json=asked)
    for citation in answered["citations"]:
        chunk = await client.data("GET", f"/chunks/{citation['chunk_id']}")
        assert citation["quote"] in chunk["content"]
    assert answered["citations"]


async def test_options_of_the_inner_strategy_are_options_of_the_request(client: Client) -> None:
    found = await search(client, "multi_query", options={"base": "graph", "entities": ["Mara Venn"]})
    assert found["data"]["trace"]["details"]["linked_entities"] == 1
    fused = await search(client, "fusion", options={"methods": ["sparse", "graph"], "entities": ["Nobody"]})
    assert fused["meta"]["warnings"] == ["options.entities: the graph knows no 'Nobody'"]
    assert {"sparse", "graph"} <= set(fused["data"]["trace"]["details"]["methods"])
    for options, message in (
        ({"base": "dense", "entities": []}, "has no option 'entities'"),
        ({"base": "multi_query"}, "options.base must be one of"),
    ):
        refused = await client.post("/search", {"query": QUESTION, "strategy": "multi_query", "options": options})
        assert refused.status_code == 422
        assert message in refused.json()["detail"]


async def test_inner_strategies_have_aliases(client: Client) -> None:
    for strategy, given, named in (
        ("hyde", {"base": "bm25"}, {"base": "sparse"}),
        ("fusion", {"methods": ["semantic", "bm25"]}, {"methods": ["dense", "sparse"]}),
        ("fusion", {"weights": {"vector": 0.2, "local": 0.8}}, {"weights": {"dense": 0.2, "graph": 0.8}}),
    ):
        by_alias, by_name = [await search(client, strategy, options=options, cache=False) for options in (given, named)]
        assert [each["id"] for each in by_alias["data"]["results"]] == [each["id"] for each in by_name["data"]["results"]]
        assert by_alias["meta"]["methods_used"] == by_name["meta"]["methods_used"]
