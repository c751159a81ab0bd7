"""How long a job waits, and when it stops waiting."""

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
from agentic_rag_backend.ingestion.waiting import FIRST_PAUSE_S, LONGEST_PAUSE_S, MOST_INVALID_REPLIES, Waiting

AWAY = ModelUnavailable("away")


def pauses(waiting: Waiting, error: AgenticRagError) -> list[float]:
    """Fail at once after every pause, until it is over."""
    found: list[float] = []
    while (pause := waiting.after(error, now=sum(found))) is not None:
        found.append(pause)
    return found


@pytest.mark.parametrize("error", [AWAY, StoreUnavailable("down"), ModelRateLimited("slow down")])
def test_pauses_grow_until_the_patience_is_over(error: AgenticRagError) -> None:
    found = pauses(Waiting(3600), error)
    assert found[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert all(earlier <= later for earlier, later in pairwise(found[:-1]))
    assert max(found) == LONGEST_PAUSE_S
    assert sum(found) == pytest.approx(3600)


@pytest.mark.parametrize(
    "error", [ModelRefused("key"), ModelInputRefused("text"), StoreLocked("in use"), NotFound("gone"), AgenticRagError("bug")]
)
def test_what_waiting_does_not_mend_is_not_waited_for(error: AgenticRagError) -> None:
    assert Waiting(3600).after(error, now=0) is None


def test_nonsense_is_asked_for_a_few_times() -> None:
    assert len(pauses(Waiting(3600), ModelReplyInvalid("half a reply"))) == MOST_INVALID_REPLIES - 1


def test_without_patience_nothing_is_waited_for() -> None:
    assert Waiting(0).after(AWAY, now=5) is None


def test_what_the_model_asks_for_is_kept_to() -> None:
    assert Waiting(3600).after(ModelRateLimited("", retry_after_s=90), now=0) == 90
    assert Waiting(60).after(ModelRateLimited("", retry_after_s=90), now=0) is None, "it would be in vain"


def test_progress_begins_the_wait_anew() -> None:
    waiting = Waiting(100)
    assert waiting.after(AWAY, now=0, progress=1) == FIRST_PAUSE_S
    assert waiting.after(AWAY, now=99, progress=1) == pytest.approx(1)
    assert waiting.after(AWAY, now=100, progress=1) is None
    assert waiting.after(AWAY, now=100, progress=2) == FIRST_PAUSE_S


@given(
    patience=st.floats(0, 10_000),
    steps=st.lists(st.tuples(st.floats(0, 500), st.booleans(), st.none() | st.floats(0, 500)), max_size=60),
)
def test_no_wait_ends_later_than_the_patience_allows(patience: float, steps: list[tuple[float, bool, float | None]]) -> None:
    waiting, now, since, progress = Waiting(patience), 0.0, None, 0
    for took, gained, asked in steps:
        progress += gained
        since = now if since is None or gained else since
        pause = waiting.after(ModelUnavailable("", retry_after_s=asked), now=now, progress=progress)
        if pause is None:
            return
        assert pause > 0
        assert now + pause <= since + patience + 1e-6
        assert pause >= (asked or 0)
        now += pause + took
