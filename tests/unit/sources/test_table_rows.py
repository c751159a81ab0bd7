"""Rows of tables as documents: parsing, validation, and invalid rows, which do not affect others."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.sources import table_rows as module
from agentic_rag_backend.sources.table_rows import BadRow, Columns, Row, check_table, read_rows

TEXT = Columns(text="text")
ALL = Columns(text="text", key="id", title="name", metadata=("city", "tags"))


def _write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _read(path: Path, columns: Columns = TEXT) -> list[Row | BadRow]:
    return list(read_rows(path, "in/" + path.name, columns))


def _texts(path: Path, columns: Columns = TEXT) -> list[str]:
    return [row.text if isinstance(row, Row) else f"bad: {row.reason}" for row in _read(path, columns)]


def test_a_line_of_json_is_a_document(tmp_path: Path) -> None:
    line = '{"id": 7, "text": "one", "name": "N", "city": null, "tags": ["a", 1, true], "other": {"x": 1}}\n'
    path = _write(tmp_path, "a.jsonl", line)
    assert _read(path, ALL) == [Row(number=1, key="7", text="one", title="N", metadata={"tags": ["a", 1, True]}, size=len(line))]


def test_without_a_key_column_the_key_is_file_and_row(tmp_path: Path) -> None:
    path = _write(tmp_path, "a.jsonl", b'\xef\xbb\xbf{"text": "one"}\n\n{"text": "three"}')
    assert [(row.number, getattr(row, "key", None)) for row in _read(path)] == [(1, "in/a.jsonl#1"), (3, "in/a.jsonl#3")]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "not JSON"),
        ("[1]", "a row must be a JSON object; it is a list"),
        ('{"id": "a"}', "column 'text' is empty"),
        ('{"id": "a", "text": " "}', "column 'text' is empty"),
        ('{"id": "a", "text": {"x": 1}}', "column 'text' must be text; it is an object"),
        ('{"text": "one"}', "column 'id' must be a key, text or a whole number; it is empty"),
        ('{"id": 1.5, "text": "one"}', "it is a number"),
        ('{"id": true, "text": "one"}', "it is a boolean"),
        ('{"id": "%s", "text": "one"}' % ("k" * 513), "the key has 513 characters; the limit is 512"),
        ('{"id": "a", "text": "one", "city": {"x": 1}}', "column 'city' must be a scalar or a list of scalars; it is an object"),
        (
            '{"id": "a", "text": "one", "tags": [[1]]}',
            "column 'tags' must be a scalar or a list of scalars; it is a list within a",
        ),
        ('{"id": "a", "text": "one", "name": 5}', "column 'name' must be text; it is a number"),
    ],
)
def test_a_bad_line_says_what_is_wrong_and_the_next_is_read(tmp_path: Path, line: str, told: str) -> None:
    bad, good = _read(_write(tmp_path, "a.jsonl", line + '\n{"id": "b", "text": "two"}\n'), ALL)
    assert isinstance(bad, BadRow)
    assert told in bad.reason
    assert isinstance(good, Row)
    assert (good.number, good.key) == (2, "b")


def test_bytes_that_are_no_utf_8_spoil_their_row_only(tmp_path: Path) -> None:
    lines = b'{"text": "one"}\n{"text": "\xe5se"}\n{"text": "three"}\n'
    assert _texts(_write(tmp_path, "a.jsonl", lines))[::2] == ["one", "three"]
    records = "id,text\n1,one\n2,\udce5se\n3,trå\n".encode(errors="surrogateescape")
    assert _texts(_write(tmp_path, "a.csv", records)) == ["one", "bad: the row is not UTF-8", "trå"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_delimiter_is_found_out(tmp_path: Path, delimiter: str, end: str) -> None:
    records = [["id", "text"], ["1", '"one, or; the | other"'], ["2", f'"two{end}lines ""said"""'], ["3", "three"]]
    path = _write(tmp_path, "a.csv", "\ufeff" + end.join(map(delimiter.join, records)))
    assert _texts(path) == ["one, or; the | other", f'two{end}lines "said"', "three"]


def test_a_delimiter_can_be_given_and_tsv_has_its_own(tmp_path: Path) -> None:
    path = _write(tmp_path, "a.csv", "id:text\n1:one, two; three\n")
    assert _texts(path, Columns(text="text", delimiter=":")) == ["one, two; three"]
    assert _texts(_write(tmp_path, "a.tsv", "id\ttext\n1\tone, two\n")) == ["one, two"]
    assert _texts(_write(tmp_path, "b.csv", "text\none\ntwo\n")) == ["one", "two"]


def test_a_bad_record_is_told_and_the_next_is_read(tmp_path: Path) -> None:
    path = _write(tmp_path, "a.csv", 'id,text,city\n1,one,A\n2,two\n\n3,"x"y,C\n4,,D\n5,five,\n')
    told = _read(path, Columns(text="text", key="id", metadata=("city",)))
    assert [(row.number, row.reason) for row in told if isinstance(row, BadRow)] == [
        (2, "the row has 2 fields; the header has 3"),
        (3, "not CSV, line 5: ',' expected after '\"'"),
        (4, "column 'text' is empty"),
    ]
    assert [(row.key, row.metadata) for row in told if isinstance(row, Row)] == [("1", {"city": "A"}), ("5", {})]


def test_an_unclosed_quote_is_reported(tmp_path: Path) -> None:
    assert _texts(_write(tmp_path, "a.csv", 'id,text\n1,one\n2,"two\n3,three\n')) == [
        "one",
        "bad: not CSV, line 4: unexpected end of data",
    ]


def test_a_row_over_the_limit_is_refused_without_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROW_CHARACTERS", 200_000)
    monkeypatch.setattr(module, "_SNIFFED", 1000)
    long = "x " * 150_000
    lines = _texts(_write(tmp_path, "a.jsonl", '{"text": "one"}\n{"text": "' + long + '"}\n{"text": "three"}\n'))
    assert lines == ["one", "bad: the line has more than 200000 bytes", "three"]
    records = _texts(_write(tmp_path, "a.csv", f"id,text\n1,one\n2,{long}\n3,three\n"))
    assert records == ["one", "bad: not CSV, line 2: the line has more than 200000 characters", "three"]
    # A field of many short lines.
    (first, bad, *_) = _texts(_write(tmp_path, "b.csv", 'id,text\n1,one\n2,"' + "x\n" * 150_000 + '"\n3,three\n'))
    assert first == "one"
    assert "field larger than field limit (200000)" in bad
    assert len(_texts(_write(tmp_path, "c.csv", f"id,text\n1,{'x' * 190_000}\n"))[0]) == 190_000


@pytest.mark.parametrize(
    ("name", "content", "columns", "told"),
    [
        ("a.jsonl", '{"a": 1}\n', TEXT, "there is no column 'text'; the columns are 'a'"),
        ("a.csv", "id,text\n1,x\n", ALL, "there is no column 'name'; the columns are 'id', 'text'"),
        ("a.csv", "text,text\n1,x\n", TEXT, "more than one column 'text'"),
        ("a.csv", "", TEXT, "has no column: it needs UTF-8 and a header"),
        ("a.csv", "id,text\n".encode("utf-16"), TEXT, "has no column: it needs UTF-8 and a header"),
        ("a.jsonl", "not json\n", TEXT, "has no column: it needs UTF-8 and objects"),
    ],
)
def test_missing_columns_are_told_with_those_found(
    tmp_path: Path, name: str, content: str | bytes, columns: Columns, told: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_table(_write(tmp_path, name, content), columns)
    assert told in caught.value.message
