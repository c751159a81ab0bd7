"""``doctor``: checks all requirements of a deployment, and compares its stores."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.command import ApiKey, AsJson, DataDir, Url, quiet_logging
from agentic_rag_backend.cli.configuration import load_settings
from agentic_rag_backend.cli.interruption import run_async
from agentic_rag_backend.cli.operations.comparison import TenantComparison, compare_here, compare_on_server, show_comparisons
from agentic_rag_backend.cli.operations.measuring import Check, Measurements, measure_models
from agentic_rag_backend.cli.output import Output, table
from agentic_rag_backend.cli.session.address import credentials_file
from agentic_rag_backend.errors import AgenticRagError, ConfigurationError, ModelReplyInvalid, StoreUnavailable

if TYPE_CHECKING:
    from rich.table import Table

    from agentic_rag_backend.container import Container
    from agentic_rag_backend.settings import Settings

LEAST_FREE_MB = 500
"""Minimum free disk space in MiB."""
COMPARED = ("catalogue", "graph", "vectors", "blobs")
"""Checks that must succeed before the stores are compared."""
_CHECK_S = 90.0
"""Above the default of LLM_TIMEOUT_S, so that a slow model fails with its own timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairMode:
    """Handling of differences between the stores: report, repair, or repair including large removals."""

    repair: bool
    confirm: bool


@dataclass(slots=True)
class HealthReport:
    """Results of all checks. ``stores`` is empty if they could not be compared."""

    checks: list[Check]
    stores: list[TenantComparison] = field(default_factory=list)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(
    json: AsJson = False,
    data_dir: DataDir = None,
    url: Url = None,
    api_key: ApiKey = None,
    repair: Annotated[bool, typer.Option("--repair", help="Repair differences between the stores.")] = False,
    confirm: Annotated[
        bool,
        typer.Option("--confirm", help="With --repair: remove all data unknown to the catalogue, even if it is much."),
    ] = False,
    model: Annotated[
        bool,
        typer.Option("--model", help="Only measure the language model: schema, window, speed, and times against the limits."),
    ] = False,
    embedder: Annotated[bool, typer.Option("--embedder", help="Only measure the embedder: vectors, batch and speed.")] = False,
) -> None:
    """Check settings, folder, stores, embedder, model and disk space, and compare the stores. Fails if a check fails.

    With --url, that server checks and compares its stores: of every tenant with the operator's key, otherwise of the key's
    tenant, which requires the scope admin. --model and --embedder measure the models of the settings on this machine, also while
    a server runs.
    """
    if model or embedder:
        if url is not None:
            raise typer.BadParameter("--model and --embedder measure the models of this machine's settings, without --url")
        _show_measurements(run_async(_measure(data_dir, model=model, embedder=embedder)), as_json=json)
        return
    repair_mode = RepairMode(repair=repair, confirm=repair and confirm)
    health = run_async(_examine(data_dir, repair_mode) if url is None else _examine_server(url, api_key, repair_mode))
    output = Output(as_json=json)
    if json:
        output.result(
            {"checks": [asdict(check) for check in health.checks], "stores": [asdict(store) for store in health.stores]}
        )
    else:
        output.show(_checks_table(health.checks))
        show_comparisons(output, health.stores, repair=repair)
    if not all(check.ok for check in health.checks) or any(store.left for store in health.stores):
        raise typer.Exit(1)


def _show_measurements(measurements: Measurements, *, as_json: bool) -> None:
    output = Output(as_json=as_json)
    if as_json:
        output.result({"checks": [asdict(check) for check in measurements.checks], "measurements": measurements.figures})
    else:
        output.show(_checks_table(measurements.checks))
    if not all(check.ok for check in measurements.checks):
        raise typer.Exit(1)


def _checks_table(checks: Sequence[Check]) -> Table:
    return table(["check", "state", "detail"], [[check.name, "ok" if check.ok else "WRONG", check.detail] for check in checks])


async def _measure(data_dir: Path | None, *, model: bool, embedder: bool) -> Measurements:
    try:
        settings = load_settings(data_dir=data_dir)
    except ConfigurationError as error:
        return Measurements([Check("settings", False, error.message)])
    quiet_logging(settings)
    return await measure_models(settings, model=model, embedder=embedder)


async def _examine(data_dir: Path | None, mode: RepairMode) -> HealthReport:
    try:
        settings = load_settings(data_dir=data_dir)
    except ConfigurationError as error:
        return HealthReport([Check("settings", False, error.message)])
    quiet_logging(settings)
    checks = [Check("settings", True, "every value is within its limits"), _folder(settings.data_dir)]
    if not checks[-1].ok:
        return HealthReport(checks)
    checks += [_disk(settings.data_dir), await _ocr(settings)]
    from agentic_rag_backend.cli.session.remote import operators_key, running_server, tenants_key

    url = await running_server(settings)
    health = HealthReport(checks)
    if url is not None:
        await _look_at_server(health, url, operators_key(settings) or tenants_key(settings), mode)
    else:
        await _look_at_stores(health, settings, mode)
    return health


async def _examine_server(url: str, key: str | None, mode: RepairMode) -> HealthReport:
    """Check a server over HTTP. Settings, folder and disk of this machine are not the server's."""
    try:
        quiet_logging(load_settings())
    except ConfigurationError as error:
        return HealthReport([Check("settings", False, error.message)])
    health = HealthReport([])
    await _look_at_server(health, url, key, mode)
    return health


def _folder(path: Path) -> Check:
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not existing.is_dir():
        return Check("folder", False, f"{existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        return Check("folder", False, f"{existing} cannot be written by user {os.getuid()}")
    credentials = credentials_file(path)
    if credentials.exists() and stat.S_IMODE(credentials.stat().st_mode) & 0o077:
        return Check("folder", False, f"{credentials} can be read by others; 'chmod 600 {credentials}'")
    return Check("folder", True, f"{path.absolute()}{'' if path.exists() else ' (created at first use)'}")


def _disk(path: Path) -> Check:
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    free_mb = shutil.disk_usage(existing).free // 1024 // 1024
    return Check("disk", free_mb >= LEAST_FREE_MB, f"{free_mb:,} MiB free; at least {LEAST_FREE_MB} are required")


async def _ocr(settings: Settings) -> Check:
    """Check the recognition of text in pictures on this machine. It is optional, unless the setting requires it."""
    from agentic_rag_backend.container.adapters import open_ocr

    status = await open_ocr(settings).read_status()
    if status.available:
        return Check("ocr", True, f"Tesseract {status.version}; {', '.join(status.languages)}")
    return Check("ocr", settings.ocr != "tesseract", f"text in pictures is not recognised: {status.reason}")


async def _look_at_server(health: HealthReport, url: str, key: str | None, mode: RepairMode) -> None:
    from agentic_rag_backend.cli.session.remote import open_remote

    async with open_remote(url, None, None) as client:
        try:
            states = await client.health()
        except AgenticRagError as error:
            health.checks.append(Check("server", False, error.message))
            return
    health.checks += [
        Check("server", True, url),
        *(Check(name, state == "ok", state) for name, state in states["stores"].items()),
    ]
    if states.get("workers") is not None:
        health.checks.append(_workers(states["workers"]))
    if all(check.ok for check in health.checks):
        await _compare(health, lambda: compare_on_server(url, key, repair=mode.repair, confirmed=mode.confirm))


async def _look_at_stores(health: HealthReport, settings: Settings, mode: RepairMode) -> None:
    from agentic_rag_backend.cli.session.local import open_stores
    from agentic_rag_backend.container.shared_stores import of_one_process

    try:
        # Only a repair needs workers: its jobs finish before the command ends.
        async with open_stores(settings, work=mode.repair) as container:
            for name, look in _looks(container, settings).items():
                check = await _look(name, look)
                health.checks.append(check)
            if not of_one_process(settings):
                workers = await container.worker_status.list_workers()
                health.checks.append(_workers(len(workers)))
            if all(check.ok for check in health.checks if check.name in COMPARED):
                await _compare(health, lambda: compare_here(container, repair=mode.repair, confirmed=mode.confirm))
    except AgenticRagError as error:
        health.checks.append(Check("stores", False, error.message))


async def _compare(health: HealthReport, comparing: Callable[[], Awaitable[list[TenantComparison]]]) -> None:
    try:
        stores = await comparing()
        health.stores += stores
    except AgenticRagError as error:
        health.checks.append(Check("comparison", False, f"{error.code}: {error.message}"))


def _workers(alive: int) -> Check:
    return Check("workers", alive > 0, f"{alive} live" if alive else "no live worker: jobs wait until 'agentic-rag worker' runs")


def _looks(container: Container, settings: Settings) -> Mapping[str, Callable[[], Awaitable[str]]]:
    async def ping(store: Any) -> str:
        await store.ping()
        return "answers"

    async def originals() -> str:
        answers = await ping(container.blobs)
        return answers if settings.keep_originals else f"{answers}; originals are removed after ingestion (KEEP_ORIGINALS=false)"

    async def embed() -> str:
        vector = await container.embedder.embed_query("Does the embedder work?")
        languages = container.embedder.languages
        limit = f"; trained for {', '.join(languages)}: texts in other languages are found by words" if languages else ""
        return f"{container.embedder.fingerprint}; {len(vector)} dimensions{limit}{_faster(container, settings)}"

    looks: dict[str, Callable[[], Awaitable[str]]] = {
        "catalogue": lambda: ping(container.catalogue),
        "graph": lambda: ping(container.graph),
        "vectors": lambda: ping(container.vectors),
        "blobs": originals,
        "embedder": embed,
    }
    if settings.rerank_url is not None:
        looks["rerank endpoint"] = lambda: _try_reranker(container, "http")
    if container.rerankers.why_not("cross_encoder") is None:
        looks["cross-encoder"] = lambda: _try_reranker(container, "cross_encoder")
    if settings.llm == "openai":
        looks["model"] = lambda: _ask_model(container, settings.llm_model)
    else:
        looks["model"] = lambda: _no_model(container.model.name)
    return looks


def _faster(container: Container, settings: Settings) -> str:
    """Return advice if the stored vectors keep the bundled encoder from computing in integers."""
    from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
    from agentic_rag_backend.models.embedding.exactness import multiplies_exactly

    embedder = container.embedder
    if not isinstance(embedder, BundledEmbedder) or embedder.arithmetic == "int8" or settings.embedding_model_path is not None:
        return ""
    if settings.embedding_arithmetic is not None or not multiplies_exactly():
        return ""
    return "; computes in float32, like the stored vectors: 'agentic-rag reindex' changes to int8, which takes half the CPU time"


async def _look(name: str, look: Callable[[], Awaitable[str]]) -> Check:
    try:
        async with asyncio.timeout(_CHECK_S):
            return Check(name, True, await look())
    except TimeoutError:
        return Check(name, False, StoreUnavailable(f"no answer within {_CHECK_S:g} s").message)
    except AgenticRagError as error:
        return Check(name, False, f"{error.code}: {error.message}")


async def _ask_model(container: Container, name: str) -> str:
    from agentic_rag_backend.models.llm.base import Message, ModelRequest

    question = Message("user", "Reply with the word: ready")
    reply = await container.model.complete(ModelRequest(prompt="doctor@1", messages=(question,), max_tokens=16))
    if not reply.text.strip():
        raise ModelReplyInvalid(f"{name} returned an empty text")
    return f"{name} responds"


async def _try_reranker(container: Container, name: str) -> str:
    return await container.rerankers.try_out(name)


async def _no_model(name: str) -> str:
    return f"{name}: no model is called"
