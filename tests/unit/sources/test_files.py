"""Selection of files by paths, and their keys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentic_rag_backend.documents.parsing.registry import PARSERS
from agentic_rag_backend.domain.media_types import FORMATS
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.sources.files import SUFFIXES, Source, Walk, find_sources


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "notes"
    for name in ("a.md", "b.TXT", "deep/er/a.md", ".hidden/c.md", ".d.md", "picture.gif"):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    return home


def test_every_format_has_a_parser_and_suffixes() -> None:
    assert FORMATS.keys() == PARSERS.keys()
    assert frozenset(suffix for each in FORMATS.values() for suffix in each.suffixes) == SUFFIXES


def test_a_folder_gives_all_it_holds_by_the_path_below_it(folder: Path) -> None:
    found = find_sources([str(folder)])
    assert [source.key for source in found.sources] == ["a.md", "b.TXT", "deep/er/a.md"]
    assert found.skipped == 1
    walk = Walk([str(folder)])
    assert len(list(walk)) == 3
    assert walk.skipped_keys == ["picture.gif"]


def test_a_pattern_is_a_folder_with_a_choice(folder: Path) -> None:
    found = find_sources([f"{folder}/**/*.md"])
    assert [source.key for source in found.sources] == ["a.md", "deep/er/a.md"]


def test_a_file_is_its_name_or_the_key_that_was_given(folder: Path) -> None:
    path = folder / "picture.gif"
    assert find_sources([str(path)]).sources == (Source(path, "picture.gif"),)
    assert find_sources([str(path)], key="mine").sources == (Source(path, "mine"),)


def test_the_same_file_twice_is_one(folder: Path) -> None:
    assert len(find_sources([str(folder), str(folder / "a.md")]).sources) == 3


def test_paths_without_files_are_reported(folder: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"no file or folder '.*nowhere'"):
        find_sources([str(folder / "nowhere")])
    with pytest.raises(InvalidRequest, match="holds no document"):
        find_sources([f"{folder}/*.rst"])
    (folder / "empty").mkdir()
    with pytest.raises(InvalidRequest, match="empty' holds no document"):
        find_sources([str(folder / "empty")])


def test_two_files_never_share_a_key(folder: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"would both have the key 'a\.md'"):
        find_sources([str(folder / "a.md"), str(folder / "deep/er/a.md")])
    with pytest.raises(InvalidRequest, match="--key names one document; the paths name 3 files"):
        find_sources([str(folder)], key="mine")


def test_a_table_is_a_document_unless_its_rows_are(folder: Path) -> None:
    (folder / "orders.csv").write_text("text\none\n")
    assert {source.key: source.by_rows for source in Walk([str(folder)])}["orders.csv"] is False
    assert {source.key for source in Walk([str(folder)], by_rows=True) if source.by_rows} == {"orders.csv"}


def test_a_walk_holds_no_folder_open_and_is_the_same_each_time(tmp_path: Path) -> None:
    for number in range(40):
        path = tmp_path / f"{number % 7}" / f"{number % 3}" / f"{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    walk = Walk([str(tmp_path)])
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counted, not walked
    keys = []
    for source in walk:
        keys.append(source.key)
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert len(keys) == 40
    assert [source.key for source in walk] == keys


def test_links_to_folders_are_not_followed(folder: Path) -> None:
    (folder / "deep" / "loop").symlink_to(folder)
    assert len(find_sources([str(folder)]).sources) == 3
