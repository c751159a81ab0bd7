"""How much a comparison removes without a person's word."""

from __future__ import annotations

import structlog

from agentic_rag_backend.ingestion.reconciliation.report import Kind, Report

FEW = 10
"""Things of one kind that are always removed."""
SHARE = 0.1
"""Share of what a tenant holds of a kind, above which a person confirms."""
MANY = 1_000
"""Things of one kind above which a person confirms, whatever their share."""

_log = structlog.get_logger(__name__)


def is_mass(found: int, held: int) -> bool:
    """Tell whether removing ``found`` of ``held`` things needs a person's word.

    So much does not go wrong by itself: a catalogue was restored from an old backup, or is not the one of these stores.
    """
    return found > FEW and (found > MANY or found > SHARE * held)


def may_remove(report: Report, kind: Kind, found: int, held: int) -> bool:
    """Tell whether ``found`` things of a kind are removed; what is withheld is counted, and logged as a warning."""
    if not report.repair or not found:
        return False
    if report.confirmed or not is_mass(found, held):
        return True
    report.withheld(kind, found)
    _log.warning("removal_withheld", kind=kind.value, found=found, held=held, confirm="agentic-rag doctor --repair --confirm")
    return False
