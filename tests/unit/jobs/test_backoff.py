"""Waiting times of a job, and the end of its patience."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.errors import (
    AgenticRagError,
    ModelInputRefused,
    ModelRateLimited,
    ModelRefused,
    ModelReplyInvalid,
    ModelUnavailable,
    NotFound,
    StoreLocked,
    StoreUnavailable,
)
from agentic_rag_backend.jobs.base import FIRST_PAUSE_S, LONGEST_PAUSE_S, MAX_INVALID_REPLIES, Backoff

AWAY = ModelUnavailable("away")


def pauses(backoff: Backoff, error: AgenticRagError) -> list[float]:
    """Fail at once after every pause, until the job is given up."""
    found: list[float] = []
    while (pause := backoff.pause_s(error, now=sum(found))) is not None:
        found.append(pause)
    return found


@pytest.mark.parametrize("error", [AWAY, StoreUnavailable("down"), ModelRateLimited("slow down")])
def test_pauses_grow_until_the_patience_is_over(error: AgenticRagError) -> None:
    found = pauses(Backoff(3600), error)
    assert found[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert all(earlier <= later for earlier, later in pairwise(found[:-1]))
    assert max(found) == LONGEST_PAUSE_S
    assert sum(found) == pytest.approx(3600)


@pytest.mark.parametrize(
    "error", [ModelRefused("key"), ModelInputRefused("text"), StoreLocked("in use"), NotFound("gone"), AgenticRagError("bug")]
)
def test_what_waiting_does_not_mend_is_not_waited_for(error: AgenticRagError) -> None:
    assert Backoff(3600).pause_s(error, now=0) is None


def test_nonsense_is_asked_for_a_few_times() -> None:
    assert len(pauses(Backoff(3600), ModelReplyInvalid("half a reply"))) == MAX_INVALID_REPLIES - 1


def test_without_patience_nothing_is_waited_for() -> None:
    assert Backoff(0).pause_s(AWAY, now=5) is None


def test_what_the_model_asks_for_is_kept_to() -> None:
    assert Backoff(3600).pause_s(ModelRateLimited("", retry_after_s=90), now=0) == 90
    assert Backoff(60).pause_s(ModelRateLimited("", retry_after_s=90), now=0) is None, "it would be in vain"


def test_progress_begins_the_wait_anew() -> None:
    backoff = Backoff(100)
    assert backoff.pause_s(AWAY, now=0, progress=1) == FIRST_PAUSE_S
    assert backoff.pause_s(AWAY, now=99, progress=1) == pytest.approx(1)
    assert backoff.pause_s(AWAY, now=100, progress=1) is None
    assert backoff.pause_s(AWAY, now=100, progress=2) == FIRST_PAUSE_S


@given(
    patience=st.floats(0, 10_000),
    steps=st.lists(st.tuples(st.floats(0, 500), st.booleans(), st.none() | st.floats(0, 500)), max_size=60),
)
def test_no_wait_ends_later_than_the_patience_allows(patience: float, steps: list[tuple[float, bool, float | None]]) -> None:
    backoff, now, since, progress = Backoff(patience), 0.0, None, 0
    for took, gained, asked in steps:
        progress += gained
        since = now if since is None or gained else since
        pause = backoff.pause_s(ModelUnavailable("", retry_after_s=asked), now=now, progress=progress)
        if pause is None:
            return
        assert pause > 0
        assert now + pause <= since + patience + 1e-6
        assert pause >= (asked or 0)
        now += pause + took
