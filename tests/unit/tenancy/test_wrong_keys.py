"""Lock-outs of clients that send many wrong keys, on a clock of the test."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import TooManyWrongKeys, Unauthenticated
from agentic_rag_backend.tenancy import authentication
from agentic_rag_backend.tenancy.authentication import FORGOTTEN_AFTER_S, LONGEST_LOCK_S, Authenticator, WrongKeys

OPERATOR = "operator-key-of-at-least-32-characters"
HERE, ELSEWHERE = "192.0.2.7", "2001:db8::/64"


@dataclass
class Clock:
    """A monotonic clock that the test moves."""

    now: float = 50_000.0

    def __call__(self) -> float:
        return self.now


class NoTenants:
    """A directory without keys. It counts how often it is asked."""

    asked = 0

    async def authenticate(self, _digest: str) -> Principal | None:
        self.asked += 1
        return None


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_each_wrong_key_after_the_limit_locks_twice_as_long(clock: Clock) -> None:
    keys = WrongKeys(3, clock)
    assert [keys.count_wrong_key(HERE) for _ in range(3)] == [0, 0, 0]
    locks = []
    for _ in range(12):
        locks.append(keys.count_wrong_key(HERE))
        assert not keys.may_try(HERE, "a hash")
        clock.now += locks[-1]
        assert keys.may_try(HERE, "a hash")
    assert locks == [1, 2, 4, 8, 16, 32, 64, 128, 256, LONGEST_LOCK_S, LONGEST_LOCK_S, LONGEST_LOCK_S]
    assert keys.count_wrong_key(ELSEWHERE) == 0


def test_wrong_keys_during_a_lock_do_not_extend_it(clock: Clock) -> None:
    keys = WrongKeys(1, clock)
    keys.count_wrong_key(HERE)
    assert keys.count_wrong_key(HERE) == 1
    clock.now += 0.75
    assert {keys.count_wrong_key(HERE) for _ in range(100)} == {0.25}
    clock.now += 0.25
    assert keys.count_wrong_key(HERE) == 2


def test_an_hour_without_a_wrong_key_ends_it(clock: Clock) -> None:
    keys = WrongKeys(2, clock)
    for _ in range(4):
        clock.now += keys.count_wrong_key(HERE)
    clock.now += FORGOTTEN_AFTER_S + 1
    assert [keys.count_wrong_key(HERE) for _ in range(3)] == [0, 0, 1]


def test_a_key_that_a_client_used_before_is_still_compared(clock: Clock) -> None:
    keys = WrongKeys(1, clock)
    keys.accept_key(HERE, "of the operator")
    for client in (HERE, ELSEWHERE):
        keys.count_wrong_key(client)
        assert keys.count_wrong_key(client) == 1
    assert keys.may_try(HERE, "of the operator")
    assert not keys.may_try(HERE, "of the metrics")
    assert not keys.may_try(ELSEWHERE, "of the operator")


def test_the_number_of_remembered_clients_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "MAX_CLIENTS", 3)
    keys = WrongKeys(1, clock)
    for number in range(1000):
        keys.count_wrong_key(f"client {number}")
    assert list(keys._records) == ["client 997", "client 998", "client 999"]
    assert keys.count_wrong_key("client 999") == 1
    assert keys.count_wrong_key("client 0") == 0


def test_nothing_is_counted_without_a_limit_or_a_client(clock: Clock) -> None:
    for keys, client in ((WrongKeys(0, clock), HERE), (WrongKeys(1, clock), None)):
        assert {keys.count_wrong_key(client) for _ in range(100)} == {0}
        assert keys.may_try(client, "a hash")


async def test_the_operator_s_key_cannot_be_found_by_trying(clock: Clock) -> None:
    authenticator = Authenticator(NoTenants(), operators={"operator": OPERATOR}, wrong_keys=WrongKeys(5, clock))  # type: ignore[arg-type]
    assert authenticator.find_operator(OPERATOR, client=ELSEWHERE)
    for number in range(5):
        with pytest.raises(Unauthenticated):
            await authenticator.authenticate(f"guess {number}", client=HERE)
    for secret in ("guess 6", "x" * 1000, OPERATOR):
        with pytest.raises(TooManyWrongKeys) as refused:
            await authenticator.authenticate(secret, client=HERE)
        assert refused.value.retry_after_s == 1
    assert not authenticator.find_operator(OPERATOR, client=HERE)
    assert authenticator.find_operator(OPERATOR, client=ELSEWHERE)
    clock.now += 1
    assert authenticator.find_operator(OPERATOR, client=HERE)
