"""The start of a process delivers what searches read, of every tenant."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.jobs import relay as module
from agentic_rag_backend.jobs.relay import Relay
from agentic_rag_backend.stores.catalogue.base import Catalogue, Topic


@pytest.mark.parametrize("failing", [None, 0, 3])
async def test_a_start_catches_up_with_every_tenant(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, failing: int | None
) -> None:
    monkeypatch.setattr(module, "_PAGE", 2)
    tenants = sorted([(await catalogue.tenants.create(f"t{number}")).id for number in range(7)], key=lambda tenant: tenant.value)
    for tenant in tenants:
        await catalogue.outbox.add(tenant, Topic.ORIGINAL, "document")
        await catalogue.outbox.add(tenant, Topic.LEFTOVERS, "document")
    delivered: list[TenantId] = []

    async def handle(tenant: TenantId, _: str) -> None:
        if failing is not None and tenant == tenants[failing]:
            raise StoreUnavailable("the vector store does not answer")
        delivered.append(tenant)

    async def flush() -> None:
        """Nothing to flush."""

    relay = Relay(catalogue.outbox, cast(Any, None), flush=flush)
    relay.register_handlers({Topic.ORIGINAL: handle})
    assert await relay.catch_up([Topic.ORIGINAL], within_s=30) is (failing is None)
    assert delivered == [tenant for number, tenant in enumerate(tenants) if number != failing]
    assert len(await catalogue.outbox.tenants(limit=10)) == 7, "other topics are left to the relay"
