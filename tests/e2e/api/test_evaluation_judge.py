"""Evaluation runs with a language model: a judge that compares answers, the budget, the cost, and the estimate of both."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.api.conftest import Client, Template, model_at

from agentic_rag_testing.models.server import ModelServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = [
    {"question": "Why was the tidal barrage delayed?", "expected_answer": "two years"},
    {"question": "Who counts the eels at the barrage?"},
    {"question": "Who won the football world cup in 1966?", "answerable": False},
]
CONFIGURATIONS = [
    {"name": "plain", "strategy": "sparse"},
    {"name": "marked", "strategy": "sparse", "generator": "standard"},
    {"name": "same", "strategy": "sparse"},
]
_ANSWER = re.compile(r'<answer number="(\d)">\n(.*?)\n</answer>', re.DOTALL)


def judge(prompt: str) -> str:
    """Prefer the answer with the mark of `standard`; otherwise always the first one, as a model with a bias does."""
    better = next((number for number, text in _ANSWER.findall(prompt) if "Zebulon" in text), "1")
    return json.dumps({"better": better})


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(matchers=[(lambda prompt: "<answer number=" in prompt, judge)]) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(template: Template, folder: Path, open_world: Any, server: ModelServer) -> AsyncIterator[Client]:
    """The template's tenant with a model that adds a false sentence to each answer, which only `standard` shows."""
    prices = folder / "prices.yaml"
    prices.write_text("currency: EUR\nmodels: {cite-wrong: {input: 1, output: 10}, judge+echo: {input: 2, output: 2}}\n")
    settings = {**model_at(server.base_url, "cite-wrong"), "model_prices": prices, "claim_verifier": "lexical"}
    async with open_world(folder, **settings) as (_, http):
        yield template.client(http)


async def run_of(client: Client, **changed: Any) -> dict[str, Any]:
    if "dataset" not in changed:
        made = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "judged", "cases": CASES})
        changed["dataset"] = made["id"]
    body = {"configurations": CONFIGURATIONS, "judge": {}, **changed}
    accepted = await client.data("POST", "/evaluation/runs", status=202, json=body)
    job = await client.ended(accepted["job_id"])
    assert job["state"] in ("succeeded", "partial"), job
    run: dict[str, Any] = await client.data("GET", f"/evaluation/runs/{accepted['run_id']}")
    return run


async def test_a_judge_compares_answers_in_both_orders(client: Client, server: ModelServer) -> None:
    server.reset()
    run = await run_of(client, judge={"model": "judge+echo"})
    result = run["result"]
    marked, same = result["judge"]["comparisons"]
    assert (run["judge_model"], result["judge"]["model"]) == ("judge+echo", "judge+echo")
    assert result["judge"]["prompt"].startswith("answer_comparison@")
    counts = ("wins", "losses", "ties", "equal_answers", "failed", "agreement")
    assert [marked[name] for name in counts] == [1, 0, 2, 2, 0, 1.0], "two questions are refused in equal words"
    assert [same[name] for name in counts] == [0, 0, 3, 3, 0, None]
    usage, stats = result["judge"]["usage"], server.stats().models["judge+echo"]
    assert usage["calls"] == stats.calls == 2
    assert usage["cost"] == pytest.approx(2e-6 * (usage["prompt_tokens"] + usage["completion_tokens"]))
    assert result["currency"] == "EUR"
    for of in result["configurations"]:
        tokens = of["usage"]
        assert tokens["cost"] == pytest.approx(1e-6 * tokens["prompt_tokens"] + 1e-5 * tokens["completion_tokens"])
        assert tokens["calls"] > 0
    for accept in ("text/html", "text/markdown"):
        report = (await client.get(f"/evaluation/runs/{run['id']}/report", headers={"Accept": accept})).text
        assert "Comparison by a model" in report
        assert "compared each answer with the baseline" in report

    plain = await run_of(client, judge=None, dataset=run["dataset"])
    assert ("judge" in plain["result"], plain["judge_model"]) == (False, None)


async def test_the_judge_is_a_part_of_budget_and_estimate(client: Client) -> None:
    cases = [*CASES, {"question": "Who?"}, {"question": "When?"}]
    dataset = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "five", "cases": cases})
    run = await run_of(client, max_tokens=1, dataset=dataset["id"])
    assert run["state"] == "partial"
    assert run["result"]["reasons"] == [
        "3 of 15 questions were not asked: 1 tokens are used up",
        "2 of 10 pairs of answers were not compared: 1 tokens are used up",
    ], "four cases are asked at once"
    body = {"dataset": dataset["id"], "configurations": CONFIGURATIONS, "judge": {}, "dry_run": True}
    judged = (await client.data("POST", "/evaluation/runs", json=body))["estimate"]
    alone = (await client.data("POST", "/evaluation/runs", json={**body, "judge": None}))["estimate"]
    assert (judged["comparisons"], alone["comparisons"]) == (10, 0)
    assert judged["prompt_tokens"] > alone["prompt_tokens"]
    assert judged["cost"] > alone["cost"] > 0
    unknown = (await client.data("POST", "/evaluation/runs", json={**body, "judge": {"model": "unpriced"}}))["estimate"]
    assert unknown["cost"] is None
    for changed in ({"configurations": CONFIGURATIONS[:1]}, {"metrics": ["recall"]}, {"judge": {"model": ""}}, {"judge": True}):
        response = await client.post("/evaluation/runs", {**body, **changed})
        assert (response.status_code, "judge" in response.text) == (422, True), changed
