"""The agentic loop over HTTP, on the three people called Rowan Teller of the examples, with a scripted model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client, model_at

from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

CORPUS = Path(__file__).resolve().parents[3] / "examples/corpus"
QUESTION = "Where did Rowan Teller grow up?"
NURSE = {
    "teller-nurse-profile-2020": "Staff profile: Rowan Teller",
    "nightboat-2019-review": "NIGHTBOAT: review of the first year",
    "nightboat-2016-proposal": "NIGHTBOAT: a proposal for a clinic afloat",
}
OTHERS = {
    "teller-oceanographer-interview-2016": "Ten questions for Rowan Teller",
    "fishers-association-2023-minutes": "Annual meeting of the Scarrow Fishers' Association, 2023",
    "storm-edda-2016-courier": "The night of Edda",
}
"""Titles by the name of the file, of documents about the nurse and about the two others."""
PLAN = {
    "primary_intent": "place of childhood",
    "hyde_passage": "Rowan Teller was born inland, in a town with a canal.",
    "search_queries": ["Rowan Teller was born in a town"],
    "filter_constraints": [{"field": "tenant_id", "operator": "eq", "values": ["other"]}],
    "negative_constraints": [],
}


def reflect(prompt: str) -> str:
    """Return a reflection that avoids the nurse, whose id is in the prompt, and quotes the oceanographer's interview."""
    passages = re.findall(r'<passage number="(\d+)" title="([^"]*)">(.*?)</passage>', prompt, re.DOTALL)
    # The prompt describes the fences, too: passages have a number.
    avoided = [
        {"kind": "entity", "name": "", "value": id}
        for _, title, text in passages
        if title in NURSE.values()
        for id in re.findall(r"(?:entities: |; )Rowan Teller \(\w+, id ([0-9a-f-]{36})\)", text)
    ]
    quotes = [
        {"passage": int(number), "quote": "She was born inland, in a town with a canal"}
        for number, _, text in passages
        if "She was born inland, in a town with a canal" in text
    ]
    return json.dumps(
        {
            "verified_facts": [*quotes, {"passage": 1, "quote": "She grew up on the moon."}],
            "negative_constraints": avoided[:1],
            "search_queries": ["Where was the oceanographer Rowan Teller born?"],
            "hyde_passage": "",
        }
    )


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    matchers: list[Any] = [
        (lambda text: "You plan the searches" in text, json.dumps(PLAN)),
        (lambda text: "You decide how a search for a question goes on" in text, reflect),
    ]
    with ModelServer(matchers=matchers) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(
    tmp_path_factory: pytest.TempPathFactory, open_world: Any, new_tenant: Any, server: ModelServer
) -> AsyncIterator[Client]:
    """A tenant with a model, and with documents about three people of one name."""
    async with open_world(tmp_path_factory.mktemp("agentic"), **model_at(server.base_url)) as (_, http):
        (made,) = await new_tenant(http, "alpha", "admin")
        for key in (*NURSE, *OTHERS):
            (file,) = CORPUS.glob(f"{key}.*")
            await made.upload(file.read_text(encoding="utf-8"), key=key)
        yield made


async def search(client: Client, **options: Any) -> dict[str, Any]:
    body = {"query": QUESTION, "strategy": "agentic", "limit": 10, "options": options}
    found: dict[str, Any] = (await client.post("/search", body)).json()
    return found


def titles(found: dict[str, Any]) -> set[str]:
    return {result["title"] for result in found["data"]["results"]}


async def test_a_recorded_case(client: Client, server: ModelServer) -> None:
    """The reflection avoids the nurse: none of her passages is left. Round 2 finds little news, and the breaker stops."""
    server.reset()
    found = await search(client)
    about = found["data"]["trace"]["details"]["agentic"]
    assert about["stop_reason"] == "novelty"
    assert [each["round"] for each in about["rounds"]] == [1, 2]
    assert about["rounds"][0]["novelty"] == 1.0
    assert about["rounds"][1]["novelty"] < 0.2
    assert about["rounds"][0]["planned_by"] == "model"
    assert [each["kind"] for each in about["negative_constraints"]] == ["entity"]
    assert about["negative_constraints"][0]["documents"] > 0
    assert not titles(found) & set(NURSE.values())
    assert titles(found) & set(OTHERS.values())
    assert [fact["fact"] for fact in about["verified_facts"]] == ["She was born inland, in a town with a canal"]
    warnings = " ".join(found["meta"]["warnings"])
    assert "tenant_id: cannot be filtered on" in warnings
    assert "verified facts that no passage states word by word were dropped: 1" in warnings
    assert (about["calls"], server.stats().total.calls) == (2, 2)
    assert "moon" not in json.dumps(found)

    kept = await search(client, negative_memory=False)
    assert titles(kept) & set(NURSE.values())


async def test_flags_and_budgets_of_a_request(client: Client, server: ModelServer) -> None:
    server.reset()
    about = (await search(client, max_calls=1))["data"]["trace"]["details"]["agentic"]
    assert (about["stop_reason"], server.stats().total.calls) == ("budget_calls", 1)
    fixed = (await search(client, novelty_circuit=False, query_planning=False))["data"]["trace"]["details"]["agentic"]
    assert (len(fixed["rounds"]), fixed["stop_reason"]) == (5, "rounds")
    for options, message in (
        ({"max_rounds": 9}, "options.max_rounds must be an integer from 2 to 5; got 9"),
        ({"policy": "never"}, "options.policy must be one of novelty, fixed_rounds, budget; got 'never'"),
        ({"negative_constraints": "nurse"}, "options.negative_constraints must be a list"),
        ({"base": "graph"}, "has no option 'base'"),
    ):
        body = {"query": QUESTION, "strategy": "agentic", "options": options}
        refused = await client.post("/search", body)
        assert refused.status_code == 422
        assert message in refused.json()["detail"]


async def test_an_answer_rests_on_the_passages_that_are_left(client: Client) -> None:
    asked = {"query": QUESTION, "strategy": "agentic"}
    answered = await client.data("POST", "/answers", json=asked)
    cited = {each["chunk_id"] for each in answered["citations"]}
    documents = {(await client.data("GET", f"/chunks/{id}"))["document_id"] for id in cited}
    for id in documents:
        assert (await client.data("GET", f"/documents/{id}"))["key"] not in NURSE
