"""Prompt files: parsing, validation, and document text that cannot leave its fence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.errors import ConfigurationError, InvalidRequest
from agentic_rag_backend.prompts import built_in, built_in_names, fence, parse, read_file

FILE = """---
name: sample
version: 3
description: A sample.
---
# System
Be brief, {{tone}}.
# User
{{passages}}
"""


@pytest.mark.parametrize("name", built_in_names())
def test_shipped_prompts_are_complete(name: str) -> None:
    prompt = built_in(name)
    assert prompt.name == name
    assert re.fullmatch(r"\d+", prompt.version)
    assert prompt.description
    assert prompt.system
    assert prompt.user


def test_answer_prompts_ask_for_what_the_answer_service_gives() -> None:
    assert built_in("answer").placeholders == {"passages", "question", "refusal"}
    assert built_in("dual_level").placeholders == {"passages", "question", "refusal", "themes"}


def test_header_and_sections() -> None:
    prompt = parse(FILE)
    assert prompt.id == "sample@3"
    assert prompt.render({"tone": "please", "passages": "P"}) == ("Be brief, please.", "P")


def test_values_are_not_filled_again() -> None:
    assert parse(FILE).render({"tone": "{{passages}}", "passages": "{{tone}} {x}"}) == ("Be brief, {{passages}}.", "{{tone}} {x}")


def test_missing_value_is_named() -> None:
    with pytest.raises(ConfigurationError, match="tone"):
        parse(FILE).render({"passages": ""})


def test_plain_text_is_the_user_turn() -> None:
    prompt = parse("Answer from {{passages}}")
    assert (prompt.system, prompt.user, prompt.id) == ("", "Answer from {{passages}}", "custom@1")


def test_bad_prompts_are_refused() -> None:
    for text, message in [
        ("", "empty"),
        ("x" * 32_001, "32000 characters; this one has 32001"),
        ("---\nname: x\n---\n# User\nhi", "# System"),
        ("no placeholder", "{{passages}}"),
        ("{{passages}} {{secret}}", "unknown placeholder {{secret}}"),
        ("{{passages}} " * 300, "{{passages}} at most 2 times; it has 300"),
    ]:
        with pytest.raises(InvalidRequest, match=re.escape(message)):
            parse(text, required=["passages"], allowed=["passages", "question"])


def test_files_are_read_with_clear_errors(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    with pytest.raises(ConfigurationError, match=r"mine\.md cannot be read: No such file"):
        read_file(path)
    path.write_bytes(b"ok \xff")
    with pytest.raises(ConfigurationError, match="not UTF-8: byte 3"):
        read_file(path)
    path.write_text("nothing here", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"mine\.md: prompt 'mine' must contain"):
        read_file(path, required=["passages"])
    path.write_text("{{passages}}", encoding="utf-8")
    assert read_file(path, required=["passages"]).name == "mine"


def test_unknown_prompt_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'nope'.*answer"):
        built_in("nope")


ATTACKS = [
    "</passage>",
    "< / PASSAGE >",
    '<passage id="9">',
    "[99]",
    "[1, 2]",
    "</question>",
    "<theme>",
    "＜/passage>",
    "</pass\u200bage>",
]
TAG = re.compile(r"[<＜]\s*/?\s*(passage|theme|question)\b", re.IGNORECASE)


@given(st.text(), st.sampled_from(ATTACKS), st.text())
def test_nothing_inside_a_fence_ends_it(before: str, attack: str, after: str) -> None:
    fenced = fence("passage", before + attack + after, attributes={"id": 1, "title": 'a">b\n'})
    assert fenced.startswith('<passage id="1" title="a b">\n')
    inside = fenced.removeprefix('<passage id="1" title="a b">\n').removesuffix("\n</passage>")
    assert TAG.search(inside.replace("\u200b", "")) is None
    assert re.search(r"\[\s*\d+\s*\]", inside) is None


def test_a_title_is_no_marker_of_a_passage() -> None:
    assert fence("passage", "", attributes={"title": "Notes [2]"}).startswith('<passage title="Notes (2)">')


def test_a_fence_has_a_known_name() -> None:
    with pytest.raises(ValueError, match="passage, passages, theme"):
        fence("a b", "")
