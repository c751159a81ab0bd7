"""Numbers of tokens that servers report."""

from __future__ import annotations

from decimal import Decimal

from agentic_rag_backend.domain.prices import ModelPrice, PriceTable
from agentic_rag_backend.domain.usage import MAX_REPORTED_TOKENS, Usage, read_reported


def test_a_number_that_no_call_can_have_counts_as_not_reported() -> None:
    """It would overflow the catalogue's integers: the usage of all tenants in the same write would be lost."""
    assert [read_reported(count) for count in (0, 7, MAX_REPORTED_TOKENS)] == [0, 7, MAX_REPORTED_TOKENS]
    assert [read_reported(count) for count in (-1, MAX_REPORTED_TOKENS + 1, 10**30, "7", 1.5, None)] == [None] * 6
    dearest = PriceTable(models={"m": ModelPrice(Decimal(1_000_000))})
    assert dearest.price_usage("m", Usage(MAX_REPORTED_TOKENS, 0, 1)).cost_nanos < 2**63
