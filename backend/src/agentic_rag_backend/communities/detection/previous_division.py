"""Start a division from the previous one: hold unchanged communities together, so that a change moves only nearby entities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.communities.detection.leiden import Edges, Members, group_by_connection


@dataclass(frozen=True, slots=True)
class PreviousDivision:
    """The previous division of the graph: entities by cluster, of the ``base`` and of each level.

    ``unchanged`` are the members of the communities that did not change since.
    """

    base: Mapping[str, int]
    levels: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    unchanged: frozenset[frozenset[str]] = frozenset()


def held_groups(
    previous: PreviousDivision, ids: Sequence[str], members: Iterable[int], edges: Edges, *, level: int
) -> list[Members]:
    """Return disjoint groups of ``members`` that stay together while ``members`` are divided for ``level``.

    The groups are the largest unchanged communities, and the smallest changed ones as far as relationships connect them. New
    entities are free, and so are entities with stronger links to another cluster than to their own.

    Args:
        ids: the entities by number.
        edges: the edges among ``members``.
    """
    clusters = previous.base if level == 0 else previous.levels.get(level, {})
    label = {member: clusters[ids[member]] for member in members if ids[member] in clusters}
    members_left = set(label)
    groups_found: list[Members] = []
    smallest: dict[int, tuple[int, int]] = {}
    for deeper in sorted(lower_level for lower_level in previous.levels if lower_level >= level):
        numbers = previous.levels[deeper]
        groups: defaultdict[int, Members] = defaultdict(list)
        for member in sorted(members_left):
            if ids[member] in numbers:
                groups[numbers[ids[member]]].append(member)
                smallest[member] = deeper, numbers[ids[member]]
        for group in groups.values():
            # a root that only groups clusters holds nothing together
            if len({label[member] for member in group}) == 1 and frozenset(ids[member] for member in group) in previous.unchanged:
                groups_found.append(group)
                members_left.difference_update(group)
    groups_found += _hanging_together(edges, {member: smallest[member] for member in members_left if member in smallest})
    astray = _find_astray(edges, label)
    return [members_kept for group in groups_found if (members_kept := [member for member in group if member not in astray])]


def _hanging_together(edges: Edges, label: Mapping[int, tuple[int, int]]) -> list[Members]:
    """Return the connected parts of groups; a node without edges joins the largest part of its group."""
    parts: defaultdict[tuple[int, int], list[Members]] = defaultdict(list)
    for part in group_by_connection((a, b) for a, b, _ in edges if a in label and b in label and label[a] == label[b]):
        parts[label[part[0]]].append(part)
    linked = {node for a, b, _ in edges for node in (a, b)}
    for node in sorted(label.keys() - linked):
        of = parts[label[node]]
        if of:
            max(of, key=len).append(node)
        else:
            of.append([node])
    return [sorted(part) for of in parts.values() for part in of]


def _find_astray(edges: Edges, label: Mapping[int, int]) -> set[int]:
    """Return the nodes that are linked more with one other cluster than with their own."""
    weights: defaultdict[int, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for a, b, weight in edges:
        if a in label and b in label:
            weights[a][label[b]] += weight
            weights[b][label[a]] += weight
    return {node for node, of in weights.items() if max(of.values()) > of.get(label[node], 0.0)}
