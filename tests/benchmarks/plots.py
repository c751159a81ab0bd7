"""Draws the plots of the benchmarks: ``make bench`` from its own results, ``make docs`` from the figures of the documentation.

``python plots.py`` draws each plot of which ``results`` has the figures. ``python plots.py --documentation`` draws the plots of
``docs/reference/benchmarks`` from ``figures`` there. Both folders have the JSON files that the benchmarks write; those of the
documentation have the figures of its tables only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
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
