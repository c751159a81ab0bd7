"""Writes the measured confidence into the documentation: figures, tables and diagrams, between two comments of the page.

``python benchmarks/answerability_page.py`` reads ``results/answerability.json``, which `answerability` writes. Then
``make docs`` draws the diagrams.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from charts import BarChart
from judged_questions import ADVERSARIAL, EXAMPLES, FOREIGN, OFF, PODCASTS, REMOVED
from plots import FIGURES, PAGES, PLOTS
from report import RESULTS

NAMES = {
    "squad2": "SQuAD 2.0",
    "squad2, accounts": "SQuAD 2.0, accounts",
    "hotpotqa": "HotpotQA",
    "musique": "MuSiQue",
    PODCASTS: "podcasts, accounts",
    EXAMPLES: "examples",
}
HALVES = ("second half", "first half")
"""What each of the two results was measured on."""
BEGIN, END = "<!-- measured confidence -->", "<!-- end of measured confidence -->"
RIGHT = ("first_sentence_right", "two_sentences_right", "answer_right")
"""Figures that questions without an answer text do not have."""
Results = Mapping[str, Mapping[str, Mapping[str, Any]]]


def short(value: Any) -> str:
    """Return a figure as the page writes it: ".767"."""
    return re.sub(r"^0\.", ".", f"{value:.3f}") if isinstance(value, float) else str(value)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return a Markdown table."""
    written = [[short(cell) for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *written)] + [""]


def sets(results: Results) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what each set was measured on, with its figures."""
    for part, half in zip(HALVES, results.values(), strict=True):
        for name, figures in half.items():
            row = {**figures, **dict.fromkeys(RIGHT, "–")} if name == PODCASTS else figures
            yield f"{NAMES[name]}, {'all' if name == EXAMPLES else part}", row


def answered(results: Results) -> list[str]:
    """Return the table of questions with an answer."""
    head = ["measured on", "answerable", "first sentence right", "first two", "answer right", "sentences", "answered"]
    keys = ("questions", *RIGHT, "sentences", "answered")
    return table(
        [*head, "calibration error"], [[of, *(row[key] for key in (*keys, "calibration_error"))] for of, row in sets(results)]
    )


def refused(results: Results) -> list[str]:
    """Return the table of questions without an answer."""
    keys = ("questions", "auroc", "refused", "refused_where_90_are_answered")
    rows = [
        [of, variant, *(row[variant][key] for key in keys)]
        for of, row in sets(results)
        for variant in (ADVERSARIAL, REMOVED, OFF, FOREIGN)
        if variant in row
    ]
    return table(["measured on", "without an answer", "questions", "AUROC", "refused", "refused where .90 are answered"], rows)


def diagrams(results: Results) -> list[str]:
    """Return each reliability diagram with the table of its figures."""
    found = []
    for name, plot in PLOTS.items():
        if plot.results == "answerability":
            chart = plot.chart(results)
            found += [f"![{chart.title}]({name}.svg)", ""]
            assert isinstance(chart, BarChart)
            found += table(["confidence", *chart.groups], [[series, *values] for series, values in chart.series.items()])
    return found


def main() -> int:
    """Write the figures and the page."""
    results = json.loads((RESULTS / "answerability.json").read_text(encoding="utf-8"))
    (FIGURES / "answerability.json").write_text(json.dumps(results) + "\n", encoding="utf-8")
    page = PAGES / "answers.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    within = "\n".join([BEGIN, "", *answered(results), *refused(results), *diagrams(results), END])
    page.write_text(before + within + after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
