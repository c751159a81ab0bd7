"""Training files, and their split."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.plugins.planner_optimizer.examples import MAX_ROWS, Example, read_examples, split

GOOD = {"question": "Who leads?", "documents": ["harbour.md"]}


def written(folder: Path, *rows: object) -> Path:
    """Write rows: text as it is, everything else as JSON."""
    file = folder / "training.jsonl"
    file.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return file


def test_rows_are_read_with_their_numbers(tmp_path: Path) -> None:
    second = {"question": " Where? ", "passages": "The text.", "tenant": "alpha", "group": "g", "answer": "ignored"}
    first, other = read_examples(written(tmp_path, GOOD, "", second))
    assert first == Example(row=1, question="Who leads?", documents=("harbour.md",))
    assert other == Example(row=3, question="Where?", passages=("The text.",), tenant="alpha", group="g")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{", "not JSON"),
        ('["a"]', "not a JSON object but a list"),
        ({"documents": ["a"]}, "it has no 'question'"),
        ({"question": "  ", "documents": ["a"]}, "it has no 'question'"),
        ({"question": 7, "documents": ["a"]}, "'question' must be a string, not int"),
        ({"question": "?" * 8_001, "documents": ["a"]}, "'question' has 8,001 characters; at most 8,000"),
        ({"question": "Who?"}, "it names neither 'documents' nor 'passages'"),
        ({"question": "Who?", "documents": []}, "it names neither 'documents' nor 'passages'"),
        ({"question": "Who?", "documents": ["a", 1]}, "'documents' must be a list of strings"),
        ({"question": "Who?", "passages": [" "]}, "'passages' must be a list of strings that are not empty"),
        ({"question": "Who?", "documents": ["a"] * 51}, "'documents' has 51 items; at most 50"),
        ({**GOOD, "tenant": ["a"]}, "'tenant' must be a string, not list"),
    ],
)
def test_a_malformed_row_is_refused_with_its_number(tmp_path: Path, row: object, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_examples(written(tmp_path, GOOD, row))
    assert "training.jsonl is malformed: row 2: " in refused.value.message
    assert reason in refused.value.message


def test_a_refusal_lists_the_first_ten_rows(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"row 1: .*; row 10: [^;]*; and 2 more"):
        read_examples(written(tmp_path, *(["{"] * 12)))


def test_files_that_are_missing_or_too_long_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read: No such file"):
        read_examples(tmp_path / "none.jsonl")
    with pytest.raises(InvalidRequest, match=r"2,001 rows; at most 2,000"):
        read_examples(written(tmp_path, *([GOOD] * (MAX_ROWS + 1))))


@given(st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=2, max_size=30), st.floats(0.1, 0.9), st.integers(0, 9))
def test_no_group_is_in_both_parts(groups: list[str], share: float, seed: int) -> None:
    examples = [Example(row=row, question="?", group=group) for row, group in enumerate(groups, 1)]
    names = {example.group or str(example.row) for example in examples}
    if len(names) < 2:
        with pytest.raises(InvalidRequest, match="at least 2 rows of different groups"):
            split(examples, share, seed)
        return
    parts = split(examples, share, seed)
    training, validation = ({each.group or str(each.row) for each in part} for part in (parts.training, parts.validation))
    assert training
    assert validation
    assert not training & validation
    assert sorted(each.row for each in (*parts.training, *parts.validation)) == list(range(1, len(groups) + 1))
    assert parts == split(examples, share, seed)


def test_the_share_of_validation_is_kept() -> None:
    examples = [Example(row=row, question="?") for row in range(1, 101)]
    assert len(split(examples, 0.3, 1).validation) == 30
    assert split(examples, 0.3, 1) != split(examples, 0.3, 2)
