"""Commands that list or show what the API has under one path: ``list`` and ``show`` of documents, jobs, tenants and others."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.output import Output, table

Item = Mapping[str, Any]
Cell = str | Callable[[Item], object]
"""A field of an item, or a function of it."""
Command = Callable[..., Awaitable[None]]
Most = Annotated[int, typer.Option("--limit", help="Maximum number of items.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Items of the API under one path.

    Attributes:
        path: of the list; ``{path}/ID`` is one item.
        columns: of the table, by heading: a field of an item, or a function of it. Headings with ``#`` are of numbers.
        droppable: headings that a narrow terminal leaves out, the first one first.
        empty: what is printed instead of a table without rows.
    """

    path: str
    columns: Mapping[str, Cell]
    droppable: Sequence[str] = ()
    empty: str | None = None

    def show_items(self, output: Output, items: Sequence[Item]) -> None:
        """Print the table of items."""
        if not items and self.empty is not None:
            output.show(self.empty)
            return
        cells = self.columns.values()
        rows = [[item[cell] if isinstance(cell, str) else cell(item) for cell in cells] for item in items]
        output.show(table(list(self.columns), rows, droppable=self.droppable))

    async def list_items(self, session: Session, limit: int, **filters: Any) -> None:
        """Print at most ``limit`` items that pass the filters."""
        session.output.present(await session.client.every(self.path, limit=limit, **filters), self.show_items)

    async def show_item(self, session: Session, id: str, render: Callable[[Output, Any], None] | None = None) -> None:
        """Print one item."""
        session.output.present(await session.client.get(f"{self.path}/{id}"), render)


def list_command(resource: Resource, description: str, **filters: Any) -> Command:
    """Return the command that lists a resource.

    Args:
        filters: the annotated type of each option that selects items. Its default is None.
    """

    async def run(session: Session, limit: int, **chosen: Any) -> None:
        await resource.list_items(session, limit, **chosen)

    return _describe_command(
        run, description, {"limit": (Most, 50), **{name: (option, None) for name, option in filters.items()}}
    )


def show_command(
    resource: Resource, argument: Any, description: str, render: Callable[[Output, Any], None] | None = None
) -> Command:
    """Return the command that shows one item, whose id is the annotated ``argument``."""

    async def run(session: Session, id: str) -> None:
        await resource.show_item(session, id, render)

    return _describe_command(run, description, {"id": (argument, inspect.Parameter.empty)})


def _describe_command(run: Command, description: str, options: Mapping[str, tuple[Any, Any]]) -> Command:
    """Give a command its help and its options, each with its annotated type and its default."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("session", kind, annotation=Session)]
    parameters += [
        inspect.Parameter(name, kind, annotation=option, default=default) for name, (option, default) in options.items()
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__doc__ = description
    return run
