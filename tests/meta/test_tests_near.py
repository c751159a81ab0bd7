"""`make test-near` finds the tests that import changed files, and those that mirror them."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "infra" / "tests_near.py"
PACKAGE = "backend/src/agentic_rag_backend"
SOURCES = {
    f"{PACKAGE}/__init__.py": "",
    f"{PACKAGE}/errors.py": "class NotFound(Exception): ...",
    f"{PACKAGE}/stores/__init__.py": "",
    f"{PACKAGE}/stores/vector/__init__.py": "from agentic_rag_backend.stores.vector.base import Point as Point",
    f"{PACKAGE}/stores/vector/base.py": "class Point: ...",
    f"{PACKAGE}/stores/vector/edge.py": "from agentic_rag_backend.stores.vector.base import Point",
}
TESTS = {
    "tests/conftest.py": "import server",
    "tests/fixtures/server.py": "import socket",
    "tests/unit/test_errors.py": "def test(): from agentic_rag_backend.errors import NotFound",
    "tests/unit/stores/vector/test_mirrored.py": "import os",
    "tests/unit/stores/vector/edge/test_deeper.py": "import os",
    "tests/contract/test_module.py": "from agentic_rag_backend.stores.vector import base",
    "tests/contract/test_direct.py": "import agentic_rag_backend.stores.vector.base as base",
    "tests/contract/test_exported.py": "from agentic_rag_backend.stores.vector import Point",
    "tests/contract/test_edge.py": "from agentic_rag_backend.stores.vector.edge import Point",
    "tests/e2e/api/conftest.py": "from server import start",
    "tests/e2e/api/test_served.py": "from server import start",
    "tests/meta/test_makefile.py": "open('Makefile')",
}


@pytest.fixture(scope="module")
def program() -> ModuleType:
    """Return ``infra/tests_near.py`` as a module."""
    spec = importlib.util.spec_from_file_location("tests_near", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (
            f"{PACKAGE}/stores/vector/base.py",
            ["unit/stores/vector/test_mirrored", "contract/test_direct", "contract/test_exported", "contract/test_module"],
        ),
        (f"{PACKAGE}/stores/vector/edge.py", ["unit/stores/vector/test_mirrored", "contract/test_edge"]),
        (f"{PACKAGE}/stores/vector/__init__.py", ["unit/stores/vector/test_mirrored", "contract/test_exported"]),
        (f"{PACKAGE}/errors.py", ["unit/test_errors"]),
        ("tests/contract/test_edge.py", ["contract/test_edge"]),
        ("tests/contract/test_deleted.py", []),
        ("tests/fixtures/server.py", ["e2e/api/test_served"]),
        ("tests/e2e/api/conftest.py", ["e2e/api/test_served"]),
        ("Makefile", ["meta/test_makefile"]),
        ("docs/unknown.md", []),
    ],
)
def test_the_tests_near_one_file(program: ModuleType, changed: str, expected: list[str]) -> None:
    assert program.near([changed], SOURCES, TESTS) == [f"tests/{name}.py" for name in expected]


def test_several_files_give_each_test_once(program: ModuleType) -> None:
    found = program.near([f"{PACKAGE}/errors.py", "tests/unit/test_errors.py", "Makefile"], SOURCES, TESTS)
    assert found == ["tests/unit/test_errors.py", "tests/meta/test_makefile.py"]


def test_changed_and_new_files_differ_from_the_last_commit_and_ignored_ones_do_not(program: ModuleType, tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    for name, text in {"kept.py": "1", "changed.py": "1", "staged.py": "1", ".gitignore": "ignored.py"}.items():
        (tmp_path / name).write_text(text)
    git("add", ".")
    git("commit", "-m", "first")
    for name in ("changed.py", "staged.py", "new.py", "ignored.py"):
        (tmp_path / name).write_text("2")
    git("add", "staged.py")
    assert program.differing(tmp_path) == ["changed.py", "new.py", "staged.py"]
