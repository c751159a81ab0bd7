"""Edits of a tenant's graph: people merge, split, rename and delete entities, and undo it.

An edit is only recorded here. The relay then resolves the names of the documents that it changes, and later documents follow it
(`identity.edits`).
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.domain.graph_edits import (
    MAX_EDITED_DOCUMENTS,
    MAX_EDITED_ENTITIES,
    MAX_EDITED_NAME_CHARACTERS,
    MAX_EDITED_NAMES,
    MAX_REASON_CHARACTERS,
    EditDraft,
    EditKind,
    GraphEdit,
)
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.domain.size_limits import short_text
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.identity.decisions import SPELLED
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.visible.entity_reader import no_entity
from agentic_rag_backend.stores.catalogue.base import SETTLING, GraphEditCatalogue, Outbox, Page
from agentic_rag_backend.stores.graph.base import KnowledgeStore


@dataclass(frozen=True, slots=True)
class EditStatus:
    """An edit. ``applied``: every document follows it, or, once undone, no longer follows it."""

    edit: GraphEdit
    applied: bool


@dataclass(frozen=True, slots=True)
class Split:
    """The parts to take out of an entity: exactly one of the three lists.

    ``document_ids``: what these documents say about the entity becomes a new one, labelled ``name`` and ``type`` if they are
    given. ``names``: these names become entities of their own. ``entity_ids``: entities that were merged into it become
    entities again.
    """

    document_ids: Sequence[str] = ()
    names: Sequence[str] = ()
    entity_ids: Sequence[str] = ()
    name: str = ""
    type: str = ""


class GraphEditor:
    """Edits the graphs of tenants.

    Args:
        deliver: applies the tenant's recorded edits and waits briefly for it.
    """

    def __init__(
        self,
        graphs: TenantGraphs,
        graph: KnowledgeStore,
        edits: GraphEditCatalogue,
        outbox: Outbox,
        *,
        deliver: Callable[[TenantId], Awaitable[object]],
    ) -> None:
        self._graphs = graphs
        self._graph = graph
        self._edits = edits
        self._outbox = outbox
        self._deliver = deliver

    async def merge(self, tenant: Tenant, id: str, other_ids: Sequence[str], *, reason: str = "") -> EditStatus:
        """Make other entities this one, which keeps its name and type. Their names become its names, in later documents, too.

        Raises:
            NotFound: the tenant sees no entity of one of the ids.
            InvalidRequest: there are no other entities, or more than `MAX_EDITED_ENTITIES`, or too many edits.
        """
        graph = await self._graphs.graph(tenant)
        entity = _find_entity(graph, id)
        merged = [_find_entity(graph, entity_id) for entity_id in _check_distinct("entity_ids", other_ids, MAX_EDITED_ENTITIES)]
        if entity in merged:
            raise InvalidRequest("entity_ids must not name the entity that they are merged into")
        draft = replace(
            _begin_draft(EditKind.MERGE, entity, reason),
            entity_ids=tuple(entity_id.id for entity_id in merged),
            entity_names=tuple(entity_id.name for entity_id in merged),
            # Otherwise the entity with most documents would label them.
            name=entity.name,
            type="" if entity.type in SPELLED else entity.type,
        )
        return await self._record_edit(tenant, draft)

    async def split(self, tenant: Tenant, id: str, split: Split, *, reason: str = "") -> EditStatus:
        """Take documents, names, or merged entities out of an entity.

        Raises:
            NotFound: the tenant sees no entity of this id.
            InvalidRequest: not exactly one list was given, it is too long, or it names something that the entity does not have.
        """
        graph = await self._graphs.graph(tenant)
        entity = _find_entity(graph, id)
        if [bool(split.document_ids), bool(split.names), bool(split.entity_ids)].count(True) != 1:
            raise InvalidRequest("a split needs exactly one of document_ids, names and entity_ids")
        if (split.name or split.type) and not split.document_ids:
            raise InvalidRequest("name and type label the new entity of document_ids")
        draft = _begin_draft(EditKind.SPLIT, entity, reason)
        if split.names:
            return await self._record_edit(tenant, _names_apart(draft, split.names, _names_of(graph, id)))
        if split.entity_ids:
            return await self._record_edit(tenant, await self._merged_before(tenant.id, draft, split.entity_ids))
        document_ids = _check_distinct("document_ids", split.document_ids, MAX_EDITED_DOCUMENTS)
        holding = set(await self._graph.documents_naming(tenant.id, [id]))
        if unknown := [document_id for document_id in document_ids if document_id not in holding]:
            raise InvalidRequest(f"the entity has no name in document {unknown[0][:64]!r}")
        if len(document_ids) == len(holding):
            raise InvalidRequest("document_ids must leave the entity at least one document")
        name, type = _check_label(split.name, split.type)
        return await self._record_edit(
            tenant, replace(draft, document_ids=tuple(document_ids), new_id=str(uuid.uuid4()), name=name, type=type)
        )

    async def rename(self, tenant: Tenant, id: str, *, name: str = "", type: str = "", reason: str = "") -> EditStatus:
        """Give an entity another name or type, or both. Its other names stay.

        Raises:
            NotFound: the tenant sees no entity of this id.
            InvalidRequest: neither was given, or one of them is too long or has no letters or digits.
        """
        entity = _find_entity(await self._graphs.graph(tenant), id)
        if not (name.strip() or type.strip()):
            raise InvalidRequest("give a name, a type, or both")
        name, type = _check_label(name, type)
        return await self._record_edit(tenant, replace(_begin_draft(EditKind.RENAME, entity, reason), name=name, type=type))

    async def delete(self, tenant: Tenant, id: str, *, reason: str = "") -> EditStatus:
        """Delete an entity with its mentions and relationships, in later documents, too.

        Raises:
            NotFound: the tenant sees no entity of this id.
        """
        entity = _find_entity(await self._graphs.graph(tenant), id)
        return await self._record_edit(tenant, _begin_draft(EditKind.DELETE, entity, reason))

    async def undo(self, tenant: Tenant, number: int) -> EditStatus:
        """Undo an edit. Other edits stay in effect. Idempotent. Raises `NotFound`."""
        return await self._applied_soon(tenant.id, await self._edits.undo(tenant.id, number))

    async def edit(self, tenant: Tenant, number: int) -> EditStatus:
        """Return an edit, also one that was undone. Raises `NotFound`."""
        edit = await self._edits.edit(tenant.id, number)
        return EditStatus(edit, await self._follows_edits(tenant.id))

    async def page(self, tenant: Tenant, *, limit: int = 50, cursor: str | None = None) -> Page[EditStatus]:
        """Return edits, undone ones included, the newest first."""
        edits = await self._edits.page(tenant.id, limit=limit, cursor=cursor)
        applied = await self._follows_edits(tenant.id)
        return Page(tuple(EditStatus(edit, applied) for edit in edits.items), edits.next_cursor)

    async def _record_edit(self, tenant: Tenant, draft: EditDraft) -> EditStatus:
        return await self._applied_soon(tenant.id, await self._edits.add(tenant.id, draft))

    async def _applied_soon(self, tenant: TenantId, edit: GraphEdit) -> EditStatus:
        await self._deliver(tenant)
        return EditStatus(edit, await self._follows_edits(tenant))

    async def _follows_edits(self, tenant: TenantId) -> bool:
        """Return whether no edit of the tenant waits for the relay."""
        return not await self._outbox.holds(tenant, SETTLING)

    async def _merged_before(self, tenant: TenantId, draft: EditDraft, ids: Sequence[str]) -> EditDraft:
        """Return the split that takes merged entities out again."""
        entity_ids = _check_distinct("entity_ids", ids, MAX_EDITED_ENTITIES)
        merged: dict[str, str] = {}
        for edit in await self._edits.in_effect(tenant):
            if edit.draft.kind is EditKind.MERGE:
                merged.update(zip(edit.draft.entity_ids, edit.draft.entity_names, strict=True))
        if unknown := [id_ for id_ in entity_ids if id_ not in merged]:
            raise InvalidRequest(f"no entity {unknown[0][:64]!r} was merged into this one")
        return replace(draft, entity_ids=tuple(entity_ids), entity_names=tuple(merged[id_] for id_ in entity_ids))


def _find_entity(graph: TenantGraph, id: str) -> EntityRef:
    number = graph.find_mentioned_number(id)
    if number is None:
        raise no_entity(id)
    return graph.entity(number)


def _names_of(graph: TenantGraph, id: str) -> list[str]:
    number = graph.find_mentioned_number(id)
    return [] if number is None else graph.names_of(number)


def _begin_draft(kind: EditKind, entity: EntityRef, reason: str) -> EditDraft:
    remark = short_text("reason", reason, MAX_REASON_CHARACTERS)
    return EditDraft(kind=kind, entity_id=entity.id, entity_name=entity.name, reason=remark)


def _names_apart(draft: EditDraft, names: Sequence[str], entity_names: Sequence[str]) -> EditDraft:
    """Return the split that makes names of an entity entities of their own."""
    names_of_entity = {normalise_name(text) for text in entity_names} - {""}
    keys = [normalise_name(text) for text in _check_distinct("names", names, MAX_EDITED_NAMES)]
    for name, written_name in zip(keys, names, strict=False):
        if name not in names_of_entity:
            raise InvalidRequest(f"the entity has no name {written_name[:64]!r}")
    remaining = names_of_entity - set(keys)
    if not remaining:
        raise InvalidRequest("names must leave the entity at least one name")
    return replace(draft, names=tuple(keys), kept_names=tuple(sorted(remaining)))


def _check_label(name: str, type: str) -> tuple[str, str]:
    """Return a name and a type as they are stored. Empty ones stay empty."""
    name = short_text("name", " ".join(name.split()), MAX_EDITED_NAME_CHARACTERS)
    type = short_text("type", "_".join(type.casefold().split()), MAX_EDITED_NAME_CHARACTERS)
    for field, text in (("name", name), ("type", type)):
        if text and not normalise_name(text):
            raise InvalidRequest(f"{field} must contain a letter or a digit")
    if type in SPELLED:
        raise InvalidRequest(f"type {type!r} is only for names that mean the same in all documents")
    return name, type


def _check_distinct(field: str, values: Sequence[str], limit: int) -> list[str]:
    distinct = list(dict.fromkeys(values))
    if not 1 <= len(distinct) <= limit:
        raise InvalidRequest(f"{field} must have 1 to {limit} entries; got {len(distinct)}")
    return distinct
