"""Paths that the gate names exist, so that a renamed module or test is not left out of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.meta.coverage_gate import GATES

import agentic_rag_backend


def test_the_gate_runs_files_that_exist(root: Path) -> None:
    commands = subprocess.run(["make", "-n", "test"], cwd=root, capture_output=True, text=True, check=True, timeout=60).stdout
    files = set(re.findall(r"(?<![\w/])tests/\S+\.py", commands))

    assert files
    assert [file for file in files if not (root / file).exists()] == []


def test_the_gate_of_coverage_names_modules_that_exist() -> None:
    package = Path(agentic_rag_backend.__file__).parent

    assert [pattern for pattern in GATES if pattern and not list(package.glob(pattern.removeprefix("*/")))] == []
