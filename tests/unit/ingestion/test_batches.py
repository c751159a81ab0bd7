"""When a commit waits for others to share its flush with."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import Mock

import pytest

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.ingestion.batches import Batches

TENANT, OTHER = TenantId("t_" + "1" * 32), TenantId("t_" + "2" * 32)


class _NoJob:
    """A runner that begins the first job alone and does none: what is seen is only whether a commit waited."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    async def begin(self, tenant: TenantId, job_id: str, attempt: int, *, started: bool) -> object:
        self.begun.append(job_id)
        return object() if len(self.begun) == 1 else None

    async def guarded(self, *_: Any) -> None: ...


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    waits: list[bool] = []

    async def pause(self: Batches) -> None:
        waits.append(True)

    monkeypatch.setattr(Batches, "_pause", pause)
    return waits


async def test_a_single_document_is_not_kept_waiting(paused: list[bool]) -> None:
    batches = Batches(cast("Any", _NoJob()), Mock())
    with batches.preparing():
        batches.add(TENANT, "one", 1)
    await batches.commit(TENANT, "one", 1)
    assert paused == []


@pytest.mark.parametrize("tenant", [TENANT, OTHER])
async def test_a_commit_waits_for_what_is_prepared(paused: list[bool], tenant: TenantId) -> None:
    batches = Batches(cast("Any", _NoJob()), Mock())
    batches.add(TENANT, "one", 1)
    batches.add(tenant, "two", 1)
    await batches.commit(TENANT, "one", 1)
    assert paused == [True]


async def test_a_commit_waits_for_what_is_being_prepared(paused: list[bool]) -> None:
    batches = Batches(cast("Any", _NoJob()), Mock())
    batches.add(TENANT, "one", 1)
    with batches.preparing():
        await batches.commit(TENANT, "one", 1)
    assert paused == [True]
