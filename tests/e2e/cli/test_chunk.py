"""``chunk preview`` as a separate process."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.cli.conftest import CommandLine

pytestmark = pytest.mark.slow

HARBOUR = "# Harbour\n\nDelphine Aster leads the harbour. The basin is deep, and the cranes are tall."
TEXT = f"{HARBOUR}\n\n# Bank\n\nAgnes Thorley founded the bank."


def test_a_preview_shows_the_chunks_and_stores_nothing(cli: CommandLine) -> None:
    Path(cli.folder, "notes.md").write_text(TEXT)
    shown = cli("chunk", "preview", "notes.md", "--strategy", "structure", "--chunk-size", "20")
    assert (shown.code, shown.err) == (0, "")
    assert "lines 1-3" in shown.out
    assert "Delphine Aster leads the harbour." in shown.out
    assert "(structure, at most 20 tokens, overlap 2)" in shown.out
    found = cli("chunk", "preview", "notes.md", "--json").json
    assert (found["count"], found["chunks"][0]["content"]) == (1, TEXT)
    assert cli("documents", "list", "--json").json == []
    small = cli("chunk", "preview", "notes.md", "--strategy", "parent_child", "--chunk-size", "20", "--parent-size", "40")
    assert "1 parent, at most 40 tokens" in small.out
    stated = cli("chunk", "preview", "notes.md", "--strategy", "proposition")
    assert "proposition chunking needs a language model (LLM=openai); none is configured" in stated.err
    missing = cli("chunk", "preview", "missing.md")
    assert (missing.code, missing.err) == (2, "error: missing.md cannot be read: No such file or directory\n")


def test_questions_are_asked_for_and_found(cli: CommandLine) -> None:
    Path(cli.folder, "beacon.md").write_text("The beacon of Sarn was built in 1932 by Ilse Harrow.\n")
    taken = cli("ingest", "beacon.md", "--questions", "patterns", "--questions-per-chunk", "1")
    assert taken.code == 0, taken.err
    shown = cli("search", "Who built the beacon of Sarn?", "--strategy", "hybrid", "--synthetic-questions")
    assert "found by the question: Who built the beacon of Sarn?" in shown.out
    assert "found by the question" not in cli("search", "Who built the beacon of Sarn?", "--strategy", "hybrid").out
    bad = cli("ingest", "beacon.md", "--questions-per-chunk", "2")
    assert (bad.code, "--questions-per-chunk needs --questions" in bad.err) == (2, True)
