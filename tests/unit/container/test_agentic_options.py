"""The options of agentic retrieval from settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentic_rag_backend.container.options import agentic_options
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.settings import Settings

PROMPT = "---\nname: harbour\nversion: 7\n---\n# System\nAt most {{most}}.\n# User\n{{question}}\n"


def test_the_prompt_of_the_planner_is_read_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "planner.md"

    def read(text: str | None) -> str | None:
        if text is not None:
            file.write_text(text, encoding="utf-8")
        prompt = agentic_options(Settings(agentic_planner_prompt_file=file)).planner_prompt
        return prompt.id if prompt is not None else None

    with pytest.raises(ConfigurationError, match=r"planner\.md cannot be read: No such file"):
        read(None)
    assert read(PROMPT) == "harbour@7"
    for text, message in (
        ("", "is empty"),
        (PROMPT.replace("{{question}}", "Plan."), "must contain the placeholder {{question}}"),
        (PROMPT.replace("{{most}}", "{{passages}}"), "unknown placeholder {{passages}}; known are most, question"),
        (PROMPT.replace("# User", "# Users"), "must have the sections '# System' and '# User'"),
    ):
        with pytest.raises(ConfigurationError, match=message.replace("{", r"\{")):
            read(text)
    assert agentic_options(Settings()).planner_prompt is None
    assert agentic_options(Settings(agentic_session_s=90)).session_s == 90
