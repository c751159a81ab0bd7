"""Tells the bearers of one name apart: people, ships and places that share a name, by what documents say about them.

The division depends on the set of documents only, not on their order. A document speaks of one bearer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from agentic_rag_backend.language.descriptions import Description

MIN_SHARED = 2
"""Names that are near one bearer and near no other: a document with so many of them, and none of another bearer, is about it."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """What one document says about the bearer of a name. ``near`` are the document's other names, normalised.

    ``entity_id`` is the entity that the document's name means now; None for a new document.
    """

    document_id: str
    description: Description
    near: frozenset[str] = frozenset()
    entity_id: str | None = None


@dataclass(frozen=True, slots=True)
class Division:
    """The bearers of a name that descriptions tell apart: the documents of each. Empty if all may be one bearer."""

    groups: tuple[tuple[Bearer, ...], ...] = ()
    near: Mapping[str, int] = field(default_factory=dict)
    """The names that are near the bearer of one group only, with the number of the group."""

    def __bool__(self) -> bool:
        return bool(self.groups)

    def place(self, bearer: Bearer) -> int | None:
        """Return the number of the group that a document belongs to. None if it may be about several of them."""
        for number, group in enumerate(self.groups):
            if any(each.document_id == bearer.document_id for each in group):
                return number
        fitting = [number for number, group in enumerate(self.groups) if not any(apart(bearer, each) for each in group)]
        alike = [
            number for number in fitting if any(_alike(bearer.description, each.description) for each in self.groups[number])
        ]
        for chosen in (alike, fitting if bearer.description else ()):
            if len(chosen) == 1:
                return chosen[0]
        shared = Counter(self.near[name] for name in bearer.near if name in self.near)
        if len(shared) != 1:
            return None
        ((number, count),) = shared.items()
        return number if number in fitting and count >= MIN_SHARED else None


def apart(one: Bearer, other: Bearer) -> bool:
    """Return whether two documents speak of two bearers.

    They do if one description excludes the other, or if their kinds differ and the documents share less than two names.
    """
    if one.description.excludes_bearer(other.description):
        return True
    return one.description.has_other_kind(other.description) and len(one.near & other.near) < MIN_SHARED


def divide(bearers: Iterable[Bearer]) -> Division:
    """Divide the documents that describe the bearer of a name.

    Documents with alike descriptions are about one bearer. Groups of them are bearers if the documents of one are apart from
    the documents of another. Then the name is known to have several bearers, and a group of another kind is one, too, although
    one person could have both kinds: a chair and a nurse. Other groups, and documents without a description, decide nothing.
    """
    described = sorted((each for each in bearers if each.description.tells_kind), key=lambda each: each.document_id)
    groups = _joined(described, lambda one, other: not apart(one, other) and _alike(one.description, other.description))
    telling = [group for group in groups if any(_conflict(group, other) for other in groups if other is not group)]
    telling = _joined_pairs(telling)
    if len(telling) < 2:
        return Division()
    others = [group for group in groups if not any(set(group) & set(each) for each in telling)]
    telling += [group for group in others if all(_other_kind(group, each) for each in telling)]
    ordered = tuple(sorted(telling, key=lambda group: group[0].document_id))
    return Division(ordered, _names_near_one(ordered))


def _names_near_one(groups: Sequence[Sequence[Bearer]]) -> dict[str, int]:
    """Return the names that are near the bearer of one group only, with the number of the group."""
    groups_of: dict[str, int] = {}
    shared: set[str] = set()
    for number, group in enumerate(groups):
        for name in frozenset[str]().union(*(bearer.near for bearer in group)):
            if groups_of.setdefault(name, number) != number:
                shared.add(name)
    return {name: number for name, number in groups_of.items() if name not in shared}


def choose_ids(division: Division, whole: str) -> list[str | None]:
    """Return the entity id that each group keeps: the id that most of its documents have. None: it needs a new one.

    The id of ``whole``, which stands for the name if nobody knows which bearer is meant, is kept by none. Of two groups with
    the same id, the larger one keeps it, then the one with the smaller first document.
    """
    chosen: list[str | None] = [None] * len(division.groups)
    taken = {whole}
    order = sorted(range(len(division.groups)), key=lambda number: (-len(division.groups[number]), number))
    for number in order:
        held = [each.entity_id for each in division.groups[number] if each.entity_id is not None and each.entity_id not in taken]
        if held:
            chosen[number] = min(set(held), key=lambda id: (-held.count(id), id))
            taken.add(str(chosen[number]))
    return chosen


def _alike(one: Description, other: Description) -> bool:
    same_tag = bool(one.tag) and one.tag.casefold() == other.tag.casefold()
    return same_tag or bool(one.kinds & other.kinds or one.born & other.born or one.died & other.died)


def _conflict(one: Sequence[Bearer], other: Sequence[Bearer]) -> bool:
    return any(apart(a, b) for a in one for b in other)


def _other_kind(one: Sequence[Bearer], other: Sequence[Bearer]) -> bool:
    return all(a.description.has_other_kind(b.description, strictly=False) for a in one for b in other)


def _joined(bearers: Sequence[Bearer], same: Callable[[Bearer, Bearer], bool]) -> list[tuple[Bearer, ...]]:
    """Return the connected components of a relation, each in the order of ``bearers``."""
    root = list(range(len(bearers)))

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    for a, b in combinations(range(len(bearers)), 2):
        if same(bearers[a], bearers[b]):
            root[max(find(a), find(b))] = min(find(a), find(b))
    groups: dict[int, list[Bearer]] = {}
    for number, each in enumerate(bearers):
        groups.setdefault(find(number), []).append(each)
    return [tuple(group) for group in groups.values()]


def _joined_pairs(groups: Sequence[tuple[Bearer, ...]]) -> list[tuple[Bearer, ...]]:
    """Join two groups that are not apart, if each is apart from all others."""
    fitting = {
        number: [other for other in range(len(groups)) if other != number and not _conflict(groups[number], groups[other])]
        for number in range(len(groups))
    }
    joined: list[tuple[Bearer, ...]] = []
    for number, group in enumerate(groups):
        match fitting[number]:
            case [other] if fitting[other] == [number]:
                if number < other:
                    joined.append(tuple(sorted((*group, *groups[other]), key=lambda each: each.document_id)))
            case _:
                joined.append(group)
    return joined
