"""No statement reads an attribute, awaits, and then changes what it had read: another task may have replaced the value meanwhile.

``self.written.append(await write())`` looks the list up before it waits. If another task assigns a new list to ``self.written``
during the wait, the result goes to the old one and is lost.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "backend/src/agentic_rag_backend"
CHANGES = {"add", "append", "discard", "extend", "insert", "pop", "remove", "setdefault", "update"}
"""Methods of collections that change them."""


def changes_after_a_wait(source: str) -> Iterator[int]:
    """Yield the lines that change an attribute's value with the result of an ``await`` in the same expression."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
            values: list[ast.expr] = [node.value]
        elif isinstance(node, ast.Call) and _changes_an_attribute(node.func):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
        else:
            continue
        if any(isinstance(part, ast.Await) for value in values for part in ast.walk(value)):
            yield node.lineno


def _changes_an_attribute(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in CHANGES and isinstance(function.value, ast.Attribute)


def test_the_rule_finds_what_it_is_for() -> None:
    for statement, lines in [
        ("self.written.append(await write())", [2]),
        ("self.written.extend([item async for item in read()])", []),
        ("self.written.update(zip(names, await read(), strict=True))", [2]),
        ("self.written.insert(0, object=await read())", [2]),
        ("self.total += await count()", [2]),
        ("total += await count()", []),
        ("self.total = await count()", []),
        ("written.append(await write())", []),
    ]:
        assert list(changes_after_a_wait(f"async def change(self):\n    {statement}")) == lines


def test_no_attribute_is_changed_after_a_wait() -> None:
    modules = sorted(SOURCE.rglob("*.py"))
    assert len(modules) > 500
    wrong = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path in modules
        for line in changes_after_a_wait(path.read_text(encoding="utf-8"))
    }
    assert wrong == set()
