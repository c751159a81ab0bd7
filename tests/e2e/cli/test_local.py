"""Without a server: each command opens the stores itself, runs, and closes them."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from private_files import open_to_others
from qdrant_client import QdrantClient
from qdrant_server import qdrant_process

from .conftest import stop, wait_for_address


@pytest.fixture
def notes(cli: Any, tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "town").mkdir(parents=True)
    (folder / "harbour.md").write_text("# Harbour\n\nDelphine Aster leads the Lowmere Harbour Authority since May 2019.\n")
    (folder / "town" / "bank.md").write_text("# Kettle Bank\n\nThe Kettle Bank was founded by Agnes Thorley in 1987.\n")
    return folder


@pytest.mark.slow
def test_from_a_folder_to_a_cited_answer_to_nothing_left(cli: Any, notes: Path) -> None:
    ingested = cli("ingest", "notes", "--json")
    assert ingested.code == 0, ingested.err
    documents = ingested.json["documents"]
    assert [(each["key"], each["state"]) for each in documents] == [("harbour.md", "ready"), ("town/bank.md", "ready")]
    assert ingested.json["communities"]["state"] == "succeeded"

    answered = cli("ask", "Who founded the Kettle Bank?", "--json")
    assert answered.code == 0, answered.err
    answer = answered.json
    assert answer["grounded"]
    assert "Agnes Thorley" in answer["answer"]
    paths = {documents[0]["document_id"]: notes / "harbour.md", documents[1]["document_id"]: notes / "town" / "bank.md"}
    for citation in answer["citations"]:
        # A file without front matter equals its text, so offsets refer to the file.
        source = paths[citation["document_id"]].read_text()
        assert source[citation["start_char"] : citation["end_char"]] == citation["quote"]

    shown = cli("graph", "entity", "delphine aster", "--json")
    assert {each["other"]["name"] for each in shown.json["relationships"]} == {"Lowmere Harbour Authority", "May 2019"}

    removed = cli("documents", "delete", documents[1]["document_id"], "--json")
    assert removed.code == 0, removed.err
    assert removed.json["state"] == "succeeded"
    assert removed.json["result"]
    gone = cli("documents", "show", documents[1]["document_id"], "--json")
    assert (gone.code, gone.json["error"]["code"]) == (1, "not_found")
    assert open_to_others(cli.data) == {}


def test_unreadable_documents_are_reported_and_the_others_ingested(cli: Any, notes: Path) -> None:
    (notes / "empty.md").write_text("")
    (notes / "blank.txt").write_text(" \n\t\n")
    (notes / "binary.txt").write_bytes(bytes(range(256)) * 8)
    (notes / "latin.txt").write_bytes("Åse på fjellet".encode("latin-1"))
    done = cli("ingest", "notes", "--json")
    assert done.code == 1
    states = {each["key"]: each for each in done.json["documents"]}
    assert {key for key, each in states.items() if each["state"] == "ready"} == {"harbour.md", "town/bank.md", "latin.txt"}
    for key in ("empty.md", "blank.txt", "binary.txt"):
        assert states[key]["state"] == "refused"
        assert states[key]["document_id"] is None
        assert states[key]["error"]["code"] == "unreadable_document"
    listed = cli("documents", "list", "--json")
    metadata = {each["key"]: each["metadata"] for each in listed.json}
    assert metadata.keys() == {"harbour.md", "town/bank.md", "latin.txt"}
    assert metadata["latin.txt"]["encoding"] == "windows-1252"


def test_the_operator_s_commands_need_no_tenant(cli: Any) -> None:
    assert cli("tenants", "create", "acme").code == 0
    assert [each["name"] for each in cli("tenants", "list", "--json").json] == ["acme"]


def test_the_doctor_finds_every_part_in_order(cli: Any) -> None:
    done = cli("doctor", "--json")
    assert done.code == 0, done.out
    assert [check["name"] for check in done.json["checks"]] == [
        "settings", "folder", "disk", "ocr", "catalogue", "graph", "vectors", "blobs", "embedder", "model",
    ]  # fmt: skip
    assert all(check["ok"] for check in done.json["checks"])


def test_the_doctor_calls_the_model_and_names_what_is_wrong_with_it(cli: Any) -> None:
    with_model = {"LLM": "openai", "EXTRACTION": "rules", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "LLM_TIMEOUT_S": "2"}
    done = replace(cli, environment=with_model)("doctor", "--json")
    assert done.code == 1
    (wrong,) = [check for check in done.json["checks"] if not check["ok"]]
    assert wrong["name"] == "model"
    assert wrong["detail"].startswith("model_unavailable: ")


@pytest.mark.slow
def test_the_demo_ends_with_cited_answers_and_timings(cli: Any, notes: Path) -> None:
    done = cli("demo", "--corpus", "notes", "--question", "Who founded the Kettle Bank?", "--json")
    assert done.code == 0, done.err
    assert done.json["answers"][0]["citations"]
    assert {"ingest", "communities", "answer 1", "all"} <= set(done.json["timings_s"])
    assert done.json["counts"]["documents_ready"] == 2
    assert "hint:" not in done.out + done.err

    refused = cli("demo", "--corpus", "notes", "--question", "What is the boiling point of tungsten?")
    assert refused.code == 1
    assert "1 of 1 answers have no citation" in refused.err
    assert refused.out.rstrip().rpartition("\n")[2].startswith("hint: 'agentic-rag models pull")


@pytest.mark.slow
def test_the_demo_serves_its_documents_with_the_console(cli: Any, notes: Path) -> None:
    asked = (
        "demo",
        "--corpus",
        "notes",
        "--question",
        "Who founded the Kettle Bank?",
        "--data-dir",
        "data",
        "--open",
        "--port",
        "0",
    )
    process = cli.start(*asked)
    url = wait_for_address(cli, process)
    key = json.loads((cli.data / "credentials.json").read_text())["key"]
    assert "shell.js" in httpx.get(f"{url}/console/").text
    listed = httpx.get(f"{url}/api/v1/documents", headers={"Authorization": f"Bearer {key}"}).json()["data"]
    assert {document["title"] for document in listed} == {"Harbour", "Kettle Bank"}
    assert stop(process) == 0

    shared = replace(cli, environment={**cli.environment, "DATABASE_URL": "sqlite:///shared.db"})(*asked)
    assert shared.code == 2
    assert "--open serves a folder of this machine: unset DATABASE_URL" in shared.err


@pytest.mark.slow
def test_the_demo_leaves_nothing_on_a_shared_server(cli: Any, notes: Path, tmp_path: Path) -> None:
    """With its own catalogue, the demo uses no server. In a given catalogue, its tenant is removed."""
    asked = ("demo", "--corpus", "notes", "--question", "Who founded the Kettle Bank?", "--json")
    with qdrant_process() as url, closing(QdrantClient(url=url, check_compatibility=False)) as client:
        server = {**cli.environment, "VECTOR_STORE": "qdrant", "QDRANT_URL": url}
        done = replace(cli, environment=server)(*asked)
        assert done.code == 0, done.err
        assert client.get_collections().collections == []

        shared = replace(cli, environment={**server, "DATABASE_URL": f"sqlite:///{tmp_path / 'shared.db'}"})
        done = shared(*asked)
        assert done.code == 0, done.err
        held = [client.count(each.name).count for each in client.get_collections().collections]
        assert held == [0, 0]
        assert shared("tenants", "list", "--json").json == []


def test_strategies_are_compared_on_a_table_of_texts(cli: Any, tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    table.write_text(
        "name,text\nbank,The Kettle Bank was founded by Agnes Thorley in 1987.\n"
        "harbour,Delphine Aster leads the Lowmere Harbour Authority since May 2019.\n"
        "mill,Merle Aston restored the Sable Mill with her own money.\n"
        "school,The Upper School of Sund was founded by Ellen Price in 1921.\n"
        "ferry,Tomas Garrow leads the Hollin Ferry Company since April 2012.\n"
        "museum,The Pellow Museum was opened by Ingrid Vassall in 1998.\n"
        "press,The Carrow Press was founded by Odile Marchetti in 1954.\n"
    )
    asked = ("benchmark", "--data", "texts.csv", "--text-column", "text", "--title-column", "name", "--count", "12")
    done = cli(*asked, "--strategies", "sparse,community", "--k", "1", "--fail-if", "recall@1 < baseline - 0.1", "--json")
    assert done.code == 1, done.err
    assert "gate failed: recall@1 < baseline - 0.1: recall@1 of 'community'" in done.err
    names = [configuration["name"] for configuration in done.json["result"]["configurations"]]
    assert names == ["sparse", "community"]
    assert done.json["result"]["configurations"][0]["metrics"]["recall@1"]["value"] > 0.5
    assert not (cli.data / "catalogue.db").exists(), "nothing of it stays"


def test_a_document_is_changed_and_cut_again(cli: Any, notes: Path) -> None:
    long = "\n\n".join(f"The tides near harbour number {n} were measured twice a day in every season." for n in range(12))
    (notes / "harbour.md").write_text(f"---\ncolour: red\nyear: 1943\n---\n# Harbour\n\n{long}\n")
    document = cli("ingest", "notes", "--json").json["documents"][0]["document_id"]
    changed = cli("documents", "update", document, "--title", "Piers", "--metadata", "year=1944", "--remove", "colour", "--json")
    assert changed.code == 0, changed.err
    assert (changed.json["title"], changed.json["metadata"]) == ("Piers", {"year": 1944})
    shown = cli("documents", "show", document, "--json").json
    assert (shown["title"], shown["metadata"]) == ("Piers", {"year": 1944})
    cut = cli("documents", "chunk", document, "--chunk-size", "40", "--overlap", "0", "--json")
    assert cut.code == 0, cut.err
    assert (cut.json["state"], cut.json["result"]["version"]) == ("succeeded", 2)
    assert cut.json["result"]["chunks"] > shown["chunk_count"]
    for arguments in (
        ("update", document),
        ("update", document, "--metadata", "nothing"),
        ("chunk", document, "--chunk-size", "1"),
    ):
        refused = cli("documents", *arguments, "--json")
        assert (refused.code, refused.json["error"]["code"]) == (2, "invalid_request")
