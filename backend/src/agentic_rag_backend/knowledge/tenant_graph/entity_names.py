"""Names of entities in visible documents: the name that is displayed, and the entities that a name refers to."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from agentic_rag_backend.domain.graph import normalise_name
from agentic_rag_backend.knowledge.tenant_graph.graph import Acronyms, EntityTexts, Names
from agentic_rag_backend.knowledge.tenant_graph.rows import Ints
from agentic_rag_backend.knowledge.tenant_graph.visible_knowledge import EntityLabels, Knowledge, Namings

NONE = -1
_TEXT_BYTES = 48
"""Per name, in addition to its text: pointers, the three numbers below, and copies of two of them."""
_POSTING_BYTES = 270
"""Per normalised name: its text, its dictionary entry, the tuple of its entities, and its entries of `Acronyms`."""
_CHANGED_SHARE = 8
_NO_NAMES: set[str] = set()
_NO_ENTITIES: set[int] = set()
_CHANGED_MINIMUM = 1000


class EntityNames:
    """Names by entity number, each with the number of visible documents that use it.

    The displayed name is the graph store's name of the entity if a visible document uses it, else the first name in use. It
    depends on visible documents only, so purging a hidden document does not change it.
    """

    def __init__(self, entity_ids: Sequence[str]) -> None:
        self._entity_ids = entity_ids
        self._texts: list[str] = []
        self._types: list[str] = []
        self._type_numbers: dict[str, int] = {}
        # By name: its entity, the number of documents that use it, and the next name of the same entity.
        self._entity_of, self._uses, self._next = array("i"), array("i"), array("i")
        # By entity: its first name, the graph store's name, the displayed name, and its type.
        self._first, self._label, self._shown, self._type = array("i"), array("i"), array("i"), array("i")
        self._settled: dict[str, tuple[int, ...]] = {}
        self._changed: dict[str, tuple[int, ...]] = {}
        self._acronyms = Acronyms(self._settled)
        self._text_bytes = 0

    def grow(self, entities: int) -> None:
        """Grow to at least this many entities."""
        new = [NONE] * (entities - len(self._first))
        for column in (self._first, self._label, self._shown):
            column.extend(new)
        self._type.extend([0] * len(new))

    def use(self, namings: Namings, knowledge: Knowledge) -> Ints:
        """Count new uses of names. Return the names' numbers.

        Args:
            namings: with this table's entity numbers and the text numbers of ``knowledge``.
        """
        texts = list(knowledge.names)
        pairs, inverse, counts = np.unique(
            namings.entities.astype(np.int64) * len(texts) + namings.names, return_inverse=True, return_counts=True
        )
        used = zip((pairs // len(texts)).tolist(), (pairs % len(texts)).tolist(), strict=True) if texts else ()
        numbers = np.fromiter(
            (self._number_of(entity, texts[text_number]) for entity, text_number in used), dtype=np.int32, count=len(pairs)
        )
        _view_of(self._uses)[numbers] += counts
        return np.asarray(numbers[inverse])

    def set_labels(self, labels: EntityLabels, knowledge: Knowledge) -> None:
        """Set the graph store's names and types of entities.

        Args:
            labels: with this table's entity numbers and the text numbers of ``knowledge``.
        """
        texts, types = list(knowledge.names), list(knowledge.types)
        # The last entry for an entity is the newest.
        entities, newest = np.unique(labels.entities[::-1], return_index=True)
        names, kinds = labels.names[::-1][newest], labels.types[::-1][newest]
        for entity, text in zip(entities.tolist(), names.tolist(), strict=True):
            self._label[entity] = self._number_of(entity, texts[text])
        for type_ in types:
            if type_ not in self._type_numbers:
                self._type_numbers[type_] = len(self._types)
                self._types.append(type_)
        type_numbers = np.array([self._type_numbers[type_] for type_ in types], dtype=np.int32)
        _view_of(self._type)[entities] = type_numbers[kinds]

    def drop(self, numbers: Ints) -> None:
        """Remove one use of each of the names."""
        np.subtract.at(_view_of(self._uses), numbers, 1)

    def entities_of(self, numbers: Ints) -> Ints:
        """Return the entities of the names."""
        return np.asarray(_view_of(self._entity_of)[numbers])

    def _number_of(self, entity: int, text: str) -> int:
        number = self._first[entity]
        while number != NONE:
            if self._texts[number] == text:
                return number
            number = self._next[number]
        number = len(self._texts)
        self._texts.append(text)
        self._text_bytes += sys.getsizeof(text)
        self._entity_of.append(entity)
        self._uses.append(0)
        self._next.append(self._first[entity])
        self._first[entity] = number
        return number

    def _names_in_use(self, entity: int) -> list[int]:
        numbers, number = [], self._first[entity]
        while number != NONE:
            if self._uses[number]:
                numbers.append(number)
            number = self._next[number]
        return numbers

    def settle(self, entities: Ints) -> None:
        """Update the displayed names of entities after uses of their names changed: the first by `name_order`."""
        label = _view_of(self._label)[entities]
        used = label != NONE
        used[used] = _view_of(self._uses)[label[used]] > 0
        _view_of(self._shown)[entities[used]] = label[used]
        for entity in entities[~used].tolist():
            self._shown[entity] = min(self._names_in_use(entity), key=lambda number: self._texts[number], default=NONE)

    def normalise_names(self, entity: int) -> set[str]:
        """Return the names in use, normalised for comparison with questions."""
        return {normalise_name(self._texts[number]) for number in self._names_in_use(entity)} - {""}

    def link(self, before: Mapping[int, set[str]], after: Iterable[tuple[int, set[str]]]) -> None:
        """Update the entities that names refer to. ``before`` and ``after`` are each entity's searchable names."""
        removed: dict[str, set[int]] = {}
        added: dict[str, list[int]] = {}
        unseen = dict(before)
        for entity, names in after:
            names_before = unseen.pop(entity, _NO_NAMES)
            for name in names_before - names:
                removed.setdefault(name, set()).add(entity)
            for name in names - names_before:
                added.setdefault(name, []).append(entity)
        for entity, names_before in unseen.items():
            for name in names_before:
                removed.setdefault(name, set()).add(entity)
        current = self.names()
        changed = dict(self._changed)
        for name in {**removed, **added}:
            removed_entities = removed.get(name, _NO_ENTITIES)
            entities = [*(entity for entity in current.get(name, ()) if entity not in removed_entities), *added.get(name, ())]
            if len(entities) > 1:
                entities.sort(key=self._entity_ids.__getitem__)
            changed[name] = tuple(entities)
        if len(changed) > max(_CHANGED_MINIMUM, len(self._settled) // _CHANGED_SHARE):
            # Rebuilt only after many changes, so the cost per change is constant.
            self._settled = {name: entities for name, entities in {**self._settled, **changed}.items() if entities}
            self._acronyms = Acronyms(self._settled)
            changed = {}
        self._changed = changed

    def names(self) -> Names:
        """Return an immutable mapping from normalised names to entities."""
        return Names(self._settled, self._changed, self._acronyms)

    def texts(self) -> EntityTexts:
        """Return an immutable snapshot of the entities' displayed names and types."""
        return EntityTexts(
            ids=self._entity_ids,
            names=self._texts,
            types=self._types,
            name_of=_copy_of(self._shown),
            type_of=_copy_of(self._type),
            entity_of=_copy_of(self._entity_of),
            uses=_copy_of(self._uses),
        )

    @property
    def worn(self) -> bool:
        """Whether most names are no longer in use."""
        return len(self._uses) > 2 * int(np.count_nonzero(_copy_of(self._uses))) + _CHANGED_MINIMUM

    @property
    def size_bytes(self) -> int:
        """Estimated memory in bytes."""
        postings = _POSTING_BYTES * (len(self._settled) + len(self._changed))
        return self._text_bytes + _TEXT_BYTES * len(self._texts) + 16 * len(self._first) + postings


def _view_of(column: array[int]) -> Ints:
    """Return a writable view. It must be released before the column can grow."""
    return np.frombuffer(column, dtype=np.int32) if column else np.zeros(0, dtype=np.int32)


def _copy_of(column: Iterable[int]) -> Ints:
    return np.array(column, dtype=np.int32)
