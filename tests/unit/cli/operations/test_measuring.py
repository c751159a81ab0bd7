"""``doctor --model`` and ``doctor --embedder`` against the scriptable server: what they measure, find and advise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agentic_rag_backend.cli.app import run
from agentic_rag_backend.cli.operations.measuring import Check, Measurements, measure_models
from agentic_rag_backend.settings import Settings
from agentic_rag_testing.models.server import ModelServer

Configure = Callable[..., Settings]


@pytest.fixture
def configure(server: ModelServer, tmp_path: Path) -> Configure:
    endpoint = {"openai_api_key": "any", "openai_base_url": server.base_url, "data_dir": tmp_path}
    return lambda **more: Settings(**{"llm": "openai", **endpoint, **more})


async def measured(settings: Settings, *, model: bool = True, embedder: bool = False) -> tuple[dict[str, Check], Measurements]:
    found = await measure_models(settings, model=model, embedder=embedder)
    return {check.name.rpartition(": ")[2]: check for check in found.checks}, found


async def test_a_model_that_does_everything_passes(configure: Configure) -> None:
    checks, found = await measured(configure(llm_model="echo"))
    assert all(check.ok for check in found.checks), found.checks
    assert list(checks) == ["schema", "window", "speed", "extraction from a chunk", "summary of a community", "answer"]
    figures = found.figures["echo"]
    assert figures["repeated"]
    assert figures["read_tokens"] > 2500
    assert figures["read_tps"] > 0
    assert figures["write_tps"] > 0


async def test_a_window_that_is_cut_silently_is_found(configure: Configure) -> None:
    checks, _ = await measured(configure(llm_model="echo+window-2000"))
    assert (checks["schema"].ok, checks["window"].ok) == (True, False)
    assert "the server counted 2,000" in checks["window"].detail
    assert "LLM_CONTEXT_TOKENS" in checks["window"].detail


async def test_a_model_without_objects_and_one_that_fails_are_found(configure: Configure) -> None:
    checks, _ = await measured(configure(llm_model="broken-json"))
    assert (checks["schema"].ok, checks["window"].ok) == (False, False)
    assert checks["schema"].detail.startswith("model_reply_invalid: ")
    checks, found = await measured(configure(llm_model="status-401"))
    assert [check.ok for check in found.checks] == [False, False]
    assert checks["window"].detail.startswith("model_refused: ")


async def test_a_model_that_is_too_slow_for_a_limit_is_found_with_the_limit_that_it_needs(configure: Configure) -> None:
    slow = {"llm_model": "echo+slow-stream-20ms", "llm_fast_model": "echo"}
    _, found = await measured(configure(**slow, llm_timeout_s=0.01, request_timeout_s=0.01))
    answer = next(check for check in found.checks if check.name == "echo+slow-stream-20ms: answer")
    assert not answer.ok
    assert "LLM_TIMEOUT_S=" in answer.detail
    assert "ANSWER_CONTEXT_TOKENS" in answer.detail
    assert set(found.figures) == {"echo+slow-stream-20ms", "echo"}, "the fast model is measured, too"
    assert found.figures["echo+slow-stream-20ms"]["write_tps"] < found.figures["echo"]["write_tps"]


async def test_without_a_model_there_is_nothing_to_measure(configure: Configure) -> None:
    _, found = await measured(configure(llm="extractive"))
    assert [(check.name, check.ok) for check in found.checks] == [("model", False)]


async def test_an_embedder_is_measured_and_its_faults_are_found(configure: Configure) -> None:
    endpoint = {"embedder": "openai", "embedding_batch_size": 8, "embedding_dimensions": 64}
    checks, found = await measured(configure(**endpoint, embedding_model="hashed"), model=False, embedder=True)
    assert all(check.ok for check in found.checks), found.checks
    assert list(checks) == ["vectors", "speed"]
    assert (found.figures["embedder"]["batch"], found.figures["embedder"]["dimensions"]) == (8, 64)
    for fault, code in (("wrong-schema", "model_reply_invalid"), ("status-401", "model_refused")):
        _, found = await measured(configure(**endpoint, embedding_model=fault), model=False, embedder=True)
        (check,) = found.checks
        assert not check.ok
        assert check.detail.startswith(f"{code}: ")


def test_the_command_reports_figures_and_fails_with_a_check(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("LLM", "openai"), ("OPENAI_API_KEY", "any"), ("OPENAI_BASE_URL", server.base_url)):
        monkeypatch.setenv(name, value)
    for model, code in (("echo", 0), ("echo+window-500", 1)):
        monkeypatch.setenv("LLM_MODEL", model)
        assert run(["doctor", "--model", "--json", "--data-dir", str(tmp_path)]) == code
        shown = json.loads(capsys.readouterr().out)
        assert shown["measurements"][model]["repeated"] is (code == 0)
    assert not any(tmp_path.iterdir()), "no store is opened"
    assert run(["doctor", "--model", "--url", "http://127.0.0.1:1"]) == 2
