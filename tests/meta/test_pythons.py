"""All files agree on the supported Python versions, and the program that tests them finds and reports them."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def program() -> ModuleType:
    """Return ``infra/test_pythons.py`` as a module."""
    spec = importlib.util.spec_from_file_location("pythons", ROOT / "infra" / "test_pythons.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pythons"] = module
    spec.loader.exec_module(module)
    return module


def test_deep_runs_have_the_unit_tests_of_the_sensitive_layers_and_the_gate_has_none(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = program.Interpreter(Path(sys.executable), (3, 12, 1), "3.40.1")
    given: list[list[str]] = []

    def run(step: str, command: list[str], **_: object) -> object:
        given.append([str(each) for each in command])
        return program.Outcome(step, "", 0.0)

    monkeypatch.setattr(program, "interpreters", lambda paths: [interpreter])
    monkeypatch.setattr(program, "run", run)
    for name, arguments in (("part", ["--sensitive"]), ("all", []), ("none", ["--without-tests"])):
        assert program.main([*arguments, "--keep", str(tmp_path / name)]) == 0
    part, whole = (command for command in given if "pytest" in command)
    folders = [ROOT / each for each in part if each.startswith("tests/unit/")]
    assert {folder.name for folder in folders} == set(program.SENSITIVE)
    assert all(any(folder.glob("**/test_*.py")) for folder in folders)
    assert [each for each in whole if each.startswith("tests/unit")] == ["tests/unit/"]
    assert "--sensitive" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--without-tests" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_supported_versions_are_said_alike_in_packaging_readme_and_makefile() -> None:
    project = tomllib.loads((ROOT / "backend" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert named[0] == oldest
    assert oldest in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(version in readme for version in named)
    assert "test-pythons" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
