"""Ends of invocations: usage errors, settings, help, and modules that must not be loaded."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from agentic_rag_backend.cli import configuration
from agentic_rag_backend.cli.app import app, run
from agentic_rag_backend.cli.commands.demo import find_examples
from agentic_rag_backend.cli.operations.listening import open_socket, url_of
from agentic_rag_backend.cli.operations.serve import is_loopback
from agentic_rag_backend.errors import ConfigurationError, Conflict, InvalidRequest
from agentic_rag_backend.models.registry import MODELS
from agentic_rag_backend.settings import Settings

GROUPS = {
    "documents": {"list", "show", "update", "chunk", "delete"},
    "jobs": {"list", "show", "cancel", "retry", "watch"},
    "communities": {"list", "show", "rebuild"},
    "graph": {"entity", "paths", "contradictions", "export", "merge", "split", "rename", "delete", "edits", "undo"},
    "evaluate": {"run", "compare", "report", "runs", "delete", "datasets", "questions"},
    "raptor": {"list", "show", "status", "rebuild"},
    "tenants": {"create", "list", "change", "suspend", "resume", "delete", "usage", "quota", "keys"},
    "feedback": {"list", "export"},
    "features": {"show", "set"},
    "models": {"list", "pull", "check"},
    "tune": {"run", "list", "show", "accept", "rollback", "delete"},
}
ALONE = {
    "serve",
    "worker",
    "demo",
    "ingest",
    "search",
    "ask",
    "label",
    "mcp",
    "export",
    "import",
    "optimize-planner",
    "reindex",
    "migrate",
    "build-graph",
    "chunk",
    "analyze-diversity",
    "benchmark",
    "status",
    "usage",
    "doctor",
    "config",
}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPERATOR_KEY", "AGENTIC_RAG_URL", "AGENTIC_RAG_API_KEY", "LOG_LEVEL", "DATA_DIR", "HOST", "PORT"):
        monkeypatch.delenv(name, raising=False)


def test_every_command_is_there_and_explains_itself() -> None:
    root = get_command(app)
    assert set(root.commands) == ALONE | set(GROUPS)  # type: ignore[attr-defined]
    for name, commands in GROUPS.items():
        assert set(root.commands[name].commands) == commands  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({}, ["DATABASE_URL", "GRAPH_STORE", "VECTOR_STORE", "BLOB_URL"]),
        ({"DATABASE_URL": "postgresql://db/rag", "GRAPH_STORE": "neo4j"}, ["VECTOR_STORE", "BLOB_URL"]),
        ({"DATABASE_URL": "sqlite:///c.db", "VECTOR_STORE": "qdrant", "BLOB_URL": "s3://b"}, ["DATABASE_URL", "GRAPH_STORE"]),
    ],
)
@pytest.mark.parametrize("command", [["worker"], ["serve"]])
def test_processes_apart_need_stores_that_they_share(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    settings: dict[str, str],
    missing: list[str],
) -> None:
    for name, value in {"WORKER_INLINE": "false", **settings}.items():
        monkeypatch.setenv(name, value)
    assert run(command) == 2
    told = capsys.readouterr().err
    assert [name for name in ("DATABASE_URL", "GRAPH_STORE", "VECTOR_STORE", "BLOB_URL") if name in told] == missing
    assert not Path("data").exists()


def _leaves(command: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [path]
    return [leaf for name, each in inner.items() for leaf in _leaves(each, (*path, name))]


@pytest.mark.parametrize("path", _leaves(get_command(app)), ids=" ".join)
def test_every_command_has_help_and_json(path: tuple[str, ...]) -> None:
    shown = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}).invoke(app, [*path, "--help"])
    assert shown.exit_code == 0, shown.output
    assert "--json" in shown.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nope"], "nope"),
        (["search"], "QUESTION"),
        (["ask", "q", "--limit", "many"], "--limit must be a whole number; got 'many'"),
        (["evaluate", "run", "--dataset", "x", "--k", "1000"], "--k must be at most 100; got '1000'"),
        (["analyze-diversity", "--limit", "1000"], "--limit must be at most 100; got '1000'"),
        (["search", "q", "--filter", "{"], "--filter is not JSON"),
        (["search", "q", "--filter", "[1]"], "--filter must be a JSON object"),
        (["search", "q", "--rerank", '{"name":'], "--rerank is not JSON"),
        (["ingest", "nowhere"], "no file or folder 'nowhere'"),
        (["ingest", "nowhere/*.md"], "holds no document"),
        (["search", "q", "--url", "ftp://x"], "--url must be an address"),
        (["serve", "--host", "0.0.0.0"], "set OPERATOR_KEY (32 characters or more) first"),
        (["serve", "--port", "70000"], "PORT"),
        (["demo", "--corpus", "nowhere"], "the folder 'nowhere' does not exist"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert told in shown.err
    assert shown.err.count("\n") == 1
    assert run([*arguments, "--json"]) == 2
    shown = capsys.readouterr()
    assert told in json.loads(shown.out)["error"]["message"]
    assert shown.err == ""


def test_nothing_is_written_where_a_path_is_missing(tmp_path: Path) -> None:
    assert run(["ingest", "nowhere", "--data-dir", str(tmp_path / "data")]) == 2
    assert not (tmp_path / "data").exists()


def test_a_server_that_is_not_there_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "--url", "http://127.0.0.1:1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "server_unreachable"


def test_config_tells_values_sources_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".env").write_text("PORT=8123\nOPENAI_API_KEY=sk-in-dotenv\n")
    monkeypatch.setenv("OPERATOR_KEY", "k" * 40)
    monkeypatch.setenv("HOST", "localhost")
    assert run(["config", "--json", "--data-dir", "elsewhere"]) == 0
    shown = capsys.readouterr().out
    rows = {row["name"]: (row["value"], row["source"]) for row in json.loads(shown)}
    assert rows["PORT"] == ("8123", ".env")
    assert rows["HOST"] == ("localhost", "environment")
    assert rows["DATA_DIR"] == ("elsewhere", "option")
    assert rows["LLM"] == ("extractive", "default")
    assert rows["OPERATOR_KEY"] == ("********", "environment")
    assert rows["OPENAI_API_KEY"] == ("********", ".env")
    assert "k" * 40 not in shown
    assert "sk-in-dotenv" not in shown


def test_a_setting_outside_its_limits_is_named_and_a_secret_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DUAL_LEVEL_LOW_WEIGHT", "3")
    monkeypatch.setenv("OPERATOR_KEY", "short-secret")
    assert run(["config"]) == 2
    shown = capsys.readouterr().err
    assert "DUAL_LEVEL_LOW_WEIGHT must be a number from 0 to 1; got '3' (set in the environment; the default is 0.6)" in shown
    assert "OPERATOR_KEY must have at least 32 characters; it has 12" in shown
    assert "short-secret" not in shown


def test_a_misspelt_setting_is_named_once_on_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(configuration, "_warned", set())
    Path(".env").write_text("QDRANT_ULR=http://127.0.0.1:6333\n")
    assert run(["config", "--json"]) == 0
    assert run(["config", "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "warning: QDRANT_ULR (.env) is not a setting and has no effect; did you mean QDRANT_URL?\n"


def test_config_shows_the_file_and_no_password_of_an_address(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("rag.yaml").write_text("port: 8123\n")
    monkeypatch.setenv("AGENTIC_RAG_CONFIG", "rag.yaml")
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:hush@host/rag")
    assert run(["config", "--json"]) == 0
    shown = capsys.readouterr().out
    rows = {row["name"]: (row["value"], row["source"]) for row in json.loads(shown)}
    assert rows["PORT"] == ("8123", "config file")
    assert rows["DATABASE_URL"] == ("postgresql://me:********@host/rag", "environment")
    assert "hush" not in shown


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (
            {},
            "LLM extractive: answers quote the documents, no language model is called (the default)"
            " · EMBEDDER bundled: all-MiniLM-L6-v2 in this process (the default)",
        ),
        (
            {"llm": "openai", "llm_model": "llama3.1", "openai_base_url": "http://me:hush@127.0.0.1:11434/v1"},
            "LLM openai: llama3.1 at http://me:********@127.0.0.1:11434/v1"
            " · EMBEDDER bundled: all-MiniLM-L6-v2 in this process (the default)",
        ),
        (
            {"embedder": "openai"},
            "LLM extractive: answers quote the documents, no language model is called (the default)"
            " · EMBEDDER openai: text-embedding-3-small at api.openai.com",
        ),
    ],
)
def test_models_are_named_in_one_line(given: dict[str, str], line: str) -> None:
    assert configuration.models_line(Settings(_env_file=None, **given)) == line  # type: ignore[arg-type, call-arg]


def test_a_better_encoder_is_suggested_while_the_bundled_one_is_in_use(tmp_path: Path) -> None:
    def hint(**given: object) -> str | None:
        return configuration.suggest_encoder(Settings(_env_file=None, data_dir=tmp_path, **given))  # type: ignore[arg-type, call-arg]

    shown = hint()
    assert shown is not None
    assert shown.startswith("hint: ")
    assert "\n" not in shown
    assert hint(embedding_model="all-MiniLM-L6-v2") == shown
    assert hint(embedder="openai") is None
    assert hint(embedding_model="multilingual-e5-small") is None
    assert hint(embedding_model_path=tmp_path) is None
    folder = tmp_path / "models" / "bge-small-en-v1.5"
    folder.mkdir(parents=True)
    for file in MODELS["bge-small-en-v1.5"].files:
        with (folder / file.name).open("wb") as sparse:
            sparse.truncate(file.size_bytes)
    assert hint() is None, "it is installed"


def test_the_figures_of_the_suggestion_are_those_of_the_guide(tmp_path: Path) -> None:
    rows = (Path(__file__).parents[3] / "docs/guide/encoders.md").read_text(encoding="utf-8").splitlines()
    columns = {row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:6]] for row in rows if row.startswith("|")}
    bundled, _, better, _ = columns["MuSiQue R@5: `dense`, `hybrid`, `graph`, `auto`"]
    cost = columns["CPU time of a passage, share of float32"]
    ms = [re.search(r"\(([\d.]+) of", cell) for cell in (cost[2], cost[0])]
    assert configuration.suggest_encoder(Settings(_env_file=None, data_dir=tmp_path)) == (  # type: ignore[call-arg]
        f"hint: 'agentic-rag models pull bge-small-en-v1.5' ({columns['download'][2]}) improves searches in English documents:"
        f" the first five results of a hybrid search contain {better.split(', ')[1]} of the passages that answer, instead of"
        f" {bundled.split(', ')[1]} (MuSiQue)."
        f" Ingestion takes longer: {' ms of CPU time for a passage, instead of '.join(match[1] for match in ms if match)}"
    )


def test_help_and_config_load_neither_model_runtime_nor_job_engine() -> None:
    code = (
        "import sys; from agentic_rag_backend.cli.app import run; "
        "run(['--help']); run(['config']); "
        "heavy = {'onnxruntime', 'qdrant_edge', 'sqlalchemy', 'alembic', 'fastapi', 'numpy', 'scipy', 'openai', 'httpx2', "
        "'tokenizers', 'obstore', 'uvicorn', 'prometheus_client'} & set(sys.modules); "
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("localhost", True)])
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "example.org", ""])
def test_everything_else_can_be_reached_from_outside(host: str) -> None:
    assert not is_loopback(host)


def test_a_used_port_and_a_foreign_address_are_reported() -> None:
    with open_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert url_of(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(Conflict, match=f"port {port} on 127.0.0.1 is in use"):
            open_socket("127.0.0.1", port)
    with pytest.raises(ConfigurationError, match=r"cannot listen on 192\.0\.2\.1"):
        open_socket("192.0.2.1", 0)


def test_an_unspecified_address_is_reached_by_loopback() -> None:
    with socket.socket() as listening:
        listening.bind(("0.0.0.0", 0))
        assert url_of(listening) == f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_the_demo_finds_its_examples_and_needs_questions(tmp_path: Path) -> None:
    examples = find_examples(None, [])
    assert len(examples.questions) == 3
    assert len(list(examples.folder.iterdir())) >= 30
    with pytest.raises(InvalidRequest, match=r"no questions\.jsonl"):
        find_examples(tmp_path, [])
    assert find_examples(tmp_path, ["why?"]).questions == ("why?",)


def test_an_unusable_folder_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run(["status", "--data-dir", str(tmp_path / "file" / "data")]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith(f"error: DATA_DIR {tmp_path / 'file' / 'data'} cannot be used")
    assert shown.err.count("\n") == 1


def test_the_doctor_names_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run(["doctor", "--json", "--data-dir", str(tmp_path / "file" / "data")]) == 1
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["settings"]["ok"]
    assert not checks["folder"]["ok"]
    assert str(tmp_path / "file") in checks["folder"]["detail"]
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208
