"""Reports of a run: Markdown, and one HTML page with plots and without scripts or parts from elsewhere.

Names in a report come from callers. The page escapes them as HTML, the Markdown as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from agentic_rag_backend.evaluation.reports.intervals import is_significant

if TYPE_CHECKING:
    from jinja2 import Template

_TEMPLATE = "run_report.html"
_WIDTH, _MARGIN = 340.0, 8.0
_ROW, _BOTTOM = 42.0, 22.0
"""Measures of a plot in pixels: its width, the space beside the axis, the height of a configuration, and that of the axis.
A plot fits into the width of a telephone at its own size, so that its texts have the size of the other texts."""
_TICKS = 4
_MAX_NAME = 36
"""Characters of a configuration's name in a plot."""
_LAST = ("latency_ms", "tokens", "cost")
"""Metrics that come after those of quality."""
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>#|"})

Result = Mapping[str, Any]


def format_markdown(result: Result) -> str:
    """Return the report of a run's result as Markdown."""
    dataset = result["dataset"]
    lines = [f"# Evaluation of {_plain(dataset['name'])}", ""]
    lines += [f"Version {dataset['version']} of the dataset, {result['cases']} cases, {result['k']} results each.", ""]
    lines += [f"- {_plain(note)}" for note in list_notes(result)]
    configurations = result["configurations"]
    header = ["metric", *(_plain(of["name"]) for of in configurations)]
    rows = [[name, *(format_estimate(of["metrics"].get(name)) for of in configurations)] for name in list_metrics(configurations)]
    rows += [[name, *values] for name, values in list_figures(result)]
    lines += ["", "## Metrics", "", *_table(header, rows)]
    if result["differences"]:
        lines += [
            "",
            "## Differences",
            "",
            *_table(_DIFFERENCE_COLUMNS, [_difference_cells(row, _plain) for row in result["differences"]]),
        ]
    comparisons = list_comparisons(result, _plain)
    if comparisons:
        lines += [
            "",
            "## Comparison by a model",
            "",
            _plain(describe_judge(result)),
            "",
            *_table(comparisons[0], comparisons[1:]),
        ]
    for by in ("kind", "tag"):
        table = _slice_table(configurations, by, _plain)
        if table:
            lines += ["", f"## By {by}", "", *_table(table[0], table[1:])]
    lines += ["", "Intervals are bootstrap intervals of 95 % over the cases; p is that of a permutation test.", ""]
    return "\n".join(lines)


def list_notes(result: Result) -> list[str]:
    """Return what a reader of a run has to know: questions that were left out, warnings, and the feedback of users."""
    notes = [*result["reasons"], *result["warnings"]]
    rated = result.get("feedback", {"questions": 0})
    if rated["questions"]:
        notes.append(f"users rated answers to {rated['questions']} of the questions: {rated['good']} good, {rated['bad']} bad")
    return notes


def format_html(result: Result) -> str:
    """Return the report of a run's result as an HTML page."""
    configurations = result["configurations"]
    metrics = list_metrics(configurations)
    return _load_template().render(
        result=result,
        configurations=configurations,
        metrics=metrics,
        figures=list_figures(result),
        plots=[plot for name in metrics if (plot := _plot_metric(name, configurations)) is not None],
        columns=_DIFFERENCE_COLUMNS,
        differences=[(is_significant(row), _difference_cells(row, str)) for row in result["differences"]],
        comparisons=list_comparisons(result),
        judge=describe_judge(result),
        slices=[(by, table) for by in ("kind", "tag") if (table := _slice_table(configurations, by, str))],
        notes=list_notes(result),
        format_number=_format_number,
    )


def list_figures(result: Result) -> list[tuple[str, list[str]]]:
    """Return the figures of a run that are no metrics: the name, and the text for each configuration."""
    figures = [(name, [show(of) for of in result["configurations"]]) for name, show in _FIGURES.items()]
    costs = [_format_cost(of["usage"].get("cost"), result.get("currency", "")) for of in result["configurations"]]
    return [*figures, ("cost", costs)]


def describe_judge(result: Result) -> str:
    """Return what a judge's comparisons mean, and what they cost. Empty without a judge."""
    judge = result.get("judge")
    if judge is None:
        return ""
    usage = judge["usage"]
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    cost = _format_cost(usage["cost"], result.get("currency", ""))
    return (
        f"{judge['model']} ({judge['prompt']}) compared each answer with the baseline's in both orders; a preference counts if "
        f"both agree. {usage['calls']} calls, {tokens} tokens, cost {cost}."
    )


def list_comparisons(result: Result, write_name: Callable[[str], str] = str) -> list[list[str]]:
    """Return the table of a judge's comparisons with its header. Empty if there are none."""
    rows = [
        [
            write_name(row["configuration"]),
            write_name(row["baseline"]),
            str(row["wins"]),
            str(row["losses"]),
            str(row["ties"]),
            format_estimate(row["preference"], sign="+"),
            f"{row['p']:.4f}",
            "-" if row["agreement"] is None else _format_number(row["agreement"]),
            str(row["failed"]),
        ]
        for row in result.get("judge", {"comparisons": ()})["comparisons"]
    ]
    return [list(_COMPARISON_COLUMNS), *rows] if rows else []


def list_metrics(configurations: Sequence[Result]) -> list[str]:
    """Return the names of the metrics that any configuration has: those of quality first."""
    names = dict.fromkeys(name for of in configurations for name in of["metrics"])
    return sorted(names, key=lambda name: _LAST.index(name) + 1 if name in _LAST else 0)


@cache
def _load_template() -> Template:
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader(__package__, "."), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template(_TEMPLATE)


def _plot_metric(name: str, configurations: Sequence[Result]) -> Result | None:
    """Return the places of a plot: one row per configuration with its value and interval. None without a value."""
    estimates = [(of["name"], of["metrics"][name]) for of in configurations if name in of["metrics"]]
    largest = max((estimate["interval"][1] for _, estimate in estimates), default=0.0)
    if not estimates or largest <= 0:
        return None
    end = max(1.0, largest) if name not in _LAST else largest
    scale = (_WIDTH - 2 * _MARGIN) / end
    rows = [
        {
            "name": configuration,
            "label": configuration if len(configuration) <= _MAX_NAME else f"{configuration[: _MAX_NAME - 1]}…",
            "top": _ROW * number,
            "x": _MARGIN + scale * estimate["value"],
            "low": _MARGIN + scale * max(0.0, estimate["interval"][0]),
            "high": _MARGIN + scale * estimate["interval"][1],
            "value": _format_number(estimate["value"]),
        }
        for number, (configuration, estimate) in enumerate(estimates)
    ]
    bottom = _ROW * len(rows)
    anchors = {0: "start", _TICKS: "end"}
    ticks = [
        {"x": _MARGIN + scale * value, "text": f"{value:.3g}", "anchor": anchors.get(part, "middle")}
        for part in range(_TICKS + 1)
        for value in (end * part / _TICKS,)
    ]
    return {"name": name, "rows": rows, "ticks": ticks, "width": _WIDTH, "height": bottom + _BOTTOM, "bottom": bottom}


def _share(name: str, part: str) -> Any:
    return lambda of: "-" if of[name] is None or of[name][part] is None else _format_number(of[name][part])


_FIGURES: Mapping[str, Any] = {
    "latency p50, p95 (ms)": lambda of: " · ".join(
        _format_number(of["latency_ms"].get("total", {}).get(name, 0.0)) for name in ("p50", "p95")
    ),
    "diversity ratio": _share("diversity", "ratio"),
    "AUROC of the confidence": _share("calibration", "auroc"),
    "calibration error": _share("calibration", "ece"),
    "prompt, completion tokens": lambda of: f"{of['usage']['prompt_tokens']} · {of['usage']['completion_tokens']}",
    "errors": lambda of: ", ".join(f"{code}: {count}" for code, count in of["errors"].items()) or "0",
}
_COMPARISON_COLUMNS = ("configuration", "baseline", "wins", "losses", "ties", "preference", "p", "agreement of orders", "failed")
_DIFFERENCE_COLUMNS = ("metric", "configuration", "baseline", "difference", "p", "cases")


def _difference_cells(row: Result, write_name: Callable[[str], str]) -> list[str]:
    return [
        row["metric"],
        write_name(row["configuration"]),
        write_name(row["baseline"]),
        format_estimate(row, sign="+"),
        f"{row['p']:.4f}",
        str(row["count"]),
    ]


def _slice_table(configurations: Sequence[Result], by: str, write_name: Callable[[str], str]) -> list[list[str]]:
    """Return a table of the means of each slice, with its header. Empty if there are no slices."""
    labels = list(dict.fromkeys(label for of in configurations for label in of["slices"][by]))
    metrics = list_metrics([part for of in configurations for part in of["slices"][by].values()])
    header = [by, "configuration", "cases", *metrics]
    rows = [
        [
            write_name(label),
            write_name(of["name"]),
            str(part["cases"]),
            *(_format_mean(part["metrics"].get(name)) for name in metrics),
        ]
        for label in labels
        for of in configurations
        if (part := of["slices"][by].get(label)) is not None
    ]
    return [header, *rows] if rows else []


def _format_mean(estimate: Result | None) -> str:
    return "-" if estimate is None else _format_number(estimate["value"])


def format_estimate(estimate: Result | None, *, sign: str = "") -> str:
    """Return a value with its interval; a dash for None."""
    if estimate is None:
        return "-"
    low, high = estimate["interval"]
    return f"{_format_number(estimate['value'], sign)} [{_format_number(low, sign)}, {_format_number(high, sign)}]"


def _format_number(value: float, sign: str = "") -> str:
    if 0 < abs(value) < 0.001:  # the cost of a question
        return f"{value:{sign}.2g}"
    return f"{value:{sign}.3f}" if abs(value) < 10 else f"{value:{sign}.0f}"


def _format_cost(cost: float | None, currency: str) -> str:
    return "unknown" if cost is None else f"{cost:.4g} {currency}".strip()


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *rows)]


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return " ".join(text.split()).translate(_SPECIAL)
