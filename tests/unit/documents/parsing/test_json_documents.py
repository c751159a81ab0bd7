"""JSON and JSON Lines as one document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.documents.parsing.json_documents import MAX_DEPTH
from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.media_types import JSON, JSONL
from agentic_rag_backend.errors import UnreadableDocument

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def test_values_have_their_paths_and_lists_of_flat_objects_are_tables() -> None:
    content = '{"title": "Orders of May", "customer": {"name": "Petra Lund", "phones": ["555-1", "555-2"]}, "orders": ['
    content += '{"id": 1, "price": 9.50, "paid": true}, {"id": 2, "price": 1e3, "note": "late | twice"}]}'
    parsed = parser_of(JSON).parse(content.encode())
    assert parsed.title == "Orders of May"
    assert parsed.text == (
        "title: Orders of May\ncustomer.name: Petra Lund\ncustomer.phones[0]: 555-1\ncustomer.phones[1]: 555-2\n\n"
        "orders\n\n"
        "| id | price | paid | note |\n| --- | --- | --- | --- |\n| 1 | 9.50 | true |  |\n| 2 | 1e3 |  | late \\| twice |"
    )
    assert [(heading.level, heading.title) for heading in parsed.headings] == [(2, "orders")]


def test_lines_of_flat_objects_are_a_table() -> None:
    lines = b'{"name": "Petra", "city": "Bremen"}\n\n{"name": "Bob", "age": 41}\n'
    assert parser_of(JSONL).parse(lines).text == (
        "| name | city | age |\n| --- | --- | --- |\n| Petra | Bremen |  |\n| Bob |  | 41 |"
    )


@pytest.mark.parametrize(
    ("media_type", "content", "told"),
    [
        (JSON, b'{"a": 1', "not valid JSON"),
        (JSON, b"[" * 100_000, f"more than {MAX_DEPTH} levels"),
        (JSON, b"[" * 70 + b"]" * 70, f"more than {MAX_DEPTH} levels"),
        (JSON, b"[[], {}, null]", "no text"),
        (JSONL, b'{"a": 1}\nnope\nno\n', "line 2: the file is not valid JSON"),
    ],
)
def test_bad_files_are_refused_with_the_reason(media_type: str, content: bytes, told: str) -> None:
    with pytest.raises(UnreadableDocument, match=told):
        parser_of(media_type).parse(content)


def test_wrong_lines_of_json_lines_are_left_out_with_a_warning() -> None:
    parser = parser_of(JSONL)
    content = b'// a comment\n{"a":1}\n{"a":2\n{"a":3}\n'
    parsed = parser.parse(content)
    assert parsed.text == "| a |\n| --- |\n| 1 |\n| 3 |"
    assert parsed.warnings == ("not in the text: lines that are not JSON (2: 1, 3)",)
    assert parser.check(content, is_whole=True).text
    with pytest.raises(UnreadableDocument, match="line 1"):
        parser.check(b"prose\n" * 300, is_whole=False)


@given(VALUES)
def test_every_value_is_in_the_text(value: Any) -> None:
    try:
        text = parser_of(JSON).parse(json.dumps(value).encode()).text
    except UnreadableDocument:
        return
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):
            waiting += item.values() if isinstance(item, dict) else item
        elif isinstance(item, int) and not isinstance(item, bool):
            assert str(item) in text
