"""The breaker avoids waits for an unavailable server, and allows calls again when it is back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.breaker import PAUSE_S, TOO_LATE, Breaker, Outages
from agentic_rag_backend.errors import InvalidRequest, ModelRateLimited, ModelUnavailable, StoreUnavailable


class Unreachable(StoreUnavailable):
    pass


STORES = Outages(StoreUnavailable, Unreachable)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def outcome(breaker: Breaker, error: Exception | None = None, *, always: bool = False) -> str:
    """Return the outcome of a call that ends with ``error``: ``made`` or ``refused``."""
    made = False
    try:
        with breaker.watch_call(always=always):
            made = True
            if error is not None:
                raise error
    except (StoreUnavailable, InvalidRequest):
        pass
    return "made" if made else "refused"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(STORES, clock=clock)


AWAY = Unreachable("refused")
LATE = StoreUnavailable("late")


def test_a_server_that_is_away_is_not_waited_for_again(breaker: Breaker, clock: Clock) -> None:
    assert outcome(breaker, AWAY) == "made"
    assert outcome(breaker) == "refused"
    clock.now = PAUSE_S
    assert outcome(breaker, LATE) == "made", "one trial"
    assert outcome(breaker) == "refused", "the trial failed"
    clock.now = 2 * PAUSE_S
    assert outcome(breaker) == "made"
    assert outcome(breaker) == "made", "it is back"


def test_only_one_tries_at_a_time(breaker: Breaker, clock: Clock) -> None:
    outcome(breaker, AWAY)
    clock.now = PAUSE_S
    with breaker.watch_call():
        assert outcome(breaker) == "refused"
        assert outcome(breaker, always=True) == "made", "a probe asks whatever the state is"
    assert outcome(breaker) == "made"


def test_a_slow_answer_is_no_reason_to_refuse_others(breaker: Breaker) -> None:
    for _ in range(TOO_LATE - 1):
        assert outcome(breaker, LATE) == "made"
    assert outcome(breaker) == "made"
    for _ in range(TOO_LATE):
        assert outcome(breaker, LATE) == "made"
    assert outcome(breaker) == "refused", "so many in a row are"


def test_what_is_not_the_servers_fault_says_nothing(breaker: Breaker, clock: Clock) -> None:
    for _ in range(2 * TOO_LATE):
        assert outcome(breaker, InvalidRequest("no")) == "made"
    outcome(breaker, AWAY)
    clock.now = PAUSE_S
    assert outcome(breaker, InvalidRequest("no")) == "made"
    assert outcome(breaker) == "made", "the trial is still to be made, and nobody is kept out for one that ended otherwise"


def test_a_probe_that_is_answered_lets_everyone_in(breaker: Breaker) -> None:
    outcome(breaker, AWAY)
    assert outcome(breaker, always=True) == "made"
    assert outcome(breaker) == "made"


@given(st.lists(st.sampled_from([None, AWAY, LATE, InvalidRequest("no"), "wait", "probe"]), max_size=60))
def test_it_never_stays_shut(steps: list[object]) -> None:
    """After any history, a server that is back is called again after the pause."""
    clock = Clock()
    breaker = Breaker(STORES, clock=clock)
    for step in steps:
        if step == "wait":
            clock.now += PAUSE_S / 2
        elif step == "probe":
            outcome(breaker, LATE, always=True)
        else:
            outcome(breaker, step if isinstance(step, Exception) else None)
    clock.now += PAUSE_S
    assert outcome(breaker) == "made"
    assert outcome(breaker) == "made"


def test_a_refused_call_names_the_reason_and_when_to_come_back(breaker: Breaker, clock: Clock) -> None:
    outcome(breaker, AWAY)
    clock.now = 0.5

    with pytest.raises(StoreUnavailable, match="refused recently") as caught, breaker.watch_call():
        pass

    assert caught.value.retry_after_s == PAUSE_S
    assert (breaker.open, breaker.reason) == (True, "refused")


def test_an_error_that_only_a_server_which_is_there_gives_closes_the_circuit(clock: Clock) -> None:
    breaker = Breaker(Outages(ModelUnavailable, Unreachable, answered=(ModelRateLimited,)), clock=clock)
    for error in (ModelUnavailable("late"), ModelUnavailable("late"), ModelRateLimited("too many"), ModelUnavailable("late")):
        with pytest.raises(ModelUnavailable), breaker.watch_call():
            raise error

    assert not breaker.open
