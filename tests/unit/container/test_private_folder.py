"""DATA_DIR and its files belong to one account, whatever the umask is and whatever was there before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog
from private_files import modes_of, open_to_others

from agentic_rag_backend.container import private_folder
from agentic_rag_backend.container.private_folder import make_private


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Set the umask of this process."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def write(path: Path) -> Path:
    """Write a file as a library would, and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("text of a tenant")
    return path


def test_a_folder_of_an_earlier_release_is_made_private(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with umask(0o022):
        for name in ("catalogue.db", "catalogue.db-wal", "graph.db", "vectors/a1/chunks/0.bin", "blobs/t_1/d/original"):
            write(data / name)
        assert set(modes_of(data).values()) == {0o755, 0o644}
        make_private(data)
        assert open_to_others(data) == {}
        # New files too, without the umask's help.
        write(data / "server.json")
        write(data / "vectors/a1/chunks/1.bin")
        write(data / "blobs/t_2/d/original")
    assert open_to_others(data) == {}


def test_a_new_folder_and_what_comes_later_is_private(tmp_path: Path) -> None:
    with umask(0o000):
        make_private(tmp_path / "a" / "data")
        write(tmp_path / "a/data/vectors/a1/0.bin")
        write(tmp_path / "a/data/catalogue.db")
    assert open_to_others(tmp_path / "a" / "data") == {}


def test_a_wider_mode_is_reset_at_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    make_private(data)
    write(data / "graph.db").chmod(0o640)
    write(data / "blobs/t_1/original")
    (data / "blobs").chmod(0o750)
    data.chmod(0o755)
    make_private(data)
    assert open_to_others(data) == {}


def test_a_folder_that_other_programs_use_keeps_its_mode(tmp_path: Path) -> None:
    data = tmp_path / "home"
    with umask(0o022):
        write(data / "thesis.txt")
        write(data / "catalogue.db")
        write(data / "blobs/t_1/original")
        with structlog.testing.capture_logs() as logs:
            make_private(data)
        write(data / "letter.txt")
    assert open_to_others(data) == {".": 0o755, "thesis.txt": 0o644, "letter.txt": 0o644}
    assert [(entry["event"], entry["mode"]) for entry in logs] == [("data_dir_open_to_others", "0755")]


def test_targets_of_links_are_not_touched(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    with umask(0o022):
        write(outside / "file")
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "vectors").symlink_to(outside)
        (tmp_path / "data" / "graph.db").symlink_to(outside / "file")
        write(tmp_path / "data/blobs/original")
        (tmp_path / "data/blobs/linked").symlink_to(outside / "file")
        make_private(tmp_path / "data")
    assert modes_of(outside) == {".": 0o755, "file": 0o644}


def test_files_are_private_without_default_acls_after_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "setxattr")
    with umask(0o022):
        make_private(tmp_path / "data")
        write(tmp_path / "data/blobs/t_1/original")
        assert modes_of(tmp_path / "data")["."] == 0o700
        make_private(tmp_path / "data")
    assert open_to_others(tmp_path / "data") == {}


def test_a_walk_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "data/blobs/t_1/original")
    make_private(tmp_path / "data")

    def walk(_path: Path) -> None:
        raise AssertionError("the folder was read again")

    monkeypatch.setattr(private_folder, "_folders", walk)
    make_private(tmp_path / "data")
