"""Limits of removals without a person's confirmation."""

from __future__ import annotations

from agentic_rag_backend.ingestion.reconciliation.report import Kind, Report
from agentic_rag_backend.telemetry.logs import get_logger

FEW = 10
"""Number of items of one kind up to which a removal needs no confirmation."""
SHARE = 0.1
"""Share of a tenant's items of one kind above which a removal needs confirmation."""
MANY = 1_000
"""Number of items of one kind above which a removal needs confirmation, whatever their share."""

_log = get_logger(__name__)


def is_mass(count: int, total: int) -> bool:
    """Return whether removing ``count`` of ``total`` items needs a person's confirmation.

    So many orphans do not arise in normal operation: a catalogue was restored from an old backup, or belongs to other stores.
    """
    return count > FEW and (count > MANY or count > SHARE * total)


def may_remove(report: Report, kind: Kind, count: int, total: int) -> bool:
    """Return whether ``count`` items of a kind may be removed. Withheld items are counted and logged as a warning."""
    if not report.repair or not count:
        return False
    if report.confirmed or not is_mass(count, total):
        return True
    report.count_deferrals(kind, count)
    _log.warning("removal_withheld", kind=kind.value, found=count, held=total, confirm="agentic-rag doctor --repair --confirm")
    return False
