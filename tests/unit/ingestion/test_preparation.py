"""Metadata that a file gives: facts of its parser, and a limited number of warnings."""

from __future__ import annotations

from agentic_rag_backend.ingestion.parsing.base import ParsedDocument
from agentic_rag_backend.ingestion.preparation import MAX_WARNING_CHARACTERS, MAX_WARNINGS, _facts


def test_warnings_are_kept_in_the_metadata_up_to_limits() -> None:
    assert _facts(ParsedDocument(text="x", metadata={"pages": 2})) == {"pages": 2}
    few = tuple(f"warning {number}" for number in range(MAX_WARNINGS))
    assert _facts(ParsedDocument(text="x", warnings=few)) == {"warnings": list(few)}
    many = _facts(ParsedDocument(text="x", warnings=(*few, "w" * 500, "one more")))["warnings"]
    assert many == [*few[:-1], "3 more warnings are not kept"]
    (long,) = _facts(ParsedDocument(text="x", warnings=("w" * 500,)))["warnings"]
    assert long == "w" * (MAX_WARNING_CHARACTERS - 1) + "…"
