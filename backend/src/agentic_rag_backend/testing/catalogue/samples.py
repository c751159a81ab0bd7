"""Parts of the catalogue's checks: samples, a queue that only records, and comparisons that report the difference."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.document import Chunk, Document, Failure, content_hash, stable_id
from agentic_rag_backend.domain.graph import Alias, EntityMention, ExtractedRelationship, Extraction
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.location import Location, Region
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.stores.catalogue.base import Catalogue, ParsedVersion, PreparedChunk, Submission, Submitted

Check = Callable[[Catalogue], Awaitable[None]]
LINES = ("Ada wrote the first program.", "Charles built the engine.", "Ada knew Charles.")
TEXT = "\n".join(LINES)
BAD = Failure("parse", "unreadable_document", "no text in it")


@dataclass
class Queue:
    """Records the enqueued jobs. With ``fails`` it raises after recording, like an unavailable queue."""

    jobs: list[tuple[TenantId, Job]] = field(default_factory=list)
    fails: bool = False

    def __call__(self, connection: Connection, tenant: TenantId, job: Job) -> None:
        """Record a job."""
        self.jobs.append((tenant, job))
        if self.fails:
            raise ConnectionRefusedError("the queue is down")


def nothing(connection: Connection, tenant: TenantId, job: Job) -> None:
    """Enqueue nothing."""


def submission(key: str, text: str = "\n".join(LINES), **other: Any) -> Submission:
    """Return a submission of ``text`` under ``key``, with a document id made from both."""
    values: dict[str, Any] = {
        "document_id": stable_id("sample document", key),
        "key": key,
        "title": f"Title of {key}",
        "content_hash": content_hash(text),
        "media_type": "text/plain",
        "size_bytes": len(text.encode()),
        "blob_key": f"{stable_id('sample blob', key, text)}/1",
        "metadata": {"colour": "red", "year": 1843},
    }
    return Submission(**{**values, **other})


def prepared(document_id: str, version: int, text: str) -> list[PreparedChunk]:
    """Return one prepared chunk per line of ``text``. Ids are equal for all tenants, so that only the scope separates them.

    All chunks of a text are in one parent.
    """
    found, start = [], 0
    for ordinal, line in enumerate(text.split("\n")):
        line_hash = content_hash(line)
        chunk = Chunk(
            id=stable_id("sample chunk", document_id, line_hash),
            document_id=document_id,
            version=version,
            ordinal=ordinal,
            text=line,
            size_tokens=len(line.split()),
            content_hash=line_hash,
            location=Location(
                start_char=start,
                end_char=start + len(line),
                start_line=ordinal + 1,
                end_line=ordinal + 1,
                headings=("Engines", "Programs"),
                regions=(
                    Region(start, start + 1, page=ordinal + 1, label="iv", box=(72.0, 640.25, 98.5, 652.0)),
                    Region(start + 1, start + len(line), sheet="Sales", cells="A2:D2"),
                )[: len(line)],
                parent_start=0,
                parent_end=len(text),
                functions=("Engine.start", "Engine.stop"),
                statements=("Ada wrote the first program.", "Größe zählt.") if ordinal else (),
            ),
        )
        vector = np.arange(8, dtype=np.float32) / np.float32(7) + np.float32(ordinal)
        found.append(PreparedChunk(chunk, vector, _extraction(chunk), recipe=recipe(chunk)))
        start += len(line) + 1
    return found


def recipe(chunk: Chunk, *, made_with: str = "v1") -> str:
    """Return the recipe of a sample's results."""
    return content_hash(f"{chunk.id} {made_with}")


def _extraction(chunk: Chunk) -> Extraction:
    relationship = ExtractedRelationship(
        source="Ada",
        source_type="person",
        target="Charles",
        target_type="person",
        relation="knew",
        fact=chunk.text,
        fact_start=0,
        fact_end=len(chunk.text),
        confidence=0.5,
    )
    return Extraction(
        chunk_id=chunk.id,
        mentions=(EntityMention(name="Ada", type="person", start_char=0, end_char=3, about=True),),
        relationships=(relationship,),
        aliases=(Alias(name="Ada", alias="Countess of Lovelace", type="person"),),
    )


async def tenant(catalogue: Catalogue, name: str = "first") -> TenantId:
    """Create a tenant and return its id."""
    return (await catalogue.tenants.create(name)).id


async def state_version(catalogue: Catalogue, owner: TenantId) -> int:
    """Return the tenant's ``state_version``."""
    held: Tenant = await catalogue.tenants.tenant(owner)
    return held.state_version


async def stage(catalogue: Catalogue, owner: TenantId, submitted: Submitted, text: str = "\n".join(LINES)) -> Document:
    """Process a submission up to the state in which it can be published."""
    document, version = submitted.document, submitted.document.latest_version
    begun = await catalogue.documents.begin_processing(owner, document.id, version)
    true(begun is not None and begun.version == version, "a version that waits can be begun")
    await catalogue.documents.save_parsed(
        owner, document.id, version, ParsedVersion(text, document.title, dict(document.metadata))
    )
    await catalogue.documents.save_prepared(owner, document.id, version, prepared(document.id, version, text))
    return document


async def ingest(catalogue: Catalogue, owner: TenantId, key: str, text: str = "\n".join(LINES), **other: Any) -> Document:
    """Submit, stage and publish. Return the resulting document."""
    submitted = await catalogue.documents.submit(owner, submission(key, text, **other), nothing)
    document = await stage(catalogue, owner, submitted, text)
    equal(await catalogue.documents.publish(owner, document.id, document.latest_version), True)
    return await catalogue.documents.document(owner, document.id)


def untimed(document: Document) -> Document:
    """Return ``document`` without the time of its last change."""
    return replace(document, updated_at=document.created_at)


async def raises(error: type[Exception], call: Awaitable[Any], what: str) -> Exception:
    """Await ``call``, which must raise ``error``. Return the exception."""
    try:
        found = await call
    except error as raised:
        return raised
    raise AssertionError(f"{what} should have raised {error.__name__}; it returned {found!r}")


def equal(found: object, expected: object, what: str = "") -> None:
    """Raise `AssertionError` unless both are equal."""
    if found != expected:
        raise AssertionError(f"{what}\nfound    {found!r}\nexpected {expected!r}")


def true(condition: object, what: str) -> None:
    """Raise `AssertionError` unless ``condition`` holds."""
    if not condition:
        raise AssertionError(what)
