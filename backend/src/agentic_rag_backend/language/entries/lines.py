"""Lines of a text, without the white space around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agentic_rag_backend.language.entries.base import plain_cell

MAX_CONTEXT_CHARACTERS = 200


class Line(NamedTuple):
    """``text[start:end]``, without white space at its ends. With the white space, it is ``text[first:last]``."""

    start: int
    end: int
    first: int
    last: int

    @property
    def blank(self) -> bool:
        """Whether it is empty."""
        return self.start == self.end

    @property
    def indent(self) -> int:
        """The characters of white space before it."""
        return self.start - self.first


def lines_of(text: str) -> list[Line]:
    """Return the lines of ``text``, which ``\\n`` ends."""
    lines: list[Line] = []
    position = 0
    for line in text.split("\n"):
        bare = line.strip()
        start = position + len(line) - len(line.lstrip()) if bare else position
        lines.append(Line(start, start + len(bare), position, position + len(line)))
        position += len(line) + 1
    return lines


def line_above(text: str, lines: Sequence[Line], index: int) -> str:
    """Return the line above line ``index``, a blank one between them ignored, without markup; empty if it is long."""
    for line in reversed(lines[max(0, index - 2) : index]):
        if not line.blank:
            cell_text = plain_cell(text[line.start : min(line.end, line.start + MAX_CONTEXT_CHARACTERS + 1)].lstrip("# "))
            return cell_text.rstrip(" :") if len(cell_text) <= MAX_CONTEXT_CHARACTERS and "|" not in cell_text else ""
    return ""
