"""Search from both ends: partial paths of growing length, which are joined where they meet. Functions of values only.

The score of a path is ``0.8^(steps - 1) × Π weight ÷ (weight + 0.5) × Π 1 ÷ (1 + log10 mentions)``: the first product is over its
steps, the second over the entities between its ends, with the number of visible chunks that mention them. So a path is better if
it is short, if its relationships are stated often and clearly, and if it does not lead through entities that are connected with
everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

Node = str
"""The id of an entity, so that equal scores are ordered alike in every process."""
Strengths = Mapping[Node, Mapping[Node, float]]
"""Strength of the step to each neighbour of an entity."""

HALF_WEIGHT = 0.5
"""Weight of a step with the strength 0.5."""
DECAY = 0.8
KEPT_PER_NODE = 6
"""Partial paths of one length to one entity that are continued."""


def strength(weight: float) -> float:
    """Return the strength of a step, in [0, 1)."""
    return weight / (weight + HALF_WEIGHT)


def passage_factor(mentions: int) -> float:
    """Return the factor for an entity between the ends of a path: 1 for one mention, 1/2 for ten, 1/4 for a thousand."""
    return 1 / (1 + math.log10(max(mentions, 1)))


def path_score(weights: Sequence[float], between: Sequence[int]) -> float:
    """Return the score of a path from the weights of its steps and the mentions of the entities between its ends."""
    score = DECAY ** (len(weights) - 1) * math.prod(map(strength, weights))
    return score * math.prod(map(passage_factor, between))


@dataclass(frozen=True, slots=True)
class Trail:
    """A partial path from one end, with the product of the strengths of its steps and the factors of the entities passed."""

    nodes: tuple[Node, ...]
    score: float


class Trails:
    """The best partial paths from some entities, by length.

    Args:
        starts: the entities of this end.
        goals: the entities of the other end. No trail leads through an entity of either end.
        factor: the factor of an entity that a trail leads through.
    """

    def __init__(self, starts: Collection[Node], goals: Collection[Node], factor: Callable[[Node], float]) -> None:
        self._ends = {*starts, *goals}
        self._goals = set(goals)
        self._factor = factor
        self._levels: list[dict[Node, list[Trail]]] = [{start: [Trail((start,), 1.0)] for start in starts}]

    @property
    def levels(self) -> Sequence[Mapping[Node, Sequence[Trail]]]:
        """By length: the best trails to each entity."""
        return self._levels

    def frontier(self, maximum: int) -> list[Node]:
        """Return the entities that the longest trails may be continued from, the best first, at most ``most``."""
        ends = self._levels[-1]
        inner = ends if len(self._levels) == 1 else [node for node in ends if node not in self._ends]
        return sorted(inner, key=lambda node: (-ends[node][0].score, node))[:maximum]

    def extend(self, strengths: Strengths) -> None:
        """Make the trails one step longer, over the neighbours in ``strengths``."""
        longer: dict[Node, list[Trail]] = {}
        for node, trails in self._levels[-1].items():
            if len(self._levels) > 1 and node in self._ends:
                continue
            gain = 1.0 if len(self._levels) == 1 else self._factor(node)
            for neighbour, step in strengths.get(node, {}).items():
                if neighbour in self._ends and neighbour not in self._goals:
                    continue
                for trail in trails:
                    if neighbour not in trail.nodes:
                        longer.setdefault(neighbour, []).append(Trail((*trail.nodes, neighbour), trail.score * gain * step))
        for trails in longer.values():
            trails.sort(key=lambda trail: (-trail.score, trail.nodes))
            del trails[KEPT_PER_NODE:]
        self._levels.append(longer)

    def meetings(self, trails: Trails, max_hops: int) -> Iterator[tuple[tuple[Node, ...], float]]:
        """Yield the paths that join a trail of this end with one of the other end, with their scores. Some come twice."""
        for length, ahead in enumerate(self._levels):
            for remainder, behind in enumerate(trails.levels):
                if 1 <= length + remainder <= max_hops:
                    decay = DECAY ** (length + remainder - 1)
                    for node in ahead.keys() & behind.keys():
                        inside = length > 0 and remainder > 0
                        if inside and node in self._ends:
                            continue
                        through = self._factor(node) if inside else 1.0
                        for trail in ahead[node]:
                            for two in behind[node]:
                                nodes = trail.nodes + two.nodes[-2::-1]
                                if len(set(nodes)) == len(nodes):
                                    yield nodes, decay * through * trail.score * two.score
