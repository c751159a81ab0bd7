"""``graph merge|split|rename|delete|edits|undo``: corrections of the knowledge graph."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.commands.graph import ENTITIES, find_entity_id
from agentic_rag_backend.cli.output import Output, count_of
from agentic_rag_backend.cli.resources import Resource

_PAUSE_S = 0.5
_PATIENCE_S = 60.0

Entity = Annotated[str, typer.Argument(metavar="NAME_OR_ID")]
Reason = Annotated[str, typer.Option("--reason", help="A remark for the record.")]


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
    name_or_id: Entity,
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
    name_or_id: Entity,
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
