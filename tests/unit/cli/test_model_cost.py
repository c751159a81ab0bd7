"""The estimate of the language model's work."""

from __future__ import annotations

from agentic_rag_backend.cli.intake import extraction_cost


def test_temporal_extraction_costs_several_calls_for_a_chunk() -> None:
    one, several = extraction_cost(3, 100_000), extraction_cost(3, 100_000, "graphiti")

    assert one.calls > 100
    assert several.calls == 6 * one.calls
    assert several.tokens_read > 6 * one.tokens_read
    assert extraction_cost(3, 10).calls == 3
