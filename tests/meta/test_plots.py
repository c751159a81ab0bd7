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


def test_a_plot_without_figures_is_named(plots: ModuleType, tmp_path: Path) -> None:
    figures, into = tmp_path / "figures", tmp_path / "drawn"
    figures.mkdir()
    into.mkdir()
    row = {"R@2": 0.1, "R@5": 0.2, "R@10": 0.3}
    only = {"musique": {"ingestion": {"documents": 3}, "strategies": {"dense": row}}}
    (figures / "retrieval.json").write_text(json.dumps(only))

    assert set(plots.draw(figures, into)) == set(plots.PLOTS) - {"recall-musique"}
    assert [path.name for path in into.iterdir()] == ["recall-musique.svg"]


def test_a_series_needs_a_value_for_each_place(charts: ModuleType) -> None:
    axis = charts.Axis("time", "ms")
    bars = {"title": "Times", "subtitle": "", "values": axis, "groups": ["a", "b"]}
    lines = {"title": "Times", "subtitle": "", "across": axis, "values": axis, "positions": [1, 10]}
    for kind, arguments in ((charts.BarChart, bars), (charts.LineChart, lines)):
        assert "<svg" in kind(**arguments, series={"p50": [1.0, 2.0]}).svg()
        for wrong in ([1.0], [1.0, 2.0, 3.0], [1.0, -2.0], [1.0, float("nan")]):
            with pytest.raises(ValueError, match="the series 'p50'"):
                kind(**arguments, series={"p50": wrong})
        for count in (0, 5):
            with pytest.raises(ValueError, match="1 to 4 series"):
                kind(**arguments, series={str(number): [1.0, 2.0] for number in range(count)})
    only = {**lines, "positions": [5]}
    assert "<svg" in charts.LineChart(**only, series={"p50": [1.0]}).svg()
    for positions in ([10, 1], [0, 1], [1, 1]):
        with pytest.raises(ValueError, match="increasing positive"):
            charts.LineChart(**{**lines, "positions": positions}, series={"p50": [1.0, 2.0]})


def test_an_axis_needs_a_unit(charts: ModuleType) -> None:
    for label, unit in (("time", ""), ("time", " "), ("", "ms")):
        with pytest.raises(ValueError, match="a label and a unit"):
            charts.Axis(label, unit)
    assert charts.Axis("time", "ms").text == "time (ms)"


def test_ticks_are_round_and_reach_the_largest_value(charts: ModuleType) -> None:
    assert charts.round_ticks(25.5) == [0, 5, 10, 15, 20, 25, 30]
    assert charts.round_ticks(0.8, 1.0) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    for largest in (0.003, 0.7, 1, 9.9, 10, 41, 687, 150_000):
        ticks = charts.round_ticks(largest)
        assert 4 <= len(ticks) <= 8
        assert ticks[-2] < largest <= ticks[-1]


def test_numbers_are_written_as_in_the_tables(charts: ModuleType) -> None:
    assert [charts.number(value) for value in (0.748, 29.4, 150_000, 0, 20.0)] == [".748", "29.4", "150,000", "0", "20"]
    assert charts.number(0.39, 3) == ".390"


def test_text_of_a_chart_is_escaped(charts: ModuleType) -> None:
    chart = charts.BarChart(
        title="a < b & c", subtitle="", values=charts.Axis("time", "ms"), groups=["<g>"], series={"<s>": [1.0]}
    )
    assert {"a < b & c", "<g>", "<s>"} <= {text.text for text in ElementTree.fromstring(chart.svg()).findall(f"{SVG}text")}
