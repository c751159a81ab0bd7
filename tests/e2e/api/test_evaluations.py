"""Datasets and evaluation runs over HTTP: upload, versions, generation, runs with metrics, gates, reports, bad input."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.e2e.api.conftest import Client, World, add_tenant

from agentic_rag_backend.domain.evaluation import CaseOutcome
from agentic_rag_backend.evaluation.question_asking import Asker
from agentic_rag_backend.evaluation.reports.gates import check_gate, parse_gate
from agentic_rag_backend.stores.catalogue.pages import encode_cursor

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXTS = {
    "barrage": "# The barrage\n\nIna Torv leads the Greywater Company. The Greywater Company opened the lower lock in May 1987.",
    "lock": "# The lock\n\nThe Greywater Company lent the old dredger to Port Halden. The lower lock has two gates of steel.",
    "market": "# The market\n\nOskar Lind sold the covered market to Port Halden in 1994. The covered market has ninety stalls.",
    "mill": "# The mill\n\nMerle Aston restored the Sable Mill with her own money. The Sable Mill grinds rye for Port Halden.",
}
CASES: list[dict[str, Any]] = [
    {
        "question": "Who leads the Greywater Company?",
        "expected_answer": "Ina Torv",
        "kind": "fact",
        "tags": ["people"],
        "gold_quotes": ["Ina Torv   leads the Greywater\nCompany."],
    },
    {"question": "Who restored the Sable Mill?", "must_say": ["Merle Aston"], "kind": "fact", "gold_documents": ["mill"]},
    {
        "question": "How many stalls has the covered market?",
        "expected_answer": "ninety",
        "kind": "number",
        "gold_quotes": ["The covered market has ninety stalls."],
        "gold_documents": ["market"],
    },
    {"question": "What does a ticket for the funicular of Zermatt cost?", "answerable": False},
]


async def filled(world: World, name: str) -> Client:
    client = await world.tenant(name)
    await asyncio.gather(*(client.upload(text, key=key) for key, text in TEXTS.items()))
    return client


async def run_of(client: Client, dataset: str, **body: Any) -> dict[str, Any]:
    """Run configurations over a dataset, and return the run with its result."""
    accepted = await client.data("POST", "/evaluation/runs", status=202, json={"dataset": dataset, **body})
    job = await client.ended(accepted["job_id"])
    assert job["state"] in {"succeeded", "partial"}, job
    run: dict[str, Any] = await client.data("GET", f"/evaluation/runs/{accepted['run_id']}")
    return run


async def test_a_run_measures_and_compares_configurations(world: World) -> None:  # noqa: PLR0915 - one story, in its order
    client = await filled(world, "measures")
    dataset = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "four", "cases": CASES})
    assert (dataset["version"], dataset["case_count"], dataset["kinds"]) == (1, 4, {"": 1, "fact": 2, "number": 1})
    configurations = [
        {"name": "base", "strategy": "hybrid"},
        {"name": "worse", "strategy": "community"},
        {"name": "equal", "strategy": "hybrid"},
    ]
    estimate = await client.data(
        "POST", "/evaluation/runs", json={"dataset": dataset["id"], "configurations": configurations, "dry_run": True}
    )
    assert (estimate["dry_run"], estimate["run_id"], estimate["estimate"]["questions"]) == (True, None, 12)
    assert await client.data("GET", "/evaluation/runs") == []

    run = await run_of(client, dataset["id"], configurations=configurations, k=2)
    result = run["result"]
    base, worse, _ = result["configurations"]
    assert (run["state"], run["done"], run["total"], base["cases"], result["reasons"]) == ("succeeded", 12, 12, 4, [])
    assert base["metrics"]["recall@2"] == {"value": 1.0, "interval": [1.0, 1.0], "count": 3}
    assert worse["metrics"]["recall@2"]["value"] == 0.0
    assert base["metrics"]["contains"]["count"] == 2
    assert base["metrics"]["correct"]["count"] == 4
    assert base["metrics"]["refused_unanswerable"]["value"] == 1.0
    assert set(base["slices"]["kind"]) == {"fact", "number"}
    assert base["slices"]["tag"]["people"]["cases"] == 1
    assert base["latency_ms"]["total"]["p95"] >= base["latency_ms"]["total"]["p50"] > 0
    assert (base["usage"]["calls"], base["usage"]["cost"], base["diversity"]["places"]) == (0, 0, 8)
    of_equal = [row for row in result["differences"] if row["configuration"] == "equal"]
    assert all(row["value"] == 0 and row["p"] == 1 for row in of_equal if row["metric"] != "latency_ms")
    failures = check_gate(parse_gate("recall@2 < 0.5"), result)
    assert [failure.configuration for failure in failures] == ["worse"]
    assert check_gate(parse_gate("recall@2 < baseline - 0.02"), result) == [], "three cases may differ by chance"

    outcomes = await client.pages(f"/evaluation/runs/{run['id']}/outcomes", limit=5)
    assert len(outcomes) == 12
    words = {word for case in CASES for word in ("Torv", "Aston", str(case["question"]))}
    assert not any(word in json.dumps(outcomes) for word in words), "outcomes have no texts"
    page = (await client.get(f"/evaluation/runs/{run['id']}/report", headers={"Accept": "text/html"})).text
    assert "<svg" in page
    assert "<script" not in page
    markdown = (await client.get(f"/evaluation/runs/{run['id']}/report", headers={"Accept": "text/markdown"})).text
    assert "| recall@2 | 1.000 [1.000, 1.000] |" in markdown
    assert (await client.data("GET", f"/evaluation/runs/{run['id']}/report"))["result"] == result

    second = await run_of(client, dataset["id"], configurations=[configurations[1]], k=2, metrics=["recall"])
    assert "correct" not in second["result"]["configurations"][0]["metrics"], "no answers were written"
    compared = await client.data("GET", f"/evaluation/runs/{second['id']}", params={"baseline": run["id"]})
    assert {row["baseline"] for row in compared["result"]["differences"]} == {"worse (baseline run)"}
    listed = await client.data("GET", "/evaluation/runs", params={"dataset": dataset["id"]})
    assert [(item["id"], item["result"]) for item in listed] == [(second["id"], None), (run["id"], None)]
    apart = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "apart", "cases": CASES[:1]})
    third = await run_of(client, apart["id"], configurations=configurations[:1], metrics=["recall"])
    response = await client.get(f"/evaluation/runs/{third['id']}", params={"baseline": run["id"]})
    assert (response.status_code, "no case in common" in response.text) == (409, True)
    assert (await client.delete(f"/evaluation/datasets/{apart['id']}")).status_code == 204
    assert (await client.delete(f"/evaluation/runs/{second['id']}")).status_code == 204
    assert (await client.delete(f"/evaluation/datasets/{dataset['id']}")).status_code == 204
    assert (await client.get(f"/evaluation/runs/{run['id']}")).status_code == 404


async def test_datasets_survive_new_chunks_but_not_the_deletion_of_their_documents(world: World) -> None:
    client = await filled(world, "survives")
    mill = (await client.data("GET", "/documents", params={"key": "mill"}))[0]
    (chunk,) = await client.data("GET", f"/documents/{mill['id']}/chunks")
    case = {"question": "Who restored the Sable Mill?", "expected_answer": "Merle Aston", "gold_chunk_ids": [chunk["id"]]}
    dataset = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "chunks", "cases": [case]})
    answer = await client.data("POST", "/answers", json={"query": case["question"]})
    citations = [{"chunk_id": citation["chunk_id"], "quote": citation["quote"]} for citation in answer["citations"][:1]]
    saved = {"question": case["question"], "expected_answer": "Merle Aston", "citations": citations}
    path = f"/evaluation/datasets/{dataset['id']}/cases"
    assert (await client.data("POST", path, status=201, json={"answer": saved}))["version"] == 2
    assert [item["source"] for item in await client.data("GET", path)] == ["upload", "answer"]

    unseen = {**saved, "citations": [{"chunk_id": "no chunk", "quote": "a text of a deleted document"}]}
    assert (await client.post(path, {"answer": unseen})).status_code == 422, "no deletion would remove the quote"

    again = await client.data("POST", f"/documents/{mill['id']}/chunks", status=202, json={"chunk_size": 20, "overlap": 0})
    assert (await client.ended(again["job_id"]))["state"] == "succeeded"
    assert (await client.get(f"/chunks/{chunk['id']}")).status_code == 404, "the chunks are new"
    configurations = [{"name": "sparse", "strategy": "sparse"}]
    metrics = (await run_of(client, dataset["id"], configurations=configurations))["result"]["configurations"][0]["metrics"]
    assert metrics["recall@5"] == {"value": 1.0, "interval": [1.0, 1.0], "count": 2}

    exported = (await client.get(f"/evaluation/datasets/{dataset['id']}/export")).text
    upload = {"files": {"file": ("copy.jsonl", exported)}, "data": {"name": "copy"}}
    assert (await client.data("POST", "/evaluation/datasets", status=201, **upload))["case_count"] == 2

    deleted = await client.data("DELETE", f"/documents/{mill['id']}", status=202)
    assert (await client.ended(deleted["job_id"]))["result"]["removed"]["rows"]["evaluation_cases"] == 2
    cases = await client.data("GET", path)
    assert [(item["source"], item["gold"]) for item in cases] == [
        ("upload", [{"quote": "", "chunk_id": chunk["id"], "document": None}])
    ]
    warned = (await run_of(client, dataset["id"], configurations=configurations))["result"]
    assert warned["warnings"] == ["1 cases have evidence that no visible document has; their results are measured without it"]


async def test_questions_are_generated_from_the_tenants_documents(world: World) -> None:
    client = await filled(world, "generates")
    await client.rebuild()
    made = []
    for name in ("first", "second"):
        body = {"name": name, "generate": {"count": 12}}
        dataset = await client.data("POST", "/evaluation/datasets", status=202, json=body)
        job = await client.ended(dataset["job_id"])
        assert job["result"]["cases"] > 5, job
        made.append(await client.data("GET", f"/evaluation/datasets/{dataset['id']}/cases"))
    first, second = ([{**case, "id": ""} for case in cases] for cases in made)
    assert first == second, "equal documents and seeds give equal questions"
    questions = {case["question"]: case for case in first}
    asked = questions["When did the Greywater Company open the lower lock?"]
    assert (asked["expected_answer"], asked["kind"], asked["source"]) == ("May 1987", "time", "graph")
    for case in first:
        assert case["gold"] or not case["answerable"], case
        for item in case["gold"]:
            texts = [chunk["content"] for chunk in await client.data("GET", f"/documents/{item['document']}/chunks")]
            assert any(item["quote"] in text for text in texts), item


async def test_runs_leave_room_for_documents(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run may take hours: a tenant's runs follow each other, and its documents do not wait for them."""
    client = await filled(world, "room")
    dataset = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "one", "cases": CASES[:1]})
    asked, may_answer, ask = asyncio.Semaphore(0), asyncio.Event(), Asker.ask

    async def ask_late(*arguments: Any) -> tuple[CaseOutcome, str]:
        asked.release()
        await may_answer.wait()
        return await ask(*arguments)

    monkeypatch.setattr(Asker, "ask", ask_late)
    body = {"dataset": dataset["id"], "configurations": [{"name": "a", "strategy": "sparse"}], "metrics": ["recall"]}
    runs = [await client.data("POST", "/evaluation/runs", status=202, json=body) for _ in range(5)]
    await asyncio.wait_for(asked.acquire(), 10)
    document = await client.data("POST", "/documents", status=202, json={"text": "The pier of Port Halden is long."})
    assert (await client.ended(document["job_id"], within_s=10))["state"] == "succeeded"
    assert asked.locked(), "one run asks at a time"
    states = [(await client.data("GET", f"/evaluation/runs/{run['run_id']}"))["state"] for run in runs]
    assert sorted(states) == ["queued"] * 4 + ["running"], "a run that waits for its turn says so"
    assert [job["state"] for job in await client.data("GET", "/jobs", params={"kind": "evaluate"})] == states[::-1]
    waiting = await client.data("POST", f"/jobs/{runs[-1]['job_id']}/cancel", status=202)
    assert (await client.ended(waiting["job_id"], within_s=10))["state"] == "cancelled", "a run that waits can be cancelled"
    may_answer.set()
    assert {(await client.ended(run["job_id"]))["state"] for run in runs[:-1]} == {"succeeded"}
    may_answer.clear()
    runs = [await client.data("POST", "/evaluation/runs", status=202, json=body) for _ in range(2)]
    assert (await client.delete(f"/evaluation/datasets/{dataset['id']}")).status_code == 204
    assert {(await client.ended(run["job_id"]))["state"] for run in runs} == {"cancelled"}, "a dataset takes its runs along"


async def test_questions_are_kept_if_the_tenant_allows_it(world: World) -> None:  # noqa: PLR0915 - one story, in its order
    """Off by default. Administrators list them, make cases of them, and delete them. Follow-ups alone are not kept."""
    client = await filled(world, "asks")
    asked = ["Who leads the Greywater Company?", "who leads  the greywater company?", "What does a ticket for Zermatt cost?"]

    async def ask(question: str, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = await client.data("POST", "/answers", json={"query": question, **more})
        return answer

    await ask("Who asked before it was allowed?")
    assert await client.data("GET", "/evaluation/questions") == []
    body = {"name": "asked", "from_questions": {}}
    response = await client.post("/evaluation/datasets", body)
    assert (response.status_code, "QUESTION_LOG_ENABLED" in response.json()["detail"]) == (422, True)
    await client.data("PATCH", "/features", json={"QUESTION_LOG_ENABLED": True})
    answers = [await ask(question) for question in asked]
    await ask("And since when?", history=[{"role": "user", "content": asked[0]}])
    listed = await client.pages("/evaluation/questions", limit=2)
    assert [item["question"] for item in listed] == asked[::-1]
    assert [item["grounded"] for item in listed] == [answer["grounded"] for answer in answers[::-1]] == [False, True, True]
    await client.data("POST", "/feedback", json={"answer_id": answers[0]["id"], "rating": "bad"})
    (rated,) = await client.data("GET", "/evaluation/questions", params={"rating": "bad"})
    assert rated["id"] == answers[0]["id"]

    dataset = await client.data("POST", "/evaluation/datasets", status=201, json=body)
    path = f"/evaluation/datasets/{dataset['id']}/cases"
    cases = await client.data("GET", path)
    assert [(case["question"], case["source"]) for case in cases] == [(asked[2], "question"), (asked[1], "question")]
    assert [case["feedback"]["bad"] for case in cases] == [0, 1], "equal questions share their feedback"
    again = await client.data("POST", path, status=201, json={"from_questions": {}})
    assert again["version"] == 1, "equal questions are not added twice"
    worst = {"name": "worst", "from_questions": {"rating": "bad", "grounded": True, "count": 1}}
    assert (await client.data("POST", "/evaluation/datasets", status=201, json=worst))["case_count"] == 1
    measured = (await run_of(client, dataset["id"], configurations=[{"name": "a", "strategy": "hybrid"}]))["result"]
    assert measured["configurations"][0]["metrics"]["answered_answerable"]["value"] == 0.5

    assert (await client.delete(f"/evaluation/questions/{answers[1]['id']}")).status_code == 204
    assert (await client.delete(f"/evaluation/questions/{answers[1]['id']}")).status_code == 404
    assert await world.beta.data("DELETE", "/evaluation/questions") == {"questions": 0}
    assert await client.data("DELETE", "/evaluation/questions") == {"questions": 2}
    await client.data("PATCH", "/features", json={"QUESTION_LOG_ENABLED": False})
    await ask(asked[0])
    assert await client.data("GET", "/evaluation/questions") == []
    assert len(await client.data("GET", path)) == 2, "datasets stay"


async def test_questions_of_all_keys_are_for_administrators(world: World) -> None:
    writer = (await add_tenant(world.operator.http, "writes", "write"))[0]
    for response in (
        await writer.post("/evaluation/datasets", {"name": "asked", "from_questions": {}}),
        await writer.get("/evaluation/questions"),
        await writer.delete("/evaluation/questions"),
    ):
        assert response.status_code == 403


async def test_files_of_jsonl_and_csv(world: World) -> None:
    client = await world.tenant("uploads")
    table = "question,expected_answer,answerable,tags,gold_quotes,must_say\n"
    table += '"Who, if any?",Ida,yes,a; b,"One; two.","[""x"", ""y""]"\n'
    for name, content in (("q.jsonl", '{"question": "Who?"}\n\n'), ("q.csv", "\ufeff" + table)):
        made = await client.data(
            "POST", "/evaluation/datasets", status=201, files={"file": (name, content.encode())}, data={"name": name}
        )
        assert made["case_count"] == 1
    (case,) = await client.data("GET", f"/evaluation/datasets/{made['id']}/cases")
    assert (case["question"], case["tags"], case["must_say"]) == ("Who, if any?", ["a", "b"], ["x", "y"])
    assert [item["quote"] for item in case["gold"]] == ["One; two."]
    refused: list[tuple[str, str | bytes, str]] = [
        ("q.jsonl", '{"question": "Who?"}\n{"question": ', "line 2 is not JSON"),
        ("q.jsonl", '{"question": "Who?", "answer": 1}', "line 1: answer: is not known here"),
        ("q.jsonl", '{"question": " "}', "line 1"),
        ("q.jsonl", "\n", "no cases"),
        ("q.csv", "answer\nx\n", "the column 'question' is missing"),
        ("q.csv", "question,answerable\nWho?,maybe\n", "line 2: answerable: must be true or false"),
        ("q.csv", "question\nWho?,x\n", "line 2 has more cells"),
        ("q.csv", 'question\n"Who?\n', "is not CSV"),
        ("q.jsonl", b"\xff", "must be UTF-8"),
        ("q.pdf", b"%PDF", "a dataset is application/x-ndjson or text/csv"),
    ]
    for name, file_content, message in refused:
        response = await client.post("/evaluation/datasets", files={"file": (name, file_content)}, data={"name": "bad"})
        assert response.status_code in (415, 422), message
        assert message in response.json()["detail"]
    assert len(await client.data("GET", "/evaluation/datasets")) == 2, "refused files leave nothing"


async def test_bad_requests_name_the_limit(world: World) -> None:
    client = world.alpha
    dataset = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "one", "cases": CASES[:1]})
    empty = await client.data("POST", "/evaluation/datasets", status=202, json={"name": "none", "generate": {"count": 1}})
    await client.ended(empty["job_id"])
    run = {"dataset": dataset["id"], "configurations": [{"name": "a", "strategy": "hybrid"}]}
    for changed, message in (
        ({"configurations": []}, "configurations"),
        ({"configurations": [{"name": "a", "strategy": "nosuch"}]}, "nosuch"),
        ({"configurations": [{"name": "a", "strategy": "dual_level"}]}, "DUAL_LEVEL_RETRIEVAL_ENABLED"),
        ({"configurations": [{"name": "a", "generator": "nosuch"}]}, "attributed"),
        ({"configurations": [{"name": "a", "options": {"nosuch": 1}}]}, "nosuch"),
        ({"configurations": [{"name": "a", "rerank": "nosuch"}]}, "nosuch"),
        ({"configurations": [{"name": "a"}, {"name": "a"}]}, "'a' occurs 2 times"),
        ({"configurations": [{"name": "a\x1b[2J"}]}, "printable"),
        ({"k": 101}, "100"),
        ({"version": 2}, "the versions 1 to 1; got 2"),
        ({"metrics": ["nosuch"]}, "recall"),
        ({"max_tokens": 0}, "1"),
        ({"judge": {}, "configurations": [{"name": "a"}, {"name": "b"}]}, "a judge needs a language model"),
    ):
        response = await client.post("/evaluation/runs", {**run, **changed})
        assert response.status_code in (404, 422), (changed, response.text)
        assert message in response.text, (changed, response.text)
    for path, scope, position in (
        ("/evaluation/metrics", "submitted scores", ("no day", "", "")),
        (f"/evaluation/datasets/{dataset['id']}/cases", "cases", (2**63,)),
    ):
        assert (await client.get(path, params={"cursor": encode_cursor(scope, position)})).status_code == 422, path
    for body in (
        {"name": "x"},
        {"name": "x", "cases": CASES, "generate": {}},
        {"name": "x", "generate": {"kinds": ["nosuch"]}},
        {"name": "x", "generate": {"count": 0}},
        {"name": "x", "cases": [{"question": "?", "gold_chunk_ids": ["nosuch"]}]},
        {"name": "x", "cases": [{"question": "?", "filters": {"tenant_id": "x"}}]},
        {"name": "x", "cases": [{"question": "?", "gold_quotes": ["a", "b"], "gold_documents": ["c"]}]},
    ):
        assert (await client.post("/evaluation/datasets", body)).status_code == 422, body
    assert (await world.alpha_reader.post("/evaluation/runs", run)).status_code == 403
    assert (await world.alpha_reader.post("/evaluation/datasets", {"name": "x", "cases": CASES})).status_code == 403
