"""Corpora for benchmarks: every passage is a document. Then builds communities over them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.evaluation.datasets import CorpusPassage
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.models.embedding.base import EmbedderStats

SUBMITTED_AT_ONCE = 16
LONGEST_S = 3600


async def ingest(
    services: Container, tenant: TenantId, passages: Sequence[CorpusPassage], *, media_type: str = "text/plain"
) -> dict[str, float]:
    """Ingest passages into an empty tenant. Return the figures."""
    uploads = (
        Upload(content=passage.text.encode(), media_type=media_type, title=passage.title or None, key=passage.id)
        for passage in passages
    )
    return await ingest_uploads(services, tenant, list(uploads))


def stats_of(services: Container) -> EmbedderStats:
    """Return the counters of the embedder, which the embedders of this product have."""
    stats: EmbedderStats = services.embedder.stats  # type: ignore[attr-defined]
    return stats


async def ingest_uploads(services: Container, tenant: TenantId, uploads: Sequence[Upload]) -> dict[str, float]:
    """Ingest documents. Return the figures."""
    before = stats_of(services)
    started = time.perf_counter()
    slots = asyncio.Semaphore(SUBMITTED_AT_ONCE)
    held = (await services.catalogue.documents.counts(tenant))["documents_ready"]

    async def submit(upload: Upload) -> None:
        async with slots:
            await services.ingestion.submit(tenant, upload)

    await asyncio.gather(*map(submit, uploads))
    submitted_s = time.perf_counter() - started
    while (await services.catalogue.documents.counts(tenant))["documents_ready"] < held + len(uploads):
        await asyncio.sleep(0.25)
        if time.perf_counter() - started > LONGEST_S:
            raise SystemExit(f"not ingested within an hour: {await services.catalogue.documents.counts(tenant)}")
    total_s = time.perf_counter() - started
    after = stats_of(services)
    counts = await services.catalogue.documents.counts(tenant)
    embedder_s = after.busy_s - before.busy_s
    return {
        "documents": len(uploads),
        "chunks": counts["chunks"],
        "submit_s": round(submitted_s, 2),
        "total_s": round(total_s, 2),
        "embedder_s": round(embedder_s, 2),
        "total_per_embedder": round(total_s / embedder_s, 3),
        "texts_per_chunk": round((after.texts - before.texts) / counts["chunks"], 3),
    }


async def rebuild(services: Container, tenant: TenantId) -> dict[str, Any]:
    """Build communities; return the job's result with its duration."""
    started = time.perf_counter()
    job = await services.communities.request_rebuild(tenant)
    while not (job := await services.catalogue.jobs.job(tenant, job.id)).state.ended:
        await asyncio.sleep(0.1)
    if job.result is None:
        raise SystemExit(f"the rebuild ended {job.state.value}: {job.error}")
    kept = ("communities", "levels", "entities", "relationships", "modularity", "stages_ms")
    return {"total_s": round(time.perf_counter() - started, 2), **{name: job.result[name] for name in kept}}
