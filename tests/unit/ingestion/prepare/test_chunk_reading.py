"""Strategies that need a model: their results are recorded, and another strategy replaces them if the model fails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from direct_reader import DirectReader
from document_versions import version_of
from scripted_models import COST, Record, Reply, ScriptedModel

from agentic_rag_backend.answering.claims.registry import says_statement
from agentic_rag_backend.domain.document import ChunkingOptions, ProcessingOptions
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ModelInputRefused, ModelUnavailable
from agentic_rag_backend.ingestion.prepare import chunk_reading
from agentic_rag_backend.ingestion.prepare.chunk_reading import ChunkedDocument, ChunkReader
from agentic_rag_backend.knowledge.model_calls import DocumentModel
from agentic_rag_backend.models.embedding.base import Vectors
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TENANT = TenantId("t_" + "1" * 32)
TEXT = "The ship sailed from the harbour. Bread needs flour. " * 30


class Encoder:
    """Returns equal vectors, or refuses every text."""

    fingerprint = "equal"
    dimensions = 4
    query_characters = 1000

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.texts = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.refuses:
            raise ModelInputRefused("the text is too long")
        self.texts += len(texts)
        return np.full((len(texts), 4), 0.5, dtype=np.float32)

    async def embed_query(self, text: str) -> Vectors:
        return np.full(4, 0.5, dtype=np.float32)


async def read(
    encoder: Encoder,
    strategy: str,
    *,
    record: Record | None = None,
    model: DocumentModel | None = None,
    size: int = 60,
    text: str = TEXT,
    waiting: bool = False,
) -> ChunkedDocument:
    version = version_of(title="", options=ProcessingOptions(chunking=ChunkingOptions(strategy, size, 0)))
    reader = ChunkReader(DirectReader(WordPieceTokenizer()), encoder, model, says_statement)
    return await reader.read(TENANT, version, text.encode(), record=record, waiting=waiting)


async def test_sentences_are_embedded_once_and_the_chunks_have_exact_offsets() -> None:
    encoder = Encoder()
    document = await read(encoder, "semantic")
    assert encoder.texts == 60
    assert document.failures == ()
    assert all(TEXT[each.location.start_char : each.location.end_char] == each.text for each in document.chunks)


async def test_other_strategies_embed_nothing() -> None:
    encoder = Encoder()
    await read(encoder, "recursive")
    assert encoder.texts == 0


async def test_a_refusal_of_the_encoder_and_too_many_sentences_are_answered_by_recursive(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [each.text for each in (await read(Encoder(), "recursive")).chunks]
    refused = await read(Encoder(refuses=True), "semantic")
    assert [each.text for each in refused.chunks] == plain
    assert "too long; the document was cut by 'recursive' instead" in refused.failures[0].message
    monkeypatch.setattr(chunk_reading, "MAX_UNITS", 59)
    long = await read(Encoder(), "semantic")
    assert [each.text for each in long.chunks] == plain
    assert "at most 59 sentences; the document has more" in long.failures[0].message


async def test_breakpoints_on_record_are_not_embedded_again() -> None:
    encoder, record = Encoder(), Record()
    first = await read(encoder, "semantic", record=record)
    again = await read(encoder, "semantic", record=record)
    assert encoder.texts == 60
    assert again.chunks == first.chunks
    await read(encoder, "semantic", record=record, size=40)
    assert encoder.texts == 120, "other options have other breakpoints"


LONG = "\n\n".join(f"# Part {part}\n\n{TEXT * 4}" for part in range(3))


async def test_the_model_divides_a_document_and_a_retry_pays_nothing() -> None:
    model, record = ScriptedModel(lambda prompt: {"starts": list(range(1, 60, 5))}), Record()
    document = await read(Encoder(), "agentic", model=DocumentModel(model), record=record, size=500)
    assert document.failures == ()
    assert [each.text.count(".") for each in document.chunks] == [5] * 12
    assert all(TEXT[each.location.start_char : each.location.end_char] == each.text for each in document.chunks)
    assert document.usage == COST
    again = await read(Encoder(), "agentic", model=DocumentModel(model), record=record, size=500)
    assert again.chunks == document.chunks
    assert len(model.prompts) == 1


async def test_parts_that_the_model_does_not_divide_are_cut_by_size_and_the_document_says_so() -> None:
    def write(prompt: str) -> Reply:
        return {"starts": [5, 4]} if "Part 1" in prompt else {"starts": list(range(1, prompt.count(". "), 40))}

    model, record = ScriptedModel(write), Record()
    document = await read(Encoder(), "agentic", model=DocumentModel(model), record=record, size=60, text=LONG)
    (failure,) = document.failures
    asked = len(model.prompts)
    assert failure.code == "model_reply_invalid"
    assert f"gave no usable reply for 1 of {asked} parts of the document: model_reply_invalid (1)" in failure.message
    assert "cut by size, between sentences" in failure.message
    assert "".join("".join(each.text.split()) for each in document.chunks) == "".join(LONG.split())
    assert all(each.size_tokens <= 60 for each in document.chunks)
    model.write = lambda prompt: {"starts": [1]}
    again = await read(Encoder(), "agentic", model=DocumentModel(model), record=record, size=60, text=LONG)
    assert again.failures == ()
    assert len(model.prompts) == asked + 1, "only the refused part is asked for again"


async def test_without_a_model_recursive_cuts_the_document_with_the_reason() -> None:
    plain = [each.text for each in (await read(Encoder(), "recursive")).chunks]
    models = {
        "none is configured": None,
        "model_unavailable (1)": DocumentModel(ScriptedModel(lambda prompt: ModelUnavailable("down"))),
        "model_reply_invalid (1)": DocumentModel(ScriptedModel(lambda prompt: {"starts": [0]})),
        "budget_spent (1)": DocumentModel(ScriptedModel(lambda prompt: {"starts": [1]}), max_tokens=100),
    }
    for reason, model in models.items():
        document = await read(Encoder(), "agentic", model=model)
        assert [each.text for each in document.chunks] == plain
        assert reason in document.failures[0].message
        assert "the document was cut by 'recursive' instead" in document.failures[0].message


async def test_a_preview_has_a_small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_reading, "PREVIEW_TOKENS", 100)
    model = DocumentModel(ScriptedModel(lambda prompt: {"starts": [1]}))
    assert (await read(Encoder(), "agentic", model=model, waiting=True)).failures[0].code == "budget_spent"
    assert (await read(Encoder(), "agentic", model=model)).failures == ()


HARBOUR = "Mara Venn leads the Harbour Authority. She bought the Fish Market in 2015. " * 4


async def test_statements_are_written_once_and_sentences_replace_those_that_fail() -> None:
    def write(prompt: str) -> Reply:
        said = "Mara Venn bought the Fish Market in 2015."
        false = "Mara Venn sold the Fish Market in 2019."
        return {"statements": [{"statement": said, "sentences": [1, 2]}, {"statement": false, "sentences": [3, 4]}]}

    model, record = ScriptedModel(write), Record()
    document = await read(Encoder(), "proposition", model=DocumentModel(model), record=record, text=HARBOUR, size=120)
    assert document.failures == ()
    first = document.chunks[0]
    assert first.text == HARBOUR[first.location.start_char : first.location.end_char]
    assert first.location.statements[:3] == (
        "Mara Venn leads the Harbour Authority.",
        "Mara Venn bought the Fish Market in 2015.",
        "Mara Venn leads the Harbour Authority.",
    )
    assert all("sold" not in each for chunk in document.chunks for each in chunk.location.statements)
    assert first.parent_id is not None
    await read(Encoder(), "proposition", model=DocumentModel(model), record=record, text=HARBOUR, size=120)
    assert len(model.prompts) == 1


async def test_without_a_model_propositions_are_sentences_and_the_document_says_so() -> None:
    document = await read(Encoder(), "proposition", text=HARBOUR, size=120)
    (failure,) = document.failures
    assert (failure.code, "found by their sentences" in failure.message) == ("no_model", True)
    assert all(chunk.location.statements == () and chunk.text.count(".") <= 5 for chunk in document.chunks)
    assert "".join("".join(each.text.split()) for each in document.chunks) == "".join(HARBOUR.split())
