"""Markdown: the text as it is written, with its front matter as metadata and its headings with their offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from agentic_rag_backend.documents.parsing.base import (
    MAX_COLUMNS,
    MAX_HEADING_CHARACTERS,
    Heading,
    ParsedDocument,
    Preview,
    shorten_text,
    wide_table,
)
from agentic_rag_backend.documents.parsing.front_matter import FrontMatter, split_front_matter
from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.language.titles import is_placeholder

# One pass finds every line that can matter: a fence, an ATX heading, or what underlines a heading.
_LINE = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)|(?P<hashes>#{1,6})(?:[ \t]+(?P<title>[^\n]*))?"
    r"|(?P<underline>=+|-+)[ \t]*)$",
    re.MULTILINE,
)
_NOT_UNDERLINED = re.compile(r"[ \t]*(?:[#>|]|[-*+][ \t]|\d{1,9}[.)][ \t])| {4}")
_PIPE = re.compile(r"(?<!\\)\|")
_LINK = re.compile(r"!?\[([^\[\]\n]*+)\]\((?:[^()\n]|\([^()\n]*+\))*+\)")
_MARKS = re.compile(r"\*{1,3}|`+|(?<!\w)_{1,3}|_{1,3}(?!\w)")


class MarkdownParser:
    """Parser of Markdown. The title is that of the front matter, or the first heading."""

    def check(self, head: str, *, is_whole: bool) -> Preview:
        """Read the front matter, and the beginning up to the first heading."""
        front, text = _split_front_matter(head)
        return Preview(title=_choose_title(front, headings_of(text)), text=text)

    def parse(self, text: str) -> ParsedDocument:
        """Return the text after the front matter with its headings. It is unchanged, except that tables lose columns too many."""
        front, text = _split_front_matter(text)
        text, widest = _without_far_columns(text)
        headings = tuple(headings_of(text))
        title = _choose_title(front, headings)
        warnings = (*front.warnings, *((wide_table(widest),) if widest else ()))
        return ParsedDocument(text=text, title=title, metadata=front.fields, headings=headings, warnings=warnings)

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text`` with its headings."""
        return ParsedDocument(text=text, headings=tuple(headings_of(text)))


def _split_front_matter(text: str) -> tuple[FrontMatter, str]:
    front, text = split_front_matter(text)
    if not text.strip():
        raise UnreadableDocument("the document contains no text except its front matter")
    return front, text


def _without_far_columns(text: str) -> tuple[str, int]:
    """Return a text whose tables have at most `MAX_COLUMNS` columns, and the columns of the widest one if that had more, or 0."""
    if text.count("|") <= MAX_COLUMNS:
        return text, 0
    lines, widest = text.split("\n"), 0
    for number, line in enumerate(lines):
        if line.count("|") > MAX_COLUMNS:
            row = line.lstrip()
            cells = _PIPE.split(row)
            bordered = row.startswith("|")
            columns = len(cells) - bordered - (not cells[-1].strip())
            if columns > MAX_COLUMNS:
                lines[number] = f"{line[: len(line) - len(row)]}{'|'.join(cells[: MAX_COLUMNS + bordered])}|"
                widest = max(widest, columns)
    return "\n".join(lines), widest


def _choose_title(front: FrontMatter, headings: Iterable[Heading]) -> str | None:
    """Return the title of the front matter, or the first heading that is no placeholder."""
    titles = (title for title in chain([front.title or ""], (heading.title for heading in headings)) if title)
    return next((title for title in titles if not is_placeholder(title)), None)


def headings_of(text: str) -> Iterator[Heading]:
    """Yield the ATX and Setext headings of ``text`` (CommonMark 0.31, sections 4.2 and 4.3) that stand outside of fenced code.

    A Setext heading is taken to be one line long.
    """
    fence = ""
    for line in _LINE.finditer(text):
        if line["fence"]:
            if not fence:
                # A backtick fence with a backtick in its info string is inline code.
                fence = line["fence"] if "`" not in line["info"] or line["fence"][0] == "~" else ""
            elif line["fence"].startswith(fence) and not line["info"].strip():
                fence = ""
        elif fence:
            continue
        elif line["hashes"]:
            title = _clean_heading(_without_closing_hashes(line["title"] or ""))
            if title:
                yield Heading(len(line["hashes"]), title, line.start())
        else:
            heading = _read_underlined_heading(text, line)
            if heading is not None:
                yield heading


def _read_underlined_heading(text: str, underline: re.Match[str]) -> Heading | None:
    """Return the heading that a line of ``=`` or ``-`` makes of the single line above it."""
    end = underline.start() - 1
    start = text.rfind("\n", 0, max(end, 0)) + 1
    above = text[start:end] if end > 0 else ""
    before = text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : max(start - 1, 0)]
    if not above.strip() or before.strip() or len(above) > MAX_HEADING_CHARACTERS or _NOT_UNDERLINED.match(above):
        return None
    title = _clean_heading(above)
    return Heading(1 if underline["underline"][0] == "=" else 2, title, start) if title else None


def _without_closing_hashes(title: str) -> str:
    """Return an ATX heading's text without the optional run of ``#`` at its end, which a space or tab precedes."""
    text = title.rstrip(" \t").rstrip("#")
    return text.rstrip(" \t") if not text or text[-1] in " \t" else title


def _clean_heading(title: str) -> str:
    """Return a heading without inline marks, at most `MAX_HEADING_CHARACTERS` long."""
    return shorten_text(" ".join(_MARKS.sub("", _LINK.sub(r"\1", title)).split()), MAX_HEADING_CHARACTERS)
