"""Markdown: the text as it is written, with its front matter as metadata and its headings with their offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.base import Heading, ParsedDocument
from agentic_rag_backend.ingestion.parsing.front_matter import split_front_matter
from agentic_rag_backend.ingestion.parsing.text import decode

MAX_HEADING_CHARACTERS = 200

# One pass finds every line that can matter: a fence, an ATX heading, or what underlines a heading.
_LINE = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)|(?P<hashes>#{1,6})(?:[ \t]+(?P<title>[^\n]*))?"
    r"|(?P<underline>=+|-+)[ \t]*)$",
    re.MULTILINE,
)
_NOT_UNDERLINED = re.compile(r"[ \t]*(?:[#>|]|[-*+][ \t]|\d{1,9}[.)][ \t])| {4}")
_LINK = re.compile(r"!?\[([^\[\]\n]*+)\]\((?:[^()\n]|\([^()\n]*+\))*+\)")
_MARKS = re.compile(r"\*{1,3}|`+|(?<!\w)_{1,3}|_{1,3}(?!\w)")


def parse_markdown(content: bytes, *, partial: bool = False) -> ParsedDocument:
    """Return the text behind the front matter, unchanged; the title is the front matter's, or the first heading."""
    front, text = split_front_matter(decode(content, partial=partial))
    if not text.strip():
        raise UnreadableDocument("the document holds no text besides its front matter")
    headings = tuple(headings_of(text))
    return ParsedDocument(
        text=text,
        title=front.title or (headings[0].title if headings else None),
        metadata=front.fields,
        headings=headings,
    )


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
            title = _clean(_without_closing_hashes(line["title"] or ""))
            if title:
                yield Heading(len(line["hashes"]), title, line.start())
        else:
            heading = _underlined(text, line)
            if heading is not None:
                yield heading


def _underlined(text: str, underline: re.Match[str]) -> Heading | None:
    """Return the heading that a line of ``=`` or ``-`` makes of the single line above it."""
    end = underline.start() - 1
    start = text.rfind("\n", 0, max(end, 0)) + 1
    above = text[start:end] if end > 0 else ""
    before = text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : max(start - 1, 0)]
    if not above.strip() or before.strip() or len(above) > MAX_HEADING_CHARACTERS or _NOT_UNDERLINED.match(above):
        return None
    title = _clean(above)
    return Heading(1 if underline["underline"][0] == "=" else 2, title, start) if title else None


def _without_closing_hashes(title: str) -> str:
    """Return an ATX heading's text without the optional run of ``#`` at its end, which a space or tab precedes."""
    kept = title.rstrip(" \t").rstrip("#")
    return kept.rstrip(" \t") if not kept or kept[-1] in " \t" else title


def _clean(title: str) -> str:
    """Return a heading without inline marks, at most `MAX_HEADING_CHARACTERS` long."""
    plain = " ".join(_MARKS.sub("", _LINK.sub(r"\1", title)).split())
    return plain if len(plain) <= MAX_HEADING_CHARACTERS else plain[: MAX_HEADING_CHARACTERS - 1].rstrip() + "…"
