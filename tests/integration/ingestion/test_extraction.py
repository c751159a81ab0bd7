"""Extraction through the whole pipeline: a function of the document, however it came to be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agentic_rag_backend.domain.document import ChunkingOptions, ProcessingOptions
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import JobState

if TYPE_CHECKING:
    from tests.integration.ingestion.conftest import World

SMALL = ProcessingOptions(chunking=ChunkingOptions(chunk_size=40, overlap=0))


def minutes(*parts: str) -> str:
    """Return a document whose parts are chunks of their own."""
    return "\n\n".join(f"# Item {number}\n\n{part} {'The sea was calm that day. ' * 5}" for number, part in enumerate(parts))


async def taken_in(world: World, text: str, key: str) -> str:
    submitted = await world.submit(text, key=key, title="Minutes", options=SMALL)
    job = await world.ended(submitted.job)
    assert job.state is JobState.SUCCEEDED, job
    return submitted.document.id


async def extractions(world: World, document_id: str) -> list[Extraction]:
    document = await world.catalogue.documents.document(world.tenant, document_id)
    held = await world.catalogue.documents.prepared(world.tenant, document_id, document.current_version)
    return [replace(item.extraction, chunk_id="") for item in held]


async def test_an_edited_document_has_the_knowledge_of_its_text(world: World) -> None:
    first = minutes("Tervo met Ana Rell.", "Tervo left.", "Lindqvist spoke.", "It rained.", "Rell agreed.", "They ended.")
    edited = minutes("Dr Mia Tervo met Ana Rell.", "Tervo left.", "It rained.", "Rell agreed.", "They ended.")
    await taken_in(world, first, "edited")
    document = await taken_in(world, edited, "edited")
    fresh = await taken_in(world, edited, "fresh")
    assert await extractions(world, document) == await extractions(world, fresh)
    (kept,) = [each for each in await extractions(world, document) if any(one.name == "Tervo" for one in each.mentions)]
    assert {one.type for one in kept.mentions if one.name == "Tervo"} == {"person"}, "the type comes from another, new chunk"
