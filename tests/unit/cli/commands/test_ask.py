"""The turns of ``ask --history``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentic_rag_backend.cli.commands.questions import read_history
from agentic_rag_backend.errors import InvalidRequest


def test_texts_are_turns_of_user_and_assistant() -> None:
    assert read_history(()) == []
    assert read_history(["Who?", "Ada.", "When?"]) == [
        {"role": "user", "content": "Who?"},
        {"role": "assistant", "content": "Ada."},
        {"role": "user", "content": "When?"},
    ]


def test_a_file_holds_turns(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Who?"}]
    file = tmp_path / "turns.json"
    file.write_text(json.dumps(turns))
    assert read_history([str(file)]) == turns


@pytest.mark.parametrize("text", ["{", "{}", '["Who?"]', None])
def test_a_bad_file_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "turns.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InvalidRequest, match=r"turns\.json"):
        read_history([str(file)])
