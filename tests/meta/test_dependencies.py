"""Every dependency is declared, documented and locked. The locks contain no hosts and no folders of a machine."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

LOCKS = ("requirements.lock", "requirements-server.lock", "requirements-dev.lock")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def canonical(requirement: str) -> str:
    """Return the normalised name of a requirement (PEP 503)."""
    found = _NAME.match(requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def declared(root: Path) -> dict[str, set[str]]:
    """Return the required packages of ``pyproject.toml``: at run time and by extra."""
    project = tomllib.loads((root / "backend" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {group: {canonical(each) for each in asked} - {project["name"]} for group, asked in groups.items()}


def test_every_dependency_is_described_once(root: Path, table_rows: Callable[[Path], Sequence[Sequence[str]]]) -> None:
    described = [canonical(row[0].strip("`")) for row in table_rows(root / "docs/reference/dependencies.md")]

    assert sorted(described) == sorted(set().union(*declared(root).values()))


def test_every_description_is_whole(root: Path, table_rows: Callable[[Path], Sequence[Sequence[str]]]) -> None:
    for row in table_rows(root / "docs/reference/dependencies.md"):
        assert len(row) == 5, row
        assert all(row), row


@pytest.mark.parametrize("name", LOCKS)
def test_locks_name_no_host_and_no_folder(root: Path, name: str) -> None:
    lines = (root / "backend" / name).read_text(encoding="utf-8").splitlines()

    assert not [line for line in lines if "://" in line or line.startswith("-") or re.search(r"(^|[\s@])/\w", line)]


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("requirements.lock", ("",)),
        ("requirements-server.lock", ("", "build", "server")),
        ("requirements-dev.lock", ("", "dev", "dspy", "server")),
    ],
)
def test_locks_pin_every_dependency_with_hashes(root: Path, name: str, groups: tuple[str, ...]) -> None:
    text = (root / "backend" / name).read_text(encoding="utf-8")
    entries = re.findall(
        r"^([A-Za-z0-9._-]+)==\S+(?: ; [^\n]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE
    )
    pinned = {canonical(entry[0]) for entry in entries}

    assert len(entries) == len(re.findall(r"^\w[^\n]*==", text, re.MULTILINE)), "an entry without hashes"
    for group in groups:
        assert declared(root)[group] <= pinned
