"""Reading of documents: one at a time, with unique keys. An unreadable document is reported separately."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.sources.duplicates import DuplicateFinder
from agentic_rag_backend.sources.files import Source, Walk
from agentic_rag_backend.sources.reading import SourceReader, survey_sources
from agentic_rag_backend.sources.table_rows import Columns

COLUMNS = Columns(text="text", key="id", metadata=("city",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("Agnes Thorley founded the Kettle Bank in 1987.")
    (tmp_path / "b.jsonl").write_text('{"id": "1", "text": "one", "city": "X"}\nnope\n{"id": "1", "text": "other"}\n')
    (tmp_path / "c.csv").write_text("id,text,city\n1,again,\na.md,again,\n2,Agnes Thorley founded the Kettle Bank in 1987.,Y\n")
    return tmp_path


def test_files_and_rows_come_in_order_and_a_key_only_once(folder: Path) -> None:
    finder = DuplicateFinder(max_pairs=10)
    walk = Walk([str(folder)], by_rows=True)
    told = [
        (document.path.name, document.key, document.row, document.problem and document.problem.code)
        for document in SourceReader(walk, COLUMNS, finder)
    ]
    assert told == [
        ("a.md", "a.md", None, None),
        ("b.jsonl", "1", 1, None),
        ("b.jsonl", "b.jsonl#2", 2, "bad_row"),
        ("b.jsonl", "1", 3, "conflict"),
        ("c.csv", "1", 1, "conflict"),
        ("c.csv", "a.md", 2, "conflict"),
        ("c.csv", "2", 3, None),
    ]
    assert [(pair.key, pair.of, pair.exact) for pair in finder.pairs] == [("2", "a.md", True)]


def test_only_one_document_is_read_ahead_of_its_reader(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.md").write_text("text")
    documents = iter(SourceReader(Walk([str(tmp_path)])))
    assert next(documents).content == b"text"
    (tmp_path / "1.md").write_text("changed")
    (tmp_path / "2.md").unlink()
    assert next(documents).content == b"changed"
    assert list(documents) == []


def test_a_file_that_cannot_be_read_is_a_problem_of_its_own(folder: Path) -> None:
    sources = [Source(folder / name, name, by_rows=name.endswith("csv")) for name in ("gone.md", "gone.csv", "a.md")]
    told = [(document.key, document.problem and document.problem.code) for document in SourceReader(sources, COLUMNS)]
    assert told == [("gone.md", "unreadable_file"), ("gone.csv", "unreadable_file"), ("a.md", None)]


def test_a_survey_counts_without_reading(folder: Path) -> None:
    (folder / "x.exe").write_bytes(b"1")
    extent = survey_sources(Walk([str(folder)], by_rows=True), COLUMNS)
    assert (extent.files, extent.skipped, extent.by_rows) == (3, 1, True)
    assert extent.size == sum((folder / name).stat().st_size for name in ("a.md", "b.jsonl", "c.csv"))
    (folder / "d.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidRequest, match="there is no column 'text'"):
        survey_sources(Walk([str(folder)], by_rows=True), COLUMNS)


def test_a_table_without_a_text_column_is_one_document(folder: Path) -> None:
    walk = Walk([str(folder / "b.jsonl")])
    assert survey_sources(walk, None).by_rows is False
    (document,) = SourceReader(walk)
    assert (document.key, document.row, document.content) == ("b.jsonl", None, (folder / "b.jsonl").read_bytes())


def test_only_texts_as_written_are_compared_before_they_are_parsed(tmp_path: Path) -> None:
    for name in ("a.md", "b.html", "c.pdf"):
        (tmp_path / name).write_text("Agnes Thorley founded the Kettle Bank in 1987.")
    finder = DuplicateFinder(max_pairs=10)
    assert len(list(SourceReader(Walk([str(tmp_path)]), finder=finder))) == 3
    assert (finder.compared, finder.pairs) == (1, [])
