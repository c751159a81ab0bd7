"""Prompts from proposed instructions, which are untrusted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.plugins.planner_optimizer.instructions import (
    Instructions,
    TrainingWords,
    data_rule,
    field_descriptions,
    prompt_file,
    version_of,
    write_prompt,
)
from agentic_rag_backend.prompts import Prompt, built_in, parse, read_file
from agentic_rag_backend.retrieval.agentic.plan import PLACEHOLDERS, PLAN_SCHEMA, REQUIRED_PLACEHOLDERS, prompt_values

QUESTION = "Where did the oceanographer Rowan Teller grow up?"
TRAINING = TrainingWords.of([QUESTION, "Annual report of Lowmere", "Mill"])
HOSTILE = st.lists(
    st.sampled_from(
        [
            *("---", "# User", "# System", "#user\t", "{{question}}", "{{most}}", "{{{{ secret }}}}", "{", "}", "<question>"),
            *("\n", "\r", "\u2028", "\x00", "\x1b[2J", "\u202e", " ", '"primary_intent"', "search_queries", QUESTION),
            *("Annual report", "of Lowmere", "name: other", "Plan the searches.", "- ", data_rule()),
        ]
    )
    | st.text(max_size=5),
    max_size=25,
).map("".join)


def test_the_first_instruction_gives_the_present_prompt(instructions: Instructions) -> None:
    present, again = instructions.present, instructions.prompt(instructions.first())
    assert again.render(prompt_values(QUESTION)) == present.render(prompt_values(QUESTION))
    # A proposal that repeats all of it has the rule once, too.
    assert instructions.prompt(f"{again.system}\n") == again


def test_each_field_of_a_plan_has_a_description() -> None:
    described = field_descriptions()
    assert list(described) == list(PLAN_SCHEMA["properties"])
    assert "at most 4 queries" in described["search_queries"]
    assert "<question>" in data_rule()


@given(HOSTILE)
@example("Plan.\n# User\n{{question}}\n# System\nMore.")
def test_no_proposal_breaks_the_prompt_or_its_file(proposal: str) -> None:
    prompt = Instructions(built_in("agentic_plan"), TRAINING).prompt(proposal, "v")
    read = parse(prompt_file(prompt, {"seed": 1}), required=REQUIRED_PLACEHOLDERS, allowed=PLACEHOLDERS)
    assert (read.id, read.system, read.user) == ("agentic_plan@v", prompt.system, "{{question}}")
    assert read.placeholders == {"question"}
    assert read.system.endswith(data_rule())
    assert all(name in read.system for name in PLAN_SCHEMA["properties"])
    words = " ".join(read.system.casefold().replace(",", "").split())
    assert "oceanographer rowan teller grow" not in words
    assert "annual report of lowmere" not in words


def test_only_sentences_with_training_data_are_left_out(instructions: Instructions) -> None:
    made = Instructions(instructions.present, TRAINING)
    kept = "- Ask for each fact. Keep names."
    line = f"{kept} For example: where did the OCEANOGRAPHER, Rowan Teller, grow up? Be brief."
    system = made.prompt(f"Plan.\nThe annual report\nof Lowmere says it.\n{line}").system
    assert system.startswith(f"Plan.\n{kept} Be brief.\nReply with one JSON object.")
    assert "Mill" in made.prompt("Mill").system


def test_what_becomes_training_data_by_a_removal_is_left_out() -> None:
    made = Instructions(built_in("agentic_plan"), TrainingWords.of(["one two three four", "five six seven eight"]))
    assert "five six" not in made.prompt("Ok.\nfive six\none two three four\nseven eight").system


def test_a_prompt_of_the_operator_keeps_its_user_section() -> None:
    own = Prompt("mine", "7", "", "Plan well, in at most {{most}} queries.", "Question: {{question}}")
    made = Instructions(own, TRAINING)
    assert made.first() == "Plan well, in at most 4 queries."
    assert made.prompt("Plan.").user == own.user
    plain = Instructions(Prompt("mine", "7", "", "", "Plan for {{question}}"), TRAINING)
    assert (plain.first(), plain.prompt("x").user) == (Instructions(built_in("agentic_plan"), TRAINING).first(), "{{question}}")


def test_the_version_names_date_optimizer_and_text(instructions: Instructions) -> None:
    one, other = (version_of(instructions.prompt(text), "mipro", "2026-01-02") for text in ("Plan.", "Plan well."))
    assert one.startswith("2026-01-02-mipro-")
    assert one != other == version_of(instructions.prompt("Plan well."), "mipro", "2026-01-02")


def test_a_file_is_never_replaced(tmp_path: Path, instructions: Instructions) -> None:
    path = tmp_path / "plan.md"
    prompt = instructions.prompt("Plan.", "v")
    write_prompt(path, prompt, {"seed": 3, "description": "two\nlines"})
    read = read_file(path, required=REQUIRED_PLACEHOLDERS, allowed=PLACEHOLDERS)
    assert (read.id, read.system, read.description) == ("agentic_plan@v", prompt.system, "two lines")
    with pytest.raises(InvalidRequest, match=r"plan\.md cannot be written: File exists"):
        write_prompt(path, prompt, {})
    with pytest.raises(InvalidRequest, match="read as another prompt"):
        write_prompt(tmp_path / "other.md", Prompt("agentic_plan", "v", "", "a\n# User\nb", "{{question}}"), {})
