"""Contract of every store of idempotency keys: run `CHECKS` against an adapter, each on a new, empty database.

A check is an async function of the store that raises `AssertionError`. ``tests/contract/test_idempotency_keys.py`` shows how to
run them, and that stores with planted faults fail them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import IdempotencyInProgress, IdempotencyKeyReused, InvalidScope
from agentic_rag_backend.stores.catalogue.base import IdempotencyClaim, IdempotencyKeys, Operator, StoredResponse
from agentic_rag_backend.testing.catalogue.samples import equal, raises, true

A = TenantId("t_" + "a" * 32)
B = TenantId("t_" + "b" * 32)
AT_ONCE = 12
LEASE_S = 60.0
FIRST = StoredResponse(202, {"etag": '"1"', "content-type": "application/json"}, b'{"data": "\xc3\xa9"}')

Check = Callable[[IdempotencyKeys], Awaitable[None]]


async def the_first_answer_is_replayed(keys: IdempotencyKeys) -> None:
    """The stored response is identical, byte for byte, any number of times."""
    claim = await _claim(keys, A, "digest")
    true(await keys.complete(A, "digest", claim, FIRST), "completed")
    for _ in range(2):
        equal(await keys.begin(A, "digest", fingerprint="same", lease_s=LEASE_S), FIRST)


async def one_of_many_concurrent_requests_begins(keys: IdempotencyKeys) -> None:
    """The other callers learn that the request is in progress."""

    async def begin() -> str:
        try:
            return type(await keys.begin(A, "digest", fingerprint="same", lease_s=LEASE_S)).__name__
        except IdempotencyInProgress as error:
            true(error.retry_after_s is not None and error.retry_after_s > 0, "when to ask again")
            return "in progress"

    outcomes = await asyncio.gather(*(begin() for _ in range(AT_ONCE)))
    equal(Counter(outcomes), {"IdempotencyClaim": 1, "in progress": AT_ONCE - 1})


async def another_request_is_refused(keys: IdempotencyKeys) -> None:
    """During the first request, and after it."""
    claim = await _claim(keys, A, "digest")
    await raises(IdempotencyKeyReused, keys.begin(A, "digest", fingerprint="other", lease_s=LEASE_S), "while it runs")
    await keys.complete(A, "digest", claim, FIRST)
    await raises(IdempotencyKeyReused, keys.begin(A, "digest", fingerprint="other", lease_s=LEASE_S), "afterwards")


async def a_released_key_is_free(keys: IdempotencyKeys) -> None:
    """The key can be used for any request."""
    await keys.release(A, "digest", await _claim(keys, A, "digest"))
    await _claim(keys, A, "digest", fingerprint="other")


async def a_lease_ends(keys: IdempotencyKeys) -> None:
    """Another process can claim the key of a dead process. A late end of the first claim then changes nothing."""
    late = await _claim(keys, A, "digest", lease_s=0)
    claim = await _claim(keys, A, "digest")
    equal(await keys.complete(A, "digest", late, StoredResponse(500)), False, "a lost claim's answer")
    await keys.release(A, "digest", late)
    await raises(IdempotencyInProgress, keys.begin(A, "digest", fingerprint="same", lease_s=LEASE_S), "the second claim")
    true(await keys.complete(A, "digest", claim, FIRST), "the second claim's answer")
    await keys.release(A, "digest", late)
    equal(await keys.begin(A, "digest", fingerprint="same", lease_s=LEASE_S), FIRST)


async def owners_are_separate(keys: IdempotencyKeys) -> None:
    """Equal keys of two tenants and the operator are three keys. Another owner cannot use a digest and a claim."""
    claims = {owner: await _claim(keys, owner, "digest") for owner in (A, B, Operator.OPERATOR)}
    equal(await keys.complete(B, "digest", claims[A], FIRST), False, "another's claim")
    await keys.release(B, "digest", claims[A])
    await raises(IdempotencyInProgress, keys.begin(A, "digest", fingerprint="same", lease_s=LEASE_S), "A's")
    for number, owner in enumerate(claims):
        await keys.complete(owner, "digest", claims[owner], StoredResponse(200 + number))
    for number, owner in enumerate(claims):
        equal(await keys.begin(owner, "digest", fingerprint="same", lease_s=LEASE_S), StoredResponse(200 + number))
    await keys.complete(A, "another", await _claim(keys, A, "another"), StoredResponse(299))
    answers = [await keys.begin(A, digest, fingerprint="same", lease_s=LEASE_S) for digest in ("digest", "another")]
    equal(answers, [StoredResponse(200), StoredResponse(299)], "two keys of one owner")


async def expired_entries_are_removed(keys: IdempotencyKeys) -> None:
    """Expired keys of all tenants are removed. Valid responses and running requests stay."""
    for owner in (A, B):
        await _claim(keys, owner, "over", lease_s=0)
    running = await _claim(keys, A, "running")
    await keys.complete(B, "kept", await _claim(keys, B, "kept"), FIRST)
    equal((await keys.sweep(), await keys.sweep()), (2, 0))
    true(await keys.complete(A, "running", running, FIRST), "what was running")
    equal(await keys.begin(B, "kept", fingerprint="same", lease_s=LEASE_S), FIRST)


async def claims_of_a_killed_process_are_released(keys: IdempotencyKeys) -> None:
    """For all tenants. Stored responses are returned as before."""
    for owner in (A, B):
        await _claim(keys, owner, "running")
    await keys.complete(A, "kept", await _claim(keys, A, "kept"), FIRST)
    equal((await keys.release_all(), await keys.release_all()), (2, 0))
    for owner in (A, B):
        await _claim(keys, owner, "running")
    equal(await keys.begin(A, "kept", fingerprint="same", lease_s=LEASE_S), FIRST)


async def every_method_requires_an_owner(keys: IdempotencyKeys) -> None:
    """Any value but a `TenantId` or the operator is an error."""
    for scope in (None, "", A.value, "operator"):
        await raises(InvalidScope, keys.begin(scope, "d", fingerprint="same", lease_s=1), "begin")  # type: ignore[arg-type]
        await raises(InvalidScope, keys.complete(scope, "d", IdempotencyClaim("x"), FIRST), "complete")  # type: ignore[arg-type]
        await raises(InvalidScope, keys.release(scope, "d", IdempotencyClaim("x")), "release")  # type: ignore[arg-type]


CHECKS: tuple[Check, ...] = (
    the_first_answer_is_replayed,
    one_of_many_concurrent_requests_begins,
    another_request_is_refused,
    a_released_key_is_free,
    a_lease_ends,
    owners_are_separate,
    expired_entries_are_removed,
    claims_of_a_killed_process_are_released,
    every_method_requires_an_owner,
)


async def _claim(
    keys: IdempotencyKeys, owner: TenantId | Operator, digest: str, *, fingerprint: str = "same", lease_s: float = LEASE_S
) -> IdempotencyClaim:
    begun = await keys.begin(owner, digest, fingerprint=fingerprint, lease_s=lease_s)
    if not isinstance(begun, IdempotencyClaim):
        raise AssertionError(f"answered with {begun}")
    return begun
