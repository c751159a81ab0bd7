"""An export can be uploaded again, and gives the same cases."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.domain.evaluation import EvaluationCase, GoldItem
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.evaluation import case_files
from agentic_rag_backend.evaluation.case_files import CSV, JSON_LINES, parse_cases, write_case

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=30)
CASES = st.builds(
    EvaluationCase,
    question=TEXT.filter(str.strip),
    expected_answer=st.none() | TEXT,
    must_say=st.lists(TEXT, max_size=3).map(tuple),
    answerable=st.booleans(),
    kind=st.text("abc", max_size=5),
    tags=st.lists(TEXT, max_size=3, unique=True).map(tuple),
    gold=st.lists(
        st.builds(GoldItem, quote=TEXT, chunk_id=st.none() | TEXT, document=st.none() | TEXT), max_size=3, unique=True
    ).map(tuple),
    filters=st.none() | st.just({"year": {"gte": 2019}}),
)


@given(st.lists(CASES, min_size=1, max_size=4))
def test_an_export_is_an_upload(cases: list[EvaluationCase]) -> None:
    assert parse_cases(b"".join(map(write_case, cases)), JSON_LINES) == cases


@given(st.binary(max_size=200), st.sampled_from([JSON_LINES, CSV]))
def test_any_bytes_are_cases_or_a_clear_error(content: bytes, media_type: str) -> None:
    with suppress(InvalidRequest):
        assert parse_cases(content, media_type)


def test_columns_without_a_name_may_be_empty() -> None:
    (case,) = parse_cases(b"question,,kind,\nWho?,,fact,\n", CSV)
    assert (case.question, case.kind) == ("Who?", "fact")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("question,tags,tags\nWho?,a,b\n", "names the column 'tags' twice"),
        ("question,\nWho?,lost\n", "line 2: column 2: is not known"),
        ("question\nWho?,lost\n", "line 2 has more cells"),
    ],
)
def test_no_cell_is_lost(table: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_cases(table.encode(), CSV)


def test_too_many_cases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_files, "MAX_CASES", 1)
    line = write_case(replace(EvaluationCase(question="Who?"), tags=("a",)))
    with pytest.raises(InvalidRequest, match="at most 1 cases"):
        parse_cases(line * 2, JSON_LINES)
