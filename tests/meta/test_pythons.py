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


def _fake(folder: Path, name: str, prints: str, code: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{prints}'\nexit {code}\n")
    path.chmod(0o755)
    return path


def test_one_working_interpreter_of_each_minor_version_is_found(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shims, system, pyenv = tmp_path / "shims", tmp_path / "bin", tmp_path / "pyenv"
    _fake(shims, "python3.13", "not selected", code=127)
    _fake(shims, "python3.12-config", '[[3, 12, 9], "3.45.0"]')
    _fake(system, "python3.9", '[[3, 9, 1], "3.40.1"]')
    _fake(system, "python3.11", '[[3, 11, 7], "3.40.1"]')
    _fake(pyenv / "versions" / "3.11.9" / "bin", "python", '[[3, 11, 9], "3.40.1"]')
    _fake(pyenv / "versions" / "3.13.0" / "bin", "python", '[[3, 13, 0], "3.42.0"]')
    _fake(pyenv / "versions" / "3.10.2" / "bin", "python", '[[3, 10, 2], "3.40.1"]')
    monkeypatch.setenv("PATH", f"{shims}:{tmp_path / 'nowhere'}:{system}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(pyenv))

    found = {each.name: each.sqlite for each in program.interpreters(program.candidates()) if tmp_path in each.path.parents}

    assert found == {"3.11.7": "3.40.1", "3.13.0": "3.42.0"}


def test_a_step_that_fails_ends_that_python_and_the_whole_run(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interpreter = program.Interpreter(Path(sys.executable), (3, 12, 1), "3.40.1")
    ways = {"install": ["true"], "demo": ["sh", "-c", "echo it broke; exit 3"], "unit tests": ["touch", "ran"]}
    monkeypatch.setattr(program, "interpreters", lambda paths: [interpreter])
    monkeypatch.setattr(program, "steps", lambda each, *_: ((name, way, tmp_path) for name, way in ways.items()))

    assert program.main(["--keep", str(tmp_path)]) == 1

    shown = capsys.readouterr().out
    assert "it broke" in shown
    assert re.search(r"^3\.12\.1 +3\.40\.1 +FAILED: demo \(exit code 3\); install \d+ s, demo \d+ s$", shown, re.MULTILINE)
    assert not (tmp_path / "ran").exists()


def test_the_unit_tests_run_in_the_given_number_of_processes(program: ModuleType, tmp_path: Path) -> None:
    interpreter = program.Interpreter(Path(sys.executable), (3, 12, 1), "3.40.1")
    *_, (step, command, _) = program.steps(interpreter, tmp_path, "1")
    assert step == "unit tests"
    assert command[command.index("-n") + 1] == "1"


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
