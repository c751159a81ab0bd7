"""Detection of dead workers, and of workflows that no live worker runs, without a clock and a database."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.coordination.dead_workers import HeartbeatMonitor, UnknownWorkflows
from agentic_rag_backend.jobs.queue.workflow_table import ClaimedWorkflow
from agentic_rag_backend.stores.catalogue.base import Worker

TENANT = TenantId.new()


def _worker(name: str, beats: int) -> Worker:
    return Worker(executor_id=name, beats=beats, workflows=frozenset())


def _silent(heartbeats: HeartbeatMonitor, now_s: float, **beats: int) -> list[str]:
    return [
        worker.executor_id
        for worker in heartbeats.find_silent_workers([_worker(name, count) for name, count in beats.items()], now_s)
    ]


def test_who_does_not_beat_is_silent_after_a_while() -> None:
    heartbeats = HeartbeatMonitor(silent_after_s=30, longest_step_s=10)
    looks = [_silent(heartbeats, now, dead=7, alive=now) for now in range(0, 40, 5)]
    assert looks == [[]] * 6 + [["dead"]] * 2


def test_time_in_which_nobody_looked_does_not_count() -> None:
    heartbeats = HeartbeatMonitor(silent_after_s=30, longest_step_s=10)
    assert _silent(heartbeats, 0, other=1) == []
    assert _silent(heartbeats, 3600, other=1) == []  # this process slept, and the other may have slept too
    assert _silent(heartbeats, 3605, other=2) == []
    assert _silent(heartbeats, 7200, other=2) == []


def test_a_name_that_comes_back_begins_anew() -> None:
    heartbeats = HeartbeatMonitor(silent_after_s=10, longest_step_s=10)
    assert _silent(heartbeats, 0, other=0) == []
    assert _silent(heartbeats, 6) == []
    assert _silent(heartbeats, 12, other=0) == []
    assert _silent(heartbeats, 18, other=0) == []
    assert _silent(heartbeats, 24, other=0) == ["other"]


@given(
    looks=st.lists(st.tuples(st.floats(0, 100), st.booleans()), min_size=1, max_size=60),
    silent_after_s=st.floats(1, 50),
)
def test_nobody_is_silent_sooner_than_it_takes(looks: list[tuple[float, bool]], silent_after_s: float) -> None:
    heartbeats = HeartbeatMonitor(silent_after_s=silent_after_s, longest_step_s=10)
    now_s, beats, last_beat_s = 0.0, 0, 0.0
    for passed_s, beat in looks:
        now_s += passed_s
        if beat:
            beats, last_beat_s = beats + 1, now_s
        if _silent(heartbeats, now_s, other=beats):
            assert not beat
            assert now_s - last_beat_s >= silent_after_s - 1e-6


def _claimed(name: str) -> ClaimedWorkflow:
    return ClaimedWorkflow(id=f"{name}:job:1", name=name, queue="prepare", tenant=TENANT, executor_id="this")


def test_a_name_is_given_up_when_nobody_has_known_it_for_long() -> None:
    unknown = UnknownWorkflows(failed_after_s=600)
    new = [_claimed("new_v2")]
    assert unknown.find_overdue(new, {"old_v1"}, 0) == []
    assert unknown.find_overdue(new, {"old_v1"}, 599) == []
    assert unknown.find_overdue(new, {"old_v1", "new_v2"}, 599.5) == []  # a worker of the newer release has joined
    assert unknown.find_overdue(new, {"old_v1"}, 700) == []  # and leaves: the time starts again
    assert unknown.find_overdue(new, {"old_v1"}, 1299) == []
    assert unknown.find_overdue(new, {"old_v1"}, 1300) == new
