"""The journal lists the workflows that a killed process was running."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agentic_rag_backend.jobs.coordination import recovery as module
from agentic_rag_backend.jobs.coordination.recovery import RunningJournal


def test_the_next_process_reads_what_ran(tmp_path: Path) -> None:
    journal = RunningJournal(tmp_path / "note")
    assert journal.read_earlier() == frozenset()
    journal.begin_process({"old": 3})
    for workflow in ("a", "b", "ü\n"):
        journal.record_start(workflow)
    journal.record_end("a")
    following = RunningJournal(tmp_path / "note")
    assert following.read_earlier() == {"b", "ü\n"}
    assert following.kills == {"old": 3}
    following.begin_process({"old": 3, "b": 1})
    after = RunningJournal(tmp_path / "note")
    assert (after.read_earlier(), after.kills) == (frozenset(), {"old": 3, "b": 1})


def test_forgiven_kills_are_not_read_again(tmp_path: Path) -> None:
    journal = RunningJournal(tmp_path / "note")
    journal.begin_process({"a": 2, "b": 1})
    journal.record_start("a")
    journal.forgive_kills("a")
    assert journal.kills == {"b": 1}
    following = RunningJournal(tmp_path / "note")
    assert (following.read_earlier(), following.kills) == ({"a"}, {"b": 1})


def test_damage_costs_only_its_line(tmp_path: Path) -> None:
    path = tmp_path / "note"
    path.write_bytes(b'{"kills": {"x": 1}}\n["+", "a"]\nnull\n{}\n\xff\n["+"]\n["+", "b"]\n["-", "b')
    journal = RunningJournal(path)
    assert (journal.read_earlier(), journal.kills) == ({"a", "b"}, {"x": 1})


def test_it_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_BYTES", 1000)
    journal = RunningJournal(tmp_path / "note")
    journal.begin_process({"x": 1})
    journal.record_start("stays")
    for number in range(200):
        journal.record_start(str(number))
        journal.record_end(str(number))
    assert (tmp_path / "note").stat().st_size < 1200
    following = RunningJournal(tmp_path / "note")
    assert (following.read_earlier(), following.kills) == ({"stays"}, {"x": 1})
    journal.close()
    journal.record_end("stays")
    assert following.read_earlier() == {"stays"}


def test_work_continues_without_a_journal_entry(tmp_path: Path) -> None:
    with capture_logs() as events:
        journal = RunningJournal(tmp_path / "missing" / "note")
        journal.begin_process({})
        journal.record_start("a")
    assert {(each["event"], each["log_level"]) for each in events} == {("running_journal_not_written", "warning")}
    nowhere = RunningJournal(None)
    nowhere.begin_process({"a": 2})
    nowhere.record_start("a")
    assert (nowhere.read_earlier(), nowhere.kills) == (frozenset(), {"a": 2})
