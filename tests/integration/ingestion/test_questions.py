"""Synthetic questions through the pipeline: on record, in the index, reused, and removed with their document."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_models import ScriptedModel
from tests.integration.ingestion.conftest import Builder, World
from tests.integration.ingestion.test_paid_once import Metered, report

from agentic_rag_backend.domain.document import ChunkingOptions, DocumentState, ProcessingOptions, QuestionOptions
from agentic_rag_backend.domain.job import JobState
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.model_calls import DocumentModel
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, StoredPoint

PATTERNS = QuestionOptions("patterns", 2)
SMALL = ProcessingOptions(chunking=ChunkingOptions(chunk_size=60, overlap=0))


async def take_in(world: World, text: str, *, questions: QuestionOptions | None = PATTERNS, key: str = "report") -> str:
    """Ingest a text and return the id of its document."""
    submitted = await world.submit(text, key=key, options=SMALL, questions=questions)
    job = await world.ended(submitted.job)
    assert job.state is JobState.SUCCEEDED, job.error
    return submitted.document.id


async def question_points(world: World, document: str | None = None) -> dict[str, StoredPoint]:
    """Return the points of questions by id."""
    pages = world.vectors.points(world.tenant, Collection.CHUNKS, kind=NodeKind.QUESTION)
    return {point.id: point async for page in pages for point in page if document in (None, point.document_id)}


async def texts(world: World, document: str) -> list[tuple[str, ...]]:
    """Return the questions of each chunk of a visible document, in reading order."""
    chunks = (await world.catalogue.documents.visible_chunk_ids(world.tenant, [document]))[document]
    asked = await world.catalogue.questions.of_chunks(world.tenant, chunks)
    return [tuple(question.text for question in asked.get(chunk, ())) for chunk in chunks]


async def test_questions_are_on_record_and_in_the_index_with_their_version(world: World) -> None:
    document = await take_in(world, report())
    asked = await texts(world, document)
    assert len(asked) == 10
    assert asked[0] == ("Who founded the Tidal Institute in Scarrow?", "What did Mara Voss found?")
    points = await question_points(world)
    ids = (await world.catalogue.questions.embedded(world.tenant, [document]))[document]
    assert set(points) == set(ids)
    assert len(ids) == 20
    assert {(point.document_id, point.version) for point in points.values()} == {(document, 1)}
    jobs = await world.catalogue.jobs.jobs(world.tenant, limit=1)
    assert (jobs.items[0].result or {})["questions"] == 20
    assert (await world.catalogue.documents.counts(world.tenant))["questions"] == 20
    await world.ingestion.update(world.tenant, document, fields={"shelf": 7})
    assert all('["shelf", 7]' in point.tags for point in (await question_points(world)).values())

    again = await take_in(world, report(besides={0: "The Heron has two blades."}))
    assert again == document
    asked = await texts(world, document)
    assert asked[0] == ("How many blades does the Heron have?",)
    points = await question_points(world)
    assert set(points) == set((await world.catalogue.questions.embedded(world.tenant, [document]))[document])
    assert {point.version for point in points.values()} == {2}
    assert len(points) == 19


async def test_only_changed_chunks_and_new_options_are_paid(builder: Builder) -> None:
    meter = Metered()
    world = await builder.open(embedder=meter.embedder, extractor=meter.extractor)
    await take_in(world, report(), questions=None)
    assert meter.paid() == 10
    document = await take_in(world, report(), questions=PATTERNS)
    assert meter.paid() == 20, "the questions only: the chunks are known"
    await take_in(world, report(besides={3: "The Heron has two blades."}), questions=PATTERNS)
    assert meter.paid() == 2, "one chunk with one question"
    await take_in(world, report(), questions=QuestionOptions("patterns", 1))
    assert meter.paid() == 11, "another number of questions is another recipe"
    await take_in(world, report(), questions=QuestionOptions("off", 2))
    assert meter.paid() == 0
    assert await texts(world, document) == [()] * 10
    assert await question_points(world) == {}


async def test_a_deletion_counts_and_removes_questions(world: World) -> None:
    document, other = await take_in(world, report()), await take_in(world, report(), key="other")
    job = await world.ended(await world.ingestion.delete(world.tenant, document))
    assert job.result is not None
    assert job.result["removed"]["rows"]["chunk_questions"] == 20
    assert job.result["removed"]["vectors"] == 30
    assert not any(job.result["leftovers"].values())
    assert job.result["leftovers"]["chunk_questions"] == 0
    assert {point.document_id for point in (await question_points(world)).values()} == {other}


async def test_without_a_model_patterns_ask_and_the_document_says_so(world: World) -> None:
    submitted = await world.submit(report(), key="report", options=SMALL, questions=QuestionOptions("model", 2))
    job = await world.ended(submitted.job)
    document = await world.catalogue.documents.document(world.tenant, submitted.document.id)
    assert (job.state, document.state) == (JobState.PARTIAL, DocumentState.PARTIAL)
    ((stage, code),) = [(failure.stage, failure.code) for failure in document.failures]
    assert (stage, code) == ("questions", "no_model")
    assert (await texts(world, document.id))[0] == ("Who founded the Tidal Institute in Scarrow?", "What did Mara Voss found?")
    again = await world.submit(report(), key="report", options=SMALL, questions=PATTERNS)
    assert (await world.ended(again.job)).state is JobState.SUCCEEDED


async def test_questions_can_be_asked_of_a_known_document(world: World) -> None:
    document = await take_in(world, report(), questions=None)
    assert await texts(world, document) == [()] * 10
    changed = await world.ingestion.chunk_again(world.tenant, document, SMALL.chunking, questions=PATTERNS)
    assert (await world.ended(changed.job)).result is not None
    assert len(await question_points(world, document)) == 20
    same = await world.ingestion.chunk_again(world.tenant, document, SMALL.chunking, questions=PATTERNS)
    assert same.unchanged
    kept = await world.ingestion.chunk_again(world.tenant, document, SMALL.chunking)
    assert kept.unchanged, "without options, those of the document stay"
    bad = {"method": QuestionOptions("guess"), "per_chunk": QuestionOptions("patterns", 4)}
    for name, options in bad.items():
        with pytest.raises(InvalidRequest, match=f"questions.{name} must be"):
            await world.submit("A text of five words.", questions=options)


async def test_a_model_writes_the_questions_and_is_paid_once(builder: Builder) -> None:
    def ask(prompt: str) -> dict[str, Any]:
        passages = sum(line.split(":")[0].isdigit() for line in prompt.split("\n"))
        return {
            "questions": [{"passage": number + 1, "question": "Who founded the Tidal Institute?"} for number in range(passages)]
        }

    model = ScriptedModel(ask)
    world = await builder.open(model=DocumentModel(model))
    by_model = QuestionOptions("model", 1)
    document = await take_in(world, report(), questions=by_model)
    assert set(await texts(world, document)) == {("Who founded the Tidal Institute?",)}
    assert len(model.prompts) == 3, "ten chunks in groups of four"
    assert (await world.catalogue.documents.document(world.tenant, document)).state is DocumentState.READY
    await take_in(world, report(besides={3: "The Heron of the Institute has two blades."}), questions=by_model)
    assert len(model.prompts) == 4, "the changed chunk only"
    assert len(await question_points(world)) == 10
