"""Generic commands for what the API has under one path: ``list``, ``show``, ``delete`` and requests about one item."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Run, Session, command, join_path
from agentic_rag_backend.cli.output import Output, table

Item = Mapping[str, Any]
Cell = str | Callable[[Item], object]
"""A field of an item, or a function of it."""
Render = Callable[[Output, Any], None]
Finish = Callable[[Session, Any], Awaitable[None]]
FindId = Callable[[Session, str], Awaitable[str]]
Limit = Annotated[int, typer.Option("--limit", help="Maximum number of items.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Items of the API under one path.

    Attributes:
        path: of the list; ``{path}/ID`` is one item.
        columns: of the table, by heading: a field of an item, or a function of it. Headings with ``#`` are of numbers.
        droppable: headings that a narrow terminal leaves out, the first one first.
        paged: the API returns the list in pages. Otherwise the command has no ``--limit``.
        empty: what is printed instead of a table without rows.
        argument: annotated type of the argument that names an item.
        find_id: returns the id of the item that the argument names. None: the argument is the id.
        operator: the commands act as the operator, for no tenant.
    """

    path: str
    columns: Mapping[str, Cell]
    droppable: Sequence[str] = ()
    paged: bool = True
    empty: str | None = None
    argument: Any = str
    find_id: FindId | None = None
    operator: bool = False

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

    async def find_path(self, session: Session, name: str) -> str:
        """Return the path of the item that an argument names."""
        return join_path(self.path, name if self.find_id is None else await self.find_id(session, name))


def list_command(resource: Resource, description: str, **filters: Any) -> Run:
    """Return the command that lists a resource.

    Args:
        filters: the annotated type of each option that selects items. Its default is None.
    """

    async def list_items(session: Session, **options: Any) -> None:
        if resource.paged:
            await resource.list_items(session, **options)
        else:
            session.output.present(await session.client.get(resource.path, **options), resource.show_items)

    limit = [_declare("limit", Limit, 50)] if resource.paged else []
    options = [_declare(name, option, None) for name, option in filters.items()]
    return _create_command(resource, list_items, description, [*limit, *options])


def show_command(resource: Resource, description: str, render: Render | None = None, **options: tuple[Any, Any]) -> Run:
    """Return the command that shows one item.

    Args:
        options: the annotated type and the default of each parameter of the request.
    """

    async def show_item(session: Session, name: str, **values: Any) -> None:
        session.output.present(await session.client.get(await resource.find_path(session, name), **values), render)

    declared = [_declare(name, option, default) for name, (option, default) in options.items()]
    return _create_command(resource, show_item, description, [_declare("name", resource.argument), *declared])


def delete_command(resource: Resource, description: str, finish: Finish, **options: tuple[Any, Any]) -> Run:
    """Return the command that deletes one item.

    Args:
        finish: called with the reply, which it prints.
        options: the annotated type and the default of each parameter of the request.
    """

    async def delete_item(session: Session, name: str, **values: Any) -> None:
        await finish(session, await session.client.delete(await resource.find_path(session, name), **values))

    declared = [_declare(name, option, default) for name, (option, default) in options.items()]
    return _create_command(resource, delete_item, description, [_declare("name", resource.argument), *declared])


def post_command(resource: Resource, action: str, description: str) -> Run:
    """Return the command that requests an action, such as ``cancel``, for one item."""

    async def post_action(session: Session, name: str) -> None:
        session.output.present(await session.client.post(f"{await resource.find_path(session, name)}/{action}"))

    return _create_command(resource, post_action, description, [_declare("name", resource.argument)])


def _declare(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _create_command(
    resource: Resource, function: Callable[..., Awaitable[None]], description: str, parameters: Sequence[inspect.Parameter]
) -> Run:
    session = inspect.Parameter("session", inspect.Parameter.POSITIONAL_ONLY, annotation=Session)
    function.__signature__ = inspect.Signature([session, *parameters])  # type: ignore[attr-defined]
    function.__doc__ = description
    return command(function, operator=resource.operator)
