"""Retry policy after a killed process: which workflows are suspects, and how they are isolated. The queue applies it.

A process that is killed (a parser crashes the interpreter, a document uses all the memory) leaves no error. Only the list
of running workflows is known. A workflow that was running at a kill becomes a suspect. The more kills it was present at, the
fewer workflows run at the same time. Only a workflow that ran alone is failed, so an innocent workflow never is. Each kill counts
against its cause: ``k`` causes kill the process at most ``k * GIVEN_UP_AFTER`` times.

Administrators and deployments kill processes, too. A workflow that has recorded a new result since a kill did not cause that
kill, so its kills are forgotten (`forgive_kills`): only kills without progress in between add up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

SUSPECT_AFTER = 1
"""Number of kills after which a workflow runs without other suspects."""
ALONE_AFTER = 2
"""Number of kills after which a workflow runs alone in its process."""
GIVEN_UP_AFTER = 3
"""Number of kills without progress, the last one while it ran alone, after which a workflow fails."""


class Caution(IntEnum):
    """Isolation of a workflow from other workflows."""

    NONE = 0
    NO_OTHER_SUSPECT = 1
    ALONE = 2


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """Decision about the workflows of a killed process. Keep ``kills`` for the next start."""

    resumed: frozenset[str]
    given_up: frozenset[str]
    kills: Mapping[str, int]


def plan_recovery(claimed: Collection[str], running: Collection[str], kills: Mapping[str, int]) -> RecoveryPlan:
    """Decide about ``claimed``, the workflows that the killed process had claimed.

    Args:
        claimed: ids of the workflows that the process had claimed and not ended.
        running: ids of the workflows that were running at the kill. Ids that are not in ``claimed`` had ended.
        kills: number of earlier kills by workflow id; 0 for absent ids.
    """
    kill_counts = dict(kills)
    for workflow in set(claimed).intersection(running):
        kill_counts[workflow] = kill_counts.get(workflow, 0) + 1
    given_up = frozenset(workflow for workflow in claimed if kill_counts.get(workflow, 0) >= GIVEN_UP_AFTER)
    return RecoveryPlan(frozenset(claimed) - given_up, given_up, kill_counts)


def choose_caution(kills: int) -> Caution:
    """Return the isolation of a workflow that was present at ``kills`` kills."""
    if kills >= ALONE_AFTER:
        return Caution.ALONE
    return Caution.NO_OTHER_SUSPECT if kills >= SUSPECT_AFTER else Caution.NONE
