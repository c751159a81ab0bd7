"""Fenced code in a text (CommonMark 0.31, section 4.5): it is cut between its lines, and only if it is larger than a chunk."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentic_rag_backend.language.entries.base import Block

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)(?:\n|\Z)", re.MULTILINE)
_LINE_END = re.compile(r"\n(?=[^\n])")


def fenced_code(text: str) -> Iterator[Block]:
    """Yield the fenced code of ``text`` in order, fences included. Code without a closing fence is text."""
    opening: re.Match[str] | None = None
    for line in _FENCE.finditer(text):
        if opening is None:
            # A backtick fence with a backtick after it is inline code.
            opening = line if "`" not in line[2] or line[1][0] == "~" else None
        elif line[1].startswith(opening[1]) and not line[2].strip():
            start, end = opening.start(), line.end() - line[0].endswith("\n")
            cuts = (line_end.end() for line_end in _LINE_END.finditer(text, opening.end(), line.start()))
            yield Block(start, end, start, (opening.end(), *cuts), tuple)
            opening = None
