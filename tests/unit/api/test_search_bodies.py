"""Bodies of searches: formats of times, and fields that are null."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from agentic_rag_backend.api.schemas.questions.questions import DualLevelBody, SearchBody


def end_of(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, 23, 59, 59, 999999, tzinfo=UTC)


def test_a_year_month_or_day_stands_for_its_end() -> None:
    for written, moment in [
        ("2019", end_of(2019, 12, 31)),
        ("2019-02", end_of(2019, 2, 28)),
        ("2019-05-01", end_of(2019, 5, 1)),
        ("2019-05-01T12:00:00", datetime(2019, 5, 1, 12, tzinfo=UTC)),
        ("2019-05-01T12:00:00+02:00", datetime(2019, 5, 1, 10, tzinfo=UTC)),
        (None, None),
    ]:
        assert SearchBody.model_validate({"query": "q", "as_of": written}).as_of == moment


@pytest.mark.parametrize("written", ["yesterday", "", "19", "2019-13", 2019, 1.5e9, True, ["2019"]])
def test_invalid_times_are_refused(written: Any) -> None:
    with pytest.raises(ValidationError, match="ISO 8601"):
        SearchBody.model_validate({"query": "q", "as_of": written})


@pytest.mark.parametrize("body", [SearchBody, DualLevelBody])
def test_null_means_the_same_as_a_field_that_is_left_out(body: type[SearchBody | DualLevelBody]) -> None:
    plain = body.model_validate({"query": "q"})
    for name in ("filters", "as_of", "options", "rerank", "corrective", "timeout_ms", "cache", "min_score", "fields"):
        assert body.model_validate({"query": "q", name: None}) == plain, name
    assert not body.model_validate({"query": "q", "cache": False}).cache
