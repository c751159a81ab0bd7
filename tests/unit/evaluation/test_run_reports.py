"""Reports show names as text, whatever they contain, and load nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from typing import Any

from agentic_rag_backend.domain.evaluation import CaseOutcome
from agentic_rag_backend.evaluation.reports.run_reports import format_html, format_markdown, list_figures
from agentic_rag_backend.evaluation.reports.run_summary import MAX_SLICES, summarise_outcomes

HOSTILE = "<script>alert(1)</script>|\n# \"&'</title>{{ 7*7 }}"


def result(name: str) -> dict[str, Any]:
    outcomes = [
        CaseOutcome(
            configuration=configuration,
            case_id=str(case),
            kind=name,
            tags=(name, f"tag {case}"),
            measures={"recall@5": value, "correct": value},
            times_ms={"total": 12.5 * (case + 1)},
            documents=("d", str(case)),
            confidence=0.2 + value / 2,
            error=None,
        )
        for configuration, value in ((name, 0.0), ("b", 1.0))
        for case in range(MAX_SLICES + 1)
    ]
    dataset = {"id": "1", "name": name, "version": 2}
    summary = summarise_outcomes(outcomes, [name, "b"])
    return {"dataset": dataset, "k": 5, "cases": 3, "asked": 6, "reasons": [name], "warnings": [], **summary}


class Page(HTMLParser):
    """Collects the tags, and the text of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_shows_hostile_names_as_text() -> None:
    page = Page()
    page.feed(format_html(result(HOSTILE)))
    assert "svg" in page.tags
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not [name for name, value in page.attributes if name in {"href", "src"} or name.startswith("on")]
    assert any("{{ 7*7 }}" in text for text in page.texts)
    assert not any("\\" in text for text in page.texts), "the page has no escapes of Markdown"


def test_markdown_keeps_names_on_their_line() -> None:
    text = format_markdown(result(HOSTILE))
    assert "<script" not in text.replace("\\<", "")
    for row in re.findall(r"^\| .*$", text, re.MULTILINE):
        assert row.endswith(" |")
    assert text.count("\n# ") == 0, "no heading of a name"
    header = next(line for line in text.splitlines() if line.startswith("| metric"))
    cells = [len(re.split(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("| recall@5")]
    assert cells[0] == len(re.split(r"(?<!\\)\|", header))


def test_the_summary_by_hand() -> None:
    summary = result("a")
    first, second = summary["configurations"]
    assert first["metrics"]["recall@5"]["value"] == 0.0
    assert second["calibration"] is None, "all answers are right"
    assert len(first["slices"]["tag"]) == MAX_SLICES
    (row,) = [row for row in summary["differences"] if row["metric"] == "recall@5"]
    assert (row["value"], row["interval"], row["configuration"], row["baseline"]) == (1.0, [1.0, 1.0], "b", "a")
    assert row["p"] < 0.01
    assert first["latency_ms"]["total"]["p50"] == 12.5 * 26


def test_costs_are_summed_or_unknown() -> None:
    """A configuration costs nothing without calls. One call without a known price makes its cost unknown."""
    outcome = partial(CaseOutcome, case_id="1", times_ms={"total": 1.0}, prompt_tokens=10)
    free, priced = outcome(configuration="free"), outcome(configuration="priced", calls=1, cost=0.0002)
    unknown = outcome(configuration="unknown", calls=1, case_id="2")
    names = ["free", "priced", "unknown"]
    outcomes = [free, priced, replace(priced, case_id="2"), unknown, replace(priced, configuration="unknown")]
    summary = summarise_outcomes(outcomes, names)
    assert [of["usage"]["cost"] for of in summary["configurations"]] == [0, 0.0004, None]
    assert summary["configurations"][1]["metrics"]["cost"]["value"] == 0.0002
    assert dict(list_figures({**summary, "currency": "EUR"}))["cost"] == ["0 EUR", "0.0004 EUR", "unknown"]
