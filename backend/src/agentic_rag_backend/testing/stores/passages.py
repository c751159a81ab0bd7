"""Makes documents visible without ingestion, with one chunk per paragraph and given vectors."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from agentic_rag_backend.domain.document import Chunk, chunk_id, content_hash
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.catalogue.base import Catalogue, ParsedVersion, PreparedChunk, Submission
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, Vector, VectorPoint, VectorStore
from agentic_rag_backend.testing.catalogue.samples import nothing

BETWEEN = "\n\n"
"""Separator of two paragraphs of a document's text."""


async def hand_in(catalogue: Catalogue, tenant: TenantId, title: str, paragraphs: Sequence[str]) -> list[Chunk]:
    """Submit a document with its title as key, and record its text and chunks. The same title again is its next version."""
    text = BETWEEN.join(paragraphs)
    submission = Submission(
        document_id=str(uuid.uuid4()),
        key=title,
        title=title,
        content_hash=content_hash(text),
        media_type="text/plain",
        size_bytes=len(text),
        blob_key=str(uuid.uuid4()),
    )
    document = (await catalogue.documents.submit(tenant, submission, nothing)).document
    version = document.latest_version
    await catalogue.documents.begin_processing(tenant, document.id, version)
    await catalogue.documents.save_parsed(tenant, document.id, version, ParsedVersion(text, title, {}))
    return paragraphs_as_chunks(tenant, document.id, version, paragraphs)


async def show(
    catalogue: Catalogue,
    vectors: VectorStore,
    tenant: TenantId,
    document: tuple[str, Sequence[str]],
    rows: Sequence[Vector],
) -> str:
    """Make a document with its title, paragraphs and these vectors visible, without extractions. Return its id."""
    title, paragraphs = document
    chunks = await hand_in(catalogue, tenant, title, paragraphs)
    document_id, version = chunks[0].document_id, chunks[0].version
    prepared = [PreparedChunk(chunk, row, Extraction(chunk_id=chunk.id)) for chunk, row in zip(chunks, rows, strict=True)]
    await catalogue.documents.save_prepared(tenant, document_id, version, prepared)
    points = [
        VectorPoint(
            id=chunk.id,
            kind=NodeKind.CHUNK,
            dense=row,
            text=chunk.text,
            document_id=document_id,
            version=version,
            title=title,
        )
        for chunk, row in zip(chunks, rows, strict=True)
    ]
    await vectors.upsert(tenant, Collection.CHUNKS, points)
    assert await catalogue.documents.publish(tenant, document_id, version), f"{title} did not become visible"
    return document_id


def paragraphs_as_chunks(tenant: TenantId, document_id: str, version: int, paragraphs: Sequence[str]) -> list[Chunk]:
    """Return a chunk for each paragraph, with its offsets in the text of all paragraphs joined by `BETWEEN`."""
    chunks, start = [], 0
    for ordinal, text in enumerate(paragraphs):
        digest = content_hash(text)
        chunks.append(
            Chunk(
                id=chunk_id(tenant, document_id, digest, 0),
                document_id=document_id,
                version=version,
                ordinal=ordinal,
                text=text,
                size_tokens=len(text.split()),
                content_hash=digest,
                location=Location(
                    start_char=start, end_char=start + len(text), start_line=1 + 2 * ordinal, end_line=1 + 2 * ordinal
                ),
            )
        )
        start += len(text) + len(BETWEEN)
    return chunks
