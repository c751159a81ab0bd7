"""reStructuredText: titles, paragraphs, lists, tables and directives. Nothing is included or run."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Sequence

from agentic_rag_backend.ingestion.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.ingestion.parsing.building import TextBuilder
from agentic_rag_backend.ingestion.parsing.restructured.rst_tables import GRID, RULE, read_grid_table, read_simple_table
from agentic_rag_backend.language.titles import is_placeholder

MAX_DEPTH = 20
"""Directives and quotations within each other whose marks are read."""
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*")
_EXPLICIT = re.compile(r"\.\.(?:\s+(?P<text>.*))?")
_DIRECTIVE = re.compile(r"(?:\|(?P<name>[^|]+)\|\s+)?(?P<kind>[\w.:+-]+?)::(?:\s+(?P<arguments>.*))?")
_FOOTNOTE = re.compile(r"\[(?P<mark>[^\]]+)\]\s+(?P<text>.*)")
_OPTION = re.compile(r":(?P<name>[\w -]+):(?:\s+(?P<value>.*))?")
_FIELD = re.compile(r":(?P<name>[^:\n`]+):\s+(?P<value>.+)")
_ITEM = re.compile(r"(?:[-*+•]|\(?(?:\d{1,9}|#|[A-Za-z])[.)])\s+")
_LIST_ITEM = re.compile(r"\*\s+-\s?|\s+-\s")
_ROLE = re.compile(r":[\w+.-]{1,40}(?::[\w+.-]{1,40})?:`(?P<text>[^`]+)`")
_ROLE_AFTER = re.compile(r"(?<![`\w])`(?P<text>[^`\n]+)`:[\w+.-]{1,40}:")
_LINK = re.compile(r"`(?P<text>[^`<]+)<[^`<>]+>`__?")
_MARKS = re.compile(
    r"``(?P<literal>[^`]+)``|\*\*(?P<strong>[^*\n]+)\*\*|(?<!\w)\*(?P<emphasis>[^*\s][^*\n]*)\*(?!\w)"
    r"|`(?P<quoted>[^`\n]+)`_{0,2}|\[(?P<note>[\w#*]{1,40})\]_|(?<![\w-])(?P<target>[^\W_]++(?:-[^\W_]++)*+)__?(?!\w)"
)
_CODE = frozenset(["code", "code-block", "sourcecode", "parsed-literal", "prompt", "math", "productionlist", "doctest"])
_LEFT_OUT = frozenset(
    ["toctree", "contents", "index", "meta", "raw", "currentmodule", "module", "highlight", "default-role", "role", "sectnum"]
)
_UNNAMED = frozenset(["table", "rubric", "topic", "sidebar", "container", "epigraph", "class", "function"])
_INCLUDED = frozenset({"include", "literalinclude", "autoclass", "automodule", "autofunction", "automethod"})
_PICTURES = frozenset({"image", "figure"})


class RstParser:
    """Parser of reStructuredText. The title is its first one."""

    def check(self, head: str, *, is_whole: bool) -> Preview:
        """Read the first title."""
        parsed = self.parse(head)
        return Preview(title=parsed.title, text=parsed.text)

    def parse(self, text: str) -> ParsedDocument:
        """Return titles, paragraphs, lists and tables without their marks."""
        builder = TextBuilder(len(text))
        _Reader(builder).read_lines(text.expandtabs(8).split("\n"), depth=0)
        parsed = builder.build()
        title = next((heading.title for heading in parsed.headings if not is_placeholder(heading.title)), None)
        return ParsedDocument(text=parsed.text, title=title, headings=parsed.headings, warnings=parsed.warnings)

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; which lines are titles is not known."""
        return ParsedDocument(text=text)


class _Reader:
    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._levels: list[tuple[str, bool]] = []

    def read_lines(self, lines: Sequence[str], *, depth: int) -> None:
        """Add the blocks of lines that have the same indentation as the first one."""
        number = 0
        while number < len(lines):
            line = lines[number]
            if not line.strip():
                number += 1
            elif (end := self._read_title(lines, number)) > number:
                number = end
            elif explicit := _EXPLICIT.fullmatch(line):
                end = _find_block_end(lines, number + 1)
                self._read_explicit(explicit["text"] or "", _remove_margin(lines[number + 1 : end]), depth)
                number = end
            elif GRID.fullmatch(line) or RULE.fullmatch(line):
                number = self._read_table(lines, number)
            elif line.startswith(" "):
                end = _find_block_end(lines, number)
                inner = _remove_margin(lines[number:end])
                if depth < MAX_DEPTH:
                    self.read_lines(inner, depth=depth + 1)
                else:
                    self._builder.add_paragraph("\n".join(inner))
                number = end
            else:
                number = self._read_paragraph(lines, number)

    def _read_title(self, lines: Sequence[str], number: int) -> int:
        """Add the title that begins at a line and return the number of the line after it; ``number`` if there is none."""
        above = _ADORNMENT.fullmatch(lines[number])
        if (
            above
            and number + 2 < len(lines)
            and lines[number + 1].strip()
            and lines[number + 2].rstrip() == lines[number].rstrip()
        ):
            self._add_title(lines[number + 1], above[1], has_overline=True)
            return number + 3
        if above and len(lines[number].strip()) >= 4:
            return number + 1  # a transition
        below = _ADORNMENT.fullmatch(lines[number + 1]) if number + 1 < len(lines) else None
        title = lines[number].strip()
        if below and not lines[number].startswith(" ") and len(lines[number + 1].strip()) >= min(_measure_width(title), 4):
            self._add_title(title, below[1], has_overline=False)
            return number + 2
        return number

    def _add_title(self, title: str, mark: str, *, has_overline: bool) -> None:
        style = (mark, has_overline)
        if style not in self._levels:
            self._levels.append(style)
        self._builder.add_heading(self._levels.index(style) + 1, _clean_inline(title))

    def _read_table(self, lines: Sequence[str], number: int) -> int:
        is_grid = lines[number].startswith("+")
        end = number + 1
        while end < len(lines) and (lines[end].startswith(("+", "|")) if is_grid else not _ends_simple_table(lines, number, end)):
            end += 1
        rows, has_header = (read_grid_table if is_grid else read_simple_table)(lines[number:end])
        self._builder.add_table([[_clean_inline(cell) for cell in row] for row in rows], header=has_header)
        return end

    def _read_paragraph(self, lines: Sequence[str], number: int) -> int:
        """Add a paragraph, or a list whose items may be indented, and the literal block after it."""
        end = number + 1
        while end < len(lines) and lines[end].strip() and not _EXPLICIT.fullmatch(lines[end]):
            end += 1
        block = list(lines[number:end])
        is_literal = block[-1].rstrip().endswith("::")
        if is_literal:
            block[-1] = block[-1].rstrip().removesuffix("::") + ("" if block[-1].rstrip().endswith(" ::") else ":")
            block[-1] = "" if block[-1].strip() == ":" else block[-1]
        self._builder.add_lines([(line, {}) for line in _join_items(block)])
        if is_literal and (literal_end := _find_block_end(lines, end)) > end:
            self._builder.add_paragraph("\n".join(_remove_margin(lines[end:literal_end])))
            return literal_end
        return end

    def _read_explicit(self, text: str, body: list[str], depth: int) -> None:
        """Read a directive or a footnote. Comments, targets of links and substitutions are left out."""
        if note := _FOOTNOTE.fullmatch(text):
            self._builder.add_paragraph(_clean_inline(" ".join([f"[{note['mark']}] {note['text']}", *map(str.strip, body)])))
        elif (directive := _DIRECTIVE.fullmatch(text)) and not directive["name"]:
            options, content = _split_options(body)
            kind, arguments = directive["kind"].rpartition(":")[2].lower(), (directive["arguments"] or "").strip()
            if kind in {"list-table", "csv-table"}:
                self._add_listed_table(kind, arguments, options, content)
            else:
                self._read_directive(kind, arguments, options, content, depth)

    def _add_listed_table(self, kind: str, caption: str, options: dict[str, str], content: list[str]) -> None:
        self._builder.add_paragraph(_clean_inline(caption))
        try:
            rows = list(filter(None, csv.reader(content))) if kind == "csv-table" else _read_list_table(content)
            header = next(csv.reader([options.get("header", "")]), [])
        except csv.Error:  # a value is longer than the library reads
            self._builder.omissions.add("damaged tables")
            return
        has_header = bool(header) or options.get("header-rows", "0") != "0"
        self._builder.add_table([header, *rows] if header else rows, header=has_header)

    def _read_directive(self, kind: str, arguments: str, options: dict[str, str], content: list[str], depth: int) -> None:
        if kind in _INCLUDED:
            self._builder.omissions.add("included files and generated documentation")
        elif kind in _CODE:
            self._builder.add_paragraph("\n".join(content) or arguments)
        elif kind not in _LEFT_OUT:
            name = "" if kind in _UNNAMED else f"{kind.capitalize()}:"
            title = options.get("alt", "") if kind in _PICTURES else f"{name} {arguments}"
            self._builder.add_paragraph(_clean_inline(title))
            if depth < MAX_DEPTH:
                self.read_lines(content, depth=depth + 1)
            else:
                self._builder.add_paragraph("\n".join(content))


def _ends_simple_table(lines: Sequence[str], start: int, number: int) -> bool:
    """Return whether a simple table has ended before a line: by the rule above it, if an empty line follows."""
    return not lines[number].strip() and number - 1 > start and RULE.fullmatch(lines[number - 1]) is not None


def _find_block_end(lines: Sequence[str], number: int) -> int:
    """Return the number of the line after the indented block that begins at a line."""
    end = number
    for position in range(number, len(lines)):
        if lines[position].startswith(" "):
            end = position + 1
        elif lines[position].strip():
            break
    return end


def _remove_margin(lines: Sequence[str]) -> list[str]:
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[margin:].rstrip() for line in lines]


def _split_options(body: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options at the beginning of a directive's body, and its content."""
    options: dict[str, str] = {}
    for number, line in enumerate(body):
        option = _OPTION.fullmatch(line)
        if option is None:
            return options, _remove_margin(body[number:])
        options[option["name"]] = option["value"] or ""
    return options, []


def _join_items(block: list[str]) -> list[str]:
    """Return the lines of a paragraph, or the items of a list with their lines joined."""
    items: list[list[str]] = []
    for line in block:
        text = line.strip()
        field = _FIELD.fullmatch(text)
        if not items or _ITEM.match(text) or field or not _ITEM.match(items[0][0]):
            items.append([f"{field['name']}: {field['value']}" if field else text])
        else:
            items[-1].append(text)
    return [_clean_inline(" ".join(item)) for item in items]


def _read_list_table(lines: list[str]) -> list[list[str]]:
    rows: list[list[list[str]]] = []
    for line in lines:
        mark = _LIST_ITEM.match(line)
        if mark and mark[0].lstrip().startswith("*"):
            rows.append([[line[mark.end() :].removeprefix("-").strip()]])
        elif mark and rows:
            rows[-1].append([line[mark.end() :].strip()])
        elif rows and line.strip():
            rows[-1][-1].append(line.strip())
    return [[_clean_inline(" ".join(cell)) for cell in row] for row in rows]


def _measure_width(title: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in title)


def _clean_inline(text: str) -> str:
    """Return a text without inline marks. A link or a role is its text."""
    text = _LINK.sub(lambda link: link["text"].strip(), text)
    for pattern in (_ROLE, _ROLE_AFTER):
        text = pattern.sub(lambda role: _read_target(role["text"]), text)
    return _MARKS.sub(lambda mark: f"[{mark['note']}]" if mark["note"] else next(filter(None, mark.groups()), mark[0]), text)


def _read_target(text: str) -> str:
    name, mark, _ = text.rpartition("<")
    return name.strip() if mark and name.strip() else text.removeprefix("~").removeprefix("!")
