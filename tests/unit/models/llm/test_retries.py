"""Conditions under which a failed call is retried."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentic_rag_backend.models.llm.retries import (
    FIRST_PAUSE_S,
    LONGEST_ASKED_S,
    LONGEST_PAUSE_S,
    MAX_ATTEMPTS,
    FailedAttempt,
    RetryVerdict,
    decide_retry,
    retry_after_s,
)


@pytest.mark.parametrize("status", [None, 408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again(status: int | None) -> None:
    assert decide_retry(FailedAttempt(status), attempt=1, left_s=10, jitter=0.5).verdict is RetryVerdict.RETRY


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_will_not_pass_ends_the_call(status: int) -> None:
    assert decide_retry(FailedAttempt(status), attempt=1, left_s=10, jitter=0.5).verdict is RetryVerdict.GIVE_UP


def test_retries_are_bounded() -> None:
    pauses = [decide_retry(FailedAttempt(500), attempt=n, left_s=1000, jitter=1.0).pause_s for n in range(1, MAX_ATTEMPTS)]
    assert pauses[0] == FIRST_PAUSE_S
    assert pauses == sorted(pauses)
    assert max(pauses) <= LONGEST_PAUSE_S
    assert decide_retry(FailedAttempt(500), attempt=1, left_s=9, jitter=0.0).pause_s == FIRST_PAUSE_S / 2

    assert decide_retry(FailedAttempt(500), attempt=MAX_ATTEMPTS, left_s=1000, jitter=0).verdict is RetryVerdict.GIVE_UP
    assert decide_retry(FailedAttempt(429), attempt=MAX_ATTEMPTS, left_s=1000, jitter=0).verdict is RetryVerdict.RATE_LIMITED

    assert (
        decide_retry(FailedAttempt(429, None, exhausted=True), attempt=1, left_s=60, jitter=0).verdict
        is RetryVerdict.RATE_LIMITED
    )


def test_retry_after_is_obeyed_while_there_is_time() -> None:
    assert decide_retry(FailedAttempt(429, 2.0), attempt=1, left_s=3, jitter=0).pause_s == 2.0
    limited = decide_retry(FailedAttempt(429, 3600.0), attempt=1, left_s=60, jitter=0)
    assert (limited.verdict, limited.retry_after_s) == (RetryVerdict.RATE_LIMITED, 3600.0)
    assert decide_retry(FailedAttempt(503, 3600.0), attempt=1, left_s=60, jitter=0).verdict is RetryVerdict.GIVE_UP


def test_retry_after() -> None:
    for headers, seconds in [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 01 Jan 2031 00:00:10 GMT"}, 10.0),
        ({"retry-after": "Wed, 01 Jan 2020 00:00:10 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e300"}, LONGEST_ASKED_S),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST_ASKED_S),
        ({"retry-after": "Mon, 1 Jan 2024 00:00:00 +99999999999999"}, None),
        ({}, None),
    ]:
        assert retry_after_s(headers, now=datetime(2031, 1, 1, tzinfo=UTC)) == seconds
