"""Contract of every graph search engine: run `CHECKS` against one, each on an empty `SearchedGraph`.

A check is an async function that raises `AssertionError`. ``tests/contract/test_graph_search.py`` shows how to run them, and that
engines with planted faults fail them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from agentic_rag_backend.domain.graph import DocumentKnowledge
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidScope
from agentic_rag_backend.stores.graph.base import GraphFindings
from agentic_rag_testing.stores.graph_samples import ONE, TWO, A, B, entity_id, knowledge

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUESTIONS = ("Whom did Ada found Acme for?", "Bolt makes Nuts", "who bought Bolt", "nothing of the kind")


class SearchedGraph(Protocol):
    """An engine on a graph that the check fills."""

    async def add(self, tenant: TenantId, document: DocumentKnowledge) -> None:
        """Write a document's knowledge, as ingestion does."""

    async def forget(self, tenant: TenantId, document_id: str) -> None:
        """Remove version 1 of a document from the graph. Derived data may stay."""

    async def find(self, tenant: TenantId, text: str, *, limit: int = 20, moment: datetime | None = None) -> GraphFindings:
        """Search with the engine. Texts with common words have similar vectors."""


Check = Callable[[SearchedGraph], Awaitable[None]]


async def facts_are_found_best_first(graph: SearchedGraph) -> None:
    """The fact that answers the question comes first, and its ends are among the entities."""
    await graph.add(A, ONE)
    await graph.add(A, TWO)
    found = await graph.find(A, "Bolt makes Nuts, says two in version 1.")
    assert found.relationships[0].id == TWO.relationships[1].id
    assert {entity_id("Bolt"), entity_id("Nuts")} <= {item.id for item in found.entities}
    for leg in (found.relationships, found.entities):
        assert len({item.id for item in leg}) == len(leg)
        assert [item.score for item in leg] == sorted((item.score for item in leg), reverse=True)
        assert all(item.score > 0 for item in leg)


async def limits_are_respected(graph: SearchedGraph) -> None:
    """At most ``limit`` entities and ``limit`` facts."""
    await graph.add(A, knowledge("many", [(f"S{number}", "met", f"T{number}") for number in range(8)]))
    found = await graph.find(A, "who met whom, says many", limit=3)
    assert len(found.relationships) == 3
    assert len(found.entities) <= 3


async def another_tenant_sees_and_changes_nothing(graph: SearchedGraph) -> None:
    """With the same names, words and ids. Results are identical, whatever data the other tenant has."""
    for document in (ONE, TWO):
        await graph.add(A, document)
    alone = [repr(await graph.find(A, text, moment=NOW)) for text in QUESTIONS]
    assert await graph.find(B, QUESTIONS[0]) == GraphFindings()
    extra = knowledge("three", [("Ada", "hates", "Bolt"), ("Nuts", "founded", "Acme"), ("Ada", "founded", "Acme")])
    for document in (ONE, TWO, extra):
        await graph.add(B, document)
    assert [repr(await graph.find(A, text, moment=NOW)) for text in QUESTIONS] == alone


async def removed_facts_are_not_found(graph: SearchedGraph) -> None:
    """Even if search data still refers to it, as in the middle of a deletion."""
    await graph.add(A, ONE)
    await graph.add(A, TWO)
    await graph.forget(A, "two")
    found = await graph.find(A, "Bolt makes Nuts")
    assert TWO.relationships[1].id not in {item.id for item in found.relationships}
    assert entity_id("Nuts") not in {item.id for item in found.entities}
    assert ONE.relationships[1].id in {item.id for item in found.relationships}


async def only_facts_valid_at_the_moment_are_found(graph: SearchedGraph) -> None:
    """Facts of unknown dates always hold. The default time is now."""
    year = timedelta(days=365)
    times: list[dict[str, Any]] = [
        {},
        {"valid_at": NOW - year},
        {"valid_at": NOW + 99 * year},
        {"invalid_at": NOW - year},
        {"invalid_at": NOW + 99 * year},
    ]
    document = knowledge("one", [(f"S{number}", "met", f"T{number}") for number in range(len(times))])
    dated = [replace(each, **when) for each, when in zip(document.relationships, times, strict=True)]
    await graph.add(A, replace(document, relationships=tuple(dated)))
    for moment, numbers in ((NOW, (0, 1, 4)), (NOW - 2 * year, (0, 3, 4)), (NOW + 100 * year, (0, 1, 2)), (None, (0, 1, 4))):
        found = await graph.find(A, "who met whom, says one in version 1", moment=moment)
        assert {item.id for item in found.relationships} == {document.relationships[number].id for number in numbers}


async def a_tenant_is_required(graph: SearchedGraph) -> None:
    """A missing tenant never means all tenants."""
    await graph.add(A, ONE)
    nobody: Any
    for nobody in (None, "", A.value, [A]):
        try:
            await graph.find(nobody, QUESTIONS[0])
        except InvalidScope:
            continue
        raise AssertionError(f"searched for {nobody!r}")


CHECKS: tuple[Check, ...] = (
    facts_are_found_best_first,
    limits_are_respected,
    another_tenant_sees_and_changes_nothing,
    removed_facts_are_not_found,
    only_facts_valid_at_the_moment_are_found,
    a_tenant_is_required,
)
