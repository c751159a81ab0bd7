"""Report of a comparison of the stores: counts by kind, and a few example ids. Its size does not grow with the corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

EXAMPLES = 5
"""Number of example ids per kind."""
JOBS = 1_000
"""Maximum number of recorded job ids. The list of jobs has all of them."""


class Kind(StrEnum):
    """Kinds of differences between stores; see ``docs/guide/repair.md``."""

    JOB_LOST = "job_lost"
    DOCUMENT_STUCK = "document_stuck"
    DELETION_STUCK = "deletion_stuck"
    ORIGINAL_MISSING = "original_missing"
    ORIGINAL_ORPHANED = "original_orphaned"
    CHUNK_VECTOR_MISSING = "chunk_vector_missing"
    CHUNK_VECTOR_ORPHANED = "chunk_vector_orphaned"
    CHUNK_VECTOR_VERSION = "chunk_vector_version"
    CHUNK_VECTOR_METADATA = "chunk_vector_metadata"
    QUESTION_VECTOR_MISSING = "question_vector_missing"
    QUESTION_VECTOR_ORPHANED = "question_vector_orphaned"
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
    """Counts of one kind. ``found`` differences remained at the second check; ``skipped`` ones changed meanwhile.

    ``withheld`` is the number of found differences that are removed only after a person confirms.
    """

    found: int = 0
    mended: int = 0
    skipped: int = 0
    unmendable: int = 0
    withheld: int = 0
    examples: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """Results of one round over a tenant's stores. ``in_flight`` documents were skipped: their jobs write the data.

    ``confirmed``: a person confirmed removals of any number.
    """

    repair: bool
    confirmed: bool = False
    documents: int = 0
    in_flight: int = 0
    tallies: dict[Kind, Tally] = field(default_factory=dict)
    jobs: list[str] = field(default_factory=list)

    def count_differences(self, kind: Kind, ids: Sequence[str]) -> None:
        """Count differences that remained at the second check."""
        if ids:
            tally = self._tally_of(kind)
            tally.found += len(ids)
            tally.examples += ids[: EXAMPLES - len(tally.examples)]

    def count_repairs(self, kind: Kind, count: int) -> None:
        """Count repaired differences."""
        if count:
            self._tally_of(kind).mended += count

    def not_repairable(self, kind: Kind, count: int) -> None:
        """Count found differences that cannot be repaired from the available data."""
        if count:
            self._tally_of(kind).unmendable += count

    def count_skips(self, kind: Kind, count: int) -> None:
        """Count suspected differences that were caused by work in flight."""
        if count:
            self._tally_of(kind).skipped += count

    def count_deferrals(self, kind: Kind, count: int) -> None:
        """Count found differences that wait for a person's confirmation."""
        if count:
            self._tally_of(kind).withheld += count

    def _tally_of(self, kind: Kind) -> Tally:
        return self.tallies.setdefault(kind, Tally())

    def record_job(self, job_id: str) -> None:
        """Record a job that was enqueued for a repair."""
        if len(self.jobs) < JOBS:
            self.jobs.append(job_id)

    @property
    def differences(self) -> int:
        """Number of differences found."""
        return sum(tally.found for tally in self.tallies.values())

    @property
    def left(self) -> int:
        """Number of differences that remain."""
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
