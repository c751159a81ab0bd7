"""What a comparison of the stores found: counts by kind, and a few ids to look at. Its size does not grow with the corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

EXAMPLES = 5
"""Ids kept a kind."""
JOBS = 1_000
"""Ids of queued jobs kept; later ones are in the list of jobs all the same."""


class Kind(StrEnum):
    """How stores can differ; see ``docs/guide/repair.md``."""

    JOB_LOST = "job_lost"
    DOCUMENT_STUCK = "document_stuck"
    DELETION_STUCK = "deletion_stuck"
    ORIGINAL_MISSING = "original_missing"
    ORIGINAL_ORPHANED = "original_orphaned"
    CHUNK_VECTOR_MISSING = "chunk_vector_missing"
    CHUNK_VECTOR_ORPHANED = "chunk_vector_orphaned"
    CHUNK_VECTOR_VERSION = "chunk_vector_version"
    CHUNK_VECTOR_METADATA = "chunk_vector_metadata"
    KNOWLEDGE_MISSING = "knowledge_missing"
    KNOWLEDGE_DAMAGED = "knowledge_damaged"
    KNOWLEDGE_ORPHANED = "knowledge_orphaned"
    FACT_VECTOR_MISSING = "fact_vector_missing"
    FACT_VECTOR_ORPHANED = "fact_vector_orphaned"
    COMMUNITY_MISSING = "community_missing"
    COMMUNITY_ORPHANED = "community_orphaned"
    COMMUNITY_VECTOR_MISSING = "community_vector_missing"
    COMMUNITY_VECTOR_ORPHANED = "community_vector_orphaned"
    TREE_ORPHANED = "tree_orphaned"
    TREE_VECTOR_MISSING = "tree_vector_missing"
    TREE_VECTOR_ORPHANED = "tree_vector_orphaned"
    TENANT_ORPHANED = "tenant_orphaned"
    TENANT_DELETING = "tenant_deleting"


@dataclass(slots=True)
class Tally:
    """Of one kind: ``found`` are those that were still there at a second look, ``skipped`` those that changed meanwhile.

    ``withheld`` are those of the found that are removed only when a person confirms.
    """

    found: int = 0
    mended: int = 0
    skipped: int = 0
    unmendable: int = 0
    withheld: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """What one round over a tenant's stores did. ``in_flight`` documents were left alone: their jobs see to them.

    ``confirmed``: a person asked for removals, however many there are.
    """

    repair: bool
    confirmed: bool = False
    documents: int = 0
    in_flight: int = 0
    tallies: dict[Kind, Tally] = field(default_factory=dict)
    jobs: list[str] = field(default_factory=list)

    def found(self, kind: Kind, ids: Sequence[str]) -> None:
        """Count differences that stood at a second look."""
        if ids:
            tally = self._tally(kind)
            tally.found += len(ids)
            tally.examples += ids[: EXAMPLES - len(tally.examples)]

    def mended(self, kind: Kind, count: int) -> None:
        """Count those of the found that are no more."""
        if count:
            self._tally(kind).mended += count

    def unmendable(self, kind: Kind, count: int) -> None:
        """Count those of the found that cannot be mended from what there is."""
        if count:
            self._tally(kind).unmendable += count

    def skipped(self, kind: Kind, count: int) -> None:
        """Count what looked like a difference and was something in flight."""
        if count:
            self._tally(kind).skipped += count

    def withheld(self, kind: Kind, count: int) -> None:
        """Count those of the found that wait for a person's word."""
        if count:
            self._tally(kind).withheld += count

    def _tally(self, kind: Kind) -> Tally:
        return self.tallies.setdefault(kind, Tally())

    def queued(self, job_id: str) -> None:
        """Note a job that was queued to mend something."""
        if len(self.jobs) < JOBS:
            self.jobs.append(job_id)

    @property
    def differences(self) -> int:
        """How many differences were found."""
        return sum(tally.found for tally in self.tallies.values())

    @property
    def left(self) -> int:
        """How many of them are still there."""
        return sum(tally.found - tally.mended for tally in self.tallies.values())

    def as_result(self) -> dict[str, Any]:
        """Return the report as a job's result."""
        totals = {
            name: sum(getattr(tally, name) for tally in self.tallies.values())
            for name in ("found", "mended", "skipped", "unmendable", "withheld")
        }
        kinds: Mapping[str, Any] = {kind.value: asdict(tally) for kind, tally in sorted(self.tallies.items())}
        return {
            "repair": self.repair,
            "documents": self.documents,
            "in_flight": self.in_flight,
            **totals,
            "kinds": kinds,
            "jobs": self.jobs,
        }
