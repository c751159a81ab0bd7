"""Draws the plots of the benchmarks: ``make bench`` from its own results, ``make docs`` from the figures of the documentation.

``python plots.py`` draws each plot of which ``results`` has the figures. ``python plots.py --documentation`` draws the plots of
``docs/reference/benchmarks`` from ``figures`` there. Both folders have the JSON files that the benchmarks write; those of the
documentation have the figures of its tables only.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from charts import Axis, BarChart, LineChart
from report import RESULTS, ROOT

PAGES = ROOT / "docs" / "reference" / "benchmarks"
FIGURES = PAGES / "figures"
RECALL = ("R@2", "R@5", "R@10")
SETS = {"musique": "MuSiQue", "hotpotqa": "HotpotQA"}
Figures = Mapping[str, Any]
Chart = BarChart | LineChart


def recall(figures: Figures, name: str) -> BarChart:
    """Return recall by strategy on one set of questions."""
    strategies = figures[name]["strategies"]
    return BarChart(
        title=f"Recall by strategy, {SETS[name]}",
        subtitle=f"{figures[name]['ingestion']['documents']:,} passages, one document each",
        values=Axis("recall", "share of the answering passages", end=1.0),
        groups=list(strategies),
        series={metric: [row[metric] for row in strategies.values()] for metric in RECALL},
    )


def search_time(figures: Figures) -> LineChart:
    """Return the CPU time of a vector search by the number of the tenant's vectors, after the index build."""
    rows = sorted(figures["after"].values(), key=lambda row: row["vectors"])
    return LineChart(
        title="Vector search by corpus size",
        subtitle=f"Tenants of one store of {figures['points']:,} vectors, after the index build",
        across=Axis("vectors of the tenant", "count, logarithmic scale"),
        values=Axis("CPU time of a search", "ms"),
        positions=[row["vectors"] for row in rows],
        series={
            f"{kind}, p{rank}": [row[f"{kind}_cpu_p{rank}_ms"] for row in rows]
            for kind in ("dense", "hybrid")
            for rank in (50, 95)
        },
    )


def memory(figures: Figures) -> LineChart:
    """Return the peak memory of an ingestion by the size of the folder."""
    rows = figures["rows"]
    return LineChart(
        title="Memory of an ingestion by corpus size",
        subtitle="agentic-rag ingest on a folder of text files, peak of the process",
        across=Axis("text in the folder", "MB, logarithmic scale"),
        values=Axis("memory", "MB"),
        positions=[row["megabytes"] for row in rows],
        series={
            "own memory": [row["own_mb"] for row in rows],
            "including mapped files": [row["peak_mb"] for row in rows],
        },
    )


def stages(figures: Figures) -> BarChart:
    """Return the duration of each stage of one added document, in an empty corpus and in the largest."""
    by_size = {int(size): row for size, row in figures["stages_ms"].items()}
    smallest, largest = min(by_size), max(by_size)
    return BarChart(
        title="Ingestion of one document by stage",
        subtitle="Median. Embedding and extraction overlap; the whole document includes the job queue.",
        values=Axis("duration", "ms"),
        groups=list(by_size[largest]),
        series={f"added to {size:,} documents": list(by_size[size].values()) for size in (smallest, largest)},
    )


def reliability(figures: Figures, name: str, of: str) -> BarChart:
    """Return the share of right answers by confidence on one set of questions, over both halves of the cross-fit."""
    bins: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for half in figures.values():
        for share, estimate, observed in half[name]["reliability"]:
            bins[min(9, int(estimate * 10))].append((share, estimate, observed))
    rows = {number: _weighted(found) for number, found in sorted(bins.items())}
    return BarChart(
        title=f"Confidence and truth: {of}",
        subtitle="Answers by their confidence. Both bars of a group are equal if the confidence is right.",
        values=Axis("probability", "share of the answers", end=1.0),
        groups=[f"{number / 10:.1f} to {(number + 1) / 10:.1f}" for number in rows],
        series={"mean confidence": [row[0] for row in rows.values()], "share that is right": [row[1] for row in rows.values()]},
    )


def _weighted(rows: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    total = sum(share for share, _, _ in rows)
    return (
        round(sum(share * estimate for share, estimate, _ in rows) / total, 3),
        round(sum(share * observed for share, _, observed in rows) / total, 3),
    )


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot: the results that it reads, the page that shows it, and its chart."""

    results: str
    page: str
    chart: Callable[[Figures], Chart]


PLOTS = {
    "recall-musique": Plot("retrieval", "retrieval.md", lambda figures: recall(figures, "musique")),
    "recall-hotpotqa": Plot("retrieval", "retrieval.md", lambda figures: recall(figures, "hotpotqa")),
    "search-by-size": Plot("index_upkeep", "vectors.md", search_time),
    "memory-by-size": Plot("memory", "ingestion.md", memory),
    "reliability-squad2": Plot(
        "answerability", "answers.md", lambda figures: reliability(figures, "squad2", "questions about one passage")
    ),
    "reliability-hotpotqa": Plot("answerability", "answers.md", lambda figures: reliability(figures, "hotpotqa", "HotpotQA")),
    "reliability-musique": Plot("answerability", "answers.md", lambda figures: reliability(figures, "musique", "MuSiQue")),
    "reliability-accounts": Plot(
        "answerability",
        "answers.md",
        lambda figures: reliability(figures, "podcasts", "questions for an account of many passages"),
    ),
    "ingestion-by-stage": Plot("ingestion", "ingestion.md", stages),
}


def draw(figures: Path, into: Path) -> list[str]:
    """Write each plot of which the folder ``figures`` has the results. Return the names of the other plots."""
    missing = []
    for name, plot in PLOTS.items():
        try:
            read = json.loads((figures / f"{plot.results}.json").read_text(encoding="utf-8"))
            (into / f"{name}.svg").write_text(plot.chart(read).svg(), encoding="utf-8")
        except (FileNotFoundError, KeyError):  # Not measured, or only a part of it.
            missing.append(name)
    return missing


def main() -> None:
    """Draw the plots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documentation", action="store_true", help="draw the plots of the documentation from its figures")
    chosen = parser.parse_args()
    figures, into = (FIGURES, PAGES) if chosen.documentation else (RESULTS, RESULTS)
    into.mkdir(exist_ok=True)
    for name in draw(figures, into):
        print(f"no plot {name}: {figures.relative_to(ROOT)}/{PLOTS[name].results}.json has no figures of it")


if __name__ == "__main__":
    main()
