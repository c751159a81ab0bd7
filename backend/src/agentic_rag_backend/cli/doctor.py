"""``doctor``: whether everything the product needs is there and answers."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agentic_rag_backend.cli.command import AsJson, DataDir, quiet_logging
from agentic_rag_backend.cli.configuration import load_settings
from agentic_rag_backend.cli.output import Output, table
from agentic_rag_backend.errors import AgenticRagError, ConfigurationError, ModelReplyInvalid, StoreUnavailable

if TYPE_CHECKING:
    from agentic_rag_backend.container import Container
    from agentic_rag_backend.settings import Settings

LEAST_FREE_MB = 500
"""Free disk space below which writing is at risk."""
_CHECK_S = 90.0
"""Above LLM_TIMEOUT_S's default: a slow model is told as slow by its own limit."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    detail: str


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(json: AsJson = False, data_dir: DataDir = None) -> None:
    """Check settings, folder, stores, embedder, model and disk space; fails if something is wrong."""
    checks = asyncio.run(_checks(data_dir))
    output = Output(as_json=json)
    if json:
        output.result([asdict(check) for check in checks])
    else:
        output.show(
            table(["check", "state", "detail"], [[check.name, "ok" if check.ok else "WRONG", check.detail] for check in checks])
        )
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


async def _checks(data_dir: Path | None) -> list[Check]:
    try:
        settings = load_settings(data_dir=data_dir)
    except ConfigurationError as error:
        return [Check("settings", False, error.message)]
    quiet_logging(settings)
    checks = [Check("settings", True, "every value is within its limits"), _folder(settings.data_dir)]
    if not checks[-1].ok:
        return checks
    checks.append(_disk(settings.data_dir))
    from agentic_rag_backend.cli.remote import running_server

    url = await running_server(settings)
    if url is not None:
        return checks + await _of_server(url)
    return checks + await _of_stores(settings)


def _folder(path: Path) -> Check:
    existing = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not existing.is_dir():
        return Check("folder", False, f"{existing} is no folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        return Check("folder", False, f"{existing} cannot be written by user {os.getuid()}")
    credentials = path / "credentials.json"
    if credentials.exists() and stat.S_IMODE(credentials.stat().st_mode) & 0o077:
        return Check("folder", False, f"{credentials} can be read by others; 'chmod 600 {credentials}'")
    return Check("folder", True, f"{path.absolute()}{'' if path.exists() else ' (made at first use)'}")


def _disk(path: Path) -> Check:
    existing = next(each for each in (path, *path.absolute().parents) if each.exists())
    free_mb = shutil.disk_usage(existing).free // 1024 // 1024
    return Check("disk", free_mb >= LEAST_FREE_MB, f"{free_mb:,} MiB free; at least {LEAST_FREE_MB} are needed")


async def _of_server(url: str) -> list[Check]:
    from agentic_rag_backend.cli.remote import open_remote

    async with open_remote(url, None, None) as client:
        try:
            stores = (await client.health())["stores"]
        except AgenticRagError as error:
            return [Check("server", False, error.message)]
    return [Check("server", True, url), *(Check(name, state == "ok", state) for name, state in stores.items())]


async def _of_stores(settings: Settings) -> list[Check]:
    from agentic_rag_backend.cli.local import open_stores

    try:
        async with open_stores(settings, work=False) as container:
            return [await _look(name, look) for name, look in _looks(container, settings).items()]
    except AgenticRagError as error:
        return [Check("stores", False, error.message)]


def _looks(container: Container, settings: Settings) -> Mapping[str, Callable[[], Awaitable[str]]]:
    async def ping(store: Any) -> str:
        await store.ping()
        return "answers"

    async def embed() -> str:
        vector = await container.embedder.embed_query("Does the embedder work?")
        return f"{container.embedder.fingerprint}; {len(vector)} dimensions"

    looks: dict[str, Callable[[], Awaitable[str]]] = {
        "catalogue": lambda: ping(container.catalogue),
        "graph": lambda: ping(container.graph),
        "vectors": lambda: ping(container.vectors),
        "blobs": lambda: ping(container.blobs),
        "embedder": embed,
    }
    if settings.llm == "openai":
        looks["model"] = lambda: _ask_model(container, settings.llm_model)
    else:
        looks["model"] = lambda: _no_model(container.model.name)
    return looks


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
        raise ModelReplyInvalid(f"{name} answered with an empty text")
    return f"{name} answers"


async def _no_model(name: str) -> str:
    return f"{name}: no model is called"
