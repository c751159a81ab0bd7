"""Edits of the graph by people."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from agentic_rag_backend.api.schemas.base import Body, View
from agentic_rag_backend.domain.graph_edits import (
    MAX_EDITED_DOCUMENTS,
    MAX_EDITED_ENTITIES,
    MAX_EDITED_NAME_CHARACTERS,
    MAX_EDITED_NAMES,
    MAX_REASON_CHARACTERS,
)
from agentic_rag_backend.knowledge.editing import EditStatus, Split

_ID = "8f14e45f-ceea-5e7a-9c3b-2d1f0a9b8c7d"
Id = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_EDITED_NAME_CHARACTERS)]
Reason = Annotated[str, Field(max_length=MAX_REASON_CHARACTERS, description="a remark for the record")]


class MergeBody(Body):
    """Entities to merge into the entity of the path."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entity_ids": [_ID], "reason": "two spellings of one name"}]})

    entity_ids: list[Id] = Field(min_length=1, max_length=MAX_EDITED_ENTITIES, description="entities that become this one")
    reason: Reason = ""


class SplitBody(Body):
    """Parts to take out of the entity of the path: exactly one of the three lists."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"document_ids": [_ID], "name": "Rowan Teller (nurse)"}]})

    document_ids: list[Id] = Field(
        default_factory=list,
        max_length=MAX_EDITED_DOCUMENTS,
        description="documents in which the name means another entity, which is created",
    )
    names: list[Name] = Field(
        default_factory=list, max_length=MAX_EDITED_NAMES, description="names that become entities of their own, in all documents"
    )
    entity_ids: list[Id] = Field(
        default_factory=list, max_length=MAX_EDITED_ENTITIES, description="entities that were merged into it"
    )
    name: Name | None = Field(None, description="with `document_ids`: the name of the new entity; null: as the documents say")
    type: Name | None = Field(None, description="with `document_ids`: the type of the new entity")
    reason: Reason = ""

    def split(self) -> Split:
        """Return the split."""
        return Split(self.document_ids, self.names, self.entity_ids, self.name or "", self.type or "")


class RenameBody(Body):
    """Another label of the entity of the path. Its other names stay, and questions find it by all of them."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Rowan Teller (nurse)", "type": "person"}]})

    name: Name | None = Field(None, description="null: unchanged")
    type: Name | None = Field(None, description="such as `person`; null: unchanged")
    reason: Reason = ""


class EditedEntityView(View):
    """An entity that an edit names, under its name at that time."""

    id: str
    name: str


class GraphEditView(View):
    """An edit of the graph, which stays in effect for later documents until it is undone."""

    number: int = Field(description="edits of a tenant are numbered from 1 and apply in this order")
    kind: Literal["merge", "split", "rename", "delete"]
    entity: EditedEntityView = Field(description="the edited entity")
    entities: list[EditedEntityView] = Field(description="merge: what became the entity; split: what was taken out of it")
    document_ids: list[str] = Field(description="split: the documents of the new entity")
    names: list[str] = Field(description="split: the names that became entities, in lower case")
    new_entity_id: str | None = Field(description="split: the entity of `document_ids`")
    name: str | None = Field(description="the label that was given")
    type: str | None = Field(description="the type that was given")
    reason: str
    created_at: datetime
    undone_at: datetime | None = Field(description="since when it has no effect; null: it is in effect")
    applied: bool = Field(description="false: some documents are still being changed")

    @classmethod
    def of(cls, status: EditStatus) -> GraphEditView:
        """Return the view of an edit."""
        edit, draft = status.edit, status.edit.draft
        return cls(
            number=edit.number,
            kind=draft.kind.value,
            entity=EditedEntityView(id=draft.entity_id, name=draft.entity_name),
            entities=[EditedEntityView(id=id, name=name) for id, name in zip(draft.entity_ids, draft.entity_names, strict=True)],
            document_ids=list(draft.document_ids),
            names=list(draft.names),
            new_entity_id=draft.new_id or None,
            name=draft.name or None,
            type=draft.type or None,
            reason=draft.reason,
            created_at=edit.created_at,
            undone_at=edit.undone_at,
            applied=status.applied,
        )
