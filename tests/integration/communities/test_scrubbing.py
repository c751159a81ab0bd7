"""Statements of a deleted document are removed from communities in the stores before the next build."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch
from agentic_rag_backend.themes.communities.generations import LEFT, CommunityScrubber, Restorer

ONLY_THERE = "Report"
Story = Callable[[str], dict[str, list[str]]]


def scrubber_of(world: Any) -> CommunityScrubber:
    restorer = Restorer(communities=world.catalogue.communities, vectors=world.vectors, embedder=world.embedder)
    return CommunityScrubber(documents=world.catalogue.documents, graph=world.graph, restorer=restorer)


async def built(world: Any, story: Story, name: str) -> tuple[TenantId, Any, dict[str, str]]:
    tenant, service = await world.tenant(name), world.service()
    ids = {title: await world.add(tenant, title, paragraphs) for title, paragraphs in story("").items()}
    job = await service.request_rebuild(tenant, None)
    await service.rebuild(tenant, job.id, job.attempt)
    return tenant, service, ids


async def on_record(world: Any, tenant: TenantId) -> str:
    """Return all summaries of communities in the catalogue."""
    generation = (await world.catalogue.communities.pointer(tenant)).generation
    held = await world.graph.communities(tenant, generation)
    summaries = await world.catalogue.communities.summaries(tenant, [each.fingerprint for each in held])
    return json.dumps([*map(str, summaries.values())])


async def found_by(world: Any, tenant: TenantId, words: str) -> dict[str, float]:
    """Return the points of communities that contain any of the words, with their scores."""
    generation = (await world.catalogue.communities.pointer(tenant)).generation
    search = VectorSearch(kind=NodeKind.COMMUNITY, text=words, limit=100, generation=generation)
    legs = (await world.vectors.search(tenant, Collection.NODES, [search]))[0]
    return {each.id: each.score for each in legs.sparse}


async def test_what_a_deleted_document_said_is_in_no_store(world: Any, story: Story) -> None:
    tenant, service, ids = await built(world, story, "a")
    other, _, _ = await built(world, story, "b")
    scrubber, gone = scrubber_of(world), ids["Halden Report"]
    statements = [
        finding.statement
        for view in (await service.list(tenant, limit=1000)).items
        for finding in view.findings
        if any(source.document_id == gone for source in finding.sources)
    ]
    said = await on_record(world, tenant)
    assert statements
    assert await found_by(world, tenant, ONLY_THERE)
    assert all(json.dumps(each)[1:-1] in said for each in statements)
    untouched = await on_record(world, other)
    assert await scrubber.resting_on(tenant, gone)
    await world.hide(tenant, gone)
    shown = (await service.list(tenant, limit=1000)).items
    for _ in range(2):
        await scrubber.scrub(tenant, gone)
        assert await scrubber.resting_on(tenant, gone) == 0
        left = await on_record(world, tenant)
        assert gone not in left
        assert not [each for each in statements if json.dumps(each)[1:-1] in left]
        assert not await found_by(world, tenant, ONLY_THERE)
        # Readers see no difference: the statements were already withheld.
        told = [(view.id, view.name, view.findings) for view in (await service.list(tenant, limit=1000)).items]
        assert told == [(view.id, view.name, view.findings) for view in shown]
    assert await on_record(world, other) == untouched


async def test_a_rebuild_rewrites_scrubbed_summaries(world: Any, story: Story) -> None:
    tenant, service, ids = await built(world, story, "a")
    await world.hide(tenant, ids["Halden Report"])
    await scrubber_of(world).scrub(tenant, ids["Halden Report"])
    await world.graph.delete_document(tenant, ids["Halden Report"], up_to_version=1)
    job = await service.request_rebuild(tenant, None)
    await service.rebuild(tenant, job.id, job.attempt)
    generation = (await world.catalogue.communities.pointer(tenant)).generation
    held = await world.graph.communities(tenant, generation)
    summaries = await world.catalogue.communities.summaries(tenant, [each.fingerprint for each in held])
    assert len(summaries) == len({each.fingerprint for each in held})
    assert all(each.prompt_version != LEFT and each.summary for each in summaries.values())
