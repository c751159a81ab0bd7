"""A request for paths, and the paths found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from agentic_rag_backend.domain.graph import Direction
from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.visible.facts import VisibleFact

MAX_HOPS = 4
MAX_PATHS = 50
MAX_ENDS = 20
"""Entities at each end of a request, with all entities of an ambiguous name."""


def require_range(field: str, value: int, maximum: int) -> None:
    """Raise `InvalidRequest` unless ``value`` is 1 to ``most``."""
    if not 1 <= value <= maximum:
        raise InvalidRequest(f"{field} must be 1 to {maximum}; got {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOptions:
    """What a path may consist of.

    Args:
        max_hops: steps of a path, 1–4.
        relations: types of relationships, in any case; None: all. With types, no step is a shared mention.
        min_weight: least weight of a step.
        direction: ``out`` if every step must follow its relationship from source to target, ``in`` for the opposite direction.
            With either, no step is a shared mention.
        mentions: whether steps may be shared mentions if no path consists of relationships only.
        limit: 1–50 paths.
        as_of: only relationships that held at this time; None: now.

    Raises:
        InvalidRequest: a number is outside its range.
    """

    max_hops: int = 2
    relations: tuple[str, ...] | None = None
    min_weight: float = 0.0
    direction: Direction = "any"
    mentions: bool = True
    limit: int = 10
    as_of: datetime | None = None

    def __post_init__(self) -> None:
        require_range("max_hops", self.max_hops, MAX_HOPS)
        require_range("limit", self.limit, MAX_PATHS)

    @property
    def may_use_mentions(self) -> bool:
        """Whether a shared mention may be a step."""
        return self.mentions and self.relations is None and self.direction == "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What connects two entities: a relationship, or a chunk that mentions both.

    Args:
        source: where the relationship begins. Of a shared mention in a path: the earlier entity.
        fact: the relationship with its visible sentences; None: a shared mention.
        forward: whether a path leads from ``source`` to ``target``.
        others: further relationships between the two entities, heaviest first.
    """

    source: EntityRef
    target: EntityRef
    fact: VisibleFact | None
    weight: float
    chunk_id: str
    document_id: str
    forward: bool = True
    others: tuple[VisibleFact, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityPath:
    """Entities from one end to the other, none of them twice, and the steps between them. ``score`` is in (0, 1)."""

    entities: tuple[EntityRef, ...]
    steps: tuple[Connection, ...]
    score: float


@dataclass(frozen=True, slots=True)
class AmbiguousName:
    """A name of the request that several entities have. Paths begin and end at all of them."""

    name: str
    entities: tuple[EntityRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathsFound:
    """Paths, best first. ``bounded`` if the search left out connections of entities that have very many."""

    sources: tuple[EntityRef, ...]
    targets: tuple[EntityRef, ...]
    ambiguous: tuple[AmbiguousName, ...] = ()
    paths: tuple[EntityPath, ...] = ()
    bounded: bool = False
