"""Compares the words of PDF files as the parser reads them with PDFium's plain text of what lies on the page.

``python benchmarks/reading.py FOLDER...`` prints the word recall and precision of each file with at least 5 words, and the order
of words on pages with two columns: the similarity to the order of the page's content. Running heads and page numbers that the
parser leaves out, and hidden words, lower the recall; values of forms and comments lower the precision.
"""

from __future__ import annotations

import re
import sys
import time
import unicodedata
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from multiprocessing import Pool
from pathlib import Path

import pypdfium2

from agentic_rag_backend.documents.parsing.pdf.page_layout import layout_of
from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser
from agentic_rag_backend.documents.parsing.pdf.tables.ruled_tables import Table
from agentic_rag_backend.documents.parsing.pdf.text_words import words_of
from agentic_rag_backend.errors import AgenticRagError
from report import finish, quiet

LEAST_WORDS = 5
LEVELS = (0.99, 0.95)
COLUMN_LINES = 10
"""Lines of each of two columns on a page whose order is compared."""
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""A Chinese, Japanese or Korean letter, or a word of other letters: the parser writes no spaces between the former."""
_INVISIBLE = str.maketrans(dict.fromkeys("\u00ad\ufffe\x02"))


@dataclass
class Reading:
    """Figures of one file."""

    name: str
    words: int = 0
    pages: int = 0
    recall: float = 0.0
    precision: float = 0.0
    cpu_s: float = 0.0
    warnings: int = 0
    orders: tuple[float, ...] = ()
    error: str = ""


def split_words(text: str) -> list[str]:
    """Return the words of a text in the form in which they are compared."""
    return _WORD.findall(unicodedata.normalize("NFKC", text.translate(_INVISIBLE)).casefold())


def read_file(path: Path) -> Reading | None:
    """Return the figures of a file; None if PDFium cannot open it or it has too few words."""
    content, reading = path.read_bytes(), Reading(path.name)
    try:
        document = pypdfium2.PdfDocument(content)
        pages = [document[index] for index in range(len(document))]
        plain = [page.get_textpage().get_text_bounded(*page.get_bbox()) for page in pages]
    except pypdfium2.PdfiumError:
        return None
    expected = Counter(word for text in plain for word in split_words(text))
    reading.words, reading.pages = expected.total(), len(pages)
    if reading.words < LEAST_WORDS:
        return None
    begin = time.process_time()
    try:
        parsed = PdfParser().parse(content)
    except AgenticRagError as error:
        reading.error = error.message
        return reading
    reading.cpu_s, reading.warnings = time.process_time() - begin, len(parsed.warnings)
    words = Counter(split_words(parsed.text))
    common = (expected & words).total()
    reading.recall, reading.precision = common / reading.words, common / max(words.total(), 1)
    reading.orders = tuple(compare_orders(pages, plain))
    return reading


def compare_orders(pages: list[pypdfium2.PdfPage], plain: list[str]) -> list[float]:
    """Return the similarity of the order of words on each page with two columns."""
    similarities = []
    for number, (page, text) in enumerate(zip(pages, plain, strict=True), start=1):
        columns = [column for column in layout_of(words_of(page), number, None, page).columns if not isinstance(column, Table)]
        if sum(len(column) >= COLUMN_LINES for column in columns) >= 2:
            ours = split_words(" ".join(line.whole for column in columns for line in column))
            similarities.append(SequenceMatcher(None, split_words(text), ours, autojunk=False).ratio())
    return similarities


def main() -> int:
    """Read the files of the folders and write the table."""
    quiet()
    paths = sorted(path for folder in sys.argv[1:] for path in Path(folder).rglob("*.pdf"))
    with Pool(2, maxtasksperchild=50) as pool:
        readings = [reading for reading in pool.imap(read_file, paths) if reading is not None]
    whole = [reading for reading in readings if not reading.error]
    orders = [order for reading in whole for order in reading.orders]
    rows = ["| | files |", "|---|---|", f"| with words | {len(readings)} |", f"| refused | {len(readings) - len(whole)} |"]
    for level in LEVELS:
        rows.append(f"| recall ≥ {level} | {sum(reading.recall >= level for reading in whole)} |")
        rows.append(f"| precision ≥ {level} | {sum(reading.precision >= level for reading in whole)} |")
    pages = sum(reading.pages for reading in whole)
    rows.append(f"| CPU a page, ms | {1000 * sum(reading.cpu_s for reading in whole) / max(pages, 1):.1f} |")
    rows.append(f"| pages with two columns | {len(orders)} |")
    rows.append(f"| their order, mean similarity | {sum(orders) / max(len(orders), 1):.3f} |")
    rows += ["", "| file | words | recall | precision | warnings | |", "|---|---|---|---|---|---|"]
    for reading in sorted(readings, key=lambda reading: reading.recall):
        if reading.recall < LEVELS[0] or reading.precision < LEVELS[0]:
            figures = f"{reading.words} | {reading.recall:.3f} | {reading.precision:.3f} | {reading.warnings}"
            rows.append(f"| {reading.name} | {figures} | {reading.error} |")
    return finish("reading", {"files": [vars(reading) for reading in readings]}, "\n".join(rows), [])


if __name__ == "__main__":
    sys.exit(main())
