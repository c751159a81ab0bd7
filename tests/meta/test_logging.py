"""Every module logs in the same way: `_log = get_logger(__name__)`, an event in snake_case, key-value fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "backend/src/agentic_rag_backend"
STANDARD = {
    "telemetry/logs.py": "makes our loggers; sets levels and handler of the standard library, to which structlog writes",
    "cli/command.py": "changes what that handler writes to",
    "documents/parsing/pdf/opening.py": "sets the level of pypdfium2, which warns of every XFA form",
    "plugins/graphiti/sdk.py": "sets the level of Graphiti, whose warnings quote documents",
}
"""Modules that use the standard library's loggers, and the reason."""
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")


def test_every_logger_is_made_alike() -> None:
    made = [(name, line) for name, source in modules() for line in source.splitlines() if "get_logger(" in line]
    made = [each for each in made if each[0] != "telemetry/logs.py"]
    assert len(made) > 20
    assert [each for each in made if each[1] != "_log = get_logger(__name__)"] == []


def test_the_standard_library_logs_only_where_there_is_a_reason() -> None:
    assert {name for name, source in modules() if "logging.getLogger(" in source} == set(STANDARD)


def test_events_are_named_in_snake_case_and_take_fields_by_name() -> None:
    seen, wrong = 0, []
    for name, source in modules():
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="_log"), attr=level), args=[event, *more]) if level in LEVELS:
                    seen += 1
                    text = event.value if isinstance(event, ast.Constant) else None
                    if more or not isinstance(text, str) or not re.fullmatch("[a-z][a-z0-9_]*", text):
                        wrong.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert seen > 50
    assert wrong == []
