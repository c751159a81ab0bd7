from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from agentic_rag_backend.evaluation.datasets import (
    ENVIRONMENT_VARIABLE,
    CorpusPassage,
    LabelledQuestion,
    QuestionSet,
    evaluation_data,
    load_question_set,
)


def write(path: Path, *rows: dict[str, object]) -> None:
    path.write_bytes(b"\n".join(orjson.dumps(row) for row in rows) + b"\n\n")


def test_a_question_set_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "tides"
    folder.mkdir()
    write(folder / "corpus.jsonl", {"id": "p1", "title": "Ebb", "text": "Water\u2028falls."}, {"id": "p2", "text": "It rises."})
    write(
        folder / "questions.jsonl",
        {"id": 7, "question": "When?", "answer": "At noon", "gold": ["p1", "p2"], "more": 1},
        {"id": "q8", "question": "Why?"},
    )
    assert load_question_set(folder) == QuestionSet(
        "tides",
        (CorpusPassage("p1", "Ebb", "Water\u2028falls."), CorpusPassage("p2", "p2", "It rises.")),
        (LabelledQuestion("7", "When?", "At noon", ("p1", "p2")), LabelledQuestion("q8", "Why?", "", ())),
    )


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"corpus\.jsonl"):
        load_question_set(tmp_path)


def test_where_the_data_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    assert evaluation_data(tmp_path) is None
    beside = tmp_path / "shared" / "data"
    beside.mkdir(parents=True)
    assert evaluation_data(tmp_path) == beside
    named = tmp_path / "named"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(named))
    assert evaluation_data(tmp_path) is None
    named.mkdir()
    assert evaluation_data(tmp_path) == named
