"""``graph``: entities, paths, contradictions and export of the knowledge graph, and its corrections."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.commands.tenants import write_file
from agentic_rag_backend.cli.options import split_names
from agentic_rag_backend.cli.output import Output, count_of, text
from agentic_rag_backend.cli.resources import Limit, Resource

_CANDIDATES = 20
_MAX_ALIASES = 8
_PAUSE_S = 0.5
_PATIENCE_S = 60.0

EntityName = Annotated[str, typer.Argument(metavar="NAME_OR_ID")]
Reason = Annotated[str, typer.Option("--reason", help="A remark for the record.")]
RelationTypes = Annotated[
    str | None, typer.Option("--relation-types", metavar="TYPES", help="Only relationships of these types, separated by commas.")
]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Only facts that held then: a year, month, day or time.")
]
EntityLimit = Annotated[int, typer.Option("--limit", help="Maximum chunks, and maximum relationships, 1 to 100.")]
GraphFormat = Literal["graphml", "json"]


async def find_entity_id(session: Session, name_or_id: str) -> str:
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
        ENTITIES.show_items(session.output, choices)
        session.output.note(f"{reason}: repeat the command with one of these ids")
    raise typer.Exit(1)


ENTITIES = Resource(
    path="/graph/entities",
    columns={"id": "id", "name": "name", "type": "type", "#chunks": "mention_count"},
    argument=EntityName,
    find_id=find_entity_id,
)


async def show_paths(
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
        "relation_types": None if relation_types is None else split_names(relation_types),
        "min_weight": min_weight,
        "direction": direction,
        "mentions": mentions,
        "limit": limit,
        "as_of": as_of,
    }
    session.output.present(await session.client.post("/graph/paths", body), _render_paths)


async def show_contradictions(
    session: Session,
    entity: Annotated[str | None, typer.Argument(metavar="[NAME_OR_ID]", help="Only about this entity.")] = None,
    kind: Annotated[
        Literal["denial", "exclusive", "date", "number"] | None, typer.Option("--kind", help="Only of this kind.")
    ] = None,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", help="Least confidence, 0 to 1; lower ones are often none.")
    ] = 0.5,
    limit: Limit = 50,
) -> None:
    """Show statements of documents that cannot both be true, with both sentences."""
    options = {"entity": entity, "kind": kind, "min_confidence": min_confidence}
    session.output.present(await session.client.every("/graph/contradictions", limit=limit, **options), _render_contradictions)


async def export_graph(
    session: Session,
    format: Annotated[GraphFormat, typer.Option("--format", help="json: nodes and edges in the node-link form.")] = "graphml",
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Default: standard output.")] = None,
    as_of: AsOf = None,
) -> None:
    """Write the visible entities and relationships as a file for other programs, such as Gephi or NetworkX."""
    blocks = session.client.download("/graph/export", method="GET", format=format, as_of=as_of)
    if output is not None:
        size = await write_file(blocks, output)
        session.output.present({"file": str(output), "format": format, "size_bytes": size})
        return
    async for block in blocks:
        sys.stdout.buffer.write(block)
    sys.stdout.buffer.flush()


def render_entity(output: Output, entity: Mapping[str, Any]) -> None:
    """Print an entity with its relationships and documents."""
    output.show(text(f"{entity['name']} ({entity['type']})", "bold"))
    aliases = entity["names"][1:]
    alias_text = ", ".join(aliases[:_MAX_ALIASES]) + (" …" if len(aliases) > _MAX_ALIASES else "")
    also = f" · also {alias_text}" if alias_text else ""
    output.show(f"  id {entity['id']} · {count_of(entity['mention_count'], 'chunk')}{also}")
    if entity["relationships"]:
        output.show("\nRelationships", style="bold")
    for relationship in entity["relationships"]:
        neighbour = relationship["other"]["name"]
        arrow = f"<-{relationship['relation']}-" if relationship["direction"] == "in" else f"-{relationship['relation']}->"
        output.show(f"  {relationship['weight']:.2f}  {arrow} {neighbour}{_format_period(relationship)}")
        output.show(text(f"        “{_join_lines(relationship['fact'])}” · chunk {relationship['chunk_id']}", "dim"))
    if entity["more_relationships"]:
        output.show("  … and more (--limit)", style="dim")
    if entity["documents"]:
        output.show("\nDocuments", style="bold")
    for document in entity["documents"]:
        output.show(f"  {document['title']} · {count_of(document['chunk_count'], 'chunk')} · {document['id']}")


def _render_paths(output: Output, reply: Mapping[str, Any]) -> None:
    for name in reply["ambiguous"]:
        output.note(f"note: {name['name']!r} is the name of {len(name['entities'])} entities; use an id for one of them")
    if not reply["paths"]:
        output.show("no paths")
    for number, path in enumerate(reply["paths"], 1):
        names = " – ".join(entity["name"] for entity in path["entities"])
        output.show(text(f"\n{number}. {names}", "bold"), text(f"   score {path['score']:.3f}", "dim"))
        for step in path["steps"]:
            output.show(f"   {step['weight']:.2f}  {_describe_step(step)}")
            if step["fact"] is not None:
                output.show(text(f"         “{_join_lines(step['fact'])}”", "dim"))
            output.show(text(f"         chunk {step['chunk_id']}", "dim"))
    if reply["bounded"]:
        output.note("note: weak connections of entities with very many were left out")


def _render_contradictions(output: Output, contradictions: Sequence[Mapping[str, Any]]) -> None:
    if not contradictions:
        output.show("no contradictions")
    for number, contradiction in enumerate(contradictions, 1):
        output.show(
            text(f"\n{number}. {contradiction['subject']}", "bold"),
            text(f"   {contradiction['kind']} · {contradiction['confidence']:.2f}", "dim"),
        )
        for side in (contradiction["a"], contradiction["b"]):
            date = f" ({side['date']})" if side["date"] else ""
            output.show(f"   {side['value']} · {side['title']}{date}")
            output.show(text(f"      “{_join_lines(side['quote'])}” · chunk {side['chunk_id']}", "dim"))


def _describe_step(step: Mapping[str, Any]) -> str:
    source, target = step["source"]["name"], step["target"]["name"]
    if step["kind"] == "mention":
        return f"{source} and {target} are mentioned together"
    return f"{source} -{step['relation']}-> {target}{_format_period(step['relationship'])}"


def _format_period(relationship: Mapping[str, Any]) -> str:
    begin, end = relationship["valid_at"], relationship["invalid_at"]
    return f" ({(begin or '')[:10]}–{(end or '')[:10]})" if begin or end else ""


def _join_lines(sentence: str) -> str:
    return " ".join(sentence.split())


async def merge_entities(
    session: Session,
    into: Annotated[str, typer.Argument(metavar="INTO", help="Name or id of the entity that stays.")],
    names: Annotated[list[str], typer.Argument(metavar="OTHER…", help="Names or ids of entities that become it.")],
    reason: Reason = "",
) -> None:
    """Merge entities into one. Later documents follow it, too."""
    ids = [await find_entity_id(session, name) for name in names]
    await _edit_entity(session, into, "merge", {"entity_ids": ids, "reason": reason})


async def split_entity(
    session: Session,
    name_or_id: EntityName,
    documents: Annotated[
        list[str] | None, typer.Option("--document", help="Id of a document that means another entity. Repeat it for more.")
    ] = None,
    names: Annotated[list[str] | None, typer.Option("--name", help="A name that becomes an entity of its own.")] = None,
    entities: Annotated[list[str] | None, typer.Option("--entity", help="Id of an entity that was merged into it.")] = None,
    new_name: Annotated[str | None, typer.Option("--new-name", help="With --document: name of the new entity.")] = None,
    new_type: Annotated[str | None, typer.Option("--new-type", help="With --document: type of the new entity.")] = None,
    reason: Reason = "",
) -> None:
    """Take documents, names, or merged entities out of an entity."""
    body = {"document_ids": documents, "names": names, "entity_ids": entities, "name": new_name, "type": new_type}
    await _edit_entity(session, name_or_id, "split", {**body, "reason": reason})


async def rename_entity(
    session: Session,
    name_or_id: EntityName,
    name: Annotated[str | None, typer.Argument(metavar="[NEW_NAME]")] = None,
    type: Annotated[str | None, typer.Option("--type", help="Another type, such as person.")] = None,
    reason: Reason = "",
) -> None:
    """Give an entity another name or type. Its other names stay."""
    await _edit_entity(session, name_or_id, "rename", {"name": name, "type": type, "reason": reason})


async def follow_edit(session: Session, edit: Mapping[str, Any]) -> None:
    """Wait until the documents follow an edit, and print it."""
    waited_s = 0.0
    while not edit["applied"] and waited_s < _PATIENCE_S:
        await asyncio.sleep(_PAUSE_S)
        waited_s += _PAUSE_S
        edit = await session.client.get(f"{EDITS.path}/{edit['number']}")
    session.output.present(edit, _show_edit)


async def _edit_entity(session: Session, name_or_id: str, action: str, body: Mapping[str, Any]) -> None:
    path = await ENTITIES.find_path(session, name_or_id)
    await follow_edit(session, await session.client.post(f"{path}/{action}", body))


def _show_edit(output: Output, edit: Mapping[str, Any]) -> None:
    state = "undone" if edit["undone_at"] else "in effect"
    output.show(f"edit {edit['number']}, {state}: {_describe_edit(edit)}")
    if edit["new_entity_id"] and not edit["undone_at"]:
        output.show(f"  new entity {edit['new_entity_id']}")
    if not edit["applied"]:
        output.note("documents are still being changed; see: agentic-rag graph edits")


def _describe_edit(edit: Mapping[str, Any]) -> str:
    """Return an edit as one sentence."""
    name = edit["entity"]["name"]
    names = ", ".join(entity["name"] for entity in edit["entities"])
    parts = names or ", ".join(edit["names"]) or count_of(len(edit["document_ids"]), "document")
    label = " ".join(filter(None, (edit["name"], f"({edit['type']})" if edit["type"] else "")))
    sentence = {
        "merge": f"merge {names} into {name}",
        "split": f"split {parts} from {name}" + (f" as {label}" if label else ""),
        "rename": f"rename {name} to {label}",
        "delete": f"delete {name}",
    }[str(edit["kind"])]
    return sentence + (" (undone)" if edit["undone_at"] else "")


EDITS = Resource(
    path="/graph/edits",
    columns={"#": "number", "when": lambda edit: edit["created_at"][:16], "edit": _describe_edit, "reason": "reason"},
    empty="no edits",
    argument=Annotated[int, typer.Argument(metavar="NUMBER", help="See graph edits.")],
)
