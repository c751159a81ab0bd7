"""A killed evaluation run goes on where it was: a question whose outcome is recorded is never asked again."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.durability.conftest import Folder

QUESTIONS = [f"Who works for the Harbour Office in report {number}?" for number in range(4)]
PAIRS = 2 * len(QUESTIONS)
POINTS = [("runs.save_outcome", 8, "before", 1)]
MORE_POINTS = [
    ("runs.save_outcome", 5, "after", 0),
    ("runs.create", 1, "before", 0),
    ("runs.save_outcome", 1, "before", 1),
    ("runs.save_result", 1, "before", 0),
    ("jobs.finish", 1, "before", 0),
]
"""The call at which the process is killed, and the number of questions that this costs."""


JUDGED = [("runs.save_verdict", 2, "after", 0), ("runs.save_verdict", 2, "before", 1)]
"""Likewise, and the number of pairs of answers that are written and judged again."""


def steps_of(log: Path, *, judge: bool = False) -> Sequence[Mapping[str, Any]]:
    return ({"evaluate": {"questions": QUESTIONS, "log": str(log), "judge": judge}},)


@pytest.mark.parametrize("point", [*POINTS, *(pytest.param(point, marks=pytest.mark.deep) for point in MORE_POINTS)])
def test_a_killed_run_asks_the_other_questions_only(
    tmp_path: Path, ingested: tuple[Folder, dict[str, Any]], point: tuple[str, int, str, int]
) -> None:
    target, call, when, lost = point
    folder, log = ingested[0].copied(tmp_path / "data"), tmp_path / "asked"

    folder.killed(steps_of(log), target, call, when)
    folder.finished(steps_of(log))

    asked = Counter(log.read_text().split("\n")[:-1])
    assert len(asked) == PAIRS
    assert asked.total() == PAIRS + lost
    connection = sqlite3.connect(folder.path / "catalogue.db")
    ((outcomes,),) = connection.execute("SELECT count(*) FROM evaluation_outcomes")
    states = connection.execute("SELECT state FROM jobs WHERE kind = 'evaluate'").fetchall()
    ((result,),) = connection.execute("SELECT result IS NOT NULL FROM evaluation_runs")
    connection.close()
    assert (outcomes, states, result) == (PAIRS, [("succeeded",)], 1)


@pytest.mark.parametrize("point", [JUDGED[0], pytest.param(JUDGED[1], marks=pytest.mark.deep)])
def test_a_killed_run_pays_no_verdict_twice(
    tmp_path: Path, ingested: tuple[Folder, dict[str, Any]], point: tuple[str, int, str, int]
) -> None:
    target, call, when, lost = point
    folder, log = ingested[0].copied(tmp_path / "data"), tmp_path / "asked"

    folder.killed(steps_of(log, judge=True), target, call, when)
    folder.finished(steps_of(log, judge=True))

    lines = log.read_text().split("\n")[:-1]
    judged = Counter(line for line in lines if " judge " in line)
    assert len(judged) == PAIRS, "both orders of each pair"
    assert judged.total() == PAIRS + 2 * lost
    assert len(lines) - judged.total() == PAIRS + 2 * lost, "answers are written again only for a pair without a verdict"
    connection = sqlite3.connect(folder.path / "catalogue.db")
    counts = [connection.execute(f"SELECT count(*) FROM evaluation_{table}").fetchone()[0] for table in ("outcomes", "verdicts")]
    connection.close()
    assert counts == [PAIRS, len(QUESTIONS)]
