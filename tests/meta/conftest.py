"""Fixtures of the tests of texts: the repository's folder, its Markdown files and their tables."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_RULE = re.compile(r"\|(?:\s*:?-+:?\s*\|)+\s*")
Rows = Sequence[Sequence[str]]


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the repository's folder."""
    return ROOT


@pytest.fixture(scope="session")
def own_files() -> list[Path]:
    """Return every text file of the repository, including files that the next commit would add."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        check=True,
    )
    paths = [ROOT / name.decode() for name in listed.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:4096]]


@pytest.fixture(scope="session")
def documents(own_files: list[Path]) -> list[Path]:
    """Return the Markdown files that are documentation, without the examples' corpus and prompts."""
    found = [path for path in own_files if path.suffix == ".md"]
    return [path for path in found if "corpus" not in path.parts and "prompts" not in path.parts]


@pytest.fixture(scope="session")
def table_rows() -> Callable[[Path], Rows]:
    """Return a function that reads the cells of all tables of a Markdown file, without their headings."""

    def rows(path: Path) -> Rows:
        found: list[list[str]] = []
        inside = False
        for line in path.read_text(encoding="utf-8").splitlines():
            if _RULE.fullmatch(line):
                inside = True
            elif inside and line.startswith("|"):
                found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
            else:
                inside = False
        return found

    return rows
