"""Run the demo and the unit tests on every supported Python of this machine, each in a virtual environment of its own.

    python infra/test_pythons.py [--keep FOLDER] [--only 3.12] [--others | --newest]
                                 [--sensitive | --without-tests] [--processes N]

It finds one interpreter for each minor version from 3.11 on: on PATH, and among pyenv's versions. It installs the universal
lock file (``backend/requirements-dev.lock``) with hashes, imports every module with the package's warnings as errors, runs
``agentic-rag demo`` on a part of the examples, and then the unit tests, except property tests and those marked ``slow`` or
``alone``. It prints a table and ends with 0 only if everything passed everywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = ROOT / ".venv" / "bin" / "uv"
OLDEST = (3, 11)
LIMIT_S = 3600
_QUESTION = "Who has to pay for lost gear under the Narrows Accord?"
_DOCUMENTS = ("narrows-accord-2012.md", "courier-2011-hearing-at-scarrow.md", "fishers-association-2019-letter.txt")
SENSITIVE = ("api", "cli", "container", "domain", "jobs")
"""Layers whose code depends most on the version: asyncio, typing, dataclasses, argument parsing, threads and processes."""
_IMPORTS = """
import importlib, pkgutil, warnings
warnings.filterwarnings("error", module="agentic_rag_backend")
import agentic_rag_backend
for each in pkgutil.walk_packages(agentic_rag_backend.__path__, "agentic_rag_backend."):
    if ".migrations." not in each.name and not each.name.endswith("__main__"):
        importlib.import_module(each.name)
"""
_NAME = re.compile(r"python3\.(\d+)$")
_ASK = "import json, sqlite3, sys; print(json.dumps([sys.version_info[:3], sqlite3.sqlite_version]))"


@dataclass(frozen=True)
class Interpreter:
    """A Python that works."""

    path: Path
    version: tuple[int, int, int]
    sqlite: str

    @property
    def name(self) -> str:
        """The version in its usual form."""
        return ".".join(map(str, self.version))

    @property
    def minor(self) -> str:
        """Major and minor version."""
        return self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Outcome:
    """Result of one step: the problem, if any, and its duration."""

    step: str
    problem: str
    took_s: float


def candidates() -> Iterator[Path]:
    """Yield every file that may be a Python 3: on PATH first, then of pyenv."""
    for folder in map(Path, os.environ.get("PATH", "").split(os.pathsep)):
        if folder.is_dir():
            yield from sorted(file for file in folder.iterdir() if _NAME.fullmatch(file.name))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    if pyenv.is_dir():
        yield from sorted(pyenv.glob("3.*/bin/python"), key=_numbers)


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.parents[1].name)]


def working(path: Path) -> Interpreter | None:
    """Return the interpreter at ``path``. None if it does not run, such as a shim of a version that is not selected."""
    try:
        done = subprocess.run([path, "-c", _ASK], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return None
    if done.returncode != 0:
        return None
    version, sqlite = json.loads(done.stdout)
    major, minor, micro = version
    return Interpreter(path, (major, minor, micro), sqlite)


def interpreters(paths: Iterator[Path]) -> list[Interpreter]:
    """Return the first working interpreter of each supported minor version, in order."""
    found: dict[tuple[int, int], Interpreter] = {}
    for path in paths:
        named = _NAME.fullmatch(path.name)
        if named and ((3, int(named[1])) < OLDEST or (3, int(named[1])) in found):
            continue
        interpreter = working(path)
        if interpreter is not None and interpreter.version[:2] >= OLDEST:
            found.setdefault(interpreter.version[:2], interpreter)
    return [found[minor] for minor in sorted(found)]


def run(step: str, command: Sequence[str | Path], *, cwd: Path, environment: dict[str, str]) -> Outcome:
    """Run one step; its output is shown only if it fails."""
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S
        )
        problem = "" if done.returncode == 0 else f"exit code {done.returncode}"
        output = done.stdout
    except subprocess.TimeoutExpired as expired:
        problem, output = f"not finished after {LIMIT_S} s", str(expired.stdout or "")
    if problem:
        print(output[-8000:], flush=True)
    return Outcome(step, problem, time.monotonic() - begun)


def steps(
    interpreter: Interpreter, folder: Path, processes: str, layers: Sequence[str] = ("",)
) -> Iterator[tuple[str, list[str | Path], Path]]:
    """Yield name, command and working folder of each step, in order.

    ``layers`` are folders of `tests/unit`, all by default; without any, no unit test runs.
    """
    python = folder / "venv" / "bin" / "python"
    backend = ROOT / "backend"
    install = [sys.executable, ROOT / "infra" / "install.py", backend / "requirements-dev.lock"]
    install += ["--editable", backend, ROOT / "testing", ROOT / "clients" / "python"]
    yield "venv", [UV, "venv", "--quiet", "--python", interpreter.path, folder / "venv"], folder
    yield "install", [*install, "--python", python], folder
    yield "imports", [python, "-c", _IMPORTS], folder
    corpus = folder / "corpus"
    corpus.mkdir()
    for name in _DOCUMENTS:
        shutil.copy(ROOT / "examples" / "corpus" / name, corpus)
    demo = [folder / "venv" / "bin" / "agentic-rag", "demo", "--data-dir", "data", "--corpus", corpus, "--question", _QUESTION]
    yield "demo", demo, folder
    if not layers:
        return
    tests = ["-m", "pytest", *(f"tests/unit/{layer}" for layer in layers), "-q", "-p", "no:cacheprovider"]
    tests += ["-m", "not slow and not alone and not hypothesis"]
    tests += ["-n", processes, "--dist", "loadfile"]
    yield "unit tests", [python, *tests], ROOT


def tried(interpreter: Interpreter, folder: Path, processes: str, layers: Sequence[str]) -> list[Outcome]:
    """Run the steps until one fails, and return their results."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    outcomes = []
    for step, command, cwd in steps(interpreter, folder, processes, layers):
        print(f"Python {interpreter.name}: {step}", flush=True)
        outcomes.append(run(step, command, cwd=cwd, environment={**kept, "HYPOTHESIS_STORAGE_DIRECTORY": str(folder)}))
        if outcomes[-1].problem:
            break
    return outcomes


def summary(results: Sequence[tuple[Interpreter, Sequence[Outcome]]]) -> str:
    """Return the table that ends the run."""
    lines = [f"{'Python':<10}{'SQLite':<10}result"]
    for interpreter, outcomes in results:
        times = ", ".join(f"{outcome.step} {outcome.took_s:.0f} s" for outcome in outcomes)
        failed = next((f"FAILED: {outcome.step} ({outcome.problem}); " for outcome in outcomes if outcome.problem), "passed; ")
        lines.append(f"{interpreter.name:<10}{interpreter.sqlite:<10}{failed}{times}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Try each interpreter; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="3.N", help="only these minor versions")
    parser.add_argument("--others", action="store_true", help="skip this interpreter's minor version, which `make test` has tested")
    parser.add_argument("--newest", action="store_true", help="of the others, only the newest")
    tests = parser.add_mutually_exclusive_group()
    tests.add_argument("--sensitive", action="store_true", help=f"only the unit tests of {', '.join(SENSITIVE)}")
    tests.add_argument("--without-tests", action="store_true", help="no unit tests: imports and the demo")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="an empty folder for the environments, which is not removed")
    parser.add_argument("--processes", default="auto", metavar="N", help="that run the unit tests (default: one more than cores)")
    given = parser.parse_args(arguments)
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    every = interpreters(candidates())
    found = [each for each in every if not given.only or each.minor in given.only]
    if given.others or given.newest:
        found = [each for each in found if each.minor != own]
        found = found[-1:] if given.newest else found
        if every and not found:
            print(f"the only Python from 3.11 on is {own}, which `make test` has tested", flush=True)
            return 0
    if not found:
        print("found no Python from 3.11 on, on PATH or among pyenv's versions", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="pythons-") as temporary:
        folder = (given.keep or Path(temporary)).absolute()
        layers = SENSITIVE if given.sensitive else () if given.without_tests else ("",)
        results = [(each, tried(each, folder / each.name, given.processes, layers)) for each in found]
    print(summary(results), flush=True)
    return 1 if any(outcome.problem for _, outcomes in results for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
