"""Lines that label a text and state nothing: headings, tables of contents, rows of column names, navigation lists."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass

_MARKS = "#*_-•>¶|=~` \t"
_NUMBERING = f"{_MARKS}0123456789."
_LEADERS = ("...", ". . .", "……")
_LONGEST_ENTRY = 120
_SHORTEST_LIST = 4
"""Lines of one word in a row that are navigation or a list of languages."""


@dataclass(frozen=True, slots=True)
class LabelLines:
    """The label lines of one text, as sorted offsets."""

    starts: list[int]
    ends: list[int]

    def covers(self, offset: int) -> bool:
        """Return whether a label line contains the character at ``offset``."""
        number = bisect_right(self.starts, offset) - 1
        return number >= 0 and offset < self.ends[number]


def bare_heading(text: str) -> str:
    """Return a heading without numbering, marks and letter case, as `find_label_lines` compares it."""
    return text.lstrip(_NUMBERING).rstrip(_MARKS).casefold()


def find_label_lines(text: str, headings: Collection[str]) -> LabelLines:
    """Return the label lines of a text with ``headings``, given without marks and case. Takes time in proportion to the text."""
    lines: list[tuple[int, int]] = []
    run: list[tuple[int, int]] = []
    start, above = 0, (0, 0)
    for line in text.splitlines(keepends=True):
        span, content = (start, start + len(line)), line.strip()
        start = span[1]
        if not content:
            continue
        if _is_table_rule(content):
            lines.append(above)
        inner = content.strip(_MARKS)
        is_contents = len(content) <= _LONGEST_ENTRY and any(mark in content for mark in _LEADERS)
        if is_contents or bare_heading(content) in headings:
            lines.append(span)
        run = [*run[-_SHORTEST_LIST:], span] if inner and " " not in inner and content[-1].isalnum() else []
        lines.extend(run if len(run) == _SHORTEST_LIST else run[_SHORTEST_LIST:])
        above = span
    lines.sort()
    return LabelLines([begin for begin, _ in lines], [end for _, end in lines])


def _is_table_rule(line: str) -> bool:
    return line.startswith("|") and "---" in line and not line.strip("|-: ")
