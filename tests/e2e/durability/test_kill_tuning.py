"""A killed job of tuning goes on where it was: a case whose scores are recorded is never measured again."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.durability.conftest import Folder

QUESTIONS = [f"Who works for the Harbour Office in report {number}?" for number in range(3)]
MEASURED = 2 * len(QUESTIONS)
POINTS = [("tuning.save_scores", 4, "after", 0), ("tuning.save_result", 1, "before", 0)]
MORE_POINTS = [
    ("tuning.create", 1, "before", 0),
    ("tuning.save_scores", 1, "before", 1),
    ("jobs.finish", 1, "before", 0),
]
"""The call at which the process is killed, and the number of cases that this costs."""


@pytest.mark.parametrize(
    "point",
    [*POINTS, *(pytest.param(point, marks=pytest.mark.deep) for point in MORE_POINTS)],
)
def test_a_killed_job_measures_the_other_cases_only(
    tmp_path: Path,
    ingested: tuple[Folder, dict[str, Any]],
    point: tuple[str, int, str, int],
) -> None:
    target, call, when, lost = point
    folder, log = ingested[0].copied(tmp_path / "data"), tmp_path / "measured"
    steps = ({"tune": {"questions": QUESTIONS, "log": str(log)}},)

    folder.killed(steps, target, call, when)
    folder.finished(steps)

    measured = Counter(log.read_text().split("\n")[:-1])
    assert len(measured) == MEASURED
    assert measured.total() == MEASURED + lost
    connection = sqlite3.connect(folder.path / "catalogue.db")
    ((scores,),) = connection.execute("SELECT count(*) FROM tuning_scores")
    states = connection.execute("SELECT state FROM jobs WHERE kind = 'tune'").fetchall()
    ((proposed, result),) = connection.execute("SELECT proposed IS NOT NULL, result IS NOT NULL FROM tuning_proposals")
    connection.close()
    assert (scores, states, proposed, result) == (MEASURED, [("succeeded",)], 0, 1), "too few cases: it declines"
