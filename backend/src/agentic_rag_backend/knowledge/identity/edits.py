"""The effect of a tenant's edits on identity: which entity a document means by a name, given the entity that it would mean
without edits.

Edits apply in their order. The entity without edits is kept on record, so that an edit can be undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.graph_edits import EditDraft, EditKind, GraphEdit


@dataclass(frozen=True, slots=True)
class EditedEntity:
    """The entity of a name after all edits. A ``deleted`` entity keeps its names, and nothing mentions it."""

    id: str
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class EditedLabel:
    """The name and the type that an editor gave an entity. Empty: the documents decide."""

    name: str = ""
    type: str = ""


class Edits:
    """The edits of a tenant that are in effect. Lookups cost a step for each edit of the same entity."""

    def __init__(self, edits: Iterable[GraphEdit] = ()) -> None:
        self._steps: dict[str, list[tuple[int, EditDraft]]] = {}
        self._labels: dict[str, EditedLabel] = {}
        self._cuts: set[frozenset[str]] = set()
        for edit in sorted((edit for edit in edits if edit.undone_at is None), key=lambda edit: edit.number):
            self._add_draft(edit.number, edit.draft)

    def _add_draft(self, number: int, draft: EditDraft) -> None:
        for id in draft.entity_ids if draft.kind is EditKind.MERGE else (draft.entity_id,):
            self._steps.setdefault(id, []).append((number, draft))
        labelled = draft.new_id or draft.entity_id
        if draft.name or draft.type:
            before = self._labels.get(labelled, EditedLabel())
            self._labels[labelled] = EditedLabel(draft.name or before.name, draft.type or before.type)
        self._cuts |= {frozenset((name, kept_name)) for name in draft.names for kept_name in draft.kept_names}

    def __bool__(self) -> bool:
        return bool(self._steps)

    def entity(self, id: str, document_id: str) -> EditedEntity:
        """Return the entity that a document means, given the id of the entity that it means without edits."""
        if id not in self._steps:
            return EditedEntity(id)
        trail, deleted, last_number = [id], False, 0
        while (step := self._next_step(trail[-1], last_number)) is not None:
            last_number, draft = step
            if draft.kind is EditKind.MERGE:
                trail.append(draft.entity_id)
            elif draft.kind is EditKind.SPLIT:
                trail = _apply_split(trail, draft, document_id)
            elif draft.kind is EditKind.DELETE:
                deleted = True
        return EditedEntity(trail[-1], deleted)

    def _next_step(self, id: str, after: int) -> tuple[int, EditDraft] | None:
        return next((step for step in self._steps.get(id, ()) if step[0] > after), None)

    def label(self, id: str) -> EditedLabel:
        """Return the label that editors gave an entity."""
        return self._labels.get(id, EditedLabel())

    def apart(self, name: str, full_name: str) -> bool:
        """Return whether an editor said that a normalised name is no alias of another one."""
        return bool(self._cuts) and frozenset((name, full_name)) in self._cuts


NO_EDITS = Edits()


def _apply_split(trail: list[str], draft: EditDraft, document_id: str) -> list[str]:
    """Return the entities that a name has meant, after a split of the last one."""
    if draft.new_id and document_id in draft.document_ids:
        return [*trail, draft.new_id]
    merged = next((position for position, id in enumerate(trail[:-1]) if id in draft.entity_ids), None)
    return trail if merged is None else trail[: merged + 1]


def entities_of(draft: EditDraft) -> Sequence[str]:
    """Return the entities whose documents an edit changes."""
    return [id for id in (draft.entity_id, draft.new_id, *draft.entity_ids) if id]
