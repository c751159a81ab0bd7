"""Readers during changes of documents see the old version or the new one, and nothing of a deleted document."""

from __future__ import annotations

import asyncio
import re

import pytest
from tests.integration.pipeline.conftest import Application

from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.query import Query, Retrieval

QUESTION = "What did Mara Voss of the Tidal Institute measure near Scarrow?"
STRATEGIES = ("dense", "sparse", "hybrid", "graph", "community", "dual_level")
MARK = re.compile(r"edition (\d+)")


def edition(number: int) -> str:
    """Return a text whose passages and facts all name their edition."""
    passages = (
        f"In edition {number}, Mara Voss founded the Tidal Institute of edition {number} near Scarrow with {place}."
        for place in ("Greenholm", "Teller Sound", "Outer Mirrow", "Basel")
    )
    return f"# Tides, edition {number}\n\n" + "\n\n".join(passages)


def shown(found: Retrieval) -> str:
    """Return every text of a search response."""
    texts = [f"{hit.visible.document_title} {hit.visible.chunk.text}" for hit in found.hits]
    texts += [fact.fact for fact in found.facts]
    texts += [finding.statement for theme in found.themes for finding in theme.findings]
    texts += [theme.summary for theme in found.themes]
    return "\n".join(texts)


async def search(application: Application, strategy: str) -> str:
    tenant = await application.container.catalogue.tenants.tenant(application.tenant)
    query = Query(tenant=tenant, text=QUESTION, limit=10, dual_level=True)
    return shown(await application.container.retrievers.get(strategy).retrieve(query))


async def rebuilt(application: Application) -> None:
    job = await application.container.communities.request_rebuild(application.tenant)
    assert (await application.ended(job)).state is JobState.SUCCEEDED


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_updates_and_a_delete(application: Application, strategy: str) -> None:
    document = (await application.submit(edition(0), key="tides")).document
    other = await application.submit("# Other\n\nTomas Eld and Mara Voss moved to Greenholm in 1999.", key="other")
    await application.ended(other.job)
    await rebuilt(application)
    seen: list[set[str]] = []
    editing = asyncio.Event()

    async def read() -> None:
        while not editing.is_set():
            seen.append(set(MARK.findall(await search(application, strategy))))
            await asyncio.sleep(0)

    reader = asyncio.create_task(read())
    for number in range(1, 6):
        submitted = await application.submit(edition(number), key="tides")
        assert submitted.document.id == document.id
        await application.ended(submitted.job)
    await rebuilt(application)
    await asyncio.sleep(0.1)
    editing.set()
    await reader
    mixed = [marks for marks in seen if len(marks) > 1]
    assert not mixed, f"{len(mixed)} of {len(seen)} answers mixed versions, such as {mixed[0]}"
    ordered = [int(next(iter(marks))) for marks in seen if marks]
    assert ordered == sorted(ordered), "a reader went back to an older version"
    assert ordered, "the reader never found the document"
    assert ordered[-1] == 5

    job = await application.container.ingestion.delete(application.tenant, document.id)
    while not (await application.job(job)).state.ended:
        assert "edition" not in await search(application, strategy)
    assert "edition" not in await search(application, strategy)
