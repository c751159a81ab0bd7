"""Edits of a tenant's graph by people: entities that are merged, split, renamed or deleted.

An edit is a record. It changes what names mean in all documents, also in documents that come later, until it is undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

MAX_GRAPH_EDITS = 2_000
"""Edits of one tenant in effect. Processes keep them in memory."""
MAX_EDITED_ENTITIES = 100
"""Entities of one merge or split."""
MAX_EDITED_DOCUMENTS = 1_000
"""Documents of one split."""
MAX_EDITED_NAMES = 20
"""Names of one split."""
MAX_EDITED_NAME_CHARACTERS = 256
MAX_REASON_CHARACTERS = 500


class EditKind(StrEnum):
    """Kinds of edits.

    - ``merge``: other entities become this one.
    - ``split``: documents, names or merged entities are taken out of an entity.
    - ``rename``: an entity gets another name or type.
    - ``delete``: an entity is not shown, and no document mentions it.
    """

    MERGE = "merge"
    SPLIT = "split"
    RENAME = "rename"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditDraft:
    """An edit before it is recorded.

    ``entity_name`` is the name of the entity at the time of the edit, and ``reason`` a remark of the editor. The other fields
    depend on the kind:

    - ``entity_ids``: the entities that are merged into ``entity_id``, or that a split takes out of it. ``entity_names`` are their
      names at the time of the edit.
    - ``document_ids``: the documents in which a split gives the names of ``entity_id`` to a new entity, ``new_id``.
    - ``names``: the names, normalised, that a split takes out, and ``kept_names`` the names that they are no aliases of.
    - ``name``, ``type``: the label of the renamed or new entity, or of the entity that others are merged into. Empty: the label
      that documents give it.
    """

    kind: EditKind
    entity_id: str
    entity_name: str
    entity_ids: tuple[str, ...] = ()
    entity_names: tuple[str, ...] = ()
    document_ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    kept_names: tuple[str, ...] = ()
    new_id: str = ""
    name: str = ""
    type: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdit:
    """A recorded edit. Edits of a tenant are numbered from 1 and apply in this order, except edits that were undone."""

    number: int
    draft: EditDraft
    created_at: datetime
    undone_at: datetime | None = None
