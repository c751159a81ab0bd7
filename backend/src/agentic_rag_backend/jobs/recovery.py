"""Who is to blame when the process was killed, and how carefully it is tried again: decided here, done by the queue.

What kills a process (a parser that crashes the interpreter, a document that takes all the memory) leaves no word of it; all
that is known is which workflows were running. One that was running several times when that happened is a suspect, and the
more often it was there, the less runs beside it. Only a workflow that ran alone is given up, so a neighbour never is. Each
kill counts against the one that did it, so ``k`` of them end the process at most ``k * GIVEN_UP_AFTER`` times, whatever ran
beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

SUSPECT_AFTER = 2
"""Kills that a workflow was present at before it runs beside no other suspect."""
ALONE_AFTER = 3
"""Kills that it was present at before it runs beside nothing at all."""
GIVEN_UP_AFTER = 4
"""Kills, those alone included, after which it is not run again."""


class Caution(IntEnum):
    """What may run beside a workflow."""

    NONE = 0
    NO_OTHER_SUSPECT = 1
    ALONE = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with the workflows that a killed process left; ``kills`` is to be kept for the next time."""

    resumed: frozenset[str]
    given_up: frozenset[str]
    kills: Mapping[str, int]


def plan(left: Collection[str], running: Collection[str], kills: Mapping[str, int]) -> Plan:
    """Decide what becomes of ``left``, the workflows that have begun or were to begin in the process that was killed.

    Args:
        left: ids of the workflows that the process had claimed and did not end.
        running: ids of those that were running at its end; what is not among ``left`` had ended.
        kills: by id, at how many earlier kills a workflow was present; 0 for those not named.
    """
    counted = dict(kills)
    for workflow in set(left).intersection(running):
        counted[workflow] = counted.get(workflow, 0) + 1
    given_up = frozenset(workflow for workflow in left if counted.get(workflow, 0) >= GIVEN_UP_AFTER)
    return Plan(frozenset(left) - given_up, given_up, counted)


def caution(kills: int) -> Caution:
    """Return how carefully a workflow is run that was present at so many kills."""
    if kills >= ALONE_AFTER:
        return Caution.ALONE
    return Caution.NO_OTHER_SUSPECT if kills >= SUSPECT_AFTER else Caution.NONE
