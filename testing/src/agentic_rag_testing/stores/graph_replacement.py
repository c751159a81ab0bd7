"""Checks of a graph store: the knowledge of a version is replaced at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_testing.stores.graph_samples import ONE, TWO, A, B, Check, equal, everything, knowledge, snapshot, true

_READS = 100
_NEW = knowledge("one", [("Ada", "left", "Acme"), ("Eve", "founded", "Acme")])


async def a_version_is_replaced(store: GraphStore) -> None:
    """Nothing of the old knowledge is left, other documents keep theirs, and the relationships that are gone are returned."""
    for document in (TWO, _NEW):
        await store.write_document(B, document)
    expected = await snapshot(store, B)
    for document in (ONE, TWO):
        await store.write_document(A, document)
    before = await _relationships(store)
    gone = await store.replace_document(A, _NEW)
    equal(await snapshot(store, A), expected)
    equal(gone, before - await _relationships(store))
    true(bool(gone), "no relationship is gone")
    equal(await store.replace_document(A, _NEW), set())
    equal(await snapshot(store, A), expected)


async def replacing_writes_a_version_that_is_missing(store: GraphStore) -> None:
    """Replacing a version that the graph does not hold writes it. Other versions of the document stay."""
    newer = knowledge("one", [("Ada", "left", "Acme")], version=2)
    for document in (ONE, newer):
        await store.write_document(B, document)
        equal(await store.replace_document(A, document), set())
    equal(await snapshot(store, A), await snapshot(store, B))


async def readers_find_a_version_while_it_is_replaced(store: GraphStore) -> None:
    """Readers find the mentions of a document while it is replaced again and again.

    A few reads may find fewer: with "read committed" isolation, as in Neo4j, one that overlaps a commit (measured: .6 %).
    """
    for document in (ONE, TWO):
        await store.write_document(A, document)
    found: list[int] = []

    async def read() -> None:
        while len(found) < _READS:
            found.append(len(await everything(store.all_mentions(A, ["one"]))))

    reader = asyncio.create_task(read())
    while not reader.done():
        await store.replace_document(A, ONE)
    await reader
    short = sum(each != len(ONE.mentions) for each in found)
    true(short <= _READS // 10, f"{short} of {_READS} reads found other mentions")


async def a_refused_replacement_changes_nothing(store: GraphStore) -> None:
    """If a row of the new knowledge is refused, the old knowledge stays."""
    await store.write_document(A, ONE)
    before = await snapshot(store, A)
    bad = replace(ONE, relationships=(*ONE.relationships, replace(ONE.relationships[0], id="bad", target_id="unknown")))
    try:
        await store.replace_document(A, bad)
    except InvalidRequest:
        equal(await snapshot(store, A), before)
        return
    raise AssertionError("knowledge with a bad row was accepted")


async def _relationships(store: GraphStore) -> set[str]:
    return {each.id for each in await everything(store.all_relationships(A))}


CHECKS: tuple[Check, ...] = (
    a_version_is_replaced,
    replacing_writes_a_version_that_is_missing,
    readers_find_a_version_while_it_is_replaced,
    a_refused_replacement_changes_nothing,
)
