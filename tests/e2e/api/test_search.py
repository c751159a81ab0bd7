"""Searches and answers: every strategy, its limits and options, and verbatim citations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.e2e.api.conftest import Client, World

from agentic_rag_backend.retrieval.registry import STRATEGIES

pytestmark = pytest.mark.asyncio(loop_scope="module")

Events = Callable[[httpx.Response], list[tuple[str, str, dict[str, Any]]]]
QUESTION = "Why was the tidal barrage delayed?"
UNANSWERABLE = "Which composer wrote the opera about the moons of Jupiter?"
DUAL_LEVEL = "DUAL_LEVEL_RETRIEVAL_ENABLED"


async def _switch(client: Client, on: bool | None) -> None:
    await client.data("PATCH", "/features", json={DUAL_LEVEL: on})


@pytest.fixture
async def dual_level(world: World) -> Any:
    """Switch dual-level retrieval on for alpha during a test."""
    await _switch(world.alpha, True)
    yield world
    await _switch(world.alpha, None)


@pytest.mark.usefixtures("dual_level")
async def test_what_has_no_effect_is_told(world: World) -> None:
    cases: tuple[tuple[str, dict[str, Any], list[str]], ...] = (
        ("community", {"rerank": "mmr"}, ["rerank has no effect: strategy 'community' returns no passages"]),
        ("global", {"rerank": {"top_n": 2}}, ["rerank has no effect: strategy 'global' returns no passages"]),
        ("global", {"rerank": False}, []),
        ("hybrid", {"rerank": "mmr"}, []),
        (
            "fusion",
            {"options": {"preset": "factual", "methods": ["dense", "sparse"]}},
            ["options.preset has no effect: options.methods names the strategies"],
        ),
        *(
            (name, {"options": {"level": 9}}, ["options.level: there is no level 9; levels are 0"])
            for name in ("community", "global", "drift", "dual_level")
        ),
        ("community", {"options": {"level": 0}}, []),
    )
    for strategy, fields, warnings in cases:
        body = {"query": QUESTION, "strategy": strategy, **fields}
        assert (await world.alpha_reader.post("/search", body)).json()["meta"]["warnings"] == warnings, body


NAMES = [name for key, strategy in STRATEGIES.items() if key != "dual_level" for name in (key, *strategy.aliases)]


@pytest.mark.parametrize("name", NAMES)
async def test_each_strategy_answers_by_name_and_alias(world: World, name: str) -> None:
    response = await world.alpha_reader.post("/search", {"query": QUESTION, "strategy": name, "limit": 2})
    assert response.status_code == 200, response.text
    body = response.json()
    data, meta = body["data"], body["meta"]
    canonical = next(key for key, strategy in STRATEGIES.items() if name in (key, *strategy.aliases))
    assert meta["strategy"] == data["trace"]["strategy"]
    assert meta["strategy"] == canonical
    # The question asks for an account, so `auto` finds its passages with `hybrid`.
    assert meta["methods_used"][0] == "hybrid" if canonical == "auto" else meta["methods_used"]
    assert meta.keys() >= {"methods_used", "fusion", "fallback_used", "fallback_reason", "processing_time_ms", "warnings"}
    if canonical in {"community", "global"}:
        assert data["themes"]
        assert {theme["type"] for theme in data["themes"]} == {"community"}
    else:
        assert data["results"][0]["document_id"] == world.documents["alpha"]["tide"]["id"]
        assert len(data["results"]) <= 2
        scores = [result["score"] for result in data["results"]]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


async def test_limits_and_filters_bind(world: World) -> None:
    async def titles(**fields: Any) -> list[str]:
        body = {"query": "Harbour Authority", "strategy": "hybrid", **fields}
        return [result["title"] for result in (await world.alpha.data("POST", "/search", json=body))["results"]]

    every = {"Tidal barrage", "Eel passage", "Fish market"}
    assert set(await titles(limit=100)) == every
    assert len(await titles(limit=1)) == 1
    assert len(await titles(top_k=2)) == 2
    assert set(await titles(filters={"category": "report"})) == every - {"Tidal barrage"}
    assert set(await titles(filters={"rank": {"gte": 1}, "not": {"title": "Fish market"}})) == {"Eel passage"}
    assert set(await titles(filters={"or": [{"key": "tide"}, {"rank": 2}]})) == every - {"Eel passage"}
    assert await titles(filters={"document_id": world.documents["alpha"]["eels"]["id"]}) == ["Eel passage"]
    assert await titles(filters={"absent": "x"}) == []
    only = {"query": "Who leads the Harbour Authority?", "strategy": "graph", "filters": {"key": "eels"}}
    facts = (await world.alpha.data("POST", "/search", json=only))["facts"]
    assert {fact["document_id"] for fact in facts} <= {world.documents["alpha"]["eels"]["id"]}
    assert set(await titles(filters={"absent": {"missing": True}})) == every


async def test_options_reach_the_strategy(world: World) -> None:
    body = {"query": "Who?", "strategy": "graph", "options": {"entities": ["Mara Venn", "Nobody Atall"]}}
    response = await world.alpha.post("/search", body)
    data, warnings = response.json()["data"], " ".join(response.json()["meta"]["warnings"])
    assert "Nobody Atall" in warnings
    assert "Mara Venn" not in warnings
    assert data["trace"]["details"]["linked_entities"] == 1
    assert response.json()["meta"]["fallback_used"] is False
    levels = await world.alpha.data("POST", "/search", json={"query": QUESTION, "strategy": "community", "options": {"level": 9}})
    assert levels["themes"] == []


async def test_facts_and_entities_name_chunks_that_can_be_read(world: World) -> None:
    data = await world.alpha.data("POST", "/search", json={"query": "Who leads the Harbour Authority?", "strategy": "graph"})
    assert data["facts"]
    for fact in data["facts"]:
        chunk = await world.alpha.data("GET", f"/chunks/{fact['chunk_id']}")
        assert fact["document_id"] == chunk["document_id"]
        assert " ".join(fact["fact"].split()) in " ".join(chunk["content"].split())


async def _verbatim(client: Client, citations: list[dict[str, Any]]) -> None:
    """Check quotes against the chunks of the cited documents."""
    for citation in citations:
        chunks = await client.data("GET", f"/documents/{citation['document_id']}/chunks", params={"limit": 100})
        chunk = next(item for item in chunks if item["id"] == citation["chunk_id"])
        start = chunk["location"]["start_char"]
        assert chunk["content"][citation["start_char"] - start : citation["end_char"] - start] == citation["quote"]
        assert chunk["title"] == citation["title"]


@pytest.mark.parametrize("generator", ["attributed", "standard"])
async def test_answers_cite_verbatim(world: World, generator: str) -> None:
    data = await world.alpha_reader.data("POST", "/answers", json={"query": QUESTION, "generator": generator})
    assert data["grounded"] is True
    assert "two years" in data["answer"]
    assert data["generator"] == generator
    assert 0 < data["confidence"] <= 1
    assert data["citations"]
    assert all(f"[{citation['marker']}]" in data["answer"] for citation in data["citations"])
    assert {citation["chunk_id"] for citation in data["citations"]} <= {source["id"] for source in data["sources"]}
    await _verbatim(world.alpha, data["citations"])


async def test_verified_without_a_language_model_is_attributed_and_says_so(world: World) -> None:
    body = (await world.alpha_reader.post("/answers", {"query": QUESTION, "generator": "verified"})).json()
    data = body["data"]
    assert (data["generator"], data["model"], data["grounded"]) == ("attributed", "extractive", True)
    warning = "generator 'verified' needs a language model (LLM=openai); without one, 'attributed' answers"
    assert warning in body["meta"]["warnings"]
    refused = (
        await world.alpha_reader.post("/answers", {"query": "Who won the World Cup of 1930?", "generator": "verified"})
    ).json()
    assert not refused["data"]["grounded"]
    assert warning in refused["meta"]["warnings"]
    other = (await world.alpha_reader.post("/answers", {"query": QUESTION})).json()
    assert other["meta"]["warnings"] == []
    assert data["trace"]["fallback_used"] is True
    assert "no language model wrote it; the attributed generator answered" in data["trace"]["fallback_reason"]


async def test_what_the_documents_do_not_say_is_refused(world: World) -> None:
    data = await world.alpha.data("POST", "/answers", json={"query": UNANSWERABLE})
    assert (data["grounded"], data["citations"]) == (False, [])
    assert data["confidence"] < 0.35


async def test_a_streamed_answer_is_the_answer(world: World, sse: Events) -> None:
    body = {"query": QUESTION, "history": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello."}]}
    whole = await world.alpha.data("POST", "/answers", json=body)
    response = await world.alpha.post("/answers", {**body, "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")

    events = sse(response)
    names = [name for _, name, _ in events]
    assert [number for number, _, _ in events] == [str(number + 1) for number in range(len(events))]
    assert all(data["v"] == 1 for _, _, data in events)
    assert (names[0], names[-2:], names.count("done")) == ("retrieval", ["usage", "done"], 1)
    assert "".join(data["text"] for _, name, data in events if name == "token").strip() == whole["answer"]
    done = events[-1][2]
    assert [data for _, name, data in events if name == "citation"] == [{**item, "v": 1} for item in done["citations"]]
    assert (done["answer"], done["citations"], done["grounded"]) == (whole["answer"], whole["citations"], True)


async def test_a_streamed_refusal_is_a_refusal(world: World, sse: Events) -> None:
    events = sse(await world.alpha.post("/answers", {"query": UNANSWERABLE, "stream": True}))
    assert events[-1][1] == "done"
    assert events[-1][2]["grounded"] is False
    assert not [name for _, name, _ in events if name == "citation"]


async def test_dual_level_is_not_there_while_its_flag_is_off(world: World) -> None:
    asked = [
        ("/search/dual-level", {"query": QUESTION}),
        ("/search", {"query": QUESTION, "strategy": "dual_level"}),
        ("/answers", {"query": QUESTION, "strategy": "dual_level"}),
        ("/answers", {"query": QUESTION, "strategy": "dual_level", "stream": True}),
    ]
    for path, body in asked:
        response = await world.alpha.post(path, body)
        assert (response.status_code, response.json()["code"]) == (404, "feature_disabled"), (path, body)


async def test_a_flag_acts_on_the_next_request_of_its_tenant_only(world: World) -> None:
    async def states(client: Client) -> tuple[int, str, bool]:
        response = await client.post("/search/dual-level", {"query": QUESTION})
        auto = (await client.post("/search", {"query": QUESTION})).json()["meta"]["methods_used"][0]
        strategies = {item["name"]: item for item in await client.data("GET", "/strategies")}
        assert (strategies["dual_level"]["why_not"] is None) == strategies["dual_level"]["available"]
        return response.status_code, auto, strategies["dual_level"]["available"]

    off, on = (404, "hybrid", False), (200, "dual_level", True)
    assert await states(world.alpha) == off
    (changed,) = [
        flag for flag in await world.alpha.data("PATCH", "/features", json={DUAL_LEVEL: True}) if flag["name"] == DUAL_LEVEL
    ]
    assert (changed["value"], changed["default"], changed["source"]) == (True, False, "tenant")
    assert await states(world.alpha) == on
    assert await states(world.beta) == off
    await _switch(world.alpha, None)
    assert await states(world.alpha) == off
    (back,) = [flag for flag in await world.alpha.data("GET", "/features") if flag["name"] == DUAL_LEVEL]
    assert (back["value"], back["source"]) == (False, "default")


@pytest.mark.usefixtures("dual_level")
async def test_both_levels_answer_with_citations(world: World) -> None:
    response = await world.alpha_reader.post("/search/dual-level", {"query": QUESTION})
    data = response.json()["data"]
    assert data["query"] == QUESTION
    assert data["low_level_results"][0]["document_id"] == world.documents["alpha"]["tide"]["id"]
    assert data["high_level_results"][0]["type"] == "community"
    assert data["weights"] == {"low": 0.6, "high": 0.4}
    assert (data["fallback_used"], data["fallback_reason"]) == (False, None)
    assert "two years" in data["synthesized_answer"]
    assert data["citations"]
    assert data["processing_time_ms"].keys() == {"retrieval", "synthesis", "total"}
    for result in data["low_level_results"]:
        assert result["weighted_score"] == pytest.approx(result["score"] * 0.6)
    for theme in data["high_level_results"]:
        assert theme["weighted_score"] == pytest.approx(theme["score"] * 0.4)
    await _verbatim(world.alpha, data["citations"])


@pytest.mark.usefixtures("dual_level")
@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        ({"preset": "factoid"}, 0.8, 0.2),
        ({"low_weight": 0.9}, 0.9, 0.1),
        ({"preset": "factoid", "low_weight": 0.1, "high_weight": 0.9}, 0.1, 0.9),
        ({"low_weight": 0.9, "high_weight": 0.3}, 0.75, 0.25),
        ({"low_weight": 0, "high_weight": 0.2}, 0.0, 1.0),
    ],
)
async def test_weights(world: World, given: dict[str, Any], low: float, high: float) -> None:
    response = await world.alpha.post("/search/dual-level", {"query": QUESTION, "synthesize": False, **given})
    body = response.json()
    assert body["data"]["weights"] == {"low": pytest.approx(low), "high": pytest.approx(high)}
    unnormalised = {"low_weight", "high_weight"} <= given.keys() and given["low_weight"] + given["high_weight"] != 1
    assert any("normalised" in warning for warning in body["meta"]["warnings"]) == unnormalised
    if "preset" not in given:
        weights = {name.removesuffix("_weight"): value for name, value in given.items()}
        same = await world.alpha.post("/search", {"query": QUESTION, "strategy": "dual_level", "weights": weights})
        themes = same.json()["data"]["themes"]
        assert all(theme["weighted_score"] == pytest.approx(theme["score"] * high) for theme in themes)


@pytest.mark.usefixtures("dual_level")
async def test_dual_level_limits_synthesis_and_prompt(world: World) -> None:
    body = {"query": "Harbour Authority", "low_limit": 1, "high_limit": 1, "synthesize": False}
    data = await world.alpha.data("POST", "/search/dual-level", json=body)
    assert (len(data["low_level_results"]), len(data["high_level_results"])) == (1, 1)
    assert (data["synthesized_answer"], data["citations"]) == (None, [])
    assert data["processing_time_ms"]["synthesis"] < data["processing_time_ms"]["total"]

    prompt = "Answer {{question}} from {{passages}} only."
    data = await world.alpha.data("POST", "/search/dual-level", json={"query": QUESTION, "prompt": prompt})
    assert data["citations"]
    refused = await world.alpha.post("/search/dual-level", {"query": QUESTION, "prompt": "Answer freely."})
    assert refused.status_code == 422
    assert "passages" in refused.json()["detail"]


@pytest.mark.usefixtures("dual_level")
async def test_a_dual_level_search_takes_the_fields_of_a_search(world: World) -> None:
    eels = world.documents["alpha"]["eels"]["id"]
    asked = "How many eels were counted at the eel passage in 2018?"
    fields = {
        "filters": {"document_id": eels},
        "options": {"low_strategy": "hybrid"},
        "rerank": {"name": "mmr", "top_n": 1},
    }
    response = await world.alpha.post("/search/dual-level", {"query": asked, "synthesize": False, **fields})
    found = response.json()
    assert [each["document_id"] for each in found["data"]["low_level_results"]] == [eels]
    assert found["meta"]["methods_used"][-1] == "mmr"
    same = (await world.alpha.post("/search", {"query": asked, "strategy": "dual_level", **fields})).json()
    assert [each["id"] for each in same["data"]["results"]] == [each["id"] for each in found["data"]["low_level_results"]]
    for field, value in (("filters", {"document_id": {"near": eels}}), ("rerank", "best"), ("options", {"max_rounds": 2})):
        refused = await world.alpha.post("/search/dual-level", {"query": QUESTION, field: value})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request"), field


@pytest.mark.usefixtures("dual_level")
async def test_either_level_empty_falls_back_to_the_other(world: World) -> None:
    data = await world.alpha.data("POST", "/search/dual-level", json={"query": UNANSWERABLE})
    assert data["grounded"] is False
    assert data["fallback_used"] is True
    assert "low level" in data["fallback_reason"]

    client = await world.tenant("without communities")
    await client.upload("Mara Venn built the pier.")
    await _switch(client, True)
    data = await client.data("POST", "/search/dual-level", json={"query": "Who built the pier?"})
    assert data["fallback_used"] is True
    assert "high level" in data["fallback_reason"]
    assert data["high_level_results"] == []
    assert data["weights"] == {"low": 1.0, "high": 0.0}
    assert "Mara Venn built the pier." in data["synthesized_answer"]
    await world.operator.data("DELETE", f"/tenants/{client.caller.tenant_id}")


@pytest.mark.usefixtures("dual_level")
async def test_answers_use_both_levels_where_they_are_on(world: World) -> None:
    data = await world.alpha.data("POST", "/answers", json={"query": QUESTION})
    assert data["trace"]["methods_used"][0] == "dual_level"
    assert data["themes"]
    assert data["grounded"] is True


WHY, WHO = "Why was the tidal barrage delayed?", "Who leads the Harbour Authority?"


async def test_weights_come_from_the_form_of_the_question_or_from_the_tenant(dual_level: World) -> None:
    client = dual_level.alpha

    async def low(query: str, **fields: Any) -> float:
        body = {"query": query, "synthesize": False, **fields}
        weights = (await client.data("POST", "/search/dual-level", json=body))["weights"]
        assert weights["low"] + weights["high"] == pytest.approx(1)
        return float(weights["low"])

    assert [await low(WHY), await low(WHO)] == [0.6, 0.6]
    assert [await low(WHY, preset="auto"), await low(WHO, preset="auto")] == [0.3, 0.8]
    searched = {"query": WHO, "strategy": "dual_level", "weights": {"preset": "auto"}}
    themes = (await client.data("POST", "/search", json=searched))["themes"]
    assert [theme["weighted_score"] for theme in themes] == pytest.approx([0.2 * theme["score"] for theme in themes])
    for flags, expected in (
        ({"DUAL_LEVEL_AUTO_WEIGHTS": True}, [0.3, 0.8, 0.5, 0.1]),
        ({"DUAL_LEVEL_AUTO_WEIGHTS": None, "DUAL_LEVEL_LOW_WEIGHT": 0.9}, [0.9, 0.9, 0.5, 0.1]),
        ({"DUAL_LEVEL_LOW_WEIGHT": None}, [0.6, 0.6, 0.5, 0.1]),
    ):
        await client.data("PATCH", "/features", json=flags)
        found = [await low(WHY), await low(WHO), await low(WHO, preset="research"), await low(WHO, low_weight=0.1)]
        assert found == pytest.approx(expected)
    refused = await client.patch("/features", {"DUAL_LEVEL_LOW_WEIGHT": 2})
    assert refused.status_code == 422


async def test_a_very_long_question_is_embedded_in_part_and_the_response_says_so(dual_level: World, sse: Events) -> None:
    question = {"query": "." * 7980 + " barrage"}
    text = "query has 7988 characters; only the first 254 were embedded, and all of it was searched as words"
    for path in ("/search", "/search/dual-level", "/answers"):
        short = await dual_level.alpha.post(path, {"query": "Why was the barrage delayed?"})
        long = await dual_level.alpha.post(path, question)
        assert (short.status_code, long.status_code) == (200, 200)
        assert text in long.json()["meta"]["warnings"]
        assert not any("embedded" in warning for warning in short.json()["meta"]["warnings"])
    streamed = sse(await dual_level.alpha.post("/answers", {**question, "stream": True}))
    assert text in streamed[0][2]["trace"]["warnings"]
