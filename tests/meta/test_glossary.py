"""Classes in the glossary exist. The documentation lists every decision record, and the layers in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

Rows = Sequence[Sequence[str]]

_CLASS_NAME = re.compile(r"`([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)`")
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
_LISTED = re.compile(r"^(\d+)\. \[([^\]]+)\]\(decisions/([^)]+)\)$", re.MULTILINE)


def class_names(text: str) -> set[str]:
    """Return the terms in backticks that look like class names: ``TenantId``, but neither ``DATA_DIR`` nor ``read``."""
    return set(_CLASS_NAME.findall(text))


def package_classes(root: Path) -> set[str]:
    """Return the names of all classes at the top level of the package's modules."""
    modules = (root / "backend" / "src" / "agentic_rag_backend").rglob("*.py")
    return {name for module in modules for name in _CLASS.findall(module.read_text(encoding="utf-8"))}


def unlisted_decisions(index: str, folder: Path) -> list[str]:
    """Return the decision records that the index does not list with number and title, in order."""
    listed = [(number, title, name) for number, title, name in _LISTED.findall(index)]
    expected = []
    for path in sorted(folder.glob("[0-9]*.md")):
        number, _, title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").partition(". ")
        expected.append((number, title, path.name))
    return sorted(name for *_, name in set(expected) ^ set(listed)) or ([] if listed == expected else ["order"])


def test_every_class_name_in_the_glossary_exists(root: Path) -> None:
    named = class_names((root / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8"))

    assert named
    assert sorted(named - package_classes(root)) == []


def test_class_names_are_distinguished_from_other_terms() -> None:
    assert class_names("`TenantId` `Job` `DATA_DIR` `read` `t_` TenantId `DELETE`") == {"TenantId", "Job"}


def test_every_glossary_term_is_defined_once(root: Path, table_rows: Callable[[Path], Rows]) -> None:
    rows = table_rows(root / "docs" / "reference" / "glossary.md")
    terms = [term.strip() for row in rows for term in row[0].split(",")]

    assert all(len(row) == 3 and row[1] for row in rows)
    assert len(terms) == len(set(terms))


def test_every_decision_record_is_listed(root: Path) -> None:
    index = (root / "docs" / "README.md").read_text(encoding="utf-8")

    assert unlisted_decisions(index, root / "docs" / "decisions") == []


def test_an_unlisted_decision_record_is_found(tmp_path: Path) -> None:
    (tmp_path / "0001-one.md").write_text("# 1. One\n", encoding="utf-8")
    (tmp_path / "0002-two.md").write_text("# 2. Two\n", encoding="utf-8")

    assert unlisted_decisions("1. [One](decisions/0001-one.md)\n", tmp_path) == ["0002-two.md"]
    assert unlisted_decisions("1. [One](decisions/0001-one.md)\n2. [Three](decisions/0002-two.md)\n", tmp_path) == [
        "0002-two.md",
        "0002-two.md",
    ]


def test_the_architecture_page_lists_the_layers_in_order(root: Path, table_rows: Callable[[Path], Rows]) -> None:
    contract = (root / "backend" / ".importlinter").read_text(encoding="utf-8").partition("layers =\n")[2].partition("\n\n")[0]
    layers = [re.findall(r"agentic_rag_backend\.(\w+)", line) for line in contract.splitlines()]
    listed = [re.findall(r"`(\w+)`", row[1]) for row in table_rows(root / "docs" / "guide" / "architecture.md")]
    rows = [names for names in listed if names and set(names) <= {name for layer in layers for name in layer}]

    assert [name for names in rows for name in names] == [name for layer in layers for name in layer]
