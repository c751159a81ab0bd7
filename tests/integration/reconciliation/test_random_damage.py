"""After random damage, a repair restores the stores, the next comparison finds nothing, and other tenants are unchanged."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.reconciliation.conftest import Application, Opens

from agentic_rag_backend.domain.graph import Community, DocumentKnowledge, Entity
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint

DOCUMENTS = 4
OTHER = TenantId("t_" + "b" * 32)


def stray(number: int, kind: NodeKind, **fields: Any) -> VectorPoint:
    dense = np.ones(384, dtype=np.float32)
    return VectorPoint(id=f"00000000-0000-4000-8000-{number:012}", kind=kind, dense=dense, text="a stray", **fields)


async def listed(application: Application, collection: Collection, **which: Any) -> list[Any]:
    points = application.container.vectors.points(application.tenant, collection, **which)
    return sorted([point async for page in points for point in page], key=lambda point: point.id)


async def drop_points(application: Application, ids: list[str], number: int) -> None:
    held = await listed(application, Collection.CHUNKS)
    await application.container.vectors.delete(
        application.tenant, Collection.CHUNKS, [point.id for point in held[:: 1 + number % 3]]
    )


async def renumber(application: Application, ids: list[str], number: int) -> None:
    documents = application.container.catalogue.documents
    document = await documents.document(application.tenant, ids[number % DOCUMENTS])
    kept = await documents.prepared(application.tenant, document.id, document.current_version)
    points = [
        VectorPoint(
            id=item.chunk.id,
            kind=NodeKind.CHUNK,
            dense=item.vector,
            text="other words",
            document_id=document.id,
            version=document.current_version + 1 + number,
            title=document.title,
            key=document.key,
            metadata=document.metadata,
        )
        for item in kept
    ]
    await application.container.vectors.upsert(application.tenant, Collection.CHUNKS, points)


async def add_points(application: Application, ids: list[str], number: int) -> None:
    document = (*ids, "nobody's", None)[number % (DOCUMENTS + 2)]
    await application.container.vectors.upsert(
        application.tenant, Collection.CHUNKS, [stray(number, NodeKind.CHUNK, document_id=document, version=number % 4)]
    )


async def relabel(application: Application, ids: list[str], number: int) -> None:
    vectors = application.container.vectors
    await vectors.update_metadata(
        application.tenant, ids[number % DOCUMENTS], {"shelf": -number}, title="x", key="y", up_to_version=9
    )


async def drop_knowledge(application: Application, ids: list[str], number: int) -> None:
    await application.container.graph.delete_document(application.tenant, ids[number % DOCUMENTS], up_to_version=99)


async def drop_mentions(application: Application, ids: list[str], number: int) -> None:
    application.graph(
        "DELETE FROM mentions WHERE tenant = ? AND document_id = ? AND chunk_id IN "
        "(SELECT chunk_id FROM mentions WHERE tenant = ? AND document_id = ? LIMIT ?)",
        *(application.tenant.value, ids[number % DOCUMENTS]) * 2,
        1 + number,
    )


async def add_knowledge(application: Application, ids: list[str], number: int) -> None:
    document = (*ids, "nobody's")[number % (DOCUMENTS + 1)]
    entity = Entity(id=f"stray-{number}", name=f"Stray {number}", type="thing")
    knowledge = DocumentKnowledge(document_id=document, version=50 + number, title="", chunk_ids=(), entities=(entity,))
    await application.container.graph.write_document(application.tenant, knowledge)


async def change_facts(application: Application, ids: list[str], number: int) -> None:
    vectors, tenant = application.container.vectors, application.tenant
    held = await listed(application, Collection.NODES, kind=NodeKind.FACT)
    await vectors.delete(tenant, Collection.NODES, [point.id for point in held[number % 2 :: 2]])
    await vectors.upsert(tenant, Collection.NODES, [stray(number, NodeKind.FACT)])


async def change_communities(application: Application, ids: list[str], number: int) -> None:
    vectors, tenant = application.container.vectors, application.tenant
    held = await listed(application, Collection.NODES, kind=NodeKind.COMMUNITY)
    await vectors.delete(tenant, Collection.NODES, [point.id for point in held[number % 2 :: 2]])
    generation = 40 + number
    await vectors.upsert(tenant, Collection.NODES, [stray(100 + number, NodeKind.COMMUNITY, generation=generation)])
    community = Community(
        id=str(number), generation=generation, level=0, parent_id=None, entity_ids=(), fingerprint="", entity_count=0
    )
    await application.container.graph.write_communities(tenant, generation, [community])


async def add_originals(application: Application, ids: list[str], number: int) -> None:
    key = f"stray-{number}/original"
    await application.container.blobs.put(application.tenant, key, b"x")
    os.utime(application.folder / "blobs" / application.tenant.value / key.replace("_", "_5f"), (1, 1))


Damage = Callable[["Application", list[str], int], Awaitable[None]]
DAMAGES: tuple[Damage, ...] = (
    drop_points,
    renumber,
    add_points,
    relabel,
    drop_knowledge,
    drop_mentions,
    add_knowledge,
    change_facts,
    change_communities,
    add_originals,
)


def without_embedded_again(state: Mapping[str, Any]) -> dict[str, Any]:
    """Vectors of communities are embedded again in another group, so only their existence is compared."""
    name = f"{Collection.NODES} vectors"
    return {**state, name: sorted(state[name])}


def test_a_repair_undoes_any_damage(opens: Opens) -> None:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def prepared() -> tuple[Application, list[str], dict[str, Any], dict[str, Any]]:
            async with opens() as application:
                await application.container.catalogue.tenants.create("other", tenant_id=OTHER)
                ids = await application.ingested(DOCUMENTS)
                await application.ingested(2, tenant=OTHER)
                updated = await application.submit("# Report 1\n\nTomas Eld left Greenholm for Scarrow.", key="report-1")
                await application.ended(updated.job)
                await application.rebuilt()
            # From here on without workers, as the command line opens it, because their threads use random numbers.
            application = await stack.enter_async_context(opens(work=False))
            # Leftovers of the update may remain because its workers were stopped. They are not damage.
            assert (await application.reconciled()).left == 0
            return application, ids, await application.contents(), await application.contents(OTHER)

        application, ids, whole, others = runner.run(prepared())

        async def undone(damages: list[tuple[Damage, int]]) -> None:
            for damage, number in damages:
                await damage(application, ids, number)
            report = await application.reconciled()
            assert report.left == 0, report.as_result()
            assert without_embedded_again(await application.contents()) == without_embedded_again(whole)
            assert (await application.reconciled()).as_result()["kinds"] == {}
            assert await application.contents(OTHER) == others

        @settings(max_examples=25)
        @given(st.lists(st.tuples(st.sampled_from(DAMAGES), st.integers(0, 7)), min_size=1, max_size=5))
        def example(damages: list[tuple[Damage, int]]) -> None:
            runner.run(undone(damages))

        try:
            example()
        finally:
            runner.run(stack.aclose())
