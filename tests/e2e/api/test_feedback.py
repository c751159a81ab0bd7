"""Feedback on answers over HTTP: of every kind of answer, idempotent, and removed with what it quotes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.e2e.api.conftest import DUAL_LEVEL, Client, World, add_tenant, events_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Why was the tidal barrage delayed?"


async def _answer(client: Client) -> dict[str, Any]:
    answered: dict[str, Any] = await client.data("POST", "/answers", json={"query": QUESTION})
    return answered


async def test_every_answer_can_get_feedback(world: World) -> None:
    """Immediately: whole, streamed and dual-level answers, and refusals."""
    client = world.alpha
    await client.data("PATCH", "/features", json={DUAL_LEVEL: True})
    answered = await _answer(client)
    streamed = events_of(await client.post("/answers", {"query": QUESTION, "stream": True}))[-1][2]
    levels = await client.data("POST", "/search/dual-level", json={"query": QUESTION})
    refused = await client.data("POST", "/answers", json={"query": "Who won the football world cup in 1966?"})
    assert not refused["grounded"]
    ids = [answered["id"], streamed["id"], levels["answer_id"], refused["id"]]
    assert len(set(ids)) == 4
    for id in ids:
        given = await client.data("POST", "/feedback", json={"answer_id": id, "rating": "good"})
        assert (given["answer_id"], given["rating"], given["key_id"] != "") == (id, "good", True)
    plain = await client.data("POST", "/search/dual-level", json={"query": QUESTION, "synthesize": False})
    assert plain["answer_id"] is None


async def test_feedback_is_shown_beside_the_case_of_its_question(world: World) -> None:
    """And counted with the run, as it is when the run is read. Another tenant's equal case has none."""
    client = world.alpha
    cases = {"name": "rated", "cases": [{"question": f"  {QUESTION.upper()}"}, {"question": "Who?"}]}
    dataset = await client.data("POST", "/evaluation/datasets", status=201, json=cases)
    body = {"dataset": dataset["id"], "configurations": [{"name": "a", "strategy": "sparse"}], "metrics": ["recall"]}
    run = await client.data("POST", "/evaluation/runs", status=202, json=body)
    await client.ended(run["job_id"])
    before = (await client.data("GET", f"/evaluation/runs/{run['run_id']}"))["result"]["feedback"]
    answered = await _answer(client)
    await client.data("POST", "/feedback", json={"answer_id": answered["id"], "rating": "bad", "reason": "too short"})
    after = (await client.data("GET", f"/evaluation/runs/{run['run_id']}"))["result"]["feedback"]
    assert (after["questions"], after["bad"], after["good"]) == (1, before["bad"] + 1, before["good"])
    listed = await client.data("GET", f"/evaluation/datasets/{dataset['id']}/cases")
    assert [case["feedback"]["bad"] for case in listed] == [after["bad"], 0]
    report = (await client.get(f"/evaluation/runs/{run['run_id']}/report", headers={"Accept": "text/markdown"})).text
    assert f"users rated answers to 1 of the questions: {after['good']} good, {after['bad']} bad" in report
    (given, *_) = await client.data("GET", "/feedback", params={"question": QUESTION, "rating": "bad"})
    assert given["reason"] == "too short"
    other = await world.beta.data("POST", "/evaluation/datasets", status=201, json=cases)
    of_other = await world.beta.data("GET", f"/evaluation/datasets/{other['id']}/cases")
    assert [case["feedback"] for case in of_other] == [{"good": 0, "bad": 0}] * 2


async def test_feedback_on_parts_is_idempotent_and_listed(world: World) -> None:
    client = world.alpha
    answered = await _answer(client)
    marker, result = answered["citations"][0]["marker"], answered["sources"][-1]["id"]
    bodies: list[dict[str, Any]] = [
        {"citation": marker, "reason": "outdated", "correction": "by three years"},
        {"result": result, "reason": "off the subject"},
        {"correction": "<b>=1+1</b> {{x}}"},
    ]
    for body in bodies:
        sent = {"answer_id": answered["id"], "rating": "bad", **body}
        first = await client.data("POST", "/feedback", json=sent)
        again = await client.data("POST", "/feedback", json=sent)
        assert {**first, "updated_at": None} == {**again, "updated_at": None}
        assert {name: first[name] for name in body} == body
    listed = await client.data("GET", "/feedback", params={"answer_id": answered["id"]})
    assert len(listed) == 3
    assert {item["chunk_id"] for item in listed} == {answered["citations"][0]["chunk_id"], result, None}
    assert {item["strategy"] for item in listed} == {answered["trace"]["strategy"]}
    pages = await client.pages("/feedback", limit=2)
    assert len({item["id"] for item in pages}) == len(pages) >= 3
    assert await client.data("GET", "/feedback", params={"rating": "good", "answer_id": answered["id"]}) == []


async def test_keys_that_read_give_feedback_and_only_administrators_list_it(world: World) -> None:
    (reader,) = await add_tenant(world.operator.http, "readers", "read")
    answered = await _answer(reader)
    await reader.data("POST", "/feedback", json={"answer_id": answered["id"], "rating": "bad"})
    assert (await reader.get("/feedback")).status_code == 403


async def test_wrong_feedback_is_refused(world: World) -> None:
    client = world.alpha
    answered = await _answer(client)
    foreign = await _answer(world.beta)
    correct = {"answer_id": answered["id"], "rating": "bad"}
    for body, status, named in (
        ({**correct, "answer_id": foreign["id"]}, 404, "there is no answer"),
        ({**correct, "answer_id": "a_" + 32 * "0"}, 404, "there is no answer"),
        ({**correct, "citation": 99}, 422, "the answer has no citation 99; its citations are 1"),
        ({**correct, "citation": 2**40}, 422, "citation"),
        ({**correct, "result": foreign["sources"][0]["id"]}, 422, "the answer has no result"),
        ({**correct, "citation": 1, "result": answered["sources"][0]["id"]}, 422, "got both"),
        ({**correct, "rating": "fine"}, 422, "must be 'good' or 'bad'"),
        ({**correct, "reason": "x" * 2_001}, 422, "at most 2000 characters"),
        ({**correct, "correction": ""}, 422, "at least 1 character"),
        ({**correct, "stars": 5}, 422, "is not known here"),
    ):
        response = await client.post("/feedback", body)
        assert response.status_code == status, response.text
        assert named in response.text


async def test_a_deleted_document_takes_the_texts_with_it(world: World) -> None:
    client = world.alpha
    document = await client.upload("# Skerry light\n\nThe Skerry light was lit by Ola Quist in 1902.", key="skerry")
    answered = await client.data("POST", "/answers", json={"query": "Who lit the Skerry light?"})
    assert answered["citations"][0]["document_id"] == document["id"]
    correction = "The Skerry light was lit by Ola Quist in 1903."
    await client.data("POST", "/feedback", json={"answer_id": answered["id"], "rating": "bad", "correction": correction})
    response = await client.delete(f"/documents/{document['id']}")
    assert response.status_code == 202
    (left,) = await client.data("GET", "/feedback", params={"answer_id": answered["id"]})
    assert (left["correction"], left["texts_removed"], left["rating"]) == (None, True, "bad")
    assert "Quist" not in json.dumps(await client.pages("/feedback", limit=100))


async def test_concurrent_answers_are_all_recorded(world: World) -> None:
    client = world.alpha
    answers = await asyncio.gather(*(_answer(client) for _ in range(8)))
    bodies = [{"answer_id": answered["id"], "rating": "good"} for answered in answers]
    given = await asyncio.gather(*(client.data("POST", "/feedback", json=body) for body in bodies))
    assert len({item["id"] for item in given}) == 8
