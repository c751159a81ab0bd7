"""Extraction by a language model through the whole pipeline: grounded knowledge in the graph, paid once, failures on record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from scripted_models import Reply, ScriptedModel
from tests.integration.ingestion.conftest import Builder, World

from agentic_rag_backend.domain.document import ChunkingOptions, DocumentState, ProcessingOptions
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.errors import InvalidRequest, ModelUnavailable
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.knowledge.model_calls import DocumentModel

PIERS = ["One", "Two", "Three", "Four", "Five", "Six"]
SMALL = ProcessingOptions(chunking=ChunkingOptions(chunk_size=40, overlap=0))


def report(*piers: str) -> str:
    return "\n\n".join(
        f"# Pier {pier}\n\nCorin Ltd bought Pier {pier} from Mara Venn in 2015. {'The sea was calm that day. ' * 5}"
        for pier in piers
    )


def reply(prompt: str) -> Reply:
    """Return what a model says of a pier, with an invented entity and an invented relationship."""
    found = re.search(r"bought (Pier \w+)", prompt)
    if found is None:
        return {"entities": [], "relationships": []}
    pier = found[1]
    fact = {"relation": "bought", "valid_at": "2015", "invalid_at": "", "negated": False}
    return {
        "entities": [
            {"name": name, "type": type_, "aliases": []}
            for name, type_ in (("Corin Ltd", "organisation"), (pier, "place"), ("Ada Lovelace", "person"))
        ],
        "relationships": [
            {"source": "Corin Ltd", "target": pier, **fact},
            {"source": "Ada Lovelace", "target": pier, **fact},
        ],
    }


async def take_in(world: World, text: str, *, method: str | None = "llm") -> tuple[str, JobState, Mapping[str, Any]]:
    """Ingest a text under one key. Return the document's id, and the job's state and result."""
    upload = Upload(content=text.encode(), media_type="text/markdown", key="piers", options=SMALL, extraction=method)
    submitted = await world.ingestion.submit(world.tenant, upload)
    job = await world.ended(submitted.job)
    assert job.result is not None
    return submitted.document.id, job.state, job.result


async def facts(world: World) -> dict[str, tuple[str, str]]:
    """Return the sentence and the beginning of the relationships ``bought``, by the name of the target."""
    found = {}
    async for batch in world.graph.all_relationships(world.tenant):
        names = await world.graph.entities(world.tenant, [each.target_id for each in batch])
        for each in batch:
            if each.relation == "bought":
                found[names[each.target_id].name] = (each.fact, str(each.valid_at)[:4])
    return found


async def test_grounded_knowledge_is_in_the_graph_and_only_changed_chunks_are_paid(builder: Builder) -> None:
    model = ScriptedModel(reply)
    world = await builder.open(model=DocumentModel(model))
    document, state, result = await take_in(world, report(*PIERS))
    assert state is JobState.SUCCEEDED
    chunks = result["chunks"]
    assert len(model.prompts) == result["model_calls"] == chunks
    assert result["rejected"] == 12, "an entity and a relationship of each pier"
    assert await facts(world) == {
        f"Pier {pier}": (f"Corin Ltd bought Pier {pier} from Mara Venn in 2015.", "2015") for pier in PIERS
    }
    assert not (await world.graph.find_entities(world.tenant, ["ada lovelace"])).get("ada lovelace")

    again, _, result = await take_in(world, report(*PIERS[:5], "Seven"))
    assert again == document
    assert (result["chunks"], len(model.prompts) - chunks) == (chunks, 2), "the chunks of the new pier"
    assert "Pier Six" not in await facts(world)

    paid = len(model.prompts)
    _, _, result = await take_in(world, report(*PIERS[:5], "Seven"), method="rules")
    assert (len(model.prompts), "rejected" in result) == (paid, False)


async def test_a_failed_chunk_is_partial_and_a_retry_asks_about_it_alone(builder: Builder) -> None:
    down = {"bought Pier Two"}

    def write(prompt: str) -> Reply:
        return {"entities": "none"} if any(text in prompt for text in down) else reply(prompt)

    model = ScriptedModel(write)
    world = await builder.open(model=DocumentModel(model))
    document, state, _ = await take_in(world, report("One", "Two", "Three"))
    shown = await world.catalogue.documents.document(world.tenant, document)
    assert (state, shown.state) == (JobState.PARTIAL, DocumentState.PARTIAL)
    (failure,) = shown.failures
    assert (failure.stage, failure.code) == ("extract", "model_reply_invalid")
    assert "rules extracted" in failure.message
    assert {"Pier One", "Pier Three"} <= (await facts(world)).keys()
    assert (await world.graph.find_entities(world.tenant, ["pier two"]))["pier two"], "the rules found it"

    down.clear()
    paid = len(model.prompts)
    _, state, _ = await take_in(world, report("One", "Two", "Three") + "\n")
    assert (state, len(model.prompts)) == (JobState.SUCCEEDED, paid + 1)
    assert "Pier Two" in await facts(world)


async def test_a_model_that_is_away_leaves_the_rules_knowledge(builder: Builder) -> None:
    world = await builder.open(model=DocumentModel(ScriptedModel(lambda _: ModelUnavailable("away"))))
    document, state, result = await take_in(world, report(*PIERS))
    assert (state, result["failures"]) == (JobState.PARTIAL, result["chunks"])
    assert (await world.graph.counts(world.tenant)).entities > 5
    assert (await world.catalogue.documents.document(world.tenant, document)).state is DocumentState.PARTIAL


async def test_methods_that_cannot_be_used_are_refused(builder: Builder) -> None:
    world = await builder.open()
    for method, message in (("llm", "needs a language model"), ("magic", "known are rules, llm, rules\\+llm")):
        with pytest.raises(InvalidRequest, match=message):
            await take_in(world, "text", method=method)
    assert (await world.catalogue.documents.counts(world.tenant))["documents"] == 0
