"""Scores that callers submit, what the server adds to them, and their means."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World, add_tenant

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWERED = {
    "query": "Who leads the Harbour Authority?",
    "answer": "Mara Venn leads the Harbour Authority. She was born in Oslo.",
    "expected_answer": "Mara Venn",
    "contexts": ["Mara Venn leads the Harbour Authority."],
}


async def _submit(client: Client, **body: Any) -> dict[str, Any]:
    recorded: dict[str, Any] = await client.data("POST", "/evaluation/submit", status=201, json={**ANSWERED, **body})
    return recorded


async def _tenant(world: World, name: str) -> Client:
    return (await add_tenant(world.operator.http, name, "admin"))[0]


async def test_missing_scores_are_computed_and_marked(world: World) -> None:
    client = await _tenant(world, "computed")
    recorded = await _submit(client, scores={"faithfulness": 0.9, "answer_relevancy": 0.7})
    assert recorded["scores"]["faithfulness"] == {"value": 0.9, "computed": False}
    assert recorded["scores"]["contains"] == {"value": 1.0, "computed": True}
    assert recorded["scores"].keys() == {"faithfulness", "answer_relevancy", "contains", "context_contains", "token_f1"}
    assert (await _submit(client))["scores"]["faithfulness"] == {"value": 0.5, "computed": True}
    (group,) = await client.data("GET", "/evaluation/metrics")
    assert group["day"] == datetime.now(UTC).date().isoformat()
    assert group["metrics"]["faithfulness"] == {"count": 2, "computed": 1, "mean": 0.7, "minimum": 0.5, "maximum": 0.9}


async def test_chunks_are_the_contexts_and_foreign_ones_are_unknown(world: World) -> None:
    own = (await world.alpha.data("POST", "/search", json={"query": ANSWERED["query"]}))["results"]
    foreign = (await world.beta.data("POST", "/search", json={"query": ANSWERED["query"]}))["results"]
    body = {"contexts": [], "retrieved_chunk_ids": [own[0]["id"], foreign[0]["id"]], "gold_chunk_ids": [own[0]["id"]]}
    recorded = await _submit(world.alpha, **body)
    assert recorded["unknown_chunks"] == 1
    assert recorded["scores"]["recall"]["value"] == 1.0
    assert recorded["scores"]["context_contains"]["value"] == float("Mara Venn" in own[0]["content"])
    unseen = await _submit(world.alpha, contexts=[], retrieved_chunk_ids=[foreign[0]["id"]])
    assert "faithfulness" not in unseen["scores"]


async def test_means_are_grouped_and_paged(world: World) -> None:
    client = await _tenant(world, "grouped")
    for strategy in ("graph", "hybrid"):
        for configuration in ("a", "b", "a"):
            await _submit(client, strategy=strategy, configuration=configuration, scores={"own": len(strategy)})
    pages = await client.pages("/evaluation/metrics", limit=1)
    names = [(group["strategy"], group["configuration"], group["metrics"]["own"]["count"]) for group in pages]
    assert names == [("graph", "a", 2), ("graph", "b", 1), ("hybrid", "a", 2), ("hybrid", "b", 1)]
    filtered = await client.data("GET", "/evaluation/metrics", params={"strategy": "hybrid", "configuration": "b"})
    assert [group["metrics"]["own"]["mean"] for group in filtered] == [6.0]
    assert await client.data("GET", "/evaluation/metrics", params={"to": "2020-01-01"}) == []
    assert await (await _tenant(world, "empty")).data("GET", "/evaluation/metrics") == []


async def test_a_repeated_request_counts_once(world: World) -> None:
    client = await _tenant(world, "repeated")
    for _ in range(2):
        response = await client.post("/evaluation/submit", ANSWERED, headers={"Idempotency-Key": "once"})
        assert response.status_code == 201
    (group,) = await client.data("GET", "/evaluation/metrics")
    assert group["metrics"]["contains"]["count"] == 1


async def test_wrong_submissions_are_refused(world: World) -> None:
    for body, named in (
        ({"query": "q"}, "there is no score to record"),
        ({**ANSWERED, "scores": {"Bad name": 1}}, "must match"),
        ({**ANSWERED, "scores": {"x": 1e9}}, "at most 1000000"),
        ({**ANSWERED, "scores": {"x": "high"}}, "must be a number"),
        ({**ANSWERED, "scores": {f"m{number}": 1 for number in range(51)}}, "at most 50 items"),
        ({**ANSWERED, "contexts": ["x"] * 51}, "at most 50 items"),
        ({**ANSWERED, "contexts": ["x" * 50_001] * 2}, "at most 100000 characters together; got 100002"),
        ({**ANSWERED, "retrieved_chunk_ids": ["x"] * 101}, "at most 100 items"),
        ({**ANSWERED, "answer": "x" * 20_001}, "at most 20000 characters"),
        ({**ANSWERED, "ground_truth": "x"}, "is not known here"),
    ):
        response = await world.alpha.post("/evaluation/submit", body)
        assert response.status_code == 422, response.text
        assert named in response.text
    (reader,) = await add_tenant(world.operator.http, "score readers", "read")
    assert (await reader.post("/evaluation/submit", ANSWERED)).status_code == 403
    assert (await reader.get("/evaluation/metrics")).status_code == 200
