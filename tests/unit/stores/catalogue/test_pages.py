"""Cursors."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.catalogue.pages import MAX_LIMIT, check_limit, decode_cursor, encode_cursor


@given(st.integers(-(2**63), 2**63 - 1), st.text())
@example(-(2**63), "smallest integer")
@example(2**63 - 1, "largest integer")
def test_a_cursor_comes_back(number: int, name: str) -> None:
    assert decode_cursor("list", encode_cursor("list", (number, name)), int, str) == [number, name]


@given(st.text(max_size=80))
def test_anything_else_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        decode_cursor("list", cursor, int)


@given(st.integers(0, 100), st.data())
def test_a_changed_cursor_is_refused(number: int, data: st.DataObject) -> None:
    cursor = encode_cursor("list", (number,))
    at = data.draw(st.integers(0, len(cursor) - 2))  # the last character has unused bits
    changed = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
    with pytest.raises(InvalidRequest):
        decode_cursor("list", changed, int)


def test_a_cursor_belongs_to_its_list_and_shape() -> None:
    cursor = encode_cursor("jobs", ("2026", "id"))
    with pytest.raises(InvalidRequest):
        decode_cursor("documents", cursor, str, str)
    with pytest.raises(InvalidRequest):
        decode_cursor("jobs", cursor, int)


@pytest.mark.parametrize("limit", [0, -5, MAX_LIMIT + 1])
def test_limits_name_limit_and_value(limit: int) -> None:
    with pytest.raises(InvalidRequest, match=f"{MAX_LIMIT}.*{limit}"):
        check_limit(limit)
    assert check_limit(MAX_LIMIT) == MAX_LIMIT
