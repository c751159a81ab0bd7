from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.retrieval.agentic.stopping import POLICIES, Budget, Limits, Progress, Spent, novelty, stop_reason

WIDE = Budget(calls=100, tokens=10**6, seconds=10**6)
ids = st.sets(st.integers(0, 30).map(str))
news = st.lists(st.floats(0, 2), min_size=1, max_size=8)
spents = st.builds(Spent, st.integers(0, 20), st.integers(0, 5000), st.floats(0, 100))
budgets = st.builds(Budget, st.integers(1, 20), st.integers(1, 5000), st.floats(0.1, 100))


@given(found=ids, known=ids)
def test_novelty_is_the_share_of_new_passages(found: set[str], known: set[str]) -> None:
    value = novelty(found, known, first=False)
    assert value >= 0
    assert (value == 0) == (not found - known)
    if known:
        assert value * len(known) == pytest.approx(len(found - known))
    # A passage that was known already changes nothing, and a new one never lowers it.
    assert novelty(found | set(list(known)[:1]), known, first=False) == value
    assert novelty(found | {"new"}, known, first=False) >= value


@given(found=ids, known=ids)
def test_the_first_round_counts_as_one(found: set[str], known: set[str]) -> None:
    assert novelty(found, known, first=True) == 1.0


@given(values=news, epsilon=st.floats(0, 1), rounds=st.integers(2, 5))
def test_the_breaker_stops_exactly_below_epsilon(values: list[float], epsilon: float, rounds: int) -> None:
    reason = stop_reason("novelty", Progress(values), Limits(rounds, epsilon, WIDE))
    if values[-1] < epsilon:
        assert reason == "novelty"
    else:
        assert reason == ("rounds" if len(values) >= rounds else None)


@given(values=news, lower=st.floats(0, 1), higher=st.floats(0, 1))
def test_a_lower_epsilon_never_stops_earlier(values: list[float], lower: float, higher: float) -> None:
    lower, higher = sorted((lower, higher))

    def rounds(epsilon: float) -> int:
        limits = Limits(len(values), epsilon, WIDE)
        return next(n for n in range(1, len(values) + 1) if stop_reason("novelty", Progress(values[:n]), limits))

    assert rounds(lower) >= rounds(higher)


@given(policy=st.sampled_from(sorted(POLICIES)), values=news, spent=spents, budget=budgets, rounds=st.integers(1, 5))
def test_every_policy_ends_by_the_rounds_and_by_the_budget(
    policy: str, values: list[float], spent: Spent, budget: Budget, rounds: int
) -> None:
    reason = stop_reason(policy, Progress(values, spent), Limits(rounds, 0.2, budget))
    if len(values) >= rounds or budget.find_exhausted_limit(spent):
        assert reason is not None
    if policy == "fixed_rounds" and not budget.find_exhausted_limit(spent):
        assert reason == ("rounds" if len(values) >= rounds else None)


def test_the_budget_policy_stops_before_a_round_that_it_cannot_pay() -> None:
    limits = Limits(5, 0.2, Budget(calls=5, tokens=1000, seconds=10.0))
    assert stop_reason("budget", Progress([1.0, 0.0], Spent(2, 400, 4.0)), limits) is None
    for spent in (Spent(4, 10, 1.0), Spent(1, 800, 1.0), Spent(1, 10, 8.0)):
        assert stop_reason("budget", Progress([1.0, 0.5], spent), limits) == "budget"
        assert stop_reason("novelty", Progress([1.0, 0.5], spent), limits) is None


def test_a_limit_that_is_reached_is_named() -> None:
    for spent, limit in [
        (Spent(3, 0, 0), "calls"),
        (Spent(0, 50, 0), "tokens"),
        (Spent(0, 0, 2.0), "seconds"),
        (Spent(2, 49, 1.9), None),
    ]:
        budget = Budget(calls=3, tokens=50, seconds=2.0)
        assert budget.find_exhausted_limit(spent) == limit
        expected = f"budget_{limit}" if limit else None
        assert stop_reason("fixed_rounds", Progress([1.0], spent), Limits(5, 0.2, budget)) == expected
