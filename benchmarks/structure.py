"""Compares how readers keep tables, headings and lists, in generated files of known content.

``python benchmarks/structure.py --python PYTHON`` reads the files with this program, and with the readers that are installed in
the environments of the interpreters named (`other_readers`). *Tables*: the share of values that stand in a line with the names of
their rows, and in a column below the names of their columns. Values of hidden rows and columns must be absent. *Headings*: the
share with their level (a document may count all of them one deeper) and their number. *Lists*: the share of items in order that
begin with their label. Writes ``results/structure.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from statistics import mean

from agentic_rag_backend.domain.media_types import BY_SUFFIX
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.parsing.registry import parser_of
from other_readers import READERS
from report import finish, quiet
from structure_files import AFTER, BEFORE, WRITERS
from structure_outlines import Outline, Part, make_outlines
from structure_tables import Fact, Table, make_tables

OURS = "this program"
Rows = list[list[str]]
_RULE = re.compile(r"\|?[\s:|-]+")
_BULLET = re.compile(r"[-*•·o▪\uf0a7]")


def read_text(path: Path) -> str:
    """Return the text of a file with its headings marked as in Markdown; empty if it is refused."""
    try:
        parsed = parser_of(BY_SUFFIX[path.suffix]).parse(path.read_bytes())
    except AgenticRagError:
        return ""
    text = parsed.text
    for heading in reversed(parsed.headings):
        if not text.startswith("#", heading.start_char):
            text = f"{text[: heading.start_char]}{'#' * heading.level} {text[heading.start_char :]}"
    return text


class _HtmlTables(HTMLParser):
    """Collects the rows of HTML tables. Cells with spans stand in every place that they cover."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[Rows] = []
        self._covered: list[dict[tuple[int, int], str]] = []
        self._spans: tuple[int, int] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
            self._covered.append({})
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in {"td", "th"} and self.tables and self.tables[-1]:
            values = dict(attrs)
            self._spans = int(values.get("rowspan") or 1), int(values.get("colspan") or 1)
            self._fill()
            self.tables[-1][-1].append("")

    def handle_data(self, data: str) -> None:
        if self._spans is not None:
            self.tables[-1][-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"} and self._spans is not None:
            row, (down, right) = self.tables[-1][-1], self._spans
            at, column, text = len(self.tables[-1]) - 1, len(row) - 1, row[-1]
            row += [text] * (right - 1)
            self._covered[-1] |= {(at + y, column + x): text for y in range(1, down) for x in range(right)}
            self._spans = None
        elif tag == "tr" and self.tables and self.tables[-1]:
            self._fill()

    def _fill(self) -> None:
        row, at = self.tables[-1][-1], len(self.tables[-1]) - 1
        while (at, len(row)) in self._covered[-1]:
            row.append(self._covered[-1][at, len(row)])


def split_tables(text: str) -> tuple[list[Rows], list[str]]:
    """Return the tables of a text in Markdown or HTML, and its other lines."""
    tables: list[Rows] = []
    lines: list[str] = []
    rows: Rows | None = None
    parser = _HtmlTables()
    for line in text.splitlines():
        if line.lstrip().startswith("|"):
            if rows is None:
                rows = []
                tables.append(rows)
            if not _RULE.fullmatch(line.strip()):
                cells = line.strip().strip("|") if line.strip() != "|" else ""
                rows.append([_plain(cell) for cell in re.split(r"(?<!\\)\|", cells)])
        else:
            rows = None
            lines.append(_plain(line))
    parser.feed("\n".join(line for line in text.splitlines() if "<t" in line or "</t" in line))
    tables += [[[_plain(cell) for cell in row] for row in table] for table in parser.tables]
    return tables, lines


def _plain(text: str) -> str:
    return " ".join(re.sub(r"\\([|_*&#~<>.()+-])", r"\1", text).replace("&amp;", "&").replace("<br>", " ").split()).strip()


def has_fact(fact: Fact, tables: Sequence[Rows], lines: Sequence[str], depth: int) -> bool:
    """Return whether a value stands with its names: in a table, or all of them in one line. ``depth`` is the header's rows."""
    names = (*fact.row, *fact.column)
    if any(fact.value in line and all(name in line for name in names) for line in lines):
        return True
    for rows in tables:
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                if fact.value in cell and _is_named(fact, rows, number, column, depth):
                    return True
    return False


def _is_named(fact: Fact, rows: Rows, number: int, column: int, depth: int) -> bool:
    if not all(any(name in cell for cell in rows[number]) for name in fact.row):
        return False
    above = [row[column] for row in rows[: depth + 2] if column < len(row) and row is not rows[number]]
    return all(any(name in cell for cell in above) for name in fact.column)


def list_facts(table: Table) -> Iterable[tuple[Fact, int]]:
    """Yield the facts of a table and of those beside and within it, with the number of their header rows."""
    parts = [table, *([table.beside] if table.beside else []), *(cell.table for cell in table.cells.values() if cell.table)]
    for part in parts:
        yield from ((fact, part.header_rows) for fact in part.facts)


def score_table(table: Table, text: str) -> float:
    """Return the share of the facts that a text tells, and of the hidden values that it does not."""
    tables, lines = split_tables(text)
    results = [has_fact(fact, tables, lines, depth) for fact, depth in list_facts(table)]
    flat = " ".join(chain(lines, *(row for rows in tables for row in rows)))
    results += [value not in flat for value in table.absent if flat]
    results += [sentence in flat for sentence in (BEFORE, AFTER) if BEFORE in flat or not flat]
    return mean(results)


def score_headings(outline: Outline, text: str) -> float | None:
    """Return the share of the headings that have their level and number; None if there are none."""
    headings = [part for part in outline.parts if part.level]
    lines = [_plain(line.replace("**", "")) for line in text.splitlines() if line.startswith("#")]
    if not headings:
        return None
    return max(
        mean(any(_is_heading(line, part, deeper and part is not headings[0]) for line in lines) for part in headings)
        for deeper in (False, True)
    )


def _is_heading(line: str, part: Part, deeper: bool) -> bool:
    marks, _, title = line.partition(" ")
    return len(marks) == part.level + deeper and title == f"{part.label} {part.text}".strip()


def score_lists(outline: Outline, text: str) -> float | None:
    """Return the share of the items that follow each other and begin with their label; None if there are none."""
    items = [part for part in outline.parts if part.label and not part.level]
    lines = [_plain(line) for line in text.splitlines()]
    number, count = 0, 0
    for part in items:
        at = next((at for at in range(number, len(lines)) if lines[at].endswith(part.text)), None)
        if at is not None:
            label = lines[at].removesuffix(part.text).strip()
            count += bool(_BULLET.fullmatch(label)) if part.label == "-" else label.removeprefix("- ") == part.label
            number = at + 1
    return count / len(items) if items else None


Scores = dict[tuple[str, str], list[float]]
"""Shares by row and reader of a table of results."""


def collect_scores(folder: Path, tables: Mapping[str, Table], outlines: Mapping[str, Outline]) -> dict[str, Scores]:
    """Return the shares of each reader whose texts lie in the folder: by format, by kind of table, and of Word documents."""
    scores: dict[str, Scores] = {name: defaultdict(list) for name in ("formats", "kinds", "headings", "lists")}
    for path in sorted(path for path in folder.iterdir() if path.suffix != ".txt"):
        for reader in (OURS, *READERS):
            output = path.with_name(f"{path.name}.{reader}.txt")
            text = read_text(path) if reader == OURS else output.read_text(encoding="utf-8") if output.exists() else ""
            if reader != OURS and not output.exists():
                continue
            if table := tables.get(path.name):
                share = score_table(table, text)
                scores["formats"][path.name.split("~")[0], reader].append(share)
                if text.strip():
                    scores["kinds"][table.kind, reader].append(share)
            else:
                outline = outlines[path.name]
                for name, score in (("headings", score_headings(outline, text)), ("lists", score_lists(outline, text))):
                    if score is not None:
                        scores[name][outline.kind, reader].append(score)
    return scores


def show_scores(title: str, scores: Scores) -> str:
    """Return a table of means, one row a kind and one column a reader."""
    readers = [reader for reader in (OURS, *READERS) if any(reader == column for _, column in scores)]
    rows = [f"| {title} | files | {' | '.join(readers)} |", "|---" * (len(readers) + 2) + "|"]
    for kind in dict.fromkeys(kind for kind, _ in scores):
        cells = [f"{mean(scores[kind, reader]):.2f}" if any(scores.get((kind, reader), ())) else "–" for reader in readers]
        rows.append(f"| {kind} | {len(scores[kind, OURS])} | {' | '.join(cells)} |")
    return "\n".join(rows)


def write_files(folder: Path) -> tuple[dict[str, Table], dict[str, Outline]]:
    """Write all files; return their tables and outlines by name."""
    tables: dict[str, Table] = {}
    for name, (suffix, write) in WRITERS.items():
        for table in make_tables():
            content = write(table)
            if content is not None:
                file_name = f"{name}~{table.kind}~{table.seed}{suffix}"
                (folder / file_name).write_bytes(content)
                tables[file_name] = table
    outlines = {f"outline~{outline.kind}~{outline.seed}.docx": outline for outline in make_outlines()}
    for file_name, outline in outlines.items():
        (folder / file_name).write_bytes(outline.content())
    return tables, outlines


def main() -> int:
    """Write the files, read them and report the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], help="an interpreter whose environment has other readers")
    parser.add_argument("--folder", type=Path, help="keep the files and texts here")
    arguments = parser.parse_args()
    quiet()
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        tables, outlines = write_files(folder)
        for interpreter in arguments.python:
            subprocess.run([interpreter, str(Path(__file__).with_name("other_readers.py")), str(folder)], check=True)
        scores = collect_scores(folder, tables, outlines)
    titles = {"formats": "tables by format", "kinds": "tables by kind", "headings": "headings", "lists": "lists"}
    shown = "\n\n".join(show_scores(title, scores[name]) for name, title in titles.items())
    means = {name: {" / ".join(key): round(mean(values), 3) for key, values in part.items()} for name, part in scores.items()}
    return finish("structure", means, shown, [])


if __name__ == "__main__":
    sys.exit(main())
