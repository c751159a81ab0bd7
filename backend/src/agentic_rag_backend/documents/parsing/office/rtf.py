"""RTF: paragraphs and rows of tables, read control word by control word with a stack of groups.

The text is collected here and not by `striprtf`, whose search for links takes cubic time on a hostile file.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lxml import etree

from agentic_rag_backend.documents.parsing.base import ParsedDocument, Preview
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import MAX_XML_DEPTH
from agentic_rag_backend.documents.parsing.inline_scripts import SUBSCRIPT, SUPERSCRIPT, join_scripts
from agentic_rag_backend.documents.parsing.office.rtf_formulas import FORMULA_WORDS, add_formula_text, make_formula_part
from agentic_rag_backend.documents.parsing.office.rtf_tables import CELL_PROPERTIES, RtfTable
from agentic_rag_backend.documents.parsing.office.word.formulas import write_formula
from agentic_rag_backend.documents.parsing.office.word.symbols import read_symbol
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

MAX_DEPTH = 10_000
"""Groups within each other. Word writes fewer than 20."""
MAX_FORMULA_PARTS = 100_000
"""Parts of all formulas of a file, such as fractions and their numerators."""

_TOKEN = re.compile(rb"\\([a-zA-Z]{1,32})(-?[0-9]{1,10})? ?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|([^\\{}\r\n]+)", re.DOTALL)
_SKIPPED = frozenset({
    "annotation", "atnauthor", "atnid", "bkmkend", "bkmkstart", "colortbl", "comment", "datafield", "datastore", "fldinst",
    "filetbl", "fontemb", "footer", "footerf", "footerl", "footerr", "generator", "header", "headerf", "headerl", "headerr",
    "info", "listtable", "listoverridetable", "latentstyles", "mmathPict", "mmathPr", "nonesttables", "nonshppict", "object",
    "objdata", "pict", "rsidtbl", "stylesheet", "themedata", "colorschememapping", "xe", "tc", "txe", "xmlnstbl",
})  # fmt: skip
"""Groups that are not text of the document."""
_KINDS: Mapping[str, str] = {
    "annotation": "comments", "header": "headers and footers", "headerf": "headers and footers", "headerl": "headers and footers",
    "headerr": "headers and footers", "footer": "headers and footers", "footerf": "headers and footers",
    "footerl": "headers and footers", "footerr": "headers and footers",
}  # fmt: skip
"""Kinds of groups with text that is not read."""
_SCRIPTS: Mapping[str, str] = {"super": SUPERSCRIPT, "sub": SUBSCRIPT, "nosupersub": ""}
_CHARACTERS: Mapping[str, str] = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "emspace": " ", "enspace": " ", "qmspace": " ",
}  # fmt: skip
_SYMBOLS: Mapping[bytes, str] = {b"~": " ", b"_": "-", b"-": "", b"{": "{", b"}": "}", b"\\": "\\"}
_CHARSETS: Mapping[int, str] = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gbk", 136: "cp950", 161: "cp1253", 162: "cp1254", 163: "cp1258",
    177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
_INFO_TITLE = re.compile(rb"\{\\title ([^{}\\]{1,500})\}")
_INFO_AUTHOR = re.compile(rb"\{\\author ([^{}\\]{1,500})\}")


class RtfParser:
    """Parser of RTF. Headers, footers, hidden and deleted text and pictures are left out."""

    def check(self, head: bytes, *, is_whole: bool) -> Preview:
        """Read the title in the information group."""
        if not head.startswith(b"{\\rtf"):
            raise UnreadableDocument("the file is not an RTF file: it does not begin with {\\rtf")
        return Preview(title=_read_information(_INFO_TITLE, head), text="")

    def parse(self, content: bytes) -> ParsedDocument:
        """Return paragraphs and tables in their order."""
        title = self.check(content, is_whole=True).title
        author = _read_information(_INFO_AUTHOR, content)
        reader = _Reader(TextBuilder(len(content)))
        for token in _TOKEN.finditer(content):
            reader.take_token(token)
        reader.finish_document()
        return reader.builder.build(title=title, metadata={"author": author} if author else {})

    def restore(self, text: str) -> ParsedDocument:
        """Return ``text``; which lines are headings is not known."""
        return ParsedDocument(text=text)


def _read_information(pattern: re.Pattern[bytes], content: bytes) -> str | None:
    match = pattern.search(content)
    return " ".join(match[1].decode("cp1252", "replace").split()) or None if match else None


@dataclass(slots=True)
class _LeftOut:
    """Text that is left out: its kind, and whether it was counted. Groups within it share the object."""

    kind: str
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class _Group:
    """The state that the end of a group restores."""

    skipped: bool = False
    hidden: bool = False
    fallback: int = 1
    font: int | None = None
    in_fonts: bool = False
    script: str = ""
    in_nested_row: bool = False
    """Whether the group defines a row of a table within a cell."""
    left_out: _LeftOut | None = None
    math: etree._Element | None = None
    """The element of a formula to which the text of the group belongs."""


@dataclass(slots=True)
class _Note:
    """A note that is read: the number of groups around it, and the text before it."""

    depth: int
    parts: list[tuple[str, str]]


@dataclass(slots=True)
class _Reader:
    builder: TextBuilder = field(default_factory=TextBuilder)
    group: _Group = field(default_factory=_Group)
    stack: list[_Group] = field(default_factory=list)
    encoding: str = "cp1252"
    fonts: dict[int, str] = field(default_factory=dict)
    level: int | None = None
    ignored: int = 0
    star: bool = False
    pending: bytearray = field(default_factory=bytearray)
    parts: list[tuple[str, str]] = field(default_factory=list)
    notes: list[_Note] = field(default_factory=list)
    note_texts: list[str] = field(default_factory=list)
    note_count: int = 0
    table_notes: list[str] = field(default_factory=list)
    """Notes of cells, which follow their table."""
    cells: list[str] = field(default_factory=list)
    table: RtfTable = field(default_factory=RtfTable)
    nested_table: RtfTable = field(default_factory=RtfTable)
    nested_cells: list[str] = field(default_factory=list)
    outer_parts: list[tuple[str, str]] | None = None
    in_row: bool = False
    formula_parts: int = 0

    def take_token(self, token: re.Match[bytes]) -> None:
        """Read one token: a control word or symbol, a brace, or text."""
        word, number, code, symbol, brace, text = token.groups()
        if code:
            self._read_bytes(bytes([int(code, 16)]))
        elif text:
            self._read_bytes(text)
        elif word:
            self._read_word(word.decode(), None if number is None else int(number))
        elif brace:
            self._read_brace(brace)
        elif symbol == b"*":
            self.star = True
        elif symbol in b"\r\n":
            self._end_paragraph()
        else:
            self._show_text(_SYMBOLS.get(symbol, ""))

    def finish_document(self) -> None:
        """Add what the last paragraph and table have."""
        self._end_paragraph()
        self._end_table()

    def _read_brace(self, brace: bytes) -> None:
        self._flush_bytes()
        self.star, self.ignored = False, 0
        if brace == b"{":
            if len(self.stack) >= MAX_DEPTH:
                raise ResourceLimit(f"groups are nested more than {MAX_DEPTH} deep, which is the limit")
            self.stack.append(self.group)
        elif self.stack:
            formula, self.group = self.group.math, self.stack.pop()
            if formula is not None and self.group.math is None and not self.group.hidden:
                self.parts.append(("", write_formula(formula)))
            if self.notes and len(self.stack) < self.notes[-1].depth:
                self._end_note()

    def _read_bytes(self, text: bytes) -> None:
        if self.ignored:
            count = min(self.ignored, len(text))
            self.ignored, text = self.ignored - count, text[count:]
        if not (self.group.skipped or self.group.hidden):
            self.pending += text
        elif self.group.left_out and not self.group.left_out.is_counted and text.strip():
            self.builder.omissions.add(self.group.left_out.kind)
            self.group.left_out.is_counted = True

    def _flush_bytes(self) -> None:
        if self.pending:
            encoding = self.fonts.get(self.group.font if self.group.font is not None else -1, self.encoding)
            self._add_text(self.pending.decode(encoding, "replace"))
            self.pending.clear()

    def _show_text(self, text: str) -> None:
        self._flush_bytes()
        if text and not (self.group.skipped or self.group.hidden):
            self._add_text(text)

    def _add_text(self, text: str) -> None:
        if self.group.math is None:
            self.parts.append((self.group.script, text))
        else:
            add_formula_text(self.group.math, text)

    def _begin_note(self) -> None:
        self.notes.append(_Note(len(self.stack), self.parts))
        self.parts = []
        self.group = replace(self.group, script="")

    def _end_note(self) -> None:
        """Keep the text of a note for the end of its paragraph, which refers to it by its number."""
        text = self._take_text()
        self.parts = self.notes.pop().parts
        if text:
            self.note_count += 1
            self.parts.append(("", f"[{self.note_count}]"))
            self.note_texts.append(f"[{self.note_count}] {text}")

    def _add_notes(self, texts: list[str]) -> None:
        for text in texts:
            self.builder.add_paragraph(text)
        texts.clear()

    def _read_word(self, word: str, number: int | None) -> None:
        self._flush_bytes()
        starred, self.star, self.ignored = self.star, False, 0
        if not self.group.skipped and (word == "moMath" or self.group.math is not None) and word in FORMULA_WORDS:
            self._begin_formula_part(word)
        elif word == "moMathPara":
            return
        elif starred and word == "nesttableprops" and not self.group.skipped:
            self.group = replace(self.group, in_nested_row=True)
        elif word in _SKIPPED or starred or word == "fonttbl":
            left_out = self.group.left_out if self.group.skipped else _LeftOut(_KINDS[word]) if word in _KINDS else None
            self.group = replace(self.group, skipped=True, in_fonts=word == "fonttbl", left_out=left_out)
        elif word == "footnote" and not self.group.skipped:
            self._begin_note()
        elif word == "u" and number is not None:
            letter = number % 0x10000
            self._show_text(read_symbol("symbol", f"{letter:x}") if 0xF000 <= letter <= 0xF0FF else chr(letter))
            self.ignored = self.group.fallback
        elif word in _CHARACTERS:
            self._show_text(_CHARACTERS[word])
        elif word in CELL_PROPERTIES and not self.group.skipped:
            self._defined_table.read_property(word, number)
        elif word in _ACTIONS and not self.group.skipped:
            _ACTIONS[word](self)
        else:
            self._read_state(word, number)

    def _begin_formula_part(self, word: str) -> None:
        """Add an element to a formula, whose text is in the group."""
        self.formula_parts += 1
        if self.formula_parts > MAX_FORMULA_PARTS:
            raise ResourceLimit(f"the formulas have more than {MAX_FORMULA_PARTS} parts, which is the limit")
        if self.group.math is not None and len(self.stack) > MAX_XML_DEPTH:
            raise ResourceLimit(f"the parts of a formula are nested more than {MAX_XML_DEPTH} deep, which is the limit")
        self.group = replace(self.group, math=make_formula_part(self.group.math, word), script="")

    def _read_state(self, word: str, number: int | None) -> None:
        if word == "uc":
            self.group = replace(self.group, fallback=min(max(number or 0, 0), 100))
        elif word in _SCRIPTS:
            self.group = replace(self.group, script=_SCRIPTS[word] if number != 0 else "")
        elif word in {"v", "deleted"}:
            is_counted = word == "deleted" or number == 0 or self.group.skipped
            self.group = replace(self.group, hidden=number != 0, left_out=None if is_counted else _LeftOut("hidden text"))
        elif word == "f":
            self.group = replace(self.group, font=number)
        elif word == "plain":
            self.group = replace(self.group, font=None, hidden=False, script="")
        elif word == "fcharset" and self.group.in_fonts and self.group.font is not None and number is not None:
            self.fonts[self.group.font] = _CHARSETS.get(number, self.encoding)
        elif word == "ansicpg" and _is_encoding(f"cp{number}"):
            self.encoding = f"cp{number}"
        elif word == "itap" and number is not None and number > 1 and self.outer_parts is None and not self.group.skipped:
            self.outer_parts, self.parts = self.parts, []
        elif word == "outlinelevel" and not self.group.skipped and number is not None and 0 <= number < 9:
            self.level = number + 1

    def _take_text(self) -> str:
        self._flush_bytes()
        text = join_scripts(self.parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").strip()
        self.parts.clear()
        return text

    def _end_paragraph(self) -> None:
        if self.cells or self.in_row or self.notes:
            self.parts.append(("", "\n"))
            return
        if text := self._take_text():
            self._end_table()
            if self.level is None:
                self.builder.add_paragraph(text)
            else:
                self.builder.add_heading(self.level, text)
            self._add_notes(self.note_texts)

    def begin_row(self) -> None:
        """Begin a row of a table, whose paragraphs belong to cells."""
        if not self.in_row:
            self._end_paragraph()
        self.in_row = True

    def end_cell(self) -> None:
        """End a cell. Its text stands around the tables within it."""
        text = self._take_text()
        if self.outer_parts is not None:
            self.parts, self.outer_parts = self.outer_parts, None
            text = "\n".join(filter(None, (self._take_text(), text)))
        self.cells.append(text)
        self.table_notes += self.note_texts
        self.note_texts.clear()

    def end_row(self) -> None:
        """End a row."""
        if self.cells:
            self.table.end_row(self.cells)
        self.cells, self.in_row = [], False

    def end_nested_cell(self) -> None:
        """End a cell of a table within a cell."""
        self.nested_cells.append(self._take_text())

    def end_nested_row(self) -> None:
        """End a row of a table within a cell."""
        if self.nested_cells:
            self.nested_table.end_row(self.nested_cells)
        self.nested_cells = []

    @property
    def _defined_table(self) -> RtfTable:
        return self.nested_table if self.group.in_nested_row else self.table

    def define_row(self) -> None:
        """Begin the definition of a row."""
        self._defined_table.begin_definitions()

    def reset_paragraph(self) -> None:
        """Forget the properties of the last paragraph."""
        self.level = None
        self.in_row = bool(self.cells)

    def _end_table(self) -> None:
        self.table.write_table(self.builder)
        self.nested_table.write_table(self.builder)
        self._add_notes(self.table_notes)


_ACTIONS = {
    "par": _Reader._end_paragraph, "sect": _Reader._end_paragraph, "page": _Reader._end_paragraph, "intbl": _Reader.begin_row,
    "cell": _Reader.end_cell, "nestcell": _Reader.end_nested_cell, "row": _Reader.end_row, "nestrow": _Reader.end_nested_row,
    "pard": _Reader.reset_paragraph, "trowd": _Reader.define_row,
}  # fmt: skip


def _is_encoding(name: str) -> bool:
    try:
        return codecs.lookup(name).name != "cp0"
    except LookupError:
        return False
