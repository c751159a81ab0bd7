"""The plots of the documentation show its figures, and a chart with wrong or incomplete data is refused."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"
_NUMBER = re.compile(r"(?<![\w.])(?:\d[\d,]*)?\.?\d+(?![\w])")


@pytest.fixture(scope="module")
def plots(root: Path) -> Iterator[ModuleType]:
    """Return the program that draws the plots."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(root / "benchmarks"))
        known = set(sys.modules)
        yield importlib.import_module("plots")
        for name in {"plots", "charts", "report"} - known:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def charts(plots: ModuleType) -> ModuleType:
    """Return the module of the charts."""
    return importlib.import_module("charts")


def drawn(plots: ModuleType) -> dict[str, Any]:
    """Return the chart of each plot of the documentation."""
    found = {}
    for name, plot in plots.PLOTS.items():
        found[name] = plot.chart(json.loads((plots.FIGURES / f"{plot.results}.json").read_text("utf-8")))
    return found


def test_each_plot_is_drawn_from_the_committed_figures(plots: ModuleType, tmp_path: Path) -> None:
    assert plots.draw(plots.FIGURES, tmp_path) == []
    expected = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert len(expected) > 3
    assert {path.name: path.read_text("utf-8") for path in plots.PAGES.glob("*.svg")} == expected


def test_each_file_of_figures_has_a_plot(plots: ModuleType) -> None:
    assert {path.stem for path in plots.FIGURES.iterdir()} == {plot.results for plot in plots.PLOTS.values()}


def test_each_figure_of_a_plot_is_on_the_page_that_shows_it(plots: ModuleType) -> None:
    for name, chart in drawn(plots).items():
        page = (plots.PAGES / plots.PLOTS[name].page).read_text("utf-8")
        assert f"]({name}.svg)" in page
        written = {float(found.replace(",", "")) for found in _NUMBER.findall(page)}
        values = {value for series in chart.series.values() for value in series}
        assert values <= written, f"{name}: {sorted(values - written)} are not on the page"


def test_a_chart_is_readable(plots: ModuleType, charts: ModuleType) -> None:
    for name, chart in drawn(plots).items():
        picture = ElementTree.fromstring(chart.svg())
        width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
        texts = picture.findall(f"{SVG}text")
        words = {text.text for text in texts}
        assert {chart.title, chart.subtitle, chart.values.text, *chart.series} <= words, name
        for text in texts:
            shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.attrib["text-anchor"]]
            wide = charts.text_width(text.text)
            left = float(text.attrib["x"]) - shift * wide
            assert left >= 0, (name, text.text)
            assert left + wide <= width, (name, text.text)
            assert 0 < float(text.attrib["y"]) < height, (name, text.text)
        assert "prefers-color-scheme: dark" in chart.svg()
