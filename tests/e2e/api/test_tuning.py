"""Tuning over HTTP: proposals from datasets and feedback, acceptance, rollback, and precedence of values."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.e2e.api.conftest import DUAL_LEVEL, Client, World, fill

from agentic_rag_backend.domain.asked_questions import hash_question
from agentic_rag_backend.domain.feedback import AnswerRecord, new_answer_id
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.tuning import ConfidenceScale, Parameter, TunedValues, TuningPlan
from agentic_rag_backend.evaluation.tuning.candidate_scores import CandidateMeasurer

pytestmark = pytest.mark.asyncio(loop_scope="module")

MERCHANTS = ("Zormen", "Zornen", "Zorren", "Zorven")
ORDERED = "{name} ordered {count} crates of {good} from the harbour."
GOODS = ("indigo", "tallow")
QUESTION = "How many crates of indigo did Zormen order?"


async def ledger_of(world: World, name: str) -> Client:
    """Return a new tenant with a document for each merchant. The documents differ in names and numbers only."""
    client = await world.tenant(name)
    texts = {
        merchant: " ".join(
            ORDERED.format(name=merchant, count=20 * (place + 1) + row, good=good) for place, good in enumerate(GOODS)
        )
        for row, merchant in enumerate(MERCHANTS)
    }
    await asyncio.gather(*(client.upload(text, key=key) for key, text in texts.items()))
    return client


SYNONYMS = {
    "canine": "dog",
    "automobile": "car",
    "physician": "doctor",
    "infant": "baby",
    "vessel": "ship",
    "attorney": "lawyer",
    "feline": "cat",
    "footwear": "shoes",
    "spectacles": "glasses",
    "sofa": "couch",
    "aeroplane": "aircraft",
    "bicycle": "bike",
    "monarch": "king",
    "inferno": "fire",
    "tempest": "storm",
    "forest": "woods",
    "necktie": "cravat",
    "cash": "money",
    "error": "mistake",
    "illness": "disease",
    "salary": "wages",
    "pebble": "stone",
    "rubbish": "garbage",
    "currency": "coins",
}
"""A word of a document, and the word of the question about it, which BM25 does not find."""


async def paraphrased(world: World, name: str) -> tuple[Client, str]:
    """Return a new tenant, and a dataset of two questions about each of its documents."""
    client = await world.tenant(name)
    await asyncio.gather(*(client.upload(f"The {word} was seen at the pier on Monday.", key=word) for word in SYNONYMS))
    cases = [
        {"question": question.format(synonym), "gold_documents": [word]}
        for word, synonym in SYNONYMS.items()
        for question in ("Did anybody notice the {}?", "Tell me about the {}.")
    ]
    dataset = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "synonyms", "cases": cases})
    return client, str(dataset["id"])


async def proposal_of(client: Client, **body: Any) -> dict[str, Any]:
    """Request a proposal, and return it with its evidence."""
    accepted = await client.data("POST", "/admin/tuning", status=202, json=body)
    job = await client.ended(accepted["job_id"])
    assert job["state"] == "succeeded", job
    proposal: dict[str, Any] = await client.data("GET", f"/admin/tuning/{accepted['proposal_id']}")
    return proposal


async def proposed(world: World, client: Client, values: TunedValues, **conditions: Any) -> str:
    """Record a proposal of ``values``, as a job does."""
    tenant, tuning = TenantId(client.caller.tenant_id), world.container.catalogue.tuning
    plan = TuningPlan(datasets=(), feedback=True, parameters=tuple(Parameter))
    proposal = await tuning.create(tenant, plan, lambda *_: None)
    caller = await world.container.tenants.act_for(tenant)
    described = world.container._describe_conditions(caller)
    evidence = {"conditions": {name: getattr(described, name) for name in type(described).__slots__} | conditions}
    await tuning.save_result(tenant, proposal.id, evidence, values)
    await world.container.catalogue.jobs.finish(tenant, proposal.job_id, JobState.SUCCEEDED)
    return proposal.id


async def search(client: Client, **body: Any) -> dict[str, Any]:
    """Return the details of a search's trace."""
    data = await client.data("POST", "/search", json={"query": QUESTION, **body})
    details: dict[str, Any] = data["trace"]["details"]
    return details


async def test_bad_weights_are_found_replaced_and_restored(world: World) -> None:  # noqa: PLR0915 - one story, in its order
    client, dataset = await paraphrased(world, "paraphrased")
    bad = await proposed(world, client, TunedValues(dense_weight=0.0))
    assert (await client.data("POST", f"/admin/tuning/{bad}/accept"))["status"] == "accepted"

    dry = await client.data("POST", "/admin/tuning", json={"datasets": [dataset], "dry_run": True})
    assert (dry["proposal_id"], dry["estimate"]["parameters"]) == (None, ["hybrid_weights", "auto_strategies"])
    counts = dry["estimate"]["cases"]
    assert (counts["total"], counts["learn"] + counts["check"], dry["estimate"]["searches"]) == (48, 48, 48 * (12 + 4))
    assert len(await client.data("GET", "/admin/tuning")) == 1, "a dry run starts nothing"

    proposal = await proposal_of(client, datasets=[dataset], parameters=["hybrid_weights"], k=3, metric="mrr")
    (finding,) = proposal["result"]["parameters"]
    assert (proposal["status"], finding["improves"]) == ("proposed", True), finding
    assert finding["check"]["difference"]["interval"][0] > 0
    assert finding["check"]["cases"] + finding["learn"]["cases"] == 48
    assert proposal["result"]["values_before"]["hybrid_weights"] == {"dense": 0.0, "sparse": 1.0}
    better = proposal["values"]["hybrid_weights"]
    assert better["dense"] > 0.0
    assert (await search(client, strategy="hybrid"))["weights"]["dense"] == 0.0, "nothing changes before it is accepted"

    version = (await client.data("GET", "/status"))["state_version"]
    accepted = await client.data("POST", f"/admin/tuning/{proposal['id']}/accept")
    assert (accepted["status"], accepted["warnings"], bool(accepted["accepted_by"])) == ("accepted", [], True)
    status = await client.data("GET", "/status")
    assert status["tuning"] == {"proposal_id": proposal["id"], "values": {"hybrid_weights": better}}
    assert status["state_version"] == version + 1
    details = await search(client, strategy="hybrid")
    assert (details["weights"], details["weights_by"]) == (better, "tuning"), "a cached result would be the old one"
    explained = await client.data(
        "POST",
        "/search/explain",
        json={
            "query": QUESTION,
            "strategy": "hybrid",
            "document_id": (await client.data("GET", "/documents", params={"key": "canine"}))[0]["id"],
        },
    )
    assert explained["trace"]["details"]["weights_by"] == "tuning"
    details = await search(client, strategy="hybrid", weights={"dense": 0.9})
    assert (details["weights"]["dense"], details["weights_by"]) == (0.9, "request"), "the request wins"
    others = await world.alpha.data("POST", "/search", json={"query": QUESTION, "strategy": "hybrid"})
    assert others["trace"]["details"]["weights_by"] == "settings", "another tenant keeps its own"

    response = await client.post(f"/admin/tuning/{bad}/rollback")
    assert (response.status_code, "was accepted later" in response.text) == (409, True)
    assert (await client.delete(f"/admin/tuning/{proposal['id']}")).status_code == 409
    restored = await client.data("POST", f"/admin/tuning/{proposal['id']}/rollback")
    assert (restored["status"], bool(restored["rolled_back_by"])) == ("rolled_back", True)
    assert (await search(client, strategy="hybrid"))["weights"]["dense"] == 0.0
    await client.data("POST", f"/admin/tuning/{bad}/rollback")
    assert (await search(client, strategy="hybrid"))["weights_by"] == "settings"
    assert (await client.delete(f"/admin/tuning/{proposal['id']}")).status_code == 204
    assert [item["id"] for item in await client.data("GET", "/admin/tuning")] == [bad]


async def test_few_cases_are_declined_and_jobs_can_be_cancelled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await world.tenant("few")
    await client.upload("Zormen ordered 15 crates of indigo.", key="Zormen")
    refused = await client.post("/admin/tuning", {})
    assert (refused.status_code, "there are no cases to learn from" in refused.text) == (422, True)
    cases = [
        {"question": QUESTION, "gold_documents": ["Zormen"]},
        {"question": QUESTION.upper(), "gold_documents": ["Zormen"]},
        {"question": "Who is Vornen?", "gold_documents": ["nosuch"]},
        {"question": "What is indigo?"},
    ]
    await client.data("POST", "/evaluation/datasets", status=201, json={"name": "few", "cases": cases})
    proposal = await proposal_of(client, feedback=True)
    assert (proposal["status"], proposal["values"]) == ("declined", None)
    reasons = {of["reason"].split(":")[0] for of in proposal["result"]["parameters"]}
    assert reasons == {"too few cases"}
    counts = proposal["result"]["cases"]
    expected = {"total": 1, "datasets": 2, "repeated": 1, "without_evidence": 1, "evidence_not_found": 1, "feedback": 0}
    assert {name: counts[name] for name in expected} == expected
    response = await client.post(f"/admin/tuning/{proposal['id']}/accept")
    assert (response.status_code, "declined" in response.text) == (409, True)

    started = asyncio.Event()

    async def never(*_: Any) -> dict[str, float]:
        started.set()
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(CandidateMeasurer, "measure_case", never)
    accepted = await client.data("POST", "/admin/tuning", status=202, json={})
    await asyncio.wait_for(started.wait(), 20)
    assert (await client.delete(f"/admin/tuning/{accepted['proposal_id']}")).status_code == 409
    await client.data("POST", f"/jobs/{accepted['job_id']}/cancel", status=202)
    assert (await client.ended(accepted["job_id"]))["state"] == "cancelled"
    assert (await client.data("GET", f"/admin/tuning/{accepted['proposal_id']}"))["status"] == "failed"
    monkeypatch.undo()
    await client.data("POST", f"/jobs/{accepted['job_id']}/retry", status=202)
    assert (await client.ended(accepted["job_id"]))["state"] == "succeeded"


async def test_the_low_level_of_auto_and_the_weights_of_levels(world: World) -> None:
    client = await ledger_of(world, "levels")
    assert (await search(client, strategy="auto"))["low_level"]["strategy"] == "agentic"
    tuned = TunedValues(low_weight=0.9, low_strategies={"number": "hybrid"})
    await client.patch("/features", {DUAL_LEVEL: True})
    proposal = await proposed(world, client, tuned)
    await client.data("POST", f"/admin/tuning/{proposal}/accept")

    details = await search(client)
    assert details["low_level"] == {"strategy": "hybrid", "chosen_by": "tuning"}
    assert "tuning chose hybrid for questions of the kind 'number'" in details["auto"]["because"]
    assert details["level_weights"] == {"low": 0.9, "high": pytest.approx(0.1), "by": "tuning"}
    assert "weights" not in details or details["weights_by"] != "tuning", "weights of `hybrid` are for `hybrid` alone"
    other_kind = await client.data("POST", "/search", json={"query": "Who ordered indigo?"})
    assert other_kind["trace"]["details"]["low_level"]["strategy"] == "agentic"
    details = await search(client, options={"low_strategy": "graph"}, weights={"low": 0.2})
    assert (details["low_level"]["strategy"], "level_weights" in details) == ("graph", False), "the request wins"
    levels = await client.data("POST", "/search/dual-level", json={"query": QUESTION, "synthesize": False})
    preset = await client.data("POST", "/search/dual-level", json={"query": QUESTION, "synthesize": False, "preset": "research"})
    assert levels["weights"]["low"] in (0.9, 1.0)
    assert preset["weights"]["low"] in (0.5, 1.0)

    flag = {of["name"]: of for of in await client.data("GET", "/features")}["DUAL_LEVEL_LOW_WEIGHT"]
    assert (flag["value"], flag["source"]) == (0.9, "tuning")
    response = await client.patch("/features", {"DUAL_LEVEL_LOW_WEIGHT": 0.3})
    assert (response.status_code, proposal in response.text) == (409, True)
    await client.data("POST", f"/admin/tuning/{proposal}/rollback")
    assert (await client.patch("/features", {"DUAL_LEVEL_LOW_WEIGHT": 0.3})).status_code == 200
    assert (await search(client))["low_level"]["strategy"] == "agentic"


async def test_level_weights_are_measured_by_the_passages_of_answers(world: World) -> None:
    client = await world.tenant("measured")
    await fill(client, "alpha")
    cases = [{"question": "What objections were there to the tidal barrage?", "gold_quotes": ["closes the eel passage"]}]
    dataset = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "one", "cases": cases})
    body = {"datasets": [dataset["id"]], "parameters": ["level_weights"]}
    refused = await client.post("/admin/tuning", body)
    assert (refused.status_code, refused.json()["code"]) == (404, "feature_disabled")
    await client.patch("/features", {DUAL_LEVEL: True})
    proposal = await proposal_of(client, **body, metric="mrr")
    page = await world.container.catalogue.tuning.scores(TenantId(client.caller.tenant_id), proposal["id"], limit=9)
    (scores,) = (item.scores for item in page.items)
    assert len(scores) == 10
    assert len(set(scores.values())) > 1, f"the weights change the order of passages: {scores}"


async def test_changes_since_the_measuring(world: World) -> None:
    client = await world.tenant("changes")
    other_embedder = await proposed(world, client, TunedValues(dense_weight=0.2), embedder="another")
    response = await client.post(f"/admin/tuning/{other_embedder}/accept")
    assert (response.status_code, "embedder was 'another'" in response.text) == (409, True)
    proposal = await proposed(world, client, TunedValues(dense_weight=0.2))
    await client.upload("Zormen ordered 15 crates of indigo.")
    accepted = await client.data("POST", f"/admin/tuning/{proposal}/accept")
    assert accepted["status"] == "accepted"
    assert accepted["warnings"] == [
        "documents changed since the proposal was measured; its evidence is about the documents of that time"
    ]
    assert (await client.post(f"/admin/tuning/{proposal}/accept")).json()["data"]["accepted_at"] == accepted["accepted_at"]


async def test_feedback_becomes_cases(world: World) -> None:
    client = await ledger_of(world, "rated")

    async def rate(asked: str, *, each: bool = False, **feedback: Any) -> None:
        answer = await client.data("POST", "/answers", json={"query": asked, "strategy": "hybrid"})
        assert answer["citations"], asked
        for citation in answer["citations"] if each else [{}]:
            about = {"citation": citation["marker"]} if each else {}
            await client.data("POST", "/feedback", json={"answer_id": answer["id"], **about, **feedback})

    corrected = "How many crates of tallow did Zornen order?"
    await rate(QUESTION, rating="good", question=QUESTION)
    await rate(QUESTION, each=True, rating="bad", question=f" {QUESTION.upper()}")
    await rate(corrected, rating="bad", question=corrected, correction="Zornen ordered 41 crates of tallow")
    await rate("How many crates of tallow did Zorren order?", rating="good", citation=1, question="Tallow of Zorren?")
    await rate("How many crates of tallow did Zorven order?", rating="good")

    body = {"datasets": [], "feedback": True, "parameters": ["hybrid_weights"]}
    counts = (await client.data("POST", "/admin/tuning", json={**body, "dry_run": True}))["estimate"]["cases"]
    assert (counts["feedback"], counts["without_evidence"], counts["feedback_without_question"]) == (2, 1, 1)
    counts = (await proposal_of(client, **body))["result"]["cases"]
    assert (counts["total"], counts["evidence_not_found"]) == (2, 0), "the text of a correction finds its passages"


async def rated(world: World, client: Client, count: int) -> None:
    """Record ``count`` answers with the confidence .9, and feedback that every third of them is good."""
    tenant, now = TenantId(client.caller.tenant_id), datetime.now(UTC)
    answers = [
        AnswerRecord(
            id=new_answer_id(),
            key_id="k",
            strategy="hybrid",
            generator="attributed",
            confidence=0.9,
            grounded=True,
            created_at=now,
            question_hash=hash_question(f"Question {number}?"),
        )
        for number in range(count)
    ]
    await world.container.catalogue.feedback.add_answers([(tenant, answer) for answer in answers])
    for number, answer in enumerate(answers):
        body = {"answer_id": answer.id, "rating": "bad" if number % 3 else "good"}
        await client.data("POST", "/feedback", json=body)


async def test_the_confidence_follows_the_ratings(world: World) -> None:
    client = await ledger_of(world, "confidence")
    await rated(world, client, 120)
    refused = await client.post("/admin/tuning", {"datasets": [], "parameters": ["confidence"]})
    assert (refused.status_code, "feedback" in refused.text) == (422, True)
    proposal = await proposal_of(client, datasets=[], feedback=True, parameters=["confidence"])
    (finding,) = proposal["result"]["parameters"]
    assert (proposal["status"], finding["improves"]) == ("proposed", True), finding
    errors = finding["check"]["calibration_error"]
    assert errors["before"] > 0.4
    assert errors["after"] < 0.15

    body = {"query": QUESTION, "strategy": "hybrid"}
    before = await client.data("POST", "/answers", json=body)
    await client.data("POST", f"/admin/tuning/{proposal['id']}/accept")
    after = await client.data("POST", "/answers", json=body)
    streamed = await client.post("/answers", {**body, "stream": True})
    scale = ConfidenceScale(**proposal["values"]["confidence"])
    assert after["confidence"] == pytest.approx(scale.convert_confidence(before["confidence"]))
    assert f'"confidence":{after["confidence"]}' in streamed.text.replace(" ", "")
    assert (after["answer"], after["citations"]) == (before["answer"], before["citations"])
    details = after["trace"]["details"]
    assert (details["confidence_by"], details["estimated_confidence"]) == ("tuning", before["confidence"])
    await world.container.feedback.write_answers()
    answer = await world.container.catalogue.feedback.answer(TenantId(client.caller.tenant_id), after["id"])
    assert (answer.confidence, answer.estimate) == (after["confidence"], before["confidence"])

    again = await proposal_of(client, datasets=[], feedback=True, parameters=["confidence"])
    assert again["status"] == "declined", "the estimates are rated, not the converted ones"
    await client.data("POST", f"/admin/tuning/{proposal['id']}/rollback")
    assert (await client.data("POST", "/answers", json=body))["confidence"] == before["confidence"]


async def test_bad_requests_name_the_limit(world: World) -> None:
    for body, message in (
        ({"parameters": []}, "parameters"),
        ({"parameters": ["nosuch"]}, "level_weights"),
        ({"metric": "correct"}, "recall"),
        ({"k": 101}, "100"),
        ({"seed": -1}, "seed"),
        ({"datasets": ["x"] * 51}, "50"),
        ({"unknown": 1}, "unknown"),
    ):
        response = await world.alpha.post("/admin/tuning", body)
        assert (response.status_code, message in response.text) == (422, True), (body, response.text)
    assert (await world.alpha_writer.post("/admin/tuning", {})).status_code == 403
