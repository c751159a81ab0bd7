"""Status of the services for a tenant: one description for the API and the CLI."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agentic_rag_backend import __version__
from agentic_rag_backend.container import Container
from agentic_rag_backend.container.deployment import STORES, of_one_process
from agentic_rag_backend.container.options import extraction_method, extraction_model, synthesis_model
from agentic_rag_backend.documents.recognition.ocr import OcrStatus
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.models.llm.base import LimitedModel
from agentic_rag_backend.models.model_health import OK, state_of
from agentic_rag_backend.settings_derived import PROFILE, PROFILES, SCALED
from agentic_rag_backend.stores.catalogue.base import READ_BY_FILTERS
from agentic_rag_backend.tenancy.features import AUTO_WEIGHTS, DUAL_LEVEL

_MODELS = {"llm": "the language model", "embedder": "the embedding model"}
NO_WORKER = "no live worker: jobs wait until 'agentic-rag worker' runs"


async def model_states(services: Container) -> dict[str, str]:
    """Return the states of the language model and the embedder, within a second: ``ok`` or an error code."""
    llm, embedder = await asyncio.gather(state_of(services.model), state_of(services.embedder))
    return {"llm": llm, "embedder": embedder}


async def describe_status(services: Container, caller: Principal) -> dict[str, Any]:
    """Return version, stores, models, strategies, features, counts and the communities' state as JSON values."""
    tenant = caller.tenant
    counts = dict(await services.catalogue.documents.counts(tenant.id))
    knowledge = await services.graph.counts(tenant.id)
    workers = await services.worker_status.list_workers()
    open_jobs = await services.worker_status.open_jobs() if caller.operator else None
    pointer = await services.catalogue.communities.pointer(tenant.id)
    tree = await services.catalogue.trees.pointer(tenant.id)
    states = await model_states(services)
    dual_level = services.features.is_on(DUAL_LEVEL, caller.flags)
    return {
        **_deployment(services),
        "model_states": states,
        "model_limits": services.model.limits() if isinstance(services.model, LimitedModel) else [],
        "calibration": _calibration(services),
        "ocr": describe_ocr(await services.ocr.read_status()),
        "extraction_methods": [
            {"name": method, "available": not reason, "why_not": reason or None}
            for method, reason in services.extraction.availability().items()
        ],
        "strategies": [row["name"] for row in services.retrievers.describe(dual_level=dual_level) if row["available"]],
        "features": {flag.name: flag.value for flag in services.features.list_effective(caller.flags, tenant.tuned)},
        "dual_level": _dual_level(services, caller),
        "tuning": {"proposal_id": tenant.tuned.proposal_id, "values": tenant.tuned.describe()},
        "counts": counts
        | {
            "entities": knowledge.entities,
            "relationships": knowledge.relationships,
            "mentions": knowledge.mentions,
        },
        "state_version": tenant.state_version,
        "search": "pending" if await services.catalogue.outbox.holds(tenant.id, READ_BY_FILTERS) else "current",
        "workers": {"alive": len(workers), "here": services.worker_status.here},
        # Of all tenants, like the indexes.
        "queue": open_jobs,
        "warnings": _warnings(services, states, alive=bool(workers)),
        "reconciliation": _reconciliation(await services.reconciler.find_last(tenant.id)),
        "communities": {"generation": pointer.generation, "stale": pointer.stale, "built_at": pointer.built_at},
        "raptor": {"generation": tree.generation, "stale": tree.stale, "built_at": tree.built_at},
        # Of all tenants, so only for the operator: a tenant's status must not depend on other tenants.
        "vector_indexes": [asdict(index) for index in await services.vectors.indexes()] if caller.operator else None,
    }


def describe_ocr(status: OcrStatus) -> dict[str, Any]:
    """Return whether this process recognises text in pictures, as JSON values."""
    return {
        "available": status.available,
        "engine": f"Tesseract {status.version}" if status.version is not None else None,
        "languages": list(status.languages),
        "installed_languages": list(status.installed_languages),
        "reason": status.reason,
    }


def _deployment(services: Container) -> dict[str, Any]:
    """Return version, profile, stores and models, which are the same for every tenant."""
    settings = services.settings
    return {
        "version": __version__,
        "profile": _profile(services),
        "stores": {
            "catalogue": "postgresql" if services.worker_status.shared else "sqlite",
            "graph": settings.graph_store,
            "vectors": settings.vector_store,
            "originals": "kept" if settings.keep_originals else "not kept",
        },
        "models": {
            "embedder": services.embedder.fingerprint,
            "llm": services.model.name,
            "extraction": extraction_method(settings),
            "extraction_model": extraction_model(settings) or services.model.name,
        },
        "model_settings": _model_settings(services),
    }


def _model_settings(services: Container) -> dict[str, Any]:
    """Return the settings of time and size for calls of the language model, with the values that are used."""
    settings = services.settings
    return {name: getattr(settings, name) for name in (PROFILE, *PROFILES["local"], *SCALED)}


def _calibration(services: Container) -> dict[str, Any]:
    """Return the scale of cosines that thresholds use. It is not measured here, because a status costs no tokens."""
    calibration = services.calibrator.calibration
    return {"encoder": calibration.encoder, "source": calibration.source, "reason": services.calibrator.reason}


def _dual_level(services: Container, caller: Principal) -> dict[str, Any]:
    """Return the values that dual-level retrieval uses: weights are normalised, and the tenant's own where it has set them."""
    weights = services.defaults.weights.of_tenant(caller.flags, caller.tenant.tuned)
    return {
        "enabled": services.features.is_on(DUAL_LEVEL, caller.flags),
        "low_weight": weights.low,
        "high_weight": weights.high,
        "auto_weights": caller.tenant.tuned.low_weight is None and services.features.is_on(AUTO_WEIGHTS, caller.flags),
        "low_limit": services.defaults.low_limit,
        "high_limit": services.defaults.high_limit,
        "synthesis_model": synthesis_model(services.settings),
        "synthesis_temperature": services.settings.dual_level_synthesis_temperature,
    }


def _warnings(services: Container, states: Mapping[str, str], *, alive: bool) -> list[str]:
    warnings = [f"{_MODELS[name]} does not respond: {state}" for name, state in states.items() if state != OK]
    return warnings if alive or of_one_process(services.settings) else [*warnings, NO_WORKER]


def _profile(services: Container) -> str:
    apart = of_one_process(services.settings)
    if not apart:
        return "server"
    return "embedded" if len(apart) == STORES else "mixed"


def _reconciliation(job: Job | None) -> dict[str, Any] | None:
    """Return the figures of the last comparison of the stores, if it finished."""
    if job is None or job.result is None:
        return None
    counts = {name: job.result[name] for name in ("repair", "found", "mended", "skipped", "unmendable")}
    counts["withheld"] = job.result.get("withheld", 0)  # an earlier release did not count it
    return {"finished_at": job.finished_at, **counts}
