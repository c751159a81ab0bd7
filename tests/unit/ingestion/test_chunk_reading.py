"""Semantic chunking that cannot be done is replaced by another strategy, with the reason."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from agentic_rag_backend.domain.document import ChunkingOptions, DocumentVersion, ProcessingOptions
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ModelInputRefused
from agentic_rag_backend.ingestion import chunk_reading
from agentic_rag_backend.ingestion.chunk_reading import ChunkedDocument, ChunkReader
from agentic_rag_backend.ingestion.reading import DirectReader
from agentic_rag_backend.models.embedding.base import Vectors
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

TENANT = TenantId("t_" + "1" * 32)
TEXT = "The ship sailed from the harbour. Bread needs flour. " * 30


class Encoder:
    """Returns equal vectors, or refuses every text."""

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


async def read(encoder: Encoder, strategy: str) -> ChunkedDocument:
    version = DocumentVersion(
        document_id="d",
        version=1,
        title="",
        content_hash="",
        media_type="text/plain",
        blob_key="",
        options=ProcessingOptions(chunking=ChunkingOptions(strategy, 60, 0)),
        metadata={},
    )
    return await ChunkReader(DirectReader(WordPieceTokenizer()), encoder).read(TENANT, version, TEXT.encode())


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
    assert "at most 59 sentences; the document has 60" in long.failures[0].message
