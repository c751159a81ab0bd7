"""Run the tests near changed files. These are the files that differ from the last commit, or the named files.

    python infra/tests_near.py [FILE ...] [-- PYTEST_ARGUMENT ...]

A test file is near a changed file if it is the changed file, if it imports the changed module (directly, or by a name that the
module's package exports), or if it is in the folder of `tests/unit` that mirrors the module's folder. A changed `conftest.py` is
near every test of its folder. A file that is not a module is near the tests that contain its name. The exit code is pytest's.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

PACKAGE = "agentic_rag_backend"
SOURCE = PurePosixPath("backend/src")
ROOTS = (SOURCE, PurePosixPath("testing/src"), PurePosixPath("clients/python/src"), PurePosixPath("tests/fixtures"))
"""Folders from which modules are imported by their full name."""
UNIT = PurePosixPath("tests/unit")
NO_TESTS = 5
"""pytest's exit code when its options left no test."""


def module_of(path: str) -> str | None:
    """Return the name with which tests import the Python file at ``path``, or None.

    A module below one of `ROOTS` has its full name. A helper elsewhere in `tests/` is imported by its file's name.
    """
    file = PurePosixPath(path)
    if file.suffix != ".py":
        return None
    for root in ROOTS:
        if file.is_relative_to(root):
            parts = file.relative_to(root).with_suffix("").parts
            return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return file.stem if file.is_relative_to("tests") and file.name != "conftest.py" else None


def imported(source: str) -> set[tuple[str, str | None]]:
    """Return the imports of ``source``, also in functions: (module, name) of `from module import name`, else (module, None)."""
    found: set[tuple[str, str | None]] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {(each.name, None) for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {(node.module, each.name) for each in node.names}
    return found


def exports(sources: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Return the module behind each name that a package exports: {(package, name): module}."""
    found: dict[tuple[str, str], str] = {}
    for path, source in sources.items():
        package = module_of(path)
        if package is not None and path.endswith("/__init__.py"):
            found |= {(package, name): module for module, name in imported(source) if name is not None}
    return found


def used(source: str, modules: Iterable[str], exported: Mapping[tuple[str, str], str]) -> set[str]:
    """Return the members of ``modules`` that ``source`` imports."""
    known, found = set(modules), set()
    for module, name in imported(source):
        if name is None:
            found.add(module)
        elif f"{module}.{name}" in known:
            found.add(f"{module}.{name}")
        else:
            found.add(module)
            while (module, name) in exported and exported[module, name] != module:
                module = exported[module, name]
                found.add(module)
    return found & known


def near(changed: Iterable[str], sources: Mapping[str, str], tests: Mapping[str, str]) -> list[str]:
    """Return the test files near ``changed`` files, unit tests first.

    Args:
        changed: paths from the root of the repository, with forward slashes.
        sources: the text of each Python file of the package, by path.
        tests: the text of each Python file below `tests/`, by path.
    """
    runs = {path for path in tests if PurePosixPath(path).name.startswith("test_")}
    exported = exports(sources)
    known = {module for path in sources if (module := module_of(path))}
    found: set[str] = set()
    for path in changed:
        file, module = PurePosixPath(path), module_of(path)
        if path in runs:
            found.add(path)
        elif file.name == "conftest.py":
            found |= {test for test in runs if PurePosixPath(test).is_relative_to(file.parent)}
        elif module is None:
            found |= {test for test in runs if file.name in tests[test]}
        else:
            modules = known | {module}
            found |= {test for test in runs if module in used(tests[test], modules, exported)}
            if file.is_relative_to(SOURCE):
                mirror = UNIT / file.parent.relative_to(SOURCE / PACKAGE)
                found |= {test for test in runs if PurePosixPath(test).parent == mirror}
    return sorted(found, key=lambda test: (not PurePosixPath(test).is_relative_to(UNIT), test))


def differing(root: Path) -> list[str]:
    """Return the paths that differ from the last commit, and untracked paths that are not ignored."""
    commands = (["diff", "--name-only", "HEAD"], ["ls-files", "--others", "--exclude-standard"])
    printed = [subprocess.run(["git", *each], cwd=root, capture_output=True, text=True, check=True).stdout for each in commands]
    return sorted({line for text in printed for line in text.splitlines()})


def read(root: Path, folder: PurePosixPath) -> dict[str, str]:
    """Return the text of every Python file below ``folder``, by its path from ``root``."""
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in (root / folder).rglob("*.py")}


def main(arguments: Sequence[str]) -> int:
    """Find the tests and run them; return the exit code."""
    root = Path(__file__).resolve().parents[1]
    split = list(arguments).index("--") if "--" in arguments else len(arguments)
    files, options = arguments[:split], arguments[split + 1 :]
    changed = [Path(each).resolve().relative_to(root).as_posix() for each in files] or differing(root)
    sources = {path: text for folder in ROOTS for path, text in read(root, folder).items()}
    found = near(changed, sources, read(root, PurePosixPath("tests")))
    print(f"{len(changed)} changed files, {len(found)} test files near them")
    for test in found:
        print(f"  {test}", flush=True)
    if not found:
        return 0
    code = subprocess.run([sys.executable, "-m", "pytest", *options, *found], cwd=root, check=False).returncode
    return 0 if code == NO_TESTS else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
