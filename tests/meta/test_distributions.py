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
        pytest.param(
            "backend",
            "agentic_rag_backend",
            {"py.typed", "library.py", "cli/app.py", "knowledge/extraction/lexicon.toml", "console/static/shell.js"},
            id="product",
        ),
        pytest.param("clients/python", "agentic_rag_client", {"py.typed", "client.py", "operations.py"}, id="client"),
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


def test_no_distribution_imports_code_of_tests(root: Path) -> None:
    fixtures = {path.stem for path in (root / "tests" / "fixtures").iterdir()}
    assert imported(root / "backend" / "src") & {"agentic_rag_testing", "tests", "pytest", *fixtures} == set()
    others = {"agentic_rag_backend", "agentic_rag_testing", "tests", "pytest"}
    assert imported(root / "clients" / "python" / "src") & others == set()
    assert imported(root / "testing" / "src") & {"tests", "pytest", *fixtures} == set()


def imported(folder: Path) -> set[str]:
    """Return the top-level modules that the code of a folder imports."""
    modules: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
    return {module.split(".")[0] for module in modules}
