"""Every dependency is used, declared, documented and locked. The locks contain no hosts and no folders of a machine."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

LOCKS = ("requirements.lock", "requirements-server.lock", "requirements-build.lock", "requirements-dev.lock")
FRAMEWORKS = "../clients/python/requirements-frameworks.lock"
BUILD = "build"
CLIENT = "clients/python"
PROGRAMS: Mapping[str, tuple[str, str]] = {
    "editables": ("Makefile", "--editable backend"),
    "hatchling": ("backend/pyproject.toml", 'build-backend = "hatchling.build"'),
    "import-linter": ("Makefile", "$(BIN)/lint-imports"),
    "mypy": ("Makefile", "$(BIN)/mypy"),
    "nanoidp": ("tests/e2e/processes/test_identity_provider.py", '"-m", "nanoidp"'),
    "neo4j-rust-ext": ("docs/reference/dependencies.md", "wire format of the Neo4j driver"),  # the driver imports it
    "pytest-cov": ("Makefile", "--cov="),
    "pytest-timeout": ("pytest.ini", "timeout"),
    "pytest-xdist": ("Makefile", "-n auto"),
    "ruff": ("Makefile", "$(BIN)/ruff"),
    "uv": ("Makefile", "$(BIN)/uv"),
}
"""Packages that no code of the checkout imports: the file and the text that use each of them."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_STUBS = re.compile(r"types-|-stubs")


def canonical(requirement: str) -> str:
    """Return the normalised name of a requirement (PEP 503)."""
    found = _NAME.match(requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def declared(root: Path, folder: str = "backend") -> dict[str, set[str]]:
    """Return the required packages of a project's ``pyproject.toml``: at run time, by extra, and by group."""
    content = tomllib.loads((root / folder / "pyproject.toml").read_text(encoding="utf-8"))
    project = content["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"], **content["dependency-groups"]}
    return {group: {canonical(each) for each in asked} - {project["name"]} for group, asked in groups.items()}


@cache
def distributions() -> Mapping[str, Sequence[str]]:
    """Return the names of the packages that install each top-level module."""
    return {module: [canonical(name) for name in names] for module, names in packages_distributions().items()}


def trees(folders: Iterable[Path]) -> Iterator[ast.AST]:
    for folder in folders:
        for path in folder.rglob("*.py"):
            yield ast.parse(path.read_text(encoding="utf-8"))


def imported_modules(folders: Sequence[Path]) -> set[str]:
    """Return the top-level modules that the code imports, without the standard library and the code's own modules."""
    modules = set()
    for node in (node for tree in trees(folders) for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules.add(node.module or "")
    files = [path for folder in folders for path in folder.rglob("*.py")]
    local = {path.parent.name if path.name == "__init__.py" else path.stem for path in files}
    local |= {"agentic_rag_backend", "agentic_rag_client", "agentic_rag_testing", "generator", "tests"}
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - (local - distributions().keys())


def loaded_by_name(folders: Sequence[Path]) -> set[str]:
    """Return the modules and packages that string constants name: data files, grammars and optional packages."""
    constants = (node.value for tree in trees(folders) for node in ast.walk(tree) if isinstance(node, ast.Constant))
    words = {word for value in constants if isinstance(value, str) and len(value) < 100 for word in value.split()}
    return {re.split(r"[/:]", word)[0] for word in words}


def packages_of(modules: Iterable[str]) -> set[str]:
    return {name for module in modules for name in distributions().get(module, ())}


@pytest.mark.parametrize(
    ("folders", "groups"),
    [
        pytest.param(("backend/src",), ("", "server", "dspy", "telemetry"), id="product"),
        pytest.param(("testing/src", "tests", "examples", "infra"), ("", "server", "dspy", "telemetry", "dev"), id="tests"),
    ],
)
def test_every_import_is_of_a_declared_package(root: Path, folders: Sequence[str], groups: Sequence[str]) -> None:
    modules = imported_modules([root / folder for folder in folders])
    allowed = set().union(*(declared(root)[group] for group in groups))

    undeclared = {module for module in modules if not allowed.intersection(distributions().get(module, ()))}
    assert undeclared == set(), "import what pyproject.toml declares, or declare it"


def test_the_client_imports_what_it_declares(root: Path) -> None:
    modules = imported_modules([root / CLIENT / "src"])
    assert modules == {"httpx2", "pydantic", "langchain_core", "llama_index"}  # and haystack, in a module of that name
    packages = declared(root, CLIENT)
    assert packages[""] == {"httpx2", "pydantic"}
    extras = {"haystack": {"haystack-ai"}, "langchain": {"langchain-core"}, "llamaindex": {"llama-index-core"}}
    assert {extra: packages[extra] for extra in extras} == extras
    assert set().union(*packages.values()) <= pinned_packages(root / "backend" / FRAMEWORKS)


def test_every_declared_package_is_used(root: Path) -> None:
    product, tests = [root / "backend" / "src"], [root / "testing", root / "tests", root / "examples", root / "infra"]
    named = loaded_by_name(product)
    used = packages_of(imported_modules(product) | named) | {canonical(name) for name in named if _NAME.fullmatch(name)}
    used_by_tests = packages_of(imported_modules(tests))
    for group, packages in declared(root).items():
        known = used | used_by_tests if group == "dev" else used
        stubs = {name for name in packages if _STUBS.search(name) and _STUBS.sub("", name) in known}
        assert packages - known - stubs - PROGRAMS.keys() == set(), f"nothing uses these packages of the group {group!r}"


def test_programs_are_not_imported_and_are_used(root: Path) -> None:
    assert PROGRAMS.keys() <= set().union(*declared(root).values())
    assert not PROGRAMS.keys() & packages_of(imported_modules([root / "backend" / "src", root / "testing", root / "tests"]))
    for name, (path, text) in PROGRAMS.items():
        assert text in (root / path).read_text(encoding="utf-8"), f"{path} does not use {name}"


def test_no_package_that_only_builds_is_locked_for_the_run_time(root: Path) -> None:
    pinned = {name: pinned_packages(root / "backend" / name) for name in LOCKS}

    for name in ("requirements.lock", "requirements-server.lock"):
        assert not declared(root)[BUILD] & pinned[name]
    assert declared(root)[BUILD] <= pinned["requirements-build.lock"]


def test_every_dependency_is_described_once(root: Path, table_rows: Callable[[Path], Sequence[Sequence[str]]]) -> None:
    described = [canonical(row[0].strip("`")) for row in table_rows(root / "docs/reference/dependencies.md")]

    assert sorted(described) == sorted(set().union(*declared(root).values(), *declared(root, CLIENT).values()))


def test_every_description_is_whole(root: Path, table_rows: Callable[[Path], Sequence[Sequence[str]]]) -> None:
    for row in table_rows(root / "docs/reference/dependencies.md"):
        assert len(row) == 5, row
        assert all(row), row


@pytest.mark.parametrize("name", [*LOCKS, FRAMEWORKS])
def test_locks_name_no_host_and_no_folder(root: Path, name: str) -> None:
    lines = (root / "backend" / name).read_text(encoding="utf-8").splitlines()

    assert not [line for line in lines if "://" in line or line.startswith("-") or re.search(r"(^|[\s@])/\w", line)]


def pinned_packages(lock: Path) -> set[str]:
    """Return the packages of a lock file, of which every one must have hashes."""
    text = lock.read_text(encoding="utf-8")
    entries = re.findall(
        r"^([A-Za-z0-9._-]+)==\S+(?: ; [^\n]+)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE
    )
    assert len(entries) == len(re.findall(r"^\w[^\n]*==", text, re.MULTILINE)), f"{lock.name} has an entry without hashes"
    return {canonical(name) for name, _ in entries}


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("requirements.lock", ("",)),
        ("requirements-server.lock", ("", "server")),
        ("requirements-build.lock", (BUILD,)),
        ("requirements-dev.lock", ("", BUILD, "dev", "dspy", "server")),
    ],
)
def test_locks_pin_every_dependency_with_hashes(root: Path, name: str, groups: tuple[str, ...]) -> None:
    pinned = pinned_packages(root / "backend" / name)

    for group in groups:
        assert declared(root)[group] <= pinned
