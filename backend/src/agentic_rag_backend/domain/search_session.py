"""The memory of a search session between requests: places of verified facts, and negative constraints.

The words of documents are not part of it. A fact is the place of a sentence in a chunk, so nothing is left of a deleted document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

MAX_SESSION_FACTS = 32
"""Facts of one session. Beyond it, the oldest are forgotten."""
MAX_SESSION_CONSTRAINTS = 12
"""Negative constraints of one session. Beyond it, the oldest are forgotten."""
MAX_SESSION_BYTES = 8192
"""UTF-8 bytes of the negative constraints of one session. Beyond it, the oldest are forgotten."""
MAX_SESSIONS = 1000
"""Sessions of one tenant. Beyond it, those that were not used for the longest time are forgotten."""
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class FactPlace:
    """The place of a sentence: characters [``start``, ``end``) of the text of a chunk. The text of a chunk id never changes."""

    chunk_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RememberedConstraint:
    """A negative constraint of an earlier request. See `retrieval.agentic.plan.NegativeConstraint`."""

    kind: str
    value: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """The facts and negative constraints of a session, the oldest first."""

    facts: tuple[FactPlace, ...] = ()
    constraints: tuple[RememberedConstraint, ...] = ()

    def extend_memory(self, memory: SessionMemory) -> SessionMemory:
        """Return this memory with ``memory``, within the limits of a session. A repeated entry counts as new."""
        facts = _select_newest(self.facts, memory.facts, MAX_SESSION_FACTS)
        constraints = _select_newest(self.constraints, memory.constraints, MAX_SESSION_CONSTRAINTS)
        while (
            sum(len(f"{constraint.kind}{constraint.name}{constraint.value}".encode()) for constraint in constraints)
            > MAX_SESSION_BYTES
        ):
            constraints = constraints[1:]
        return SessionMemory(facts, constraints)


def _select_newest(entries: Iterable[T], new_entries: Iterable[T], limit: int) -> tuple[T, ...]:
    latest: dict[T, None] = {}
    for entry in (*entries, *new_entries):
        latest.pop(entry, None)
        latest[entry] = None
    return tuple(latest)[-limit:]


def session_digest(key_id: str, session_id: str) -> str:
    """Return the name of a session in the store. Equal session ids of two API keys have different ones."""
    return hashlib.sha256(f"{key_id}\x1f{session_id}".encode()).hexdigest()
