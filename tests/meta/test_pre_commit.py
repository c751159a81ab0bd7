"""The pre-commit hooks run the commands of `make check`, from .venv, and download nothing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def hooks() -> list[dict[str, Any]]:
    """The hooks of the single, local repository."""
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert repository["repo"] == "local"
    found: list[dict[str, Any]] = repository["hooks"]
    assert {hook["language"] for hook in found} == {"system"}
    return found


def commands(text: str) -> set[str]:
    """Return the programs of .venv that a text runs, with the subcommand of ruff."""
    return {match[1] for match in re.finditer(r"\.venv/bin/((?:ruff )?[\w-]+)", text.replace("$(BIN)", ".venv/bin"))}


def test_the_hooks_run_the_commands_of_make_check(hooks: list[dict[str, Any]]) -> None:
    (recipe,) = re.findall(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert commands(" ".join(hook["entry"] for hook in hooks)) == commands(recipe)
    assert commands(recipe) == {"ruff format", "ruff check", "mypy", "lint-imports"}


def test_ruff_reads_the_projects_rules_for_the_files_of_a_commit(hooks: list[dict[str, Any]]) -> None:
    (entry,) = (hook["entry"] for hook in hooks if hook["id"] == "ruff-check")
    # This file contains assertions, which only the rules for tests allow.
    done = subprocess.run(
        f"{entry} tests/meta/test_pre_commit.py", shell=True, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
