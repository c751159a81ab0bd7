"""How the package reads: names, sizes, homonyms and interfaces, each with a limit that a change may lower but not exceed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import agentic_rag_backend

PACKAGE = Path(agentic_rag_backend.__file__).parent


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


VAGUE = words(
    "each every found held place other others one ones own known asked named said told kept given wanted taken made seen shown "
    "left rest both whole near nearest first second last these those this that it they them all most few many some same such "
    "more usual meant owned missing counted listed placed sent read written stated ended begun done gone come"
)
"""Pronouns and participles, which say nothing about the value that they name."""
ENDINGS = ("ed", "en", "wn", "nt", "lt", "ght", "ung", "ound", "eld", "old", "aid", "ept", "iven", "aken", "ade", "een")
NOUNS_AND_VERBS = words(
    "agent argument background bound children client comment component content count default document element embed "
    "environment event experiment feed field fold golden hidden need open parent result screen seed segment speed statement "
    "tenant threshold token yield"
)
"""Words with the ending of a participle that are none."""
LIMITS: Mapping[str, float] = {
    "lines": 138_364,  # overviews, themes by documents, evaluation with judge, usage, feedback, tuning, experiments, console
    "modules over 400 lines": 13,
    "functions over 40 lines": 18,
    "vague variables in percent": 0.5,
    "functions named by a participle in percent": 2.2,
    "functions of one word in percent": 26.5,
    "class names used twice": 4,
    "module names used twice": 40,
    "folders over 15 modules": 1,
    "protocols": 36,
}


CLIENT_LIMITS: Mapping[str, float] = {
    "lines": 2_935,
    "modules over 400 lines": 0,
    "functions over 40 lines": 1,
    "vague variables in percent": 0.5,
    "functions named by a participle in percent": 0,
    "module names used twice": 0,
}
"""Limits of the Python client and its generator, without the modules that the generator writes."""
GENERATED = frozenset({"models.py", "operations.py", "parameters.py"})


@dataclass
class House:
    """The counts of a package."""

    lines: int = 0
    functions: int = 0
    variables: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    modules: Counter[str] = field(default_factory=Counter)
    folders: Counter[Path] = field(default_factory=Counter)

    def add(self, path: Path, text: str) -> None:
        """Count a module."""
        tree = ast.parse(text)
        length = text.count("\n")
        self.lines += length
        self.counts["long modules"] += length > 400
        if path.name != "__init__.py":
            self.modules[path.name] += 1
            self.folders[path.parent] += 1
        names = list(bound_names(tree))
        self.variables += len(names)
        self.counts["vague"] += sum(name.strip("_") in VAGUE for name in names)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.add_function(node)
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] += not node.name.startswith("_")
                self.counts["protocols"] += any(ast.unparse(base).partition("[")[0] == "Protocol" for base in node.bases)

    def add_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Count a function."""
        self.functions += 1
        self.counts["long functions"] += (node.end_lineno or node.lineno) - node.lineno >= 40
        if not node.name.startswith("__"):
            self.counts["one word"] += "_" not in node.name.strip("_")
            self.counts["participle"] += is_participle(node.name)

    def measure(self) -> dict[str, float]:
        """Return the measures of `LIMITS`."""
        return {
            "lines": self.lines,
            "modules over 400 lines": self.counts["long modules"],
            "functions over 40 lines": self.counts["long functions"],
            "vague variables in percent": 100 * self.counts["vague"] / self.variables,
            "functions named by a participle in percent": 100 * self.counts["participle"] / self.functions,
            "functions of one word in percent": 100 * self.counts["one word"] / self.functions,
            "class names used twice": sum(count > 1 for count in self.classes.values()),
            "module names used twice": sum(count > 1 for count in self.modules.values()),
            "folders over 15 modules": sum(count > 15 for count in self.folders.values()),
            "protocols": self.counts["protocols"],
        }


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names of variables and parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg) and node.arg not in ("self", "cls"):
            yield node.arg


def is_participle(name: str) -> bool:
    """Return whether the last word of a name is a participle, by its ending."""
    word = name.strip("_").split("_")[-1]
    return word.endswith(ENDINGS) and word not in NOUNS_AND_VERBS


@pytest.fixture(scope="module")
def measures() -> dict[str, float]:
    house = House()
    for path in PACKAGE.rglob("*.py"):
        if "migrations" not in path.parts:
            house.add(path, path.read_text(encoding="utf-8"))
    return house.measure()


@pytest.mark.parametrize("measure", LIMITS)
def test_the_package_stays_within_its_limits(measure: str, measures: Mapping[str, float]) -> None:
    assert measures[measure] <= LIMITS[measure], f"{measure}: {measures[measure]:.1f}, at most {LIMITS[measure]}"


def test_the_client_stays_within_its_limits(root: Path) -> None:
    house = House()
    for path in [*(root / "clients/python/src").rglob("*.py"), *(root / "clients/python/generator").glob("*.py")]:
        if path.name not in GENERATED:
            house.add(path, path.read_text(encoding="utf-8"))
    measures = house.measure()
    assert {measure: measures[measure] for measure in CLIENT_LIMITS if measures[measure] > CLIENT_LIMITS[measure]} == {}


def test_a_bad_module_is_measured() -> None:
    house = House()
    house.add(
        Path("a/b.py"),
        "class A(Protocol):\n    def found(self, each: int) -> int:\n        held = each\n        return held\n",
    )

    measures = house.measure()

    assert measures["vague variables in percent"] == 100
    assert measures["functions named by a participle in percent"] == 100
    assert measures["functions of one word in percent"] == 100
    assert measures["protocols"] == 1
