"""Parts that all commands share: options of the target, groups of options, and the session of an invocation."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec
from urllib.parse import quote

import typer

from agentic_rag_backend.cli.configuration import load_settings
from agentic_rag_backend.cli.output import Output
from agentic_rag_backend.cli.progress import leaving, run_async
from agentic_rag_backend.errors import InvalidRequest

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client
    from agentic_rag_backend.settings import Settings

P = ParamSpec("P")
Run = Callable[..., None]
"""What Typer calls for a command."""
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

    tenant: TenantOption = None
    data_dir: DataDir = None
    url: Url = None
    api_key: ApiKey = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One invocation of a command: the client for its requests, and the output for its results."""

    client: Client
    output: Output
    tenant: str | None = None
    """Value of ``--tenant``, for the operator's commands, which act for no tenant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSession:
    """One invocation of a command that works on this machine only: its settings and its output."""

    settings: Settings
    output: Output


def join_path(path: str, name: str | int) -> str:
    """Return the path of one item of the API. A name such as "../documents/1" stays one part, and so names no other resource.

    Raises:
        InvalidRequest: the name is empty, or a dot segment, which clients remove from addresses.
    """
    if name in ("", ".", ".."):
        raise InvalidRequest(f"{name!r} is no name or id")
    return f"{path}/{quote(str(name), safe='')}"


def command(function: Callable[Concatenate[Session, P], Awaitable[None]], *, work: bool = False, operator: bool = False) -> Run:
    """Return the command of ``function``, which uses a server or local stores. Its first parameter is its `Session`.

    A parameter whose type is a dataclass stands for one option per field of it.

    Args:
        work: the command creates jobs or waits for them. On local stores, this process runs them meanwhile.
        operator: the command acts as the operator, for no tenant, and reads ``--tenant`` itself.
    """

    async def run_session(options: dict[str, Any], target: Target, *, as_json: bool) -> None:
        settings = load_settings(data_dir=target.data_dir)
        quiet_logging(settings)
        async with connect(target, settings, work=work, operator=operator) as client:
            session = Session(client=client, output=Output(as_json=as_json), tenant=target.tenant)
            with leaving("interrupted; no part of this command continues"):
                await function(session, **options)  # type: ignore[call-arg]

    def run(*, json: bool, command_target: Target, **options: Any) -> None:
        run_async(run_session(options, command_target, as_json=json))

    return _with_options(run, function, json=AsJson, command_target=Target)


def local_command(function: Callable[Concatenate[LocalSession, P], Awaitable[None] | None]) -> Run:
    """Return the command of ``function``, which works on this machine only. Its first parameter is its `LocalSession`."""

    def run(*, json: bool, data_dir: Path | None, **options: Any) -> None:
        settings = load_settings(data_dir=data_dir)
        quiet_logging(settings)
        work = function(LocalSession(settings=settings, output=Output(as_json=json)), **options)  # type: ignore[call-arg]
        if inspect.iscoroutine(work):
            run_async(work)

    return _with_options(run, function, json=AsJson, data_dir=DataDir)


@asynccontextmanager
async def connect(target: Target, settings: Settings, *, work: bool, operator: bool = False) -> AsyncIterator[Client]:
    """Yield a client of the server at ``--url``, else of the server that has DATA_DIR open, else of this process."""
    from agentic_rag_backend.cli.session.local import open_application
    from agentic_rag_backend.cli.session.remote import find_server, open_neighbour, open_remote

    if target.url is not None:
        async with open_remote(target.url, target.api_key, None if operator else target.tenant) as client:
            yield client
    elif (server := await find_server(settings)) is not None:
        async with open_neighbour(server, settings, target.tenant, operator=operator) as client:
            yield client
    else:
        async with open_application(settings, target.tenant, work=work, operator=operator) as (_, client):
            yield client


def quiet_logging(settings: Settings) -> None:
    """Keep the log out of a command's output unless LOG_LEVEL is debug. The command reports its error itself."""
    from agentic_rag_backend.telemetry import configure_logging

    level = "debug" if settings.log_level == "debug" else "critical"
    configure_logging(level=level, format=settings.log_format)
    for handler in logging.getLogger().handlers:
        # The level of the root logger does not limit a library that sets its own level.
        handler.setLevel(level.upper())


def wants_traceback() -> bool:
    """Return whether the user wants tracebacks of unexpected errors."""
    return os.environ.get("LOG_LEVEL", "").lower() == "debug"


def _with_options(run: Run, function: Callable[..., Any], **shared: Any) -> Run:
    """Return ``run`` with the help and the options of ``function``, then ``shared`` ones, for Typer.

    The first parameter of ``function``, its session, is no option. Each group of options becomes one object.
    """
    declared = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    declared += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=False if name == "json" else None)
        for name, annotation in shared.items()
    ]
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation for parameter in declared if is_dataclass(parameter.annotation)
    }
    members = {name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()}

    def run_grouped(**options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{member: options.pop(member) for member in members[name]})
        run(**options)

    parameters = [option for parameter in declared for option in members.get(parameter.name, {"": parameter}).values()]
    _describe_parameters(run_grouped, parameters)
    run_grouped.__doc__, run_grouped.__name__, run_grouped.__module__ = function.__doc__, function.__name__, function.__module__
    return run_grouped


def _describe_parameters(run: Run, parameters: Iterable[inspect.Parameter]) -> None:
    """Declare the parameters of ``run``, which Typer reads."""
    options = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
