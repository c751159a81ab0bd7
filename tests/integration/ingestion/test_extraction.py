"""Extraction through the whole pipeline: a function of the document, however it came to be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.integration.ingestion.conftest import World

from agentic_rag_backend.domain.document import ChunkingOptions, ProcessingOptions
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.domain.ontology import EntityField, EntityType, Ontology
from agentic_rag_backend.errors import InvalidRequest, NotFound
from agentic_rag_backend.stores.catalogue.base import Submitted

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


AUTHORS = Ontology((EntityType("person"), EntityType("concept")), entity_fields=(EntityField("author", "person"),))


async def named(world: World, *names: str) -> dict[str, str]:
    """Return the types of the entities that the graph has of names."""
    found = await world.graph.find_entities(world.tenant, [name.lower() for name in names])
    return {entity.name: entity.type for entities in found.values() for entity in entities}


async def test_metadata_names_entities_and_a_change_of_it_changes_them(world: World) -> None:
    await world.catalogue.tenants.set_ontology(world.tenant, AUTHORS)
    first = await world.submit("# Tides\n\nThe tide rose.", key="tides", metadata={"author": ["Mara Voss", "Ina Holt", 7]})
    assert (await world.ended(first.job)).state is JobState.SUCCEEDED
    assert await named(world, "Mara Voss", "Ina Holt") == {"Mara Voss": "person", "Ina Holt": "person"}

    async def changed(submitted: Submitted) -> None:
        job = await world.ended(submitted.job)
        assert job.state is JobState.SUCCEEDED
        assert job.result is not None
        assert job.result["reused"] == job.result["chunks"], "no vector is computed again"

    update = world.ingestion.update
    await changed(await update(world.tenant, first.document.id, fields={"author": "Ina Holt"}))
    assert await named(world, "Mara Voss", "Ina Holt") == {"Ina Holt": "person"}
    assert (await update(world.tenant, first.document.id, fields={"shelf": 7})).job is None, "no entity depends on it"
    again = await world.submit("# Tides\n\nThe tide rose.", key="tides", metadata={"author": "Mara Voss", "shelf": 7})
    await changed(again)
    assert await named(world, "Mara Voss", "Ina Holt") == {"Mara Voss": "person"}
    assert (await world.submit("# Tides\n\nThe tide rose.", key="tides", metadata={"author": "Mara Voss"})).job is None
    await changed(await update(world.tenant, first.document.id, fields={"author": None}))
    assert await named(world, "Mara Voss", "Ina Holt") == {}


async def test_a_document_is_extracted_again_by_another_method(world: World) -> None:
    submitted = await world.submit(
        "# Tides\n\nAda Holt met Mia Tervo.", key="tides", options=SMALL, metadata={"author": "Mara Voss"}
    )
    await world.ended(submitted.job)
    assert await named(world, "Mara Voss") == {}
    await world.catalogue.tenants.set_ontology(world.tenant, AUTHORS)
    again = await world.ingestion.extract_again(world.tenant, submitted.document.id)
    job = await world.ended(again.job)
    assert job.result is not None
    assert (job.state, job.result["version"], job.result["reused"]) == (JobState.SUCCEEDED, 2, job.result["chunks"])
    assert await named(world, "Mara Voss", "Ada Holt") == {"Mara Voss": "person", "Ada Holt": "person"}
    for method, message in (("magic", "known are"), ("llm", "needs a language model")):
        with pytest.raises(InvalidRequest, match=message):
            await world.ingestion.extract_again(world.tenant, submitted.document.id, method)
    with pytest.raises(NotFound):
        await world.ingestion.extract_again(world.tenant, "unknown")


GERMAN = "Die Regierung hat am Montag ein neues Gesetz beschlossen, und die Züge fahren nach langem Streit wieder in das Land."


async def test_the_language_is_on_record_and_a_script_that_rules_do_not_read_is_a_warning(world: World) -> None:
    async def metadata(text: str, **given: object) -> dict[str, object]:
        submitted = await world.submit(text, metadata=given)
        await world.ended(submitted.job)
        return dict((await world.catalogue.documents.document(world.tenant, submitted.document.id)).metadata)

    assert await metadata(GERMAN) == {"language": "de"}
    assert await metadata(f"{GERMAN} ", language="de-AT") == {"language": "de-AT"}, "the owner knows better"
    assert await metadata("The government passed a law on Monday, and the trains are running again after a long dispute.") == {}
    warned = await metadata("Правительство Москвы приняло новый закон о железных дорогах.")
    assert warned == {"warnings": ["the rules of extraction do not read Cyrillic script well; extraction 'llm' does"]}


async def test_functions_of_different_files_are_related(world: World) -> None:
    for name, text in (
        ("locks.py", "from gates import raise_gate\n\n\ndef fill_lock():\n    raise_gate()\n"),
        ("gates.py", "def raise_gate():\n    turn_winch()\n\n\ndef turn_winch():\n    return 1\n"),
    ):
        await world.ended((await world.submit(text, file_name=name)).job)
    found: dict[tuple[str, str, str], str] = {}
    async for batch in world.graph.all_relationships(world.tenant):
        names = await world.graph.entities(world.tenant, [id for each in batch for id in (each.source_id, each.target_id)])
        found |= {(names[each.source_id].name, each.relation, names[each.target_id].name): each.fact for each in batch}
    assert found == {
        ("locks", "imports", "gates"): "from gates import raise_gate",
        ("locks", "defines", "locks.fill_lock"): "def fill_lock():",
        ("locks.fill_lock", "calls", "gates.raise_gate"): "raise_gate()",
        ("gates", "defines", "gates.raise_gate"): "def raise_gate():",
        ("gates", "defines", "gates.turn_winch"): "def turn_winch():",
        ("gates.raise_gate", "calls", "gates.turn_winch"): "turn_winch()",
    }
