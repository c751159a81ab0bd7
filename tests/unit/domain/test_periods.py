"""The date of a document."""

from __future__ import annotations

from typing import Any

import pytest

from agentic_rag_backend.domain.periods import document_date


@pytest.mark.parametrize(
    ("title", "metadata", "date"),
    [
        ("Minutes", {"date": "2016-02-04"}, "2016-02-04"),
        ("Minutes", {"date": "2016-02-04T10:00:00Z"}, "2016-02-04"),
        ("Minutes", {"year": 2016}, "2016"),
        ("Minutes", {"date": "2016-02-04", "updated": "2016-03"}, "2016-03"),
        ("Minutes of 4 February 2016", {"date": "some day"}, "2016-02-04"),
        ("Courier, July 2023", {}, "2023-07"),
        ("Annual report 2014", {}, "2014"),
        ("Survey (2010)", {}, "2010"),
        ("The flood of 1926", {}, ""),
        ("Orle in 1951", {}, ""),
        ("Harbour 2020: the plan", {}, ""),
        ("Minutes", {"date": True, "year": ["2016"]}, ""),
        ("", {}, ""),
    ],
)
def test_metadata_then_the_title_have_the_date(title: str, metadata: dict[str, Any], date: str) -> None:
    assert document_date(title, metadata) == date
