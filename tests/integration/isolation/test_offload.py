"""Computations of large documents run in child processes, with the limits of reading and the result of a call in place."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agentic_rag_backend.domain.graph import Alias, EntityMention, ExtractedRelationship, Extraction, NameUse
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ResourceLimit
from agentic_rag_backend.ingestion.isolation.call_limits import CallLimits
from agentic_rag_backend.ingestion.isolation.calls import COMPUTATIONS
from agentic_rag_backend.ingestion.isolation.isolated_offload import IsolatedOffload
from agentic_rag_backend.ingestion.isolation.worker_pool import Isolation
from agentic_rag_backend.knowledge.identity.decisions import (
    NameCase,
    choose_entities,
    find_outdated_documents,
    list_contested_cases,
)
from agentic_rag_backend.knowledge.identity.edits import NO_EDITS
from agentic_rag_backend.knowledge.offload import SMALL_ITEMS
from agentic_rag_backend.knowledge.resolution.assembly import ResolvedVersion, build_knowledge
from agentic_rag_backend.knowledge.resolution.groups import names_of_document
from agentic_rag_backend.knowledge.resolution.limits import NameLimits
from agentic_rag_backend.language.descriptions import Description

TENANT = TenantId("t_" + "1" * 32)
LIMITS = NameLimits()
PATIENT = CallLimits(cpu_s=60.0, timeout_s=500.0)


@pytest.fixture
async def isolation() -> AsyncIterator[Isolation]:
    opened = Isolation(PATIENT)
    yield opened
    await opened.close()


def book(chunks: int) -> list[Extraction]:
    """Return a document whose chunks share names, with aliases, dated facts and descriptions."""
    return [
        Extraction(
            chunk_id=f"c{number}",
            mentions=tuple(
                EntityMention(name=f"Person {number + step}", type="person", start_char=0, end_char=8) for step in range(4)
            ),
            relationships=(
                ExtractedRelationship(
                    source=f"Person {number}",
                    source_type="person",
                    target=f"Person {number + 1}",
                    target_type="person",
                    relation="knows",
                    fact="They met.",
                    fact_start=0,
                    fact_end=9,
                    valid_at="2011-01-01T00:00:00+00:00",
                    invalid_at="2012-01-01T00:00:00+00:00",
                ),
            ),
            aliases=(Alias(name=f"Person {number}", alias=f"P{number}", type="person"),),
        )
        for number in range(chunks)
    ]


def case(number: int) -> NameCase:
    kinds = ("painter; born 1901", "nurse; born 1960")
    uses = [
        NameUse(
            document_id=f"d{other}",
            version=1,
            name="Ada",
            main="Ada",
            type="person",
            description=kinds[other % 2],
            entity_id="e",
            assigned_id="e",
        )
        for other in range(number)
    ]
    return NameCase("ada", Description.parse(kinds[0]), uses, frozenset({"x", "y"}), {"d0": frozenset({"x", "y"})})


async def test_a_child_process_returns_what_a_call_in_place_returns(isolation: Isolation) -> None:
    offload = IsolatedOffload(isolation)
    document, many = book(300), SMALL_ITEMS + 1
    names = await offload(names_of_document, document, LIMITS, NO_EDITS, items=many)
    assert names == names_of_document(document, LIMITS, NO_EDITS)
    resolved = ResolvedVersion(TENANT, "d", 1, "Book", {name.key: f"id of {name.key}" for name in names.names})
    knowledge = await offload(build_knowledge, resolved, document, LIMITS, NO_EDITS, items=many)
    assert knowledge == build_knowledge(resolved, document, LIMITS, NO_EDITS)
    assert knowledge.relationships[0].valid_at is not None
    cases = [case(6)]
    assert await offload(list_contested_cases, "d", cases, items=many) == list_contested_cases("d", cases) == [True]
    chosen = await offload(choose_entities, TENANT, "d", cases, items=many)
    assert chosen == choose_entities(TENANT, "d", cases)
    outdated = await offload(find_outdated_documents, TENANT, cases[0], cases[0].uses, {}, items=many)
    assert outdated == find_outdated_documents(TENANT, cases[0], cases[0].uses, {})


async def test_small_computations_start_no_process(isolation: Isolation) -> None:
    await IsolatedOffload(isolation)(names_of_document, book(3), LIMITS, NO_EDITS, items=SMALL_ITEMS)
    assert isolation.server_pid is None


async def test_a_computation_that_needs_too_much_memory_ends_with_the_limit() -> None:
    isolation = Isolation(CallLimits(cpu_s=60.0, timeout_s=500.0, memory_mb=1))
    try:
        with pytest.raises(ResourceLimit, match="1 MiB of memory"):
            await IsolatedOffload(isolation)(
                names_of_document, book(30_000), NameLimits(names_per_document=1_000_000), NO_EDITS, items=300_000
            )
    finally:
        await isolation.close()


def test_every_computation_has_a_name_of_its_own() -> None:
    assert all(name == function.__name__ for name, function in COMPUTATIONS.items())
