"""How a tenant is served: one description for the API and the CLI."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from agentic_rag_backend import __version__
from agentic_rag_backend.container import Container
from agentic_rag_backend.container.options import synthesis_model
from agentic_rag_backend.container.sharing import STORES, of_one_process
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.tenancy.features import DUAL_LEVEL

NO_WORKER = "no worker has said that it is alive lately: jobs wait until 'agentic-rag worker' runs"


async def describe_status(services: Container, caller: Principal) -> dict[str, Any]:
    """Return version, stores, models, strategies, features, counts and the communities' state, JSON-ready."""
    tenant = caller.tenant
    settings = services.settings
    counts = dict(await services.catalogue.documents.counts(tenant.id))
    knowledge = await services.graph.counts(tenant.id)
    workers = await services.attendance.workers()
    open_jobs = await services.attendance.open_jobs() if caller.operator else None
    pointer = await services.catalogue.communities.pointer(tenant.id)
    tree = await services.catalogue.trees.pointer(tenant.id)
    dual_level = services.features.enabled(DUAL_LEVEL, caller.flags)
    return {
        "version": __version__,
        "profile": _profile(services),
        "stores": {
            "catalogue": "postgresql" if services.attendance.shared else "sqlite",
            "graph": settings.graph_store,
            "vectors": settings.vector_store,
        },
        "models": {
            "embedder": services.embedder.fingerprint,
            "llm": services.model.name,
            "extraction": settings.extraction,
        },
        "strategies": [row["name"] for row in services.retrievers.describe(dual_level=dual_level) if row["available"]],
        "features": {flag.name: flag.value for flag in services.features.effective(caller.flags)},
        "dual_level": {
            "enabled": dual_level,
            "low_weight": settings.dual_level_low_weight,
            "high_weight": settings.dual_level_high_weight,
            "low_limit": settings.dual_level_low_limit,
            "high_limit": settings.dual_level_high_limit,
            "synthesis_model": synthesis_model(settings),
            "synthesis_temperature": settings.dual_level_synthesis_temperature,
        },
        "counts": counts
        | {
            "entities": knowledge.entities,
            "relationships": knowledge.relationships,
            "mentions": knowledge.mentions,
        },
        "state_version": tenant.state_version,
        "workers": {"alive": len(workers), "here": services.attendance.here},
        # Over all tenants, as are the indexes.
        "queue": open_jobs,
        "warnings": [] if workers or of_one_process(services.settings) else [NO_WORKER],
        "reconciliation": _reconciliation(await services.reconciler.last(tenant.id)),
        "communities": {"generation": pointer.generation, "stale": pointer.stale, "built_at": pointer.built_at},
        "raptor": {"generation": tree.generation, "stale": tree.stale, "built_at": tree.built_at},
        # Over all tenants, so for the operator: what a tenant is told must not depend on others.
        "vector_indexes": [asdict(index) for index in await services.vectors.indexes()] if caller.operator else None,
    }


def _profile(services: Container) -> str:
    apart = of_one_process(services.settings)
    if not apart:
        return "server"
    return "embedded" if len(apart) == STORES else "mixed"


def _reconciliation(job: Job | None) -> dict[str, Any] | None:
    """Return the last comparison of the stores in numbers, if it came to its end."""
    if job is None or job.result is None:
        return None
    counts = {name: job.result[name] for name in ("repair", "found", "mended", "skipped", "unmendable")}
    return {"finished_at": job.finished_at, **counts}
