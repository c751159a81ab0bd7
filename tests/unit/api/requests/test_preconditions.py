"""``If-Match`` according to RFC 9110."""

from __future__ import annotations

import pytest

from agentic_rag_backend.api.requests.documents import _if_match
from agentic_rag_backend.errors import InvalidRequest

GOOD = [
    (None, None),
    ("*", {"*"}),
    ('"a1"', {"a1"}),
    (' "a1" ,"b2",  "c,3"', {"a1", "b2", "c,3"}),
    ('W/"a1"', set()),
    ('W/"a1", "b2"', {"b2"}),
    ('"*"', set()),
    ('""', {""}),
]


@pytest.mark.parametrize(("header", "expected"), GOOD)
async def test_tags(header: str | None, expected: set[str] | None) -> None:
    assert await _if_match(header) == expected


@pytest.mark.parametrize("header", ["", "a1", '"a1', '"a1" "b2"', '"a1",', '*, "a1"', 'w/"a1"', '"a\t1"'])
async def test_invalid_lists_of_tags_are_refused(header: str) -> None:
    with pytest.raises(InvalidRequest, match="If-Match"):
        await _if_match(header)
