"""With a running server, the command line finds it and gives the same results. Also the server's start, refusals and stop."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from private_files import open_to_others

EVIL = "# [bold]Quarrel[/bold]\n\nQuarrel Limited was founded by Mara Venn in 2011 \x1b[31m in [red]Oslo[/red].\n"


def test_the_same_folder_again_is_unchanged_and_a_change_is_a_new_version(served: Any) -> None:
    again = served.cli("ingest", "notes", "--json")
    assert again.code == 0
    assert again.json["summary"] == {"documents": 2, "skipped": 0, "unchanged": 2, "duplicates": 0}
    path = served.cli.folder / "notes" / "town" / "bank.md"
    before = path.read_text()
    path.write_text(before + "\nThe Kettle Bank moved to Fish Street in 2020.\n")
    changed = served.cli("ingest", "notes", "--json")
    assert changed.json["summary"] == {"documents": 2, "skipped": 0, "unchanged": 1, "ready": 1, "duplicates": 0}
    shown = served.cli("documents", "show", changed.json["documents"][1]["document_id"], "--json")
    assert shown.json["version"] == 2


def test_usage_is_counted_over_http_and_shown(served: Any) -> None:
    usage = served.cli("usage", "--by", "key", "--json").json
    assert usage["requests"] > 0
    assert (usage["calls"], usage["cost"], usage["currency"]) == (0, 0, "USD")
    shown = served.cli("usage", "--from", "2026-01-01", "--to", "2026-01-31")
    assert "2026-01-31" in shown.out
    assert served.cli("usage", "--from", "yesterday").code == 2
    tenants = served.cli("tenants", "usage", "--json").json
    assert [tenant["requests"] > 0 for tenant in tenants if tenant["name"] == "default"] == [True]


def test_feedback_is_listed_and_exported(served: Any) -> None:
    answered = served.cli("ask", "Who founded the Kettle Bank?", "--json").json
    headers = {
        "Authorization": f"Bearer {served.cli('tenants', 'keys', 'create', 'default', '--name', 'rater', '--json').json['key']}"
    }
    body = {"answer_id": answered["id"], "rating": "bad", "correction": "[red]=1+1[/red]"}
    assert httpx.post(f"{served.url}/api/v1/feedback", headers=headers, json=body).status_code == 200
    assert "bad" in served.cli("feedback", "list", "--rating", "bad").out
    assert served.cli("feedback", "list", "--rating", "good", "--json").json == []
    assert served.cli("feedback", "export", "feedback.jsonl").code == 0
    (line,) = (served.cli.folder / "feedback.jsonl").read_text().splitlines()
    assert json.loads(line)["correction"] == body["correction"]
    assert served.cli("feedback", "export", "feedback.jsonl").code == 1


def test_ingest_says_why_communities_were_not_rebuilt(served: Any) -> None:
    key = served.cli("tenants", "keys", "create", "default", "--name", "uploader", "--scope", "write", "--json").json["key"]
    path = served.cli.folder / "lamp.md"

    def ingest(text: str, *options: str) -> str:
        path.write_text(text)
        done = served.cli("ingest", "lamp.md", *options)
        assert done.code == 0, done.err
        return str(done.out + done.err)

    assert "communities: succeeded" in ingest("# Lamp\n\nThe lamp of Scarrow was lit by Ada Kemp in 1957.\n")
    unchanged = ingest(path.read_text())
    assert "1 document: 1 unchanged" in unchanged
    assert "communities are current: no document has changed since they were built" in unchanged
    assert "not rebuilt" not in unchanged

    forbidden = ingest("# Lamp\n\nThe lamp of Scarrow was lit in 1958.\n", "--url", served.url, "--api-key", key)
    assert "the key lacks the scope 'admin'" in forbidden
    assert "COMMUNITY_AUTO_REBUILD" not in forbidden
    # The earlier command did not rebuild them: a command that may, does.
    assert "communities: succeeded" in ingest(path.read_text())

    served.cli("features", "set", "COMMUNITY_AUTO_REBUILD", "false")
    try:
        off = ingest("# Lamp\n\nThe lamp of Scarrow was lit in 1959.\n")
        assert "communities were not rebuilt: COMMUNITY_AUTO_REBUILD is off; 'agentic-rag communities rebuild'" in off
        assert "scope" not in off
    finally:
        served.cli("features", "set", "COMMUNITY_AUTO_REBUILD", "true")


def test_a_search_prints_the_chosen_fields_above_a_score(served: Any) -> None:
    question = ("search", "Who founded the Kettle Bank?", "--strategy", "dense")
    results = served.cli(*question, "--json", "--fields", "title, score").json["results"]
    assert results
    assert all(result.keys() == {"title", "score"} for result in results)
    best = results[0]["score"]
    some = served.cli(*question, "--json", "--min-score", str(best)).json
    assert [result["score"] for result in some["results"]] == [best]
    none = served.cli(*question, "--min-score", "1")
    assert "min_score 1 leaves no result; the best score is" in none.err
    refused = served.cli(*question, "--fields", "title")
    assert (refused.code, "--fields goes with --json" in refused.err) == (2, True)
    unknown = served.cli(*question, "--json", "--fields", "colour")
    assert (unknown.code, "fields has the unknown name 'colour'" in unknown.out) == (2, True)


def test_a_question_is_answered_with_quotes_also_as_a_stream(served: Any) -> None:
    whole = served.cli("ask", "Who founded the Kettle Bank?")
    assert whole.code == 0
    assert "Agnes Thorley" in whole.out
    assert "[1] Kettle Bank" in whole.out
    assert "The Kettle Bank was founded by Agnes Thorley in 1987." in " ".join(whole.out.split())
    streamed = served.cli("ask", "Who founded the Kettle Bank?", "--stream")
    assert "[1] Kettle Bank" in streamed.out
    as_json = served.cli("ask", "Who founded the Kettle Bank?", "--stream", "--json").json
    assert as_json["grounded"]
    assert as_json["answer"] in " ".join(streamed.out.split()) or as_json["answer"] in streamed.out
    follow_up = served.cli(
        "ask", "When did she found it?", "--history", "Who founded the Kettle Bank?", "--history", "Agnes Thorley.", "--json"
    )
    assert follow_up.json["trace"]["details"]["self_contained"] == "When did she found it? (Kettle Bank, Agnes Thorley)"
    assert "1987" in follow_up.json["answer"]
    refused = served.cli("ask", "What is the boiling point of tungsten?", "--json")
    assert (refused.code, refused.json["grounded"], refused.json["citations"]) == (0, False, [])
    last = served.cli("ask", "What is the boiling point of tungsten?").out.rstrip("\n").splitlines()[-1]
    assert re.fullmatch(r"confidence 0\.\d\d · attributed", last)


def test_the_graph_is_shown_and_exported(served: Any) -> None:
    entity = served.cli("graph", "entity", "Agnes Thorley")
    assert entity.code == 0, entity.err
    assert "Agnes Thorley (person)" in entity.out
    assert "Kettle Bank" in entity.out
    assert "“The Kettle Bank was founded by Agnes Thorley in 1987.”" in entity.out
    similar = served.cli("graph", "entity", "thorl", "--json")
    assert (similar.code, [each["name"] for each in similar.json["candidates"]]) == (1, ["Agnes Thorley"])
    assert "no entity is called 'thorl'" in served.cli("graph", "entity", "thorl").err
    unknown = served.cli("graph", "entity", "Nobody", "--json")
    assert (unknown.code, unknown.json["error"]["code"]) == (1, "not_found")
    paths = served.cli("graph", "paths", "Agnes Thorley", "Kettle Bank")
    assert paths.code == 0, paths.err
    assert "1. Agnes Thorley – Kettle Bank" in paths.out
    as_json = served.cli("graph", "paths", "--query", "What has Agnes Thorley to do with the Kettle Bank?", "--json").json
    assert as_json["paths"][0]["steps"][0]["fact"] == "The Kettle Bank was founded by Agnes Thorley in 1987."
    assert served.cli("graph", "paths", "Agnes Thorley", "--json").code == 2
    written = served.cli("graph", "export", "--format", "json", "--output", "graph.json", "--json")
    held = (served.cli.folder / "graph.json").read_bytes()
    assert written.json == {"file": "graph.json", "format": "json", "size_bytes": len(held)}
    assert {"Agnes Thorley", "Kettle Bank"} <= {node["name"] for node in json.loads(held)["nodes"]}
    assert served.cli("graph", "export").out.rstrip().endswith("</graphml>")


def test_edits_of_the_graph_are_listed_and_undone(served: Any) -> None:
    renamed = served.cli("graph", "rename", "Agnes Thorley", "Agnes T.", "--reason", "shorter")
    assert (renamed.code, renamed.out.strip()) == (0, "edit 1, in effect: rename Agnes Thorley to Agnes T.")
    assert "also Agnes Thorley" in served.cli("graph", "entity", "Agnes T.").out
    deleted = served.cli("graph", "delete", "Agnes T.", "--json").json
    assert (deleted["kind"], deleted["entity"]["name"], deleted["applied"]) == ("delete", "Agnes T.", True)
    assert served.cli("graph", "entity", "Agnes Thorley").code == 1
    assert "shorter" in served.cli("graph", "edits").out
    for number in ("2", "1"):
        assert served.cli("graph", "undo", number).code == 0
    assert "Agnes Thorley (person)" in served.cli("graph", "entity", "Agnes Thorley").out
    assert [each["undone_at"] is None for each in served.cli("graph", "edits", "--json").json] == [False, False]
    refused = served.cli("graph", "split", "Agnes Thorley", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (2, "invalid_request")
    assert served.cli("graph", "merge", "Agnes Thorley", "Kettle Bank").code == 0
    assert served.cli("graph", "split", "Agnes Thorley", "--name", "Kettle Bank").code == 0
    for number in ("4", "3"):
        assert served.cli("graph", "undo", number).code == 0
    assert served.cli("graph", "entity", "Kettle Bank").code == 0


def test_contradictions_are_shown_with_both_sentences(served: Any) -> None:
    assert "no contradictions" in served.cli("graph", "contradictions").out
    for year in (1950, 1951):
        (served.cli.folder / f"bridge-{year}.md").write_text(f"# Notice {year}\n\nThe Murle Bridge was opened in {year}.\n")
        assert served.cli("ingest", f"bridge-{year}.md").code == 0
    shown = served.cli("graph", "contradictions", "Murle Bridge")
    assert "1. Murle Bridge – opened" in shown.out
    assert all(f"“The Murle Bridge was opened in {year}.”" in shown.out for year in (1950, 1951))
    (found,) = served.cli("graph", "contradictions", "--kind", "date", "--json").json
    assert {found["a"]["value"], found["b"]["value"]} == {"1950", "1951"}
    unknown = served.cli("graph", "contradictions", "Nobody", "--json")
    assert (unknown.code, unknown.json["error"]["code"]) == (1, "not_found")


def test_a_search_shows_what_was_found_and_obeys_none_of_it(served: Any) -> None:
    path = served.cli.folder / "evil.md"
    path.write_text(EVIL)
    taken = served.cli("ingest", "evil.md", "--key", "evil", "--json")
    assert taken.code == 0, taken.out
    found = served.cli("search", "Who founded Quarrel Limited?", "--limit", "2")
    assert found.code == 0
    assert "[red]Oslo[/red]" in found.out
    assert "\x1b" not in found.out + found.err
    filtered = served.cli("search", "Who founded Quarrel Limited?", "--filter", '{"key": "harbour.md"}', "--json")
    assert {each["title"] for each in filtered.json["results"]} <= {"Harbour of Lowmere"}
    assert served.cli("documents", "delete", taken.json["documents"][0]["document_id"]).code == 0
    assert "evil" not in {each["key"] for each in served.cli("documents", "list", "--json").json}


def test_jobs_are_listed_shown_watched_and_not_stopped_once_ended(served: Any) -> None:
    jobs = served.cli("jobs", "list", "--kind", "ingest", "--json").json
    assert {job["state"] for job in jobs} == {"succeeded"}
    job_id = jobs[0]["id"]
    assert served.cli("jobs", "show", job_id, "--json").json["id"] == job_id
    assert served.cli("jobs", "watch", job_id, "--json").json["state"] == "succeeded"
    ended = served.cli("jobs", "cancel", job_id, "--json")
    assert (ended.code, ended.json["error"]["code"]) == (1, "conflict")
    missing = served.cli("jobs", "show", "nope", "--json")
    assert (missing.code, missing.json["error"]["code"]) == (1, "not_found")


def test_communities_are_built_and_shown(served: Any) -> None:
    assert served.cli("communities", "rebuild", "--full", "--json").json["state"] == "succeeded"
    listed = served.cli("communities", "list", "--json").json
    assert listed
    shown = served.cli("communities", "show", listed[0]["id"])
    assert shown.code == 0
    assert listed[0]["name"] in shown.out


def test_a_tree_is_built_as_asked_and_shown(served: Any) -> None:
    estimate = served.cli("raptor", "rebuild", "--dry-run", "--json").json["result"]
    assert estimate["dry_run"]
    assert served.cli("raptor", "list", "--json").json == []
    asked = ("--full", "--max-clusters-per-level", "1", "--method", "kmeans", "--no-summarize")
    job = served.cli("raptor", "rebuild", *asked, "--json").json
    assert (job["state"], job["result"]["levels"]) == ("succeeded", {"1": 1})
    listed = served.cli("raptor", "list", "--json").json
    assert served.cli("raptor", "status", "--json").json["nodes"] == len(listed) == 1
    shown = served.cli("raptor", "show", listed[0]["id"])
    assert shown.code == 0
    assert listed[0]["summary"][:40] in shown.out


def test_the_graph_is_built_and_diversity_told(served: Any) -> None:
    built = served.cli("build-graph", "--watch", "--json").json
    assert built["graph"]["found"] == built["graph"]["mended"] == 0
    assert built["graph"]["entities"] > 0
    assert built["communities"]["communities"] > 0
    assert served.cli("build-graph", "--json").json["communities"]["unchanged"]
    estimate = served.cli("build-graph", "--dry-run", "--json").json
    assert estimate["communities"]["dry_run"]
    documents = served.cli("documents", "list", "--json").json
    planned = served.cli("build-graph", "--all", "--dry-run", "--json").json["extraction"]["planned"]
    assert (planned["documents"], planned["extraction"], planned["model_calls"]) == (len(documents), "rules", 0)
    again = served.cli("build-graph", "--documents", documents[0]["id"], "--extraction", "rules", "--json").json
    assert (again["extraction"]["succeeded"], again["graph"]["found"]) == (1, 0)
    assert again["communities"]["communities"] == built["communities"]["communities"], "the same text gives the same graph"
    for wrong in (("--all", "--documents", "x"), ("--extraction", "rules"), ("--all", "--entity-types", ",")):
        assert served.cli("build-graph", *wrong).code == 2, wrong
    told = served.cli("analyze-diversity", "--num-queries", "4", "--strategies", "dense,community", "--json").json
    assert set(told["strategies"]) == {"dense", "community"}
    assert 0 < told["strategies"]["dense"]["diversity_ratio"] <= 1
    assert told["strategies"]["community"]["communities"]["distinct"] > 0
    assert told["communities"]["stale"] is False
    table = served.cli("analyze-diversity", "--num-queries", "4", "--strategies", "dense")
    assert table.code == 0
    assert "diversity" in table.out
    assert served.cli("analyze-diversity", "--dataset", "absent.jsonl").code == 2


@pytest.mark.deep  # the API has a test of each step, and the guide on evaluation runs the commands
def test_an_evaluation_is_run_compared_and_reported(served: Any, tmp_path: Path) -> None:
    questions = tmp_path / "questions.csv"
    questions.write_text("question,gold_documents,kind\nWho leads the harbour?,tide,fact\nWho counts the eels?,eels,fact\n")
    configurations = tmp_path / "configurations.json"
    configurations.write_text('[{"name": "base", "strategy": "sparse"}, {"name": "worse", "strategy": "community"}]')
    documents = {document["key"]: document["id"] for document in served.cli("documents", "list", "--json").json}
    keys = sorted(key for key in documents if key)[:2]
    questions.write_text(questions.read_text().replace("tide", keys[0]).replace("eels,", f"{keys[1]},", 1))
    asked = ("evaluate", "run", "--configurations", str(configurations), "--retrieval-only", "--json")
    estimate = served.cli(*asked, "--dataset", str(questions), "--dry-run").json
    assert (estimate["questions"], estimate["basis"]) == (4, "no model is called")
    report = tmp_path / "report.html"
    run = served.cli(*asked, "--dataset", "questions", "--out", str(report), "--fail-if", "recall@5 > 1")
    assert run.code == 0, run.err
    assert "<svg" in report.read_text() or run.json["result"]["configurations"][0]["metrics"]["recall@5"]["value"] == 0
    run_id = run.json["id"]
    compared = served.cli("evaluate", "compare", run_id, run_id, "--fail-if", "latency_ms > 0")
    assert compared.code == 1
    assert "gate failed: latency_ms > 0" in compared.err
    assert "dataset  questions" in compared.out
    assert served.cli("evaluate", "report", run_id, "--out", str(tmp_path / "report.md")).code == 0
    assert (tmp_path / "report.md").read_text().startswith("# Evaluation of questions")
    assert run_id in served.cli("evaluate", "runs").out
    exported = tmp_path / "exported.jsonl"
    assert served.cli("evaluate", "datasets", "export", "questions", "--out", str(exported)).code == 0
    assert len(exported.read_text().splitlines()) == 2
    for wrong in (
        ("--dataset", "absent"),
        ("--dataset", "questions", "--out", "x.pdf"),
        ("--dataset", "questions", "--fail-if", "x"),
    ):
        assert served.cli(*asked, *wrong).code in (1, 2), wrong
    assert served.cli("evaluate", "delete", run_id).code == 0
    (dataset,) = served.cli("evaluate", "datasets", "list", "--json").json
    assert served.cli("evaluate", "datasets", "delete", dataset["id"]).code == 0


def test_a_proposal_of_tuning_is_declined_and_deleted(served: Any, tmp_path: Path) -> None:
    questions = tmp_path / "tuned.csv"
    questions.write_text("question,gold_quotes\nWho founded the Kettle Bank?,The Kettle Bank was founded\n")
    dry = served.cli("tune", "run", "--dataset", str(questions), "--dry-run", "--json")
    assert (dry.json["cases"]["total"], dry.json["parameters"][-1]) == (1, "auto_strategies")
    tuned = served.cli("tune", "run", "--dataset", "tuned", "--parameters", "hybrid_weights")
    assert tuned.code == 0, tuned.err
    assert "hybrid_weights: too few cases" in tuned.out
    (proposal,) = served.cli("tune", "list", "--json").json
    assert "declined" in served.cli("tune", "show", proposal["id"]).out
    for action in ("accept", "rollback"):
        refused = served.cli("tune", action, proposal["id"])
        assert (refused.code, "declined" in refused.err) == (1, True), refused.err
    assert served.cli("tune", "delete", proposal["id"]).code == 0
    assert "no proposals" in served.cli("tune", "list").out
    (dataset,) = served.cli("evaluate", "datasets", "list", "--json").json
    assert served.cli("evaluate", "datasets", "delete", dataset["id"]).code == 0


def test_a_tenant_made_by_the_operator_sees_its_own_and_only_that(served: Any) -> None:
    made = served.cli("tenants", "create", "acme", "--json").json
    key = served.cli("tenants", "keys", "create", "acme", "--scope", "read", "--json").json
    assert key["key"].startswith("ark_")
    assert served.cli("documents", "list", "--tenant", "acme", "--json").json == []
    assert served.cli("documents", "list", "--url", served.url, "--api-key", key["key"], "--json").json == []
    own = served.cli("documents", "list", "--json").json
    foreign = served.cli("documents", "show", own[0]["id"], "--tenant", "acme", "--json")
    assert (foreign.code, foreign.json["error"]["code"]) == (1, "not_found")
    forbidden = served.cli("ingest", "notes", "--url", served.url, "--api-key", key["key"], "--json")
    assert forbidden.code == 1
    assert {each["error"]["code"] for each in forbidden.json["documents"]} == {"forbidden"}
    assert served.cli("tenants", "keys", "revoke", "acme", key["id"]).code == 0
    revoked = served.cli("status", "--url", served.url, "--api-key", key["key"], "--json")
    assert (revoked.code, revoked.json["error"]["code"]) == (1, "key_revoked")
    assert served.cli("tenants", "delete", made["id"], "--yes").code == 0
    assert [each["name"] for each in served.cli("tenants", "list", "--json").json] == ["default"]


def test_the_doctor_looks_at_a_server_by_its_address(served: Any) -> None:
    elsewhere = replace(served.cli, environment={"DATA_DIR": "nothing-here"})
    kept = json.loads((served.cli.data / "credentials.json").read_text())

    def doctor(*arguments: str) -> Any:
        return elsewhere("doctor", "--json", "--url", served.url, *arguments)

    whole = doctor("--api-key", kept["operator_key"])
    assert whole.code == 0, whole.out
    names = {check["name"]: check["ok"] for check in whole.json["checks"]}
    assert set(names) == {"server", "catalogue", "graph", "vectors", "blobs", "jobs", "workers"}
    assert all(names.values())
    assert whole.json["checks"][0]["detail"] == served.url
    assert [each["tenant"] for each in whole.json["stores"]] == ["default"]
    assert whole.json["stores"][0]["report"]["documents"] >= 2
    own = doctor("--api-key", served.key, "--repair")
    assert own.code == 0
    assert [each["tenant"] for each in own.json["stores"]] == ["default"]
    without = doctor()
    assert without.code == 1
    assert [check["name"] for check in without.json["checks"] if not check["ok"]] == ["comparison"]
    assert without.json["checks"][-1]["detail"].startswith("unauthenticated: ")
    assert not (served.cli.folder / "nothing-here").exists()


def test_the_doctor_mends_by_address_what_the_stores_disagree_about(served: Any) -> None:
    (tenant,) = (served.cli.data / "blobs").glob("t_*")
    nobodys = tenant / "nobodys"
    nobodys.write_text("named by no document")
    os.utime(nobodys, (0, 0))
    arguments = ("--url", served.url, "--api-key", served.key, "--json")
    told = served.cli("doctor", *arguments)
    assert told.code == 1
    assert told.json["stores"][0]["report"]["kinds"]["original_orphaned"]["found"] == 1
    assert nobodys.exists()
    assert served.cli("doctor", "--repair", *arguments).code == 0
    assert not nobodys.exists()


def test_the_doctor_names_an_address_where_nobody_answers_or_somebody_else_does(served: Any) -> None:
    nobody = served.cli("doctor", "--json", "--url", "http://127.0.0.1:1")
    assert (nobody.code, nobody.json["checks"][0]["name"], nobody.json["checks"][0]["ok"]) == (1, "server", False)
    assert "does not respond" in nobody.json["checks"][0]["detail"]
    wrong = served.cli("doctor", "--json", "--url", f"{served.url}/elsewhere")
    assert wrong.code == 1
    assert "is this the address of agentic-rag?" in wrong.json["checks"][0]["detail"]


def test_a_feature_is_switched_for_the_tenant(served: Any) -> None:
    off = served.cli("features", "set", "DUAL_LEVEL_RETRIEVAL_ENABLED", "false", "--json").json
    assert {flag["name"]: (flag["value"], flag["source"]) for flag in off}["DUAL_LEVEL_RETRIEVAL_ENABLED"] == (False, "tenant")
    disabled = served.cli("search", "q", "--strategy", "dual_level", "--json")
    assert (disabled.code, disabled.json["error"]["code"]) == (1, "feature_disabled")
    assert served.cli("features", "set", "DUAL_LEVEL_RETRIEVAL_ENABLED", "default").code == 0
    assert served.cli("features", "set", "NOPE", "true", "--json").json["error"]["code"] == "invalid_request"
    status = served.cli("status", "--json").json
    assert status["features"]["DUAL_LEVEL_RETRIEVAL_ENABLED"]


def test_bad_input_is_one_line_that_names_limit_and_value(served: Any) -> None:
    for arguments, told in [
        (["search", "x" * 9_000], "9000"),
        (["search", "x" * 200_000], "at most 161536 bytes"),
        (["search", " "], "must not be blank"),
        (["search", "q", "--strategy", "nope"], "unknown strategy 'nope'"),
        (["ask", "q", "--generator", "nope"], "nope"),
        (["search", "q", "--limit", "0"], "limit: must be at least 1; got 0"),
        (["search", "q", "--limit", "1000000"], "limit: must be at most 100; got 1000000"),
        (["search", "q", "--filter", '{"version": 1}'], "version: cannot be filtered on"),
        (["search", "q", "--filter", '{"year": NaN}'], "numbers must be finite"),
        (["documents", "list", "--state", "nope"], "nope"),
        (["communities", "rebuild", "--resolution", "-1"], "resolution: must be above 0.0; got -1.0"),
        (["raptor", "rebuild", "--max-clusters-per-level", "0"], "max_clusters_per_level: must be at least 1; got 0"),
        (
            ["communities", "rebuild", "--resolution", "nan"],
            'numbers must be finite; got {"mode": "incremental", "dry_run": false, "resolution": NaN',
        ),
        (["tenants", "create", " "], "1 to 128"),
    ]:
        done = served.cli(*arguments)
        assert done.code == 2, done
        assert done.out == ""
        assert told in done.err
        assert done.err.count("\n") == 1


def test_a_file_over_the_limit_is_refused_with_both_sizes(served: Any) -> None:
    path = served.cli.folder / "large.txt"
    path.write_bytes(b"A sentence of a very long text. " * (1024 * 1024 * 51 // 32))
    done = served.cli("ingest", "large.txt", "--json")
    path.unlink()
    assert done.code == 1
    error = done.json["documents"][0]["error"]
    assert error["code"] == "payload_too_large"
    assert str(50 * 1024 * 1024) in error["message"]


def test_a_second_server_on_the_folder_is_refused_and_the_first_stays(served: Any) -> None:
    second = served.cli("serve", "--port", "0", "--json")
    assert (second.code, second.json["error"]["code"]) == (1, "store_locked")
    message = second.json["error"]["message"]
    assert str(served.process.pid) in message
    assert str(served.cli.data) in message
    assert "choose another folder with --data-dir" in message
    port = served.url.rsplit(":", 1)[1]
    taken = served.cli("serve", "--port", port, "--data-dir", "other")
    assert taken.code == 1
    assert f"port {port} on 127.0.0.1 is in use" in taken.err
    assert not (served.cli.folder / "other").exists()
    assert served.cli("status").code == 0


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_it_starts_stops_and_starts_again_with_the_same_key_and_shows_the_file(cli: Any, log_format: str) -> None:
    cli = replace(cli, environment={"LOG_FORMAT": log_format, "LOG_LEVEL": "debug"})
    first = cli.start("serve", "--port", "0")
    shown, key = _first_lines(cli, first)
    assert shown.count("hint: 'agentic-rag models pull") == 1
    assert "models pull" not in (cli.folder / "stderr.txt").read_text()
    command = shown.rpartition("show them with: ")[2]
    read = subprocess.run(command, shell=True, cwd=cli.folder, capture_output=True, text=True, check=True)
    kept = json.loads(read.stdout)
    assert (kept["tenant"], kept["key"]) == ("default", key)
    assert open_to_others(cli.data) == {}
    assert _stopped(first, signal.SIGTERM) == 0
    assert not (cli.data / "server.json").exists()
    assert "Traceback" not in (cli.folder / "stderr.txt").read_text()

    second = cli.start("serve", "--port", "0")
    again, same = _first_lines(cli, second)
    assert same == key
    assert _stopped(second, signal.SIGINT) == 130
    printed = shown + again + (cli.folder / "stderr.txt").read_text()
    assert not [secret for secret in (key, kept["operator_key"]) if secret in printed]


_SIGNALLED = """
import os, signal, sys
from contextlib import contextmanager
from agentic_rag_backend.cli.app import main
from agentic_rag_backend.cli.operations import serve

number = getattr(signal, sys.argv[1])

@contextmanager
def signalled(*arguments, announce=serve.announce_server):
    with announce(*arguments):
        os.kill(os.getpid(), number)
        yield

serve.announce_server = signalled
sys.argv[1:] = ["serve", "--port", "0"]
main()
"""


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 0), ("SIGINT", 130)])
def test_a_signal_that_comes_with_the_address_stops_it_as_any_other(cli: Any, name: str, code: int) -> None:
    (cli.folder / "signalled.py").write_text(_SIGNALLED)
    assert cli(str(cli.folder / "signalled.py"), name).code == code
    assert not (cli.data / "server.json").exists()


def _stopped(process: Any, number: signal.Signals) -> int:
    process.send_signal(number)
    try:
        return int(process.wait(timeout=120))
    finally:
        process.kill()
        process.stdout.close()


def _first_lines(cli: Any, process: Any) -> tuple[str, str]:
    """Return the first output of a starting server, and its stored key."""
    deadline = time.monotonic() + 300
    while not (cli.data / "server.json").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, (cli.folder / "stderr.txt").read_text()
        time.sleep(0.05)
    key = str(json.loads((cli.data / "credentials.json").read_text())["key"])
    # Its address and models, over several lines, and the file with its keys.
    shown = ""
    while "keys are in" not in shown:
        line = str(process.stdout.readline())
        assert line, shown
        shown += line
    return shown, key


def test_documents_are_named_by_key_as_well_as_by_id(served: Any) -> None:
    listed = {each["key"]: each["id"] for each in served.cli("documents", "list", "--json").json}
    for key, document_id in listed.items():
        by_key = served.cli("documents", "show", key, "--json")
        assert (by_key.code, by_key.json["id"]) == (0, document_id)
        assert served.cli("documents", "show", document_id, "--json").json == by_key.json
    titled = served.cli("documents", "update", "town/bank.md", "--title", "The Kettle Bank", "--json")
    assert (titled.code, titled.json["title"]) == (0, "The Kettle Bank")
    looks_like_an_id = "3f2b9c1e-0000-4000-8000-000000000000"
    (served.cli.folder / "odd.md").write_text("# Odd\n\nThe Odd Fellows met in Lowmere in 1902.\n")
    assert served.cli("ingest", "odd.md", "--key", looks_like_an_id).code == 0
    cut = served.cli("documents", "chunk", looks_like_an_id, "--chunk-size", "40", "--overlap", "0", "--json")
    assert (cut.code, cut.json["state"]) == (0, "succeeded"), cut.err
    assert served.cli("documents", "delete", looks_like_an_id).code == 0
    gone = served.cli("documents", "show", looks_like_an_id, "--json")
    assert (gone.code, gone.json["error"]["code"]) == (1, "not_found")
    assert "no document has the id or key" in gone.json["error"]["message"]


def _ids(value: Any) -> set[str]:
    """Return the ids that a command lists or shows with ``--json``."""
    listed = value if isinstance(value, list) else value.get("documents", [value])
    return {str(each.get("id") or each["document_id"]) for each in listed}


@pytest.mark.parametrize(
    "arguments",
    [
        ("documents", "list"), ("jobs", "list"), ("communities", "list"), ("tenants", "list"),
        ("documents", "show", "harbour.md"), ("documents", "show", "harbour.md", "--chunks"), ("ingest", "notes"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_ids_are_whole_in_a_terminal_of_80_columns(served: Any, arguments: tuple[str, ...]) -> None:
    narrow = replace(served.cli, environment={"COLUMNS": "80"})
    said = narrow(*arguments)
    ids = _ids(narrow(*arguments, "--json").json)
    assert ids
    assert {each for each in ids if each not in said.out} == set()
    assert max(map(len, said.out.splitlines())) <= 80


def test_keys_of_a_tenant_are_listed(served: Any) -> None:
    assert served.cli("tenants", "create", "keyed").code == 0
    until = ("--expires-at", "2099-05-31")
    made = served.cli("tenants", "keys", "create", "keyed", "--name", "website", *until, "--json").json
    assert (made["scopes"], made["expires_at"][:19], made["prefix"]) == (["read"], "2099-05-31T23:59:59", made["key"][:12])
    taken = served.cli("tenants", "keys", "create", "keyed", "--name", "website", "--json")
    assert (taken.code, taken.json["error"]["code"]) == (1, "conflict")
    rotated = served.cli("tenants", "keys", "rotate", "keyed", made["id"], "--overlap-s", "60", "--json").json
    listed = served.cli("tenants", "keys", "list", "keyed", "--json")
    assert (listed.code, [each["id"] for each in listed.json]) == (0, [rotated["id"], made["id"]]), listed.err
    assert listed.json[1]["replaced_by"] == rotated["id"]
    for key in (made["key"], rotated["key"]):
        assert served.cli("status", "--url", served.url, "--api-key", key, "--json").code == 0
    assert made["prefix"] in served.cli("tenants", "keys", "list", "keyed").out


def test_a_rebuild_takes_the_sizes_of_communities(served: Any) -> None:
    done = served.cli("communities", "rebuild", "--full", "--max-cluster-size", "3", "--min-community-size", "2", "--json")
    assert (done.code, done.json["state"]) == (0, "succeeded"), done.err
    refused = served.cli("communities", "rebuild", "--max-cluster-size", "2", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (2, "invalid_request")
    assert "max_cluster_size" in refused.json["error"]["message"]
