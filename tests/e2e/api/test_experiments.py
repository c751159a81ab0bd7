"""Experiments over HTTP: stable assignment, recorded outcomes, feedback, the stopping rule, and requests that take no part."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.e2e.api.conftest import DUAL_LEVEL, Client, World

from agentic_rag_backend.domain.experiments import ExperimentOutcome
from agentic_rag_backend.domain.tenant import TenantId

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIGURATIONS = [
    {"name": "words", "strategy": "sparse"},
    {"name": "both", "strategy": "hybrid", "weights": {"dense": 0.4}, "generator": "standard"},
]
QUESTIONS = [f"Who leads the Greywater Company in {year}?" for year in range(1990, 2010)]


async def tenant_of(world: World, name: str) -> Client:
    client = await world.tenant(name)
    await client.upload("Ina Torv leads the Greywater Company. The Greywater Company opened the lower lock in May 1987.")
    return client


async def start(client: Client, **body: Any) -> dict[str, Any]:
    fields = {"name": "trial", "configurations": CONFIGURATIONS, **body}
    experiment: dict[str, Any] = await client.data("POST", "/evaluation/experiments", status=201, json=fields)
    return experiment


async def search(client: Client, question: str, **body: Any) -> dict[str, Any]:
    trace: dict[str, Any] = (await client.data("POST", "/search", json={"query": question, **body}))["trace"]
    return trace


async def test_questions_are_divided_between_two_configurations(world: World) -> None:
    client = await tenant_of(world, "divided")
    before = await search(client, QUESTIONS[0])
    assert "experiment" not in before["details"]
    experiment = await start(client, stop={"metric": "latency_ms", "cases": 100})
    assert (experiment["state"], experiment["share"], experiment["result"]) == ("running", 1.0, None)
    assert experiment["configurations"][1]["weights"] == {"dense": 0.4}

    traces = {question: await search(client, question) for question in QUESTIONS}
    names = {question: trace["details"]["experiment"]["configuration"] for question, trace in traces.items()}
    assert Counter(names.values()).keys() == {"words", "both"}
    for question, trace in traces.items():
        assert trace["strategy"] == {"words": "sparse", "both": "hybrid"}[names[question]]
        assert trace["details"]["experiment"]["id"] == experiment["id"]
    hybrid = next(traces[question] for question, name in names.items() if name == "both")
    assert hybrid["details"]["weights"]["dense"] == 0.4
    again = await search(client, f" {QUESTIONS[0].upper()}")
    assert again["details"]["experiment"]["configuration"] == names[QUESTIONS[0]]

    shown = await client.data("GET", f"/evaluation/experiments/{experiment['id']}")
    figures = {of["name"]: of for of in shown["result"]["configurations"]}
    assert {name: of["cases"] for name, of in figures.items()} == Counter(names.values())
    assert figures["words"]["metrics"]["latency_ms"]["value"] > 0
    assert figures["words"]["metrics"]["refused"] == {"value": None, "count": 0}, "searches refuse nothing"
    (latency,) = (row for row in shown["result"]["differences"] if row["metric"] == "latency_ms")
    assert (latency["kind"], latency["p"], latency["interval"]) == ("ratio", 1.0, None), "there are too few cases"
    assert not any(word in json.dumps(shown) for word in ("Greywater", "Torv")), "no texts are kept"

    for body in ({"strategy": "dense"}, {"options": {"low_strategy": "graph"}}, {"weights": {"low": 0.5}}, {"rerank": False}):
        assert "experiment" not in (await search(client, QUESTIONS[0], **body))["details"], body
    others = await search(world.alpha, QUESTIONS[0])
    assert "experiment" not in others["details"], "another tenant has no experiment"
    response = await client.post("/evaluation/experiments", {"name": "second", "configurations": CONFIGURATIONS})
    assert (response.status_code, experiment["id"] in response.text) == (409, True)
    assert (await client.delete(f"/evaluation/experiments/{experiment['id']}")).status_code == 409

    stopped = await client.data("POST", f"/evaluation/experiments/{experiment['id']}/stop")
    assert (stopped["state"], stopped["stopped_because"], bool(stopped["stopped_by"])) == ("stopped", "request", True)
    assert stopped["result"]["configurations"] == shown["result"]["configurations"]
    assert "experiment" not in (await search(client, QUESTIONS[0]))["details"]
    assert [item["id"] for item in await client.data("GET", "/evaluation/experiments")] == [experiment["id"]]
    assert (await client.delete(f"/evaluation/experiments/{experiment['id']}")).status_code == 204
    assert (await client.get(f"/evaluation/experiments/{experiment['id']}")).status_code == 404


async def test_answers_bring_refusals_and_feedback(world: World) -> None:
    client = await tenant_of(world, "answers")
    experiment = await start(client)
    names = {}
    for question in QUESTIONS:
        answer = await client.data("POST", "/answers", json={"query": question})
        about = answer["trace"]["details"]["experiment"]
        names[question] = about["configuration"]
        assert answer["generator"] == ("standard" if about["configuration"] == "both" else "attributed")
        rating = "good" if about["configuration"] == "both" else "bad"
        await client.data("POST", "/feedback", json={"answer_id": answer["id"], "rating": rating})
    streamed = await client.post("/answers", {"query": "Who opened the lower lock?", "stream": True})
    events = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: ")]
    done = next(event for event in events if "answer" in event)
    names["streamed"] = done["trace"]["details"]["experiment"]["configuration"]
    assert (
        "experiment"
        not in (await client.data("POST", "/answers", json={"query": QUESTIONS[0], "generator": "standard"}))["trace"]["details"]
    )

    result = (await client.data("GET", f"/evaluation/experiments/{experiment['id']}"))["result"]
    counts = Counter(names.values())
    for of in result["configurations"]:
        assert (of["cases"], of["metrics"]["refused"]["count"]) == (counts[of["name"]], counts[of["name"]])
        rated = of["metrics"]["good"]
        assert (rated["value"], rated["count"]) == (
            float(of["name"] == "both"),
            counts[of["name"]] - (of["name"] == names["streamed"]),
        )
    await client.data("POST", f"/evaluation/experiments/{experiment['id']}/stop")


async def test_the_rule_ends_an_experiment(world: World) -> None:
    client = await tenant_of(world, "ends")
    tenant, catalogue = TenantId(client.caller.tenant_id), world.container.catalogue.experiments

    async def record(experiment: dict[str, Any], count: int, *, refused: Any) -> None:
        active = (await catalogue.experiment(tenant, experiment["id"])).active
        for number in range(count):
            assigned = active.assign_question(tenant.value, f"{number}")
            assert assigned is not None
            name = str(assigned.configuration["name"])
            service = world.container.experiments
            service.record(tenant, assigned, latency_ms=5.0, tokens=0, refused=refused(name, number), answer_id=f"a_{number}")
        await world.container.experiments.write_outcomes()

    better = await start(client, stop={"metric": "refused", "cases": 1000})
    await record(better, 80, refused=lambda name, _: name == "words")
    assert (await client.data("GET", f"/evaluation/experiments/{better['id']}"))["state"] == "running", "too few cases"
    await record(better, 200, refused=lambda name, _: name == "words")
    shown = await client.data("GET", f"/evaluation/experiments/{better['id']}")
    assert (shown["state"], shown["stopped_because"], shown["result"]["better"]) == ("stopped", "p", "both")
    (refused,) = (row for row in shown["result"]["differences"] if row["metric"] == "refused")
    assert refused["value"] == -1.0
    assert refused["interval"][1] < 0
    assert "experiment" not in (await search(client, QUESTIONS[0]))["details"], "requests are as before"
    late = ExperimentOutcome(
        experiment_id=better["id"], unit="late", configuration="both", latency_ms=1, tokens=0, created_at=datetime.now(UTC)
    )
    await catalogue.save_outcomes(tenant, [late])
    assert (await client.data("GET", f"/evaluation/experiments/{better['id']}"))["result"] == shown["result"]

    equal = await start(client, stop={"metric": "refused", "cases": 250})
    await record(equal, 240, refused=lambda *_: False)
    assert (await client.data("GET", f"/evaluation/experiments/{equal['id']}"))["state"] == "running"
    await record(equal, 250, refused=lambda *_: False)
    shown = await client.data("GET", f"/evaluation/experiments/{equal['id']}")
    assert (shown["stopped_because"], shown["result"]["better"]) == ("cases", None)


async def test_a_strategy_that_is_switched_off_takes_no_part(world: World) -> None:
    client = await tenant_of(world, "switched")
    refused = await client.post(
        "/evaluation/experiments",
        {"name": "x", "configurations": [{"name": "a"}, {"name": "b", "strategy": "dual_level"}]},
    )
    assert (refused.status_code, refused.json()["code"]) == (404, "feature_disabled")
    await client.patch("/features", {DUAL_LEVEL: True})
    await start(client, configurations=[{"name": "a"}, {"name": "b", "strategy": "dual_level"}])
    await client.patch("/features", {DUAL_LEVEL: False})
    traces = await asyncio.gather(*(search(client, question) for question in QUESTIONS))
    assert {trace["details"].get("experiment", {}).get("configuration") for trace in traces} == {"a", None}


async def test_bad_requests_name_the_limit(world: World) -> None:
    good = {"name": "x", "configurations": CONFIGURATIONS}
    for body, message in (
        ({"configurations": CONFIGURATIONS[:1]}, "2"),
        ({"configurations": [CONFIGURATIONS[0], CONFIGURATIONS[0]]}, "'words' occurs 2 times"),
        ({"configurations": [CONFIGURATIONS[0], {"name": "b", "strategy": "nosuch"}]}, "nosuch"),
        ({"share": 0}, "share"),
        ({"share": 1.5}, "share"),
        ({"stop": {"cases": 20_001}}, "20000"),
        ({"stop": {"p": 0.5}}, "0.2"),
        ({"stop": {"metric": "nosuch"}}, "refused"),
        ({"name": ""}, "name"),
    ):
        response = await world.alpha.post("/evaluation/experiments", {**good, **body})
        assert (response.status_code, message in response.text) == (422, True), (body, response.text)
    assert (await world.alpha_writer.post("/evaluation/experiments", good)).status_code == 403
