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


def is_mass(found: int, held: int) -> bool:
    """Return whether removing ``found`` of ``held`` items needs a person's confirmation.

    So many orphans do not arise in normal operation: a catalogue was restored from an old backup, or belongs to other stores.
    """
    return found > FEW and (found > MANY or found > SHARE * held)


def may_remove(report: Report, kind: Kind, found: int, held: int) -> bool:
    """Return whether ``found`` items of a kind may be removed. Withheld items are counted and logged as a warning."""
    if not report.repair or not found:
        return False
    if report.confirmed or not is_mass(found, held):
        return True
    report.count_deferrals(kind, found)
    _log.warning("removal_withheld", kind=kind.value, found=found, held=held, confirm="agentic-rag doctor --repair --confirm")
    return False
