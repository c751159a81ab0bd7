"""``graph entity|paths|contradictions|export|merge|split|rename|delete|edits|undo``."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.commands.knowledge import graph_edits
from agentic_rag_backend.cli.commands.knowledge.contradictions import contradictions
from agentic_rag_backend.cli.output import Output, table, text
from agentic_rag_backend.errors import InvalidRequest

_CANDIDATES = 20
_SHOWN_NAMES = 8

RelationTypes = Annotated[
    str | None, typer.Option("--relation-types", metavar="TYPES", help="Only relationships of these types, separated by commas.")
]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Only facts that held then: a year, month, day or time.")
]
GraphFormat = Literal["graphml", "json"]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(
        name="graph", help="The knowledge graph: entities, paths, contradictions, export, edits.", no_args_is_help=True
    )
    command(group, "entity")(entity)
    command(group, "paths")(paths)
    command(group, "contradictions")(contradictions)
    command(group, "export")(export)
    graph_edits.register(group, entity_id)
    app.add_typer(group)


async def entity(
    session: Session,
    name_or_id: Annotated[str, typer.Argument(metavar="NAME_OR_ID")],
    limit: Annotated[int, typer.Option("--limit", help="Maximum chunks, and maximum relationships, 1 to 100.")] = 20,
    relation_types: RelationTypes = None,
    as_of: AsOf = None,
) -> None:
    """Show an entity: its names, relationships and chunks. Several entities of one name are listed with their ids."""
    options = {"limit": limit, "relation_types": relation_types, "as_of": as_of}
    id = await entity_id(session, name_or_id)
    session.output.present(await session.client.get(f"/graph/entities/{id}", **options), _show_entity)


async def paths(
    session: Session,
    source: Annotated[str | None, typer.Argument(metavar="[A]", help="Name or id of an entity.")] = None,
    target: Annotated[str | None, typer.Argument(metavar="[B]", help="Name or id of another entity.")] = None,
    query: Annotated[str | None, typer.Option("--query", help="A question instead: paths among the entities it names.")] = None,
    max_hops: Annotated[int, typer.Option("--max-hops", help="Steps of a path, 1 to 4.")] = 2,
    relation_types: RelationTypes = None,
    min_weight: Annotated[float, typer.Option("--min-weight", help="Least weight of a step.")] = 0.0,
    direction: Annotated[Literal["any", "out", "in"], typer.Option("--direction", help="out: along the relationships.")] = "any",
    mentions: Annotated[
        bool, typer.Option("--mentions/--no-mentions", help="Use shared chunks as steps if no relationships connect A and B.")
    ] = True,
    limit: Annotated[int, typer.Option("--limit", help="Maximum paths, 1 to 50.")] = 10,
    as_of: AsOf = None,
) -> None:
    """Show the best paths between two entities, with the sentence and the chunk of each step."""
    body: dict[str, Any] = {
        "source": source,
        "target": target,
        "query": query,
        "max_hops": max_hops,
        "relation_types": None if relation_types is None else _split_types(relation_types),
        "min_weight": min_weight,
        "direction": direction,
        "mentions": mentions,
        "limit": limit,
        "as_of": as_of,
    }
    session.output.present(await session.client.post("/graph/paths", body), _show_paths)


async def export(
    session: Session,
    format: Annotated[GraphFormat, typer.Option("--format", help="json: nodes and edges in the node-link form.")] = "graphml",
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Default: standard output.")] = None,
    as_of: AsOf = None,
) -> None:
    """Write the visible entities and relationships as a file for other programs, such as Gephi or NetworkX."""
    parts = session.client.download("/graph/export", method="GET", format=format, as_of=as_of)
    if output is None:
        async for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
        return
    size = await _write(parts, output)
    session.output.present({"file": str(output), "format": format, "size_bytes": size})


async def _write(parts: AsyncIterator[bytes], path: Path) -> int:
    """Write a file as a whole: an interrupted export leaves no part of it."""
    unfinished = path.with_name(f"{path.name}.part")
    size = 0
    try:
        with unfinished.open("wb") as file:
            async for part in parts:
                size += file.write(part)
        unfinished.replace(path)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return size


async def entity_id(session: Session, name_or_id: str) -> str:
    """Return the id of an entity. If several have the name, or only similar names exist, print them and end the command."""
    candidates = await session.client.every("/graph/entities", limit=_CANDIDATES, name=name_or_id) if name_or_id else []
    namesakes = [candidate for candidate in candidates if candidate["match"] == "whole"]
    if len(namesakes) == 1:
        return str(namesakes[0]["id"])
    if not candidates:
        return name_or_id  # an id, or unknown: the server decides
    choices = namesakes or candidates
    reason = f"{len(namesakes)} entities are called {name_or_id!r}" if namesakes else f"no entity is called {name_or_id!r}"
    if session.output.as_json:
        session.output.result({"candidates": choices})
    else:
        _show_candidates(session.output, choices)
        session.output.note(f"{reason}: repeat the command with one of these ids")
    raise typer.Exit(1)


def _line(fact: str) -> str:
    """Return a sentence on one line."""
    return " ".join(fact.split())


def _split_types(types: str) -> list[str]:
    return [name.strip() for name in types.split(",") if name.strip()]


def _show_candidates(output: Output, candidates: Sequence[Mapping[str, Any]]) -> None:
    rows = [[candidate["id"], candidate["name"], candidate["type"], candidate["mention_count"]] for candidate in candidates]
    output.show(table(["id", "name", "type", "#chunks"], rows))


def _show_entity(output: Output, entity_data: Mapping[str, Any]) -> None:
    output.show(text(f"{entity_data['name']} ({entity_data['type']})", "bold"))
    aliases = entity_data["names"][1:]
    alias_text = ", ".join(aliases[:_SHOWN_NAMES]) + (" …" if len(aliases) > _SHOWN_NAMES else "")
    output.show(
        f"  id {entity_data['id']} · {_count(entity_data['mention_count'], 'chunk')}"
        + (f" · also {alias_text}" if alias_text else "")
    )
    if entity_data["relationships"]:
        output.show("\nRelationships", style="bold")
    for relationship in entity_data["relationships"]:
        arrow = f"-{relationship['relation']}-> {relationship['other']['name']}"
        if relationship["direction"] == "in":
            arrow = f"<-{relationship['relation']}- {relationship['other']['name']}"
        output.show(f"  {relationship['weight']:.2f}  {arrow}{_times(relationship)}")
        output.show(text(f"        “{_line(relationship['fact'])}” · chunk {relationship['chunk_id']}", "dim"))
    if entity_data["more_relationships"]:
        output.show("  … and more (--limit)", style="dim")
    if entity_data["documents"]:
        output.show("\nDocuments", style="bold")
    for relationship in entity_data["documents"]:
        output.show(f"  {relationship['title']} · {_count(relationship['chunk_count'], 'chunk')} · {relationship['id']}")


def _show_paths(output: Output, path_data: Mapping[str, Any]) -> None:
    for name in path_data["ambiguous"]:
        output.note(f"note: {name['name']!r} is the name of {len(name['entities'])} entities; use an id for one of them")
    if not path_data["paths"]:
        output.show("no paths")
    for number, path in enumerate(path_data["paths"], 1):
        names = " – ".join(entity["name"] for entity in path["entities"])
        output.show(text(f"\n{number}. {names}", "bold"), text(f"   score {path['score']:.3f}", "dim"))
        for step in path["steps"]:
            output.show(f"   {step['weight']:.2f}  {_step(step)}")
            if step["fact"] is not None:
                output.show(text(f"         “{_line(step['fact'])}”", "dim"))
            output.show(text(f"         chunk {step['chunk_id']}", "dim"))
    if path_data["bounded"]:
        output.note("note: weak connections of entities with very many were left out")


def _step(step: Mapping[str, Any]) -> str:
    source, target = step["source"]["name"], step["target"]["name"]
    if step["kind"] == "mention":
        return f"{source} and {target} are mentioned together"
    return f"{source} -{step['relation']}-> {target}{_times(step['relationship'])}"


def _times(relationship: Mapping[str, Any]) -> str:
    begin, end = relationship["valid_at"], relationship["invalid_at"]
    return f" ({(begin or '')[:10]}–{(end or '')[:10]})" if begin or end else ""


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
