"""``doctor``: checks all requirements of a deployment, and compares its stores."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.command import ApiKey, AsJson, DataDir, Url, quiet_logging
from agentic_rag_backend.cli.configuration import load_settings
from agentic_rag_backend.cli.operations.comparison import TenantComparison, compare_here, compare_on_server, show_comparisons
from agentic_rag_backend.cli.operations.measuring import Check, measure_models
from agentic_rag_backend.cli.output import Output, table
from agentic_rag_backend.cli.progress import run_async
from agentic_rag_backend.cli.session.address import credentials_file
from agentic_rag_backend.errors import AgenticRagError, ConfigurationError, ModelReplyInvalid, StoreUnavailable

if TYPE_CHECKING:
    from agentic_rag_backend.container import Container
    from agentic_rag_backend.settings import Settings

LEAST_FREE_MB = 500
"""Minimum free disk space in MiB."""
COMPARED = ("catalogue", "graph", "vectors", "blobs")
"""Checks that must succeed before the stores are compared."""
_CHECK_S = 90.0
"""Above the default of LLM_TIMEOUT_S, so that a slow model fails with its own timeout."""


@dataclass(slots=True, kw_only=True)
class HealthReport:
    """Checks that were run so far. ``stores`` is empty if they could not be compared.

    Attributes:
        repair: repair differences between the stores.
        confirm: remove data unknown to the catalogue, even if it is much.
    """

    repair: bool = False
    confirm: bool = False
    checks: list[Check] = field(default_factory=list)
    stores: list[TenantComparison] = field(default_factory=list)

    def read_settings(self, **options: Any) -> Settings | None:
        """Return the settings, or None after a failed check of them."""
        try:
            settings = load_settings(**options)
        except ConfigurationError as error:
            self.checks.append(Check("settings", False, error.message))
            return None
        quiet_logging(settings)
        return settings

    async def check_machine(self, settings: Settings) -> None:
        """Check folder and disk, and then the server that has DATA_DIR open or, without one, the stores."""
        from agentic_rag_backend.cli.session.remote import find_operator_key, find_server, find_tenant_key

        self.checks.extend([Check("settings", True, "every value is within its limits"), _check_folder(settings.data_dir)])
        if not self.checks[-1].ok:
            return
        ocr = await _check_ocr(settings)
        self.checks.extend([_check_disk(settings.data_dir), ocr])
        url = await find_server(settings)
        if url is not None:
            await self.check_server(url, find_operator_key(settings) or find_tenant_key(settings))
        else:
            await self.check_stores(settings)

    async def check_server(self, url: str, key: str | None) -> None:
        """Check a server over HTTP. Settings, folder and disk of this machine are not the server's."""
        from agentic_rag_backend.cli.session.remote import open_remote

        async with open_remote(url, None, None) as client:
            try:
                states = await client.health()
            except AgenticRagError as error:
                self.checks.append(Check("server", False, error.message))
                return
        self.checks.append(Check("server", True, url))
        self.checks.extend(Check(name, state == "ok", state) for name, state in states["stores"].items())
        if states.get("workers") is not None:
            self.checks.append(_check_workers(states["workers"]))
        if all(check.ok for check in self.checks):
            await self.compare_stores(compare_on_server(url, key, repair=self.repair, confirmed=self.confirm))

    async def check_stores(self, settings: Settings) -> None:
        """Open the stores and check them."""
        from agentic_rag_backend.cli.session.local import open_stores
        from agentic_rag_backend.container.deployment import of_one_process

        try:
            # Only a repair needs workers: its jobs finish before the command ends.
            async with open_stores(settings, work=self.repair) as container:
                for name, test in _list_tests(container, settings).items():
                    check = await _run_test(name, test)
                    self.checks.append(check)
                if not of_one_process(settings):
                    workers = await container.worker_status.list_workers()
                    self.checks.append(_check_workers(len(workers)))
                if all(check.ok for check in self.checks if check.name in COMPARED):
                    await self.compare_stores(compare_here(container, repair=self.repair, confirmed=self.confirm))
        except AgenticRagError as error:
            self.checks.append(Check("stores", False, error.message))

    async def compare_stores(self, comparison: Awaitable[list[TenantComparison]]) -> None:
        """Add the result of a comparison."""
        try:
            stores = await comparison
            self.stores.extend(stores)
        except AgenticRagError as error:
            self.checks.append(Check("comparison", False, f"{error.code}: {error.message}"))


def check_deployment(
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
    output, health, figures = Output(as_json=json), HealthReport(repair=repair, confirm=repair and confirm), {}
    settings = health.read_settings(data_dir=data_dir if url is None else None)
    if model or embedder:
        if url is not None:
            raise typer.BadParameter("--model and --embedder measure the models of this machine's settings, without --url")
        if settings is not None:
            measurements = run_async(measure_models(settings, model=model, embedder=embedder))
            health.checks, figures = measurements.checks, measurements.figures
        passed = _show_checks(output, health.checks, measurements=figures)
    else:
        if settings is not None:
            run_async(health.check_machine(settings) if url is None else health.check_server(url, api_key))
        passed = _show_checks(output, health.checks, stores=[asdict(store) for store in health.stores])
        if not json:
            show_comparisons(output, health.stores, repair=repair)
    if not passed or any(store.remaining for store in health.stores):
        raise typer.Exit(1)


def _show_checks(output: Output, checks: Sequence[Check], **members: Any) -> bool:
    """Print checks, with ``members`` after them in JSON. Return whether all passed."""
    if output.as_json:
        output.result({"checks": [asdict(check) for check in checks], **members})
    else:
        rows = [[check.name, "ok" if check.ok else "WRONG", check.detail] for check in checks]
        output.show(table(["check", "state", "detail"], rows))
    return all(check.ok for check in checks)


def _check_folder(path: Path) -> Check:
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not existing.is_dir():
        return Check("folder", False, f"{existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        return Check("folder", False, f"{existing} cannot be written by user {os.getuid()}")
    credentials = credentials_file(path)
    if credentials.exists() and stat.S_IMODE(credentials.stat().st_mode) & 0o077:
        return Check("folder", False, f"{credentials} can be read by others; 'chmod 600 {credentials}'")
    return Check("folder", True, f"{path.absolute()}{'' if path.exists() else ' (created at first use)'}")


def _check_disk(path: Path) -> Check:
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    free_mb = shutil.disk_usage(existing).free // 1024 // 1024
    return Check("disk", free_mb >= LEAST_FREE_MB, f"{free_mb:,} MiB free; at least {LEAST_FREE_MB} are required")


async def _check_ocr(settings: Settings) -> Check:
    """Check the recognition of text in pictures on this machine. It is optional, unless the setting requires it."""
    from agentic_rag_backend.container.adapters import open_ocr

    status = await open_ocr(settings).read_status()
    if status.available:
        return Check("ocr", True, f"Tesseract {status.version}; {', '.join(status.languages)}")
    return Check("ocr", settings.ocr != "tesseract", f"text in pictures is not recognised: {status.reason}")


def _check_workers(alive: int) -> Check:
    return Check("workers", alive > 0, f"{alive} live" if alive else "no live worker: jobs wait until 'agentic-rag worker' runs")


def _list_tests(container: Container, settings: Settings) -> Mapping[str, Callable[[], Awaitable[str]]]:
    async def ping_store(store: Any) -> str:
        await store.ping()
        return "answers"

    async def ping_blobs() -> str:
        state = await ping_store(container.blobs)
        return state if settings.keep_originals else f"{state}; originals are removed after ingestion (KEEP_ORIGINALS=false)"

    async def embed_question() -> str:
        vector = await container.embedder.embed_query("Does the embedder work?")
        languages = container.embedder.languages
        limit = f"; trained for {', '.join(languages)}: texts in other languages are found by words" if languages else ""
        return f"{container.embedder.fingerprint}; {len(vector)} dimensions{limit}{_advise_reindex(container, settings)}"

    tests: dict[str, Callable[[], Awaitable[str]]] = {
        "catalogue": lambda: ping_store(container.catalogue),
        "graph": lambda: ping_store(container.graph),
        "vectors": lambda: ping_store(container.vectors),
        "blobs": ping_blobs,
        "embedder": embed_question,
    }
    if settings.rerank_url is not None:
        tests["rerank endpoint"] = partial(container.rerankers.try_out, "http")
    if container.rerankers.why_not("cross_encoder") is None:
        tests["cross-encoder"] = partial(container.rerankers.try_out, "cross_encoder")
    if settings.llm == "openai":
        tests["model"] = lambda: _ask_model(container, settings.llm_model)
    else:
        tests["model"] = lambda: _no_model(container.model.name)
    return tests


def _advise_reindex(container: Container, settings: Settings) -> str:
    """Return advice if the stored vectors keep the bundled encoder from computing in integers."""
    from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
    from agentic_rag_backend.models.embedding.onnx.exactness import multiplies_exactly

    embedder = container.embedder
    if not isinstance(embedder, BundledEmbedder) or embedder.arithmetic == "int8" or settings.embedding_model_path is not None:
        return ""
    if settings.embedding_arithmetic is not None or not multiplies_exactly():
        return ""
    return "; computes in float32, like the stored vectors: 'agentic-rag reindex' changes to int8, which takes half the CPU time"


async def _run_test(name: str, test: Callable[[], Awaitable[str]]) -> Check:
    try:
        async with asyncio.timeout(_CHECK_S):
            return Check(name, True, await test())
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


async def _no_model(name: str) -> str:
    return f"{name}: no model is called"
