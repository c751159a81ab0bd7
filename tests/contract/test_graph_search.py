"""The contract of graph search engines: on Graphiti with a real Neo4j, and on engines with a planted fault."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from graphiti_worlds import World, world

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.graph.base import GraphFindings
from agentic_rag_backend.stores.graph.bolt import Neo4jAddress
from agentic_rag_backend.stores.vector.base import ScoredId
from agentic_rag_testing.stores import graph_search as contract
from agentic_rag_testing.stores.graph_samples import A, B, entity_id


@pytest.fixture
async def held(empty_neo4j: Neo4jAddress, tmp_path: Path) -> AsyncIterator[World]:
    async with world(empty_neo4j, tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
async def test_graphiti(held: World, check: contract.Check) -> None:
    await check(held)


@dataclass
class Faulty:
    """The engine with one planted fault."""

    world: World
    fault: str

    async def add(self, tenant: TenantId, document: Any) -> None:
        await self.world.add(tenant, document)

    async def forget(self, tenant: TenantId, document_id: str) -> None:
        if self.fault != "forgets nothing":
            await self.world.forget(tenant, document_id)

    async def find(self, tenant: Any, text: str, *, limit: int = 20, moment: datetime | None = None) -> GraphFindings:
        if self.fault == "no tenant is any" and not isinstance(tenant, TenantId):
            tenant = A
        asked = contract.NOW if self.fault == "its own time" else moment
        found = await self.world.find(tenant, text, limit=99 if self.fault == "no limit" else limit, moment=asked)
        if self.fault == "every tenant":
            other = await self.world.find(B if tenant == A else A, text, limit=limit, moment=moment)
            return GraphFindings(found.entities + other.entities, found.relationships + other.relationships)
        if self.fault == "counts every tenant":
            more = len((await self.world.find(B, text, limit=limit)).relationships) / 1e6
            return replace(found, relationships=tuple(ScoredId(each.id, each.score + more) for each in found.relationships))
        if self.fault == "worst first":
            return GraphFindings(found.entities[::-1], found.relationships[::-1])
        if self.fault == "no ends":
            return replace(found, entities=tuple(each for each in found.entities if each.id != entity_id("Nuts")))
        return found


FAULTS = [
    ("facts_are_found_best_first", "worst first"),
    ("facts_are_found_best_first", "no ends"),
    ("limits_are_respected", "no limit"),
    ("another_tenant_sees_and_changes_nothing", "every tenant"),
    ("another_tenant_sees_and_changes_nothing", "counts every tenant"),
    ("removed_facts_are_not_found", "forgets nothing"),
    ("only_facts_valid_at_the_moment_are_found", "its own time"),
    ("a_tenant_is_required", "no tenant is any"),
]


@pytest.mark.parametrize(("check", "fault"), FAULTS)
async def test_faulty_engines_fail(held: World, check: str, fault: str) -> None:
    with pytest.raises(AssertionError):
        await getattr(contract, check)(Faulty(held, fault))
