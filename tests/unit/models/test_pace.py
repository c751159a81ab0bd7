"""The time limits of calls follow the measured speed of a model, within fixed bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.models.pace import MOST, Pace


def test_an_unmeasured_model_gets_the_timeout_and_in_a_job_the_most() -> None:
    pace = Pace()
    assert pace.first_piece_s(3000, 60, patient=False) == 60
    assert pace.first_piece_s(3000, 60, patient=True) == 60 * MOST
    assert pace.whole_s(3000, 1000, 60) == 60 * MOST


def test_limits_follow_the_measured_speed() -> None:
    pace = Pace()
    pace.note_read(1000, 20)  # 50 tokens a second
    pace.note_reply(100, 10)  # 10 tokens a second
    assert pace.first_piece_s(3000, 60, patient=False) == 120, "twice of what the speed predicts"
    assert pace.first_piece_s(500, 60, patient=True) == 60, "never below the timeout"
    assert pace.whole_s(1000, 500, 60) == 140
    assert pace.whole_s(100_000, 500, 60) == 60 * MOST
    pace.note_reply(400, 10)
    assert pace.write_tps == 0.7 * 10 + 0.3 * 40


def test_what_says_nothing_about_the_speed_is_not_measured() -> None:
    pace = Pace()
    pace.note_read(20, 3)
    pace.note_reply(20, 0)
    pace.note_late(1000, 60)
    assert (pace.read_tps, pace.write_tps) == (None, None)


def test_a_timeout_of_a_measured_model_lengthens_the_next_limit() -> None:
    pace = Pace(read_tps=1000)
    assert pace.first_piece_s(1200, 60, patient=False) == 60
    pace.note_late(1200, 60)
    assert pace.first_piece_s(1200, 60, patient=False) == 120


@given(
    st.lists(st.tuples(st.sampled_from(["read", "reply", "late"]), st.floats(0, 1e6), st.floats(0, 1e5)), max_size=20),
    st.floats(0.1, 600),
    st.floats(0, 1e6),
)
def test_limits_stay_within_their_bounds(events: list[tuple[str, float, float]], timeout_s: float, tokens: float) -> None:
    pace = Pace()
    for name, size, seconds in events:
        getattr(pace, f"note_{name}")(size, seconds)
    for limit in (pace.first_piece_s(tokens, timeout_s, patient=True), pace.whole_s(tokens, tokens, timeout_s)):
        assert timeout_s <= limit <= MOST * timeout_s
