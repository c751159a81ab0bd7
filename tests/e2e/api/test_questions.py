"""Synthetic questions through HTTP: asked for with an upload, shown with a chunk, named by a search, gone with the document."""

from __future__ import annotations

import json

import pytest
from tests.e2e.api.conftest import World

pytestmark = pytest.mark.asyncio(loop_scope="module")
TEXT = "The beacon of Sarn was built in 1932 by Ilse Harrow.\n"
QUESTIONS = ["Who built the beacon of Sarn?", "When was the beacon of Sarn built?"]
ASKED = {"query": "Who built the beacon of Sarn?", "strategy": "hybrid", "options": {"synthetic_questions": True}}


async def test_questions_from_upload_to_deletion(world: World) -> None:
    document = await world.alpha.upload(TEXT, questions={"method": "patterns", "per_chunk": 2})
    (chunk,) = await world.alpha.data("GET", f"/documents/{document['id']}/chunks")
    assert chunk["questions"] == [{"text": text, "source": "patterns"} for text in QUESTIONS]
    assert (await world.alpha.data("GET", f"/chunks/{chunk['id']}"))["questions"] == chunk["questions"]
    found = await world.alpha.data("POST", "/search", json=ASKED)
    assert (found["results"][0]["id"], found["results"][0]["matched_question"]) == (chunk["id"], QUESTIONS[0])
    assert found["results"][0]["scores"]["question"] == pytest.approx(1, abs=1e-3)
    plain = await world.alpha.data("POST", "/search", json={**ASKED, "options": {}})
    assert plain["results"][0]["matched_question"] is None
    other = await world.beta.data("POST", "/search", json=ASKED)
    assert not any(result["matched_question"] for result in other["results"])
    explained = await world.alpha.data("POST", "/search/explain", json={**ASKED, "document_id": document["id"]})
    assert [(leg["leg"], leg["rank"], leg["chunk_id"]) for leg in explained["legs"]][2:] == [("question", 1, chunk["id"])]
    assert (await world.alpha.data("GET", "/status"))["counts"]["questions"] >= 2

    job = await world.alpha.post(f"/documents/{document['id']}/chunks", {"questions": {"method": "off"}})
    await world.alpha.ended(job.json()["data"]["job_id"])
    assert (await world.alpha.data("GET", f"/chunks/{chunk['id']}"))["questions"] == []
    accepted = await world.alpha.data("DELETE", f"/documents/{document['id']}", status=202)
    receipt = (await world.alpha.ended(accepted["job_id"]))["result"]
    assert not any(receipt["leftovers"].values())


async def test_questions_of_a_form_and_bad_options(world: World) -> None:
    file = {"file": ("beacon.md", TEXT.encode(), "text/markdown")}
    response = await world.alpha.request(
        "POST", "/documents", files=file, data={"questions": json.dumps({"method": "patterns", "per_chunk": 1})}
    )
    (submitted,) = response.json()["data"]["documents"]
    await world.alpha.ended(submitted["job_id"])
    (chunk,) = await world.alpha.data("GET", f"/documents/{submitted['document_id']}/chunks")
    assert [question["text"] for question in chunk["questions"]] == QUESTIONS[:1]
    for questions, place in (
        ({"method": "guess"}, "method"),
        ({"method": "patterns", "per_chunk": 4}, "per_chunk"),
        ({}, "method"),
    ):
        refused = await world.alpha.request("POST", "/documents", json={"text": TEXT, "questions": questions})
        assert (refused.status_code, place in json.dumps(refused.json()["errors"])) == (422, True)
    refused = await world.alpha.request("POST", "/documents", files=file, data={"questions": '{"per_chunk": 9}'})
    assert refused.status_code == 422
    refused = await world.alpha.request("POST", "/search", json={**ASKED, "options": {"synthetic_questions": "yes"}})
    assert "options.synthetic_questions must be true or false" in refused.json()["detail"]
    refused = await world.alpha.request("POST", "/search", json={**ASKED, "strategy": "dense"})
    assert refused.status_code == 422
    accepted = await world.alpha.data("DELETE", f"/documents/{submitted['document_id']}", status=202)
    await world.alpha.ended(accepted["job_id"])
