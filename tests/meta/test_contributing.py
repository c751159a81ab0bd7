"""Files, make targets and events in the recipes of CONTRIBUTING.md exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentic_rag_backend import __file__ as package_file

PACKAGE = Path(package_file).parent


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    """The text of the page."""
    return (root / "CONTRIBUTING.md").read_text("utf-8")


def test_every_file_and_folder_exists(root: Path, text: str) -> None:
    in_prose = re.findall(r"`([\w.-]*/[\w./-]*|[\w-]+\.(?:py|md|yml|yaml))`", text)
    in_commands = re.findall(r"(?<![\w/])(?:tests|examples|infra)/[\w./-]+", text)
    named = {name for name in [*in_prose, *in_commands] if "NAME" not in name and not name.startswith("/")}
    assert len(named) > 50
    # A bare name (`base.py`) may belong to several files.
    missing = {name for name in named if not (root / name).exists() and not (PACKAGE / name).exists()}
    assert {name for name in missing if "/" in name or not [*PACKAGE.rglob(name), *(root / "tests").rglob(name)]} == set()


def test_every_target_of_make_exists(root: Path, text: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE))
    assert len(named) > 8
    assert named <= targets


def test_every_event_is_logged(text: str) -> None:
    rows = [line.split("|")[1] for line in text.splitlines() if re.match(r"\| `(job|request)", line)]
    events = {event for row in rows for event in re.findall(r"`(\w+)`", row)}
    sources = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    assert len(events) > 7
    assert {event for event in events if f'"{event}"' not in sources} == set()
