"""Counters of this process: their values, and the limit of label values."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from agentic_rag_backend.telemetry import metrics
from agentic_rag_backend.telemetry.metrics import MAX_NAMES, OTHER, REGISTRY, ModelCall, count_model_call, count_request


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.fixture(autouse=True)
def no_names_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Admit this test's names: the counters belong to the process, and other tests have already added models."""
    monkeypatch.setattr(metrics, "_models", metrics._Names())
    monkeypatch.setattr(metrics, "_purposes", metrics._Names())


def test_a_model_call_counts_its_tokens_and_its_time() -> None:
    labels = {"model": "m-calls", "purpose": "answer"}
    for outcome in ("ok", "ok", "refused"):
        call = ModelCall(**labels, outcome=outcome, input_tokens=7, output_tokens=0, duration_s=0.2)  # type: ignore[arg-type]
        count_model_call(call)
    assert value("agentic_rag_model_calls_total", **labels, outcome="ok") == 2
    assert value("agentic_rag_model_calls_total", **labels, outcome="refused") == 1
    assert value("agentic_rag_model_tokens_total", **labels, direction="input") == 21
    assert value("agentic_rag_model_tokens_total", **labels, direction="output") == 0
    assert value("agentic_rag_model_call_duration_seconds_count", **labels) == 3


def _models() -> set[str]:
    lines = generate_latest(REGISTRY).decode().splitlines()
    counted = [line for line in lines if line.startswith("agentic_rag_model_calls_total")]
    return {line.partition('model="')[2].partition('"')[0] for line in counted}


def test_names_beyond_the_bound_are_one() -> None:
    before = _models()
    for number in range(3 * MAX_NAMES):
        count_model_call(ModelCall(model=f"m{number}", purpose=f"p{number}", outcome="ok"))
        count_request(f"BREW{number}", "unmatched", 405, 0.01)
    lines = generate_latest(REGISTRY).decode().splitlines()
    assert len(_models() - before) <= MAX_NAMES + 1
    assert any(f'model="{OTHER}"' in line and f'purpose="{OTHER}"' in line for line in lines)
    assert not any("BREW" in line for line in lines)
    assert value("agentic_rag_http_requests_total", method=OTHER, route="unmatched", status="405", door="api") >= 3 * MAX_NAMES
