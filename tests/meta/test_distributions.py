"""The wheels hold the packages that they are named after, and the product needs nothing of the tests."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest


@pytest.mark.parametrize(
    ("project", "package", "members"),
    [
        pytest.param("backend", "agentic_rag_backend", {"py.typed", "library.py", "cli/app.py"}, id="product"),
        pytest.param("testing", "agentic_rag_testing", {"py.typed", "stores/vector_store.py", "models/server.py"}, id="testing"),
    ],
)
def test_the_wheel_holds_one_package(root: Path, tmp_path: Path, project: str, package: str, members: set[str]) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=root / project, check=True, capture_output=True)

    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in names} == {package}
    assert {f"{package}/{member}" for member in members} <= names
    assert not {name for name in names if "testing" in name.split("/") or "tests" in name.split("/")}


def test_the_product_imports_no_code_of_tests(root: Path) -> None:
    for path in (root / "backend" / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [module or ""]
            assert not [name for name in names if name.split(".")[0] in ("agentic_rag_testing", "tests", "pytest")], path
