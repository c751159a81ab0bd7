"""`make same` leaves out what differs from run to run, and shows what a change of the code has changed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

CHUNK = "0f8fad5b-d9cb-469f-a165-70867728950e"
RESULT = {"id": CHUNK, "content": "The bridge was closed.", "score": 0.12345649, "graph_path": []}


@pytest.fixture(scope="module")
def same(root: Path) -> Iterator[ModuleType]:
    """Return the program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "benchmarks"))
        known = set(sys.modules)
        yield importlib.import_module("same")
        for name in {"same", "same_corpora", "same_results", "report"} - known:
            sys.modules.pop(name, None)


@pytest.fixture
def results(same: ModuleType) -> ModuleType:
    """Return the module of canonical results."""
    return importlib.import_module("same_results")


def test_times_and_random_ids_are_left_out(results: ModuleType) -> None:
    canon = results.Canon({CHUNK: "chunk a"})
    response = {
        "data": [RESULT],
        "meta": {"requestId": "req_1", "processing_time_ms": 3.2, "to": "2026-11-27T17:15:16.187318+00:00"},
    }

    cleaned = canon.clean(response)

    assert cleaned["meta"] == {"to": "moment"}
    assert cleaned["data"] == [
        {"id": "chunk a", "content": results.digest(RESULT["content"], 12), "score": 0.123456, "graph_path": []}
    ]
    assert results.Canon().clean([CHUNK, f"job {CHUNK}", "2021-05-03"]) == ["id", "job id", "2021-05-03"]


def test_differences_name_their_place(results: ModuleType) -> None:
    assert list(results.differences([{"a": 1, "b": [2]}], [{"a": 1, "b": [3]}])) == ["[0].b[0]: 2 → 3"]
    assert list(results.differences({"a": [1]}, {"a": []})) == ["a: 1 items → 0 items"]


def test_a_changed_result_is_shown(same: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    metrics = {"search": {"one R@5": 0.5}}
    same.write(before, {"search": {"one: a": {"score": 0.5}, "two: b": {"score": 0.7}}}, metrics)
    same.write(after, {"search": {"one: a": {"score": 0.4}}}, {"search": {"one R@5": 0.4}})

    assert same.compare(before, before)
    assert capsys.readouterr().out == "search: same (2 cases)\n"
    assert not same.compare(before, after, ["one"])
    assert capsys.readouterr().out.splitlines() == [
        "search: CHANGED, 1 of 1 cases",
        "  one R@5: 0.5 → 0.4",
        "  one: a",
        "    score: 0.5 → 0.4",
    ]
    assert not same.compare(before, after)  # a case is missing
