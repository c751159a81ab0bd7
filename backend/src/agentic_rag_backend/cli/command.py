"""Parts that all commands share: options of the target, the session, and the handling of errors."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

from agentic_rag_backend.cli.configuration import load_settings
from agentic_rag_backend.cli.interruption import leaving, run_async
from agentic_rag_backend.cli.output import Output

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client
    from agentic_rag_backend.settings import Settings

P = ParamSpec("P")
_PANEL = "Target"
DEFAULT_TENANT = "default"
EVERYTHING = 1_000_000
"""Limit for reading a whole list."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, everything else on stderr.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the local stores; default: DATA_DIR.", rich_help_panel=_PANEL)
]
Url = Annotated[
    str | None,
    typer.Option("--url", envvar="AGENTIC_RAG_URL", help="Act on the server at this address.", rich_help_panel=_PANEL),
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key", envvar="AGENTIC_RAG_API_KEY", help="Key for that server.", rich_help_panel=_PANEL, show_envvar=True
    ),
]
TenantOption = Annotated[
    str | None,
    typer.Option("--tenant", metavar="NAME_OR_ID", help="Tenant to act for; default: 'default'.", rich_help_panel=_PANEL),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Target of a command, from its options."""

    url: str | None
    api_key: str | None
    tenant: str | None
    data_dir: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One invocation of a command: the client for its requests, and the output for its results."""

    client: Client
    output: Output
    settings: Settings
    tenant: str | None = None
    """Value of ``--tenant``, for the operator's commands, which act for no tenant."""


def command(
    app: typer.Typer, name: str, *, work: bool = False, operator: bool = False
) -> Callable[[Callable[Concatenate[Session, P], Awaitable[None]]], None]:
    """Register a command that uses a server or local stores. The function's first parameter is its `Session`.

    Args:
        work: the command creates jobs or waits for them. On local stores, this process runs them meanwhile.
        operator: the command acts as the operator, for no tenant, and reads ``--tenant`` itself.
    """

    def register(function: Callable[Concatenate[Session, P], Awaitable[None]]) -> None:
        def run(*, url: Url, api_key: ApiKey, tenant: TenantOption, data_dir: DataDir, json: AsJson, **options: Any) -> None:
            target = Target(url=url, api_key=api_key, tenant=tenant, data_dir=data_dir)
            opened = partial(connect, work=work, operator=operator)
            run_async(_in_session(function, options, target, opened, as_json=json))

        _present(run, function)
        app.command(name)(run)

    return register


async def _in_session(
    function: Callable[..., Awaitable[None]],
    options: dict[str, Any],
    target: Target,
    opened: Callable[[Target, Settings], AbstractAsyncContextManager[Client]],
    *,
    as_json: bool,
) -> None:
    settings = load_settings(data_dir=target.data_dir)
    quiet_logging(settings)
    async with opened(target, settings) as client:
        session = Session(client=client, output=Output(as_json=as_json), settings=settings, tenant=target.tenant)
        with leaving("interrupted; no part of this command continues"):
            await function(session, **options)


@asynccontextmanager
async def connect(target: Target, settings: Settings, *, work: bool, operator: bool = False) -> AsyncIterator[Client]:
    """Yield a client of the server at ``--url``, else of the server that has DATA_DIR open, else of this process."""
    from agentic_rag_backend.cli.session.local import open_local
    from agentic_rag_backend.cli.session.remote import open_found, open_remote, running_server

    async with AsyncExitStack() as stack:
        if target.url is not None:
            opened = open_remote(target.url, target.api_key, None if operator else target.tenant)
        elif (server := await running_server(settings)) is not None:
            opened = open_found(server, settings, target.tenant, operator=operator)
        else:
            opened = open_local(settings, target.tenant, work=work, operator=operator)
        yield await stack.enter_async_context(opened)


def quiet_logging(settings: Settings) -> None:
    """Keep the log out of a command's output unless LOG_LEVEL is debug. The command reports its error itself."""
    from agentic_rag_backend.telemetry import configure_logging

    level = "debug" if settings.log_level == "debug" else "critical"
    configure_logging(level=level, format=settings.log_format)
    for handler in logging.getLogger().handlers:
        # The level of the root logger does not limit a library that sets its own level.
        handler.setLevel(level.upper())


def debugging() -> bool:
    """Return whether the user wants tracebacks of unexpected errors."""
    return os.environ.get("LOG_LEVEL", "").lower() == "debug"


def _present(run: Callable[..., None], function: Callable[..., Awaitable[None]]) -> None:
    """Give ``run`` the help and the parameters of ``function``. The shared options replace its session."""
    declared = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, annotation, default in (
            ("json", AsJson, False),
            ("tenant", TenantOption, None),
            ("data_dir", DataDir, None),
            ("url", Url, None),
            ("api_key", ApiKey, None),
        )
    ]
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in declared] + shared
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__, run.__name__, run.__module__ = function.__doc__, function.__name__, function.__module__
