"""A tenant of planted passages: vectors around themes, texts of their themes' words; no encoder and no ingestion."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.document import Chunk, chunk_id, content_hash
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import PreparedChunk, Submission
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint

PER_THEME = 12
PER_DOCUMENT = 100
SENTENCES, WORDS = 8, 14
SEED = 7


def planted_vectors(count: int, dimensions: int = 384) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return vectors of length 1 around count ÷ `PER_THEME` themes, shape (count, dimensions), and the theme of each."""
    rng = np.random.default_rng(SEED)
    centres = rng.normal(size=(max(1, count // PER_THEME), dimensions)).astype(np.float32)
    themes = rng.integers(0, len(centres), count)
    rows = centres[themes] + rng.normal(size=(count, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, themes


async def plant(services: Container, tenant: TenantId, count: int) -> None:
    """Make ``count`` passages visible, `PER_DOCUMENT` to a document."""
    vectors, themes = planted_vectors(count, services.embedder.dimensions)
    rng = np.random.default_rng(SEED)
    texts = [_text(rng, int(theme)) for theme in themes]
    for start in range(0, count, PER_DOCUMENT):
        part = slice(start, min(start + PER_DOCUMENT, count))
        await _document(services, tenant, start // PER_DOCUMENT, texts[part], vectors[part])
    await services.vectors.flush()


async def _document(services: Container, tenant: TenantId, number: int, texts: list[str], vectors: NDArray[np.float32]) -> None:
    documents, title = services.catalogue.documents, f"Volume {number}"
    text = "\n\n".join(texts)
    submission = Submission(
        document_id=str(UUID(int=number + 1)),
        key=title,
        title=title,
        content_hash=content_hash(text),
        media_type="text/plain",
        size_bytes=len(text),
        blob_key=str(UUID(int=number + 1)),
    )
    document = (await documents.submit(tenant, submission, _enqueue_nothing)).document
    version = document.latest_version
    await documents.begin_processing(tenant, document.id, version)
    await documents.save_parsed(tenant, document.id, version, text=text, title=title, metadata={})
    chunks = list(_chunks(tenant, document.id, version, texts))
    prepared = [PreparedChunk(chunk, row, Extraction(chunk_id=chunk.id)) for chunk, row in zip(chunks, vectors, strict=True)]
    await documents.save_prepared(tenant, document.id, version, prepared)
    points = [
        VectorPoint(
            id=chunk.id,
            kind=NodeKind.CHUNK,
            dense=row,
            text=chunk.text,
            document_id=document.id,
            version=version,
            title=title,
        )
        for chunk, row in zip(chunks, vectors, strict=True)
    ]
    await services.vectors.upsert(tenant, Collection.CHUNKS, points)
    if not await documents.publish(tenant, document.id, version):
        raise SystemExit(f"{title} did not become visible")


def _enqueue_nothing(connection: Connection, tenant: TenantId, job: Job) -> None:
    """Leave the job without a workflow: its work is done here."""


def _text(rng: np.random.Generator, theme: int) -> str:
    words = rng.integers(0, 40, (SENTENCES, WORDS))
    common = rng.integers(0, 500, (SENTENCES, 4))
    sentences = (
        " ".join([f"w{theme}x{word}" for word in own] + [f"c{word}" for word in shared])
        for own, shared in zip(words, common, strict=True)
    )
    return " ".join(f"{sentence.capitalize()}." for sentence in sentences)


def _chunks(tenant: TenantId, document_id: str, version: int, texts: list[str]) -> Iterator[Chunk]:
    start = 0
    for ordinal, text in enumerate(texts):
        digest = content_hash(text)
        yield Chunk(
            id=chunk_id(tenant, document_id, digest, 0),
            document_id=document_id,
            version=version,
            ordinal=ordinal,
            text=text,
            start_char=start,
            end_char=start + len(text),
            start_line=1 + 2 * ordinal,
            end_line=1 + 2 * ordinal,
            size_tokens=SENTENCES * (WORDS + 4),
            content_hash=digest,
        )
        start += len(text) + 2
