"""The interface of the writers of graph files: functions from entities and facts to text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agentic_rag_backend.domain.query import EntityRef
from agentic_rag_backend.knowledge.visible.facts import VisibleFact


@dataclass(frozen=True, slots=True)
class ExportedEntity:
    """An entity, and the number of visible chunks that mention it."""

    entity: EntityRef
    mention_count: int


class GraphWriter(Protocol):
    """Writes one file. The parts are requested in the order of the methods; ``entities`` and ``facts`` as often as necessary."""

    media_type: str

    def begin(self) -> str:
        """Return the head of the file."""

    def entities(self, entities: Sequence[ExportedEntity]) -> str:
        """Return entities."""

    def between(self) -> str:
        """Return the text between the last entity and the first relationship."""

    def facts(self, facts: Sequence[VisibleFact]) -> str:
        """Return relationships."""

    def end(self) -> str:
        """Return the end of the file."""


def times_of(fact: VisibleFact) -> Mapping[str, str | None]:
    """Return the times of a relationship by name, as ISO 8601."""
    times = {
        "valid_at": fact.valid_at,
        "invalid_at": fact.invalid_at,
        "created_at": fact.created_at,
        "expired_at": fact.expired_at,
    }
    return {name: None if time is None else time.isoformat() for name, time in times.items()}
