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
            if any(member.document_id == bearer.document_id for member in group):
                return number
        fitting = [number for number, group in enumerate(self.groups) if not any(apart(bearer, member) for member in group)]
        alike = [
            number
            for number in fitting
            if any(_are_alike(bearer.description, member.description) for member in self.groups[number])
        ]
        for chosen in (alike, fitting if bearer.description else ()):
            if len(chosen) == 1:
                return chosen[0]
        shared = Counter(self.near[name] for name in bearer.near if name in self.near)
        if len(shared) != 1:
            return None
        ((number, count),) = shared.items()
        return number if number in fitting and count >= MIN_SHARED else None


def apart(bearer_a: Bearer, bearer_b: Bearer) -> bool:
    """Return whether two documents speak of two bearers.

    They do if one description excludes the other, or if the documents share less than two names and the kinds differ, or the
    professions and the places of work.
    """
    description_a, description_b = bearer_a.description, bearer_b.description
    if description_a.excludes_bearer(description_b):
        return True
    differ = description_a.has_other_kind(description_b) or description_a.works_elsewhere(description_b)
    return differ and len(bearer_a.near & bearer_b.near) < MIN_SHARED


def divide(bearers: Iterable[Bearer]) -> Division:
    """Divide the documents that describe the bearer of a name.

    Documents with alike descriptions are about one bearer. Groups of them are bearers if the documents of one are apart from
    the documents of another. Then the name is known to have several bearers, and a group of another kind is one, too, although
    one person could have both kinds: a chair and a nurse. Other groups, and documents without a description, decide nothing.
    """
    described = sorted((bearer for bearer in bearers if bearer.description.tells_kind), key=lambda bearer: bearer.document_id)
    groups = _join_bearers(
        described, lambda bearer_a, rival: not apart(bearer_a, rival) and _are_alike(bearer_a.description, rival.description)
    )
    telling = [group for group in groups if any(_are_apart(group, rival) for rival in groups if rival is not group)]
    telling = _join_pairs(telling)
    if len(telling) < 2:
        return Division()
    undecided = [group for group in groups if not any(set(group) & set(bearer) for bearer in telling)]
    telling += [group for group in undecided if all(_other_kind(group, bearer) for bearer in telling)]
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


def choose_ids(division: Division, shared_id: str) -> list[str | None]:
    """Return the entity id that each group keeps: the id that most of its documents have. None: it needs a new one.

    The id of ``whole``, which stands for the name if nobody knows which bearer is meant, is kept by none. Of two groups with
    the same id, the larger one keeps it, then the one with the smaller first document.
    """
    chosen: list[str | None] = [None] * len(division.groups)
    used_ids = {shared_id}
    order = sorted(range(len(division.groups)), key=lambda number: (-len(division.groups[number]), number))
    for number in order:
        free_ids = [
            bearer.entity_id
            for bearer in division.groups[number]
            if bearer.entity_id is not None and bearer.entity_id not in used_ids
        ]
        if free_ids:
            chosen[number] = min(set(free_ids), key=lambda id: (-free_ids.count(id), id))
            used_ids.add(str(chosen[number]))
    return chosen


def _are_alike(description_a: Description, description_b: Description) -> bool:
    same_tag = bool(description_a.tag) and description_a.tag.casefold() == description_b.tag.casefold()
    return same_tag or bool(
        description_a.kinds & description_b.kinds
        or description_a.born & description_b.born
        or description_a.died & description_b.died
    )


def _are_apart(group_a: Sequence[Bearer], group_b: Sequence[Bearer]) -> bool:
    return any(apart(a, b) for a in group_a for b in group_b)


def _other_kind(group_a: Sequence[Bearer], group_b: Sequence[Bearer]) -> bool:
    return all(a.description.has_other_kind(b.description, strictly=False) for a in group_a for b in group_b)


def _join_bearers(bearers: Sequence[Bearer], are_same: Callable[[Bearer, Bearer], bool]) -> list[tuple[Bearer, ...]]:
    """Return the connected components of a relation, each in the order of ``bearers``."""
    root = list(range(len(bearers)))

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    for a, b in combinations(range(len(bearers)), 2):
        if are_same(bearers[a], bearers[b]):
            root[max(find(a), find(b))] = min(find(a), find(b))
    groups: dict[int, list[Bearer]] = {}
    for number, bearer in enumerate(bearers):
        groups.setdefault(find(number), []).append(bearer)
    return [tuple(group) for group in groups.values()]


def _join_pairs(groups: Sequence[tuple[Bearer, ...]]) -> list[tuple[Bearer, ...]]:
    """Join two groups that are not apart, if each is apart from all others."""
    fitting = {
        number: [
            number_b for number_b in range(len(groups)) if number_b != number and not _are_apart(groups[number], groups[number_b])
        ]
        for number in range(len(groups))
    }
    joined: list[tuple[Bearer, ...]] = []
    for number, group in enumerate(groups):
        match fitting[number]:
            case [other] if fitting[other] == [number]:
                if number < other:
                    joined.append(tuple(sorted((*group, *groups[other]), key=lambda member: member.document_id)))
            case _:
                joined.append(group)
    return joined
