"""Every error code has its row in ``docs/reference/errors.md``, with its status and title."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from pathlib import Path

import agentic_rag_backend
from agentic_rag_backend.errors import AgenticRagError


def all_errors() -> set[type[AgenticRagError]]:
    """Return every error class of the package, including those defined in single modules."""
    for module in pkgutil.walk_packages(agentic_rag_backend.__path__, f"{agentic_rag_backend.__name__}."):
        if ".migrations" not in module.name:
            importlib.import_module(module.name)
    found: set[type[AgenticRagError]] = set()
    waiting = [AgenticRagError]
    while waiting:
        error = waiting.pop()
        found.add(error)
        waiting.extend(error.__subclasses__())
    return {error for error in found if error.__module__.startswith(f"{agentic_rag_backend.__name__}.")}


def test_every_error_has_its_row_and_every_row_its_error(
    root: Path, table_rows: Callable[[Path], Sequence[Sequence[str]]]
) -> None:
    rows = {(row[0].strip("`"), row[1], row[2]) for row in table_rows(root / "docs/reference/errors.md") if len(row) == 4}

    # A class without its own code looks like its parent to a caller.
    assert rows == {(error.code, str(error.status), error.title) for error in all_errors() if "code" in vars(error)}


def test_no_two_errors_share_a_code() -> None:
    codes = [error.code for error in all_errors() if "code" in vars(error)]

    assert len(codes) == len(set(codes))
