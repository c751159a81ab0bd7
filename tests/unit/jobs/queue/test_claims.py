"""Claims whose reply was lost are found after a while. Running workflows are never taken for lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.jobs.queue.execution import UnstartedClaims
from agentic_rag_backend.jobs.queue.workflow_table import ClaimedWorkflow

TENANT = TenantId.new()


def claimed(*names: str) -> list[ClaimedWorkflow]:
    return [ClaimedWorkflow(id=name, name="work_v1", queue="prepare", tenant=TENANT, executor_id="this") for name in names]


def test_what_never_begins_is_lost_after_a_while() -> None:
    unstarted = UnstartedClaims(lost_after_s=30)
    found = [[each.id for each in unstarted.find_lost(claimed("a", "b"), {"b"}, now)] for now in range(0, 40, 10)]
    assert found == [[], [], [], ["a"]]


def test_workflows_enqueued_in_between_start_again() -> None:
    unstarted = UnstartedClaims(lost_after_s=30)
    assert unstarted.find_lost(claimed("a"), set(), 0) == []
    assert unstarted.find_lost([], set(), 20) == []
    assert unstarted.find_lost(claimed("a"), set(), 40) == []
    assert [each.id for each in unstarted.find_lost(claimed("a"), set(), 70)] == ["a"]


_LOOKS = st.lists(st.tuples(st.floats(0, 50), st.sets(st.sampled_from("abc")), st.sets(st.sampled_from("abc"))), max_size=20)


@given(_LOOKS)
def test_what_has_begun_or_is_recent_is_never_lost(looks: list[tuple[float, set[str], set[str]]]) -> None:
    unstarted, now, since = UnstartedClaims(lost_after_s=30), 0.0, dict[str, float]()
    for passed, held, begun in looks:
        now += passed
        since = {id: since.get(id, now) for id in held - begun}
        assert {each.id for each in unstarted.find_lost(claimed(*held), begun, now)} == {
            id for id in held - begun if now - since[id] >= 30
        }
