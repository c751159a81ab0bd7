"""Document text is printed literally: neither as markup nor as terminal control codes."""

from __future__ import annotations

import json
import uuid

import pytest

from agentic_rag_backend.cli.output import Output, fields, plain, table
from agentic_rag_backend.cli.rendering import show_answer, show_search

ESCAPES = "\x1b[31mred\x1b]0;title\x07 \x9b2J \x08\x7f \u202eevil\u2066"
TIME = "2026-11-22 11:03:29"
MARKUP = "[bold]not bold[/bold] [link=http://x]y[/link] :smile:"
TRACE = {
    "strategy": "graph",
    "processing_time_ms": {"retrieval": 1.0},
    "fallback_used": False,
    "fallback_reason": None,
    "warnings": [],
}


def _controls(shown: str) -> set[str]:
    return {character for character in shown if not character.isprintable() and character not in "\n\t"}


def test_control_and_direction_characters_are_taken_out_and_the_rest_stays() -> None:
    assert plain(ESCAPES) == "[31mred]0;title 2J  evil"
    assert plain("tab\tand\nline, Åse, 潮") == "tab\tand\nline, Åse, 潮"


def test_tables_show_markup_as_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).show(table(["name"], [[MARKUP], [ESCAPES]]), fields({"key": MARKUP}))
    shown = capsys.readouterr().out
    assert shown.count(MARKUP) == 2
    assert not _controls(shown)


LONG = "reports/2019/annual-report-of-the-harbour-authority-with-appendices.md"


@pytest.mark.parametrize("columns", [80, 100, 140, 200])
def test_ids_and_times_stay_whole_at_every_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ids = [str(uuid.UUID(int=number)) for number in range(3)] + [f"t_{'a' * 32}", f"k_{'0' * 32}"]
    tables = [
        (["id", "key", "title", "state", "#chunks", "updated"], [LONG, LONG, "ready", 12, TIME], ("updated", "title")),
        (
            ["id", "kind", "state", "stage", "#done", "updated"],
            ["rebuild", "succeeded", "summarising", "99/120", TIME],
            ("updated",),
        ),
        (["id", "name", "scopes", "created", "revoked"], ["made at first start", ["admin"], TIME, TIME], ("created", "scopes")),
        (["id", "#level", "#entities", "name", "keywords"], [1, 23, LONG, [LONG] * 5], ("keywords",)),
    ]
    for names, rest, droppable in tables:
        Output(as_json=False).show(table(names, [[each, *rest] for each in ids], droppable=droppable))  # type: ignore[misc]
        shown = capsys.readouterr().out
        assert all(each in shown for each in ids), shown
        assert max(map(len, shown.splitlines())) <= columns
        headings = shown.splitlines()[0].split()
        kept = [name.lstrip("#") for name in names if name not in droppable]
        assert kept == [name for name in headings if name not in droppable]
        assert ("updated" not in headings) or TIME in shown
    Output(as_json=False).show(table(["document", "state", "id or reason"], [[LONG, "ready", ids[0]], ["b", "refused", LONG]]))
    assert ids[0] in capsys.readouterr().out


def test_a_narrow_terminal_leaves_out_columns_of_numbers_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    row = ["f" * 32, "0.52", "Pier"]
    Output(as_json=False).show(table(["id", "#confidence", "title"], [row], droppable=("#confidence",)))
    assert capsys.readouterr().out.splitlines()[0].split() == ["id", "title"]


def test_a_wide_terminal_shows_every_column(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    Output(as_json=False).show(table(["id", "title", "updated"], [["d1", "Pier", TIME]], droppable=("updated", "title")))
    assert capsys.readouterr().out.splitlines()[0].split() == ["id", "title", "updated"]


def test_an_answer_is_shown_word_for_word_with_its_numbered_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    citation = {"marker": 1, "title": MARKUP, "quote": f"{MARKUP} {ESCAPES}", "start_char": 3, "end_char": 9, "chunk_id": "c1"}
    answer = {
        "answer": f"{MARKUP} [1]",
        "grounded": True,
        "citations": [citation],
        "nearest": [],
        "confidence": 0.5,
        "generator": "attributed",
        "model": "extractive",
        "trace": TRACE,
    }
    show_answer(Output(as_json=False), answer)
    shown = capsys.readouterr().out
    assert f"{MARKUP} [1]" in shown
    assert f"[1] {MARKUP}" in shown
    assert "characters 3-9" in shown
    assert not _controls(shown)


def test_a_search_shows_scores_titles_and_places(capsys: pytest.CaptureFixture[str]) -> None:
    location = {"start_line": 4, "end_line": 6, "path": ["Minutes", "Item 2"]}
    step = {"source": "Vey", "relation": "leads", "target": ESCAPES}
    result = {
        "title": MARKUP,
        "score": 0.8123,
        "location": location,
        "document_id": "d1",
        "content": "text",
        "graph_path": [step, {"source": "Fen", "relation": "owns", "target": ESCAPES, "forward": False}],
    }
    show_search(Output(as_json=False), {"results": [result], "facts": [], "themes": [], "trace": TRACE})
    shown = capsys.readouterr()
    assert f"1. {MARKUP}" in shown.out
    assert "score 0.812 · lines 4-6 · Minutes › Item 2 · document d1" in shown.out
    assert "Vey -leads-> [31mred" in shown.out
    assert "<-owns- Fen" in shown.out
    assert not _controls(shown.out + shown.err)


def test_json_is_escaped_to_ascii_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).result({"quote": ESCAPES})
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert not _controls(shown)
    assert json.loads(shown) == {"quote": ESCAPES}


def test_an_error_is_one_line_or_an_object_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).error("not_found", f"no document\n{ESCAPES}")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("error: no document")
    Output(as_json=True).error("not_found", "no document")
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"error": {"code": "not_found", "message": "no document"}}
    assert shown.err == ""
