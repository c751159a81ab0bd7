"""Bar charts and line charts as SVG.

It uses no plotting library, because the output of a library changes with its version. Equal charts give equal bytes, which a test
compares. Labels are text. The colours suit light and dark displays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH = 720
TOP, RIGHT, BOTTOM = 100, 60, 56
LINES_HEIGHT, LINES_LEFT = 260, 72
BAR, GAP = 15, 14
MAX_SERIES = 4
_CHARACTER = 0.6
"""Mean width of a character as a share of the font size, in a wide font."""
_STYLE = """\
  <style>
    text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; }
    .title { font-size: 16px; font-weight: 600; }
    .quiet { fill: #57606a; }
    .page { fill: #ffffff; }
    .value { stroke: #ffffff; stroke-width: 3px; paint-order: stroke; }
    .grid { stroke: #d8dee4; }
    .line { fill: none; stroke-width: 2; }
    .s0 { fill: #0969da; stroke: #0969da; } .s1 { fill: #bc4c00; stroke: #bc4c00; }
    .s2 { fill: #1a7f37; stroke: #1a7f37; } .s3 { fill: #8250df; stroke: #8250df; }
    .line.s0, .line.s1, .line.s2, .line.s3 { fill: none; }
    .line.s1, .line.s3 { stroke-dasharray: 6 4; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .quiet { fill: #9ea7b3; }
      .page { fill: #0d1117; }
      .value { stroke: #0d1117; }
      .grid { stroke: #30363d; }
      .s0 { fill: #58a6ff; stroke: #58a6ff; } .s1 { fill: #f0883e; stroke: #f0883e; }
      .s2 { fill: #56d364; stroke: #56d364; } .s3 { fill: #bc8cff; stroke: #bc8cff; }
    }
  </style>"""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of numbers.

    Args:
        label: the measure.
        unit: its unit, which must not be empty.
        end: the last value of the axis. None: the next round number after the largest value.

    Raises:
        ValueError: the label or the unit is empty.
    """

    label: str
    unit: str
    end: float | None = None

    def __post_init__(self) -> None:
        if not self.label.strip() or not self.unit.strip():
            raise ValueError(f"an axis needs a label and a unit, not {self.label!r} and {self.unit!r}")

    @property
    def text(self) -> str:
        """The label with its unit."""
        return f"{self.label} ({self.unit})"


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Horizontal bars, in a group for each name.

    Args:
        values: the axis of the bars.
        groups: the names of the groups.
        series: one value for each group, by the name of the series.

    Raises:
        ValueError: a series has another number of values than there are groups, or a value is negative or not finite.
    """

    title: str
    subtitle: str
    values: Axis
    groups: Sequence[str]
    series: Mapping[str, Sequence[float]]

    def __post_init__(self) -> None:
        _check(self.series, len(self.groups))

    def svg(self) -> str:
        """Return the chart as an SVG document."""
        left = 28 + max(text_width(group) for group in self.groups)
        step = BAR * len(self.series) + GAP
        bottom = TOP + step * len(self.groups)
        ticks = round_ticks(_largest(self.series), self.values.end)
        scale = (WIDTH - RIGHT - left) / ticks[-1]
        decimals = max(_decimals(value) for values in self.series.values() for value in values)
        drawn = list(_legend(list(self.series), '<rect class="s{}" x="{:.1f}" y="66" width="24" height="12"/>'))
        for tick in ticks:
            x = left + tick * scale
            drawn += [_rule(x, TOP, x, bottom), _text(x, bottom + 18, number(tick), "quiet", "middle")]
        for place, group in enumerate(self.groups):
            y = TOP + GAP / 2 + place * step
            drawn.append(_text(left - 8, y + BAR * len(self.series) / 2 + 4, group, anchor="end"))
            for index, values in enumerate(self.series.values()):
                top, width = y + index * BAR, values[place] * scale
                drawn.append(f'<rect class="s{index}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{BAR - 3}"/>')
                drawn.append(_text(left + width + 6, top + BAR - 5, number(values[place], decimals), "value"))
        drawn.append(_text((left + WIDTH - RIGHT) / 2, bottom + 40, self.values.text, anchor="middle"))
        return _document(self.title, self.subtitle, drawn, bottom + BOTTOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Lines over positions on a logarithmic axis. Every second line is dashed.

    Args:
        across: the horizontal axis.
        values: the vertical axis.
        positions: increasing positive numbers, each of which gets a tick.
        series: one value for each position, by the name of the series.

    Raises:
        ValueError: a series has another number of values than there are positions, a value is negative or not finite, or the
            positions do not increase from a positive number.
    """

    title: str
    subtitle: str
    across: Axis
    values: Axis
    positions: Sequence[float]
    series: Mapping[str, Sequence[float]]

    def __post_init__(self) -> None:
        _check(self.series, len(self.positions))
        if not self.positions or self.positions[0] <= 0 or sorted(set(self.positions)) != list(self.positions):
            raise ValueError(f"positions must be increasing positive numbers, not {list(self.positions)}")

    def svg(self) -> str:
        """Return the chart as an SVG document."""
        top = TOP + 16
        bottom, right = top + LINES_HEIGHT, WIDTH - RIGHT
        ticks = round_ticks(_largest(self.series), self.values.end)
        span = math.log(self.positions[-1] / self.positions[0]) or 1.0
        xs = [LINES_LEFT + 12 + (right - LINES_LEFT - 24) * math.log(each / self.positions[0]) / span for each in self.positions]
        drawn = list(_legend(list(self.series), '<path class="line s{}" d="M{:.1f},72h24"/>'))
        drawn.append(_text(LINES_LEFT - 52, TOP + 4, self.values.text))
        for tick in ticks:
            y = bottom - tick / ticks[-1] * LINES_HEIGHT
            drawn += [_rule(LINES_LEFT, y, right, y), _text(LINES_LEFT - 8, y + 4, number(tick), "quiet", "end")]
        for x, position in zip(xs, self.positions, strict=True):
            drawn += [_rule(x, bottom, x, bottom + 5), _text(x, bottom + 20, number(position), "quiet", "middle")]
        for index, values in enumerate(self.series.values()):
            points = [(x, bottom - value / ticks[-1] * LINES_HEIGHT) for x, value in zip(xs, values, strict=True)]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            drawn.append(f'<polyline class="line s{index}" points="{path}"/>')
            for (x, y), value in zip(points, values, strict=True):
                drawn.append(
                    f'<circle class="s{index}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"><title>{number(value)}</title></circle>'
                )
        drawn.append(_text((LINES_LEFT + right) / 2, bottom + 42, self.across.text, anchor="middle"))
        return _document(self.title, self.subtitle, drawn, bottom + BOTTOM)


def number(value: float, decimals: int | None = None) -> str:
    """Return a number as the documentation writes it: ``.748``, ``29.4``, ``150,000``. None: as many decimals as it has."""
    text = f"{value:,.{_decimals(value) if decimals is None else decimals}f}"
    return text[1:] if text.startswith("0.") else text


def _decimals(value: float) -> int:
    """Return how many decimals a number has, at most 3."""
    return len(f"{value:.3f}".rstrip("0").partition(".")[2])


def round_ticks(largest: float, end: float | None = None) -> list[float]:
    """Return four to eight evenly spaced ticks from 0 to ``end``, or to the first round number from ``largest`` on."""
    goal = end or largest or 1.0
    power = 10.0 ** math.floor(math.log10(goal / 4))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if goal / (power * factor) <= 6)
    return [round(step * count, 10) for count in range(math.ceil(round(goal / step, 9)) + 1)]


def text_width(text: str, size: float = 12) -> float:
    """Return the estimated width of a text in pixels."""
    return len(text) * size * _CHARACTER


def _check(series: Mapping[str, Sequence[float]], count: int) -> None:
    if not 1 <= len(series) <= MAX_SERIES:
        raise ValueError(f"a chart has 1 to {MAX_SERIES} series, not {len(series)}")
    for name, values in series.items():
        if len(values) != count:
            raise ValueError(f"the series {name!r} needs {count} values and has {len(values)}")
        if not all(math.isfinite(value) and value >= 0 for value in values):
            raise ValueError(f"the series {name!r} has a value that is negative or not finite: {list(values)}")


def _largest(series: Mapping[str, Sequence[float]]) -> float:
    return max(value for values in series.values() for value in values)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    kind = f' class="{kind}"' if kind else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _legend(names: Sequence[str], key: str) -> Iterator[str]:
    """Yield the key and the name of each series. ``key`` is an element with places for the number of the series and its x."""
    x = 20.0
    for index, name in enumerate(names):
        yield key.format(index, x)
        yield _text(x + 30, 76, name)
        x += 50 + text_width(name)


def _document(title: str, subtitle: str, drawn: Sequence[str], height: float) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}"'
            ' role="img">',
            f"  <title>{escape(title)}</title>",
            f"  <desc>{escape(subtitle)}</desc>",
            _STYLE,
            f'  <rect class="page" width="{WIDTH}" height="{height:.0f}" rx="6"/>',
            *(f"  {each}" for each in (_text(20, 30, title, "title"), _text(20, 50, subtitle, "quiet"), *drawn)),
            "</svg>\n",
        ]
    )
