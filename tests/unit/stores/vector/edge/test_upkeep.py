"""Conditions for an index build, and waits after failed runs. tests/integration/vector_index tests the runs themselves."""

from __future__ import annotations

from agentic_rag_backend.stores.vector.edge.upkeep import UpkeepOptions, index_due, retry_pause

OPTIONS = UpkeepOptions(min_points=100, unindexed_share=0.2, most_held=2_000)


def test_an_index_is_due_when_enough_is_outside_it_and_a_scope_is_too_big_to_be_scanned_or_memory_is_full() -> None:
    for points, written, largest, due in [
        (1000, 1000, 101, True),
        (1000, 1000, 100, False),
        (1000, 201, 500, True),
        (1000, 200, 500, False),
        (1000, 5000, 500, True),
        (0, 0, 0, False),
        (3000, 2001, 100, True),
        (3000, 2000, 100, False),
        (1000, 5000, 100, False),
        (10_050, 2001, 100, False),
    ]:
        assert index_due(points, written, largest, OPTIONS) is due
        assert not index_due(points, written, largest, UpkeepOptions(min_points=0))


def test_each_failure_doubles_the_pause_up_to_its_limit() -> None:
    options = UpkeepOptions(retry_s=60, max_retry_s=1000)
    assert [retry_pause(failures, options) for failures in (1, 2, 3, 5, 6, 5000)] == [60, 120, 240, 960, 1000, 1000]
