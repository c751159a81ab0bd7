"""The contract of idempotency keys on SQLite, and on stores with planted faults. Also the limit of stored keys."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from catalogue_checks import idempotency as contract
from planted_statements import plant
from sqlalchemy import select

from agentic_rag_backend.errors import AgenticRagError, IdempotencyInProgress
from agentic_rag_backend.stores.catalogue import idempotency_keys as module
from agentic_rag_backend.stores.catalogue.base import Catalogue, IdempotencyClaim, IdempotencyKeys, Owner, StoredResponse
from agentic_rag_backend.stores.catalogue.columns import utc_now
from agentic_rag_backend.stores.catalogue.tables import idempotency_keys


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_sqlite(catalogue: Catalogue, check: contract.Check) -> None:
    await check(catalogue.idempotency)


async def test_two_processes_begin_one_request(tmp_path: Path, catalogue: Catalogue) -> None:
    """Over two separate connections, as in two processes."""
    other = await Catalogue.open(f"sqlite:///{tmp_path / 'catalogue.db'}")

    async def begin(keys: IdempotencyKeys, digest: str) -> bool:
        try:
            return isinstance(await keys.begin(contract.A, digest, fingerprint="same", lease_s=60), IdempotencyClaim)
        except IdempotencyInProgress:
            return False

    for number in range(30):
        both = await asyncio.gather(*(begin(each.idempotency, f"{number}") for each in (catalogue, other)))
        assert sorted(both) == [False, True]
    await other.close()


class _LooksFirst(IdempotencyKeys):
    """Reads in one transaction and inserts in another."""

    async def begin(self, owner: Owner, digest: str, *, fingerprint: str, lease_s: float) -> IdempotencyClaim | StoredResponse:
        statement = select(idempotency_keys.c.digest).where(idempotency_keys.c.digest == digest)
        if not await self._database.read(lambda connection: connection.execute(statement).first()):
            await self._database.write(
                lambda connection: connection.execute(
                    idempotency_keys.insert().prefix_with("OR REPLACE"),
                    {
                        "tenant_id": module._owner_text(owner),
                        "digest": digest,
                        "fingerprint": fingerprint,
                        "claim": "mine",
                        "created_at": utc_now(),
                        "expires_at": utc_now(),
                    },
                )
            )
            return IdempotencyClaim("mine")
        raise IdempotencyInProgress("looked", retry_after_s=1)


async def test_a_begin_that_is_not_atomic_fails(catalogue: Catalogue) -> None:
    with pytest.raises(AssertionError):
        await contract.one_of_many_concurrent_requests_begins(_LooksFirst(catalogue._database))


@pytest.mark.parametrize(
    ("check", "kind", "old", "new"),
    [
        (contract.owners_are_separate, "SELECT", "idempotency_keys.tenant_id = ?", "? <> ''"),
        (contract.owners_are_separate, "UPDATE", "idempotency_keys.tenant_id = ?", "? <> ''"),
        (contract.owners_are_separate, "DELETE", "idempotency_keys.tenant_id = ?", "? <> ''"),
        (contract.owners_are_separate, "SELECT", "idempotency_keys.digest = ?", "? <> ''"),
        (contract.a_lease_ends, "UPDATE", "AND idempotency_keys.claim = ?", "AND ? <> ''"),
        (contract.a_lease_ends, "DELETE", "AND idempotency_keys.claim = ?", "AND ? <> ''"),
        (contract.a_lease_ends, "DELETE", "idempotency_keys.expires_at <= ?", "? IS NULL"),
        (contract.expired_entries_are_removed, "DELETE", "idempotency_keys.expires_at <= ?", "? <> ''"),
        (contract.claims_of_a_killed_process_are_released, "DELETE", "idempotency_keys.claim IS NOT NULL", "1 = 1"),
        (contract.the_first_answer_is_replayed, "UPDATE", "body=?", "body=substr(?, 2)"),
    ],
)
async def test_faulty_statements_fail(catalogue: Catalogue, check: contract.Check, kind: str, old: str, new: str) -> None:
    planted = plant(catalogue, kind, old, new)
    with pytest.raises((AssertionError, AgenticRagError)):
        await check(catalogue.idempotency)
    assert planted


async def test_the_oldest_answers_go_when_there_are_too_many(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT", 3)
    keys = catalogue.idempotency

    async def begin(owner: Owner, digest: str) -> IdempotencyClaim | StoredResponse:
        return await keys.begin(owner, digest, fingerprint="same", lease_s=60)

    for owner in (contract.A, contract.B):
        for number in range(3):
            claim = await begin(owner, f"{number}")
            assert isinstance(claim, IdempotencyClaim)
            await keys.complete(owner, f"{number}", claim, StoredResponse(200 + number))
    assert isinstance(await begin(contract.A, "3"), IdempotencyClaim)
    assert [isinstance(await begin(contract.A, f"{number}"), StoredResponse) for number in (1, 2)] == [True, True]
    assert isinstance(await begin(contract.A, "0"), IdempotencyClaim)
    assert all([isinstance(await begin(contract.B, f"{number}"), StoredResponse) for number in range(3)])
