"""Reads the files of a folder with other readers, as far as they are installed, and writes their text beside each file.

``python other_readers.py FOLDER`` runs in any environment; it needs nothing of this project. ``python
other_readers.py FOLDER NAME...`` leaves readers out. ``a.docx`` becomes
``a.docx.NAME.txt``, empty if the reader fails. Tables are Markdown or HTML. Readers that cannot be imported are left out.
"""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Reader = Callable[[Path], str]


def read_markitdown() -> Reader:
    """Return the reader markitdown."""
    from markitdown import MarkItDown  # type: ignore[import-not-found,unused-ignore]

    converter = MarkItDown(enable_plugins=False)
    return lambda path: str(converter.convert(path).text_content)


def read_pymupdf4llm() -> Reader:
    """Return the reader pymupdf4llm, for PDF."""
    import pymupdf4llm  # type: ignore[import-not-found,unused-ignore]

    return lambda path: str(pymupdf4llm.to_markdown(str(path))) if path.suffix == ".pdf" else ""


def read_pdfplumber() -> Reader:
    """Return the reader pdfplumber, for PDF: the text of each page, then its tables."""
    import pdfplumber  # type: ignore[import-not-found,unused-ignore]

    def read(path: Path) -> str:
        parts = []
        with pdfplumber.open(path) as document:
            for page in document.pages:
                parts.append(page.extract_text())
                parts += [to_markdown(table) for table in page.extract_tables()]
        return "\n\n".join(parts)

    return lambda path: read(path) if path.suffix == ".pdf" else ""


def read_unstructured() -> Reader:
    """Return the reader unstructured, without models: a blank pipeline replaces its model of English, which it would download."""
    import spacy  # type: ignore[import-not-found,unused-ignore]
    from unstructured.nlp import tokenize  # type: ignore[import-not-found,unused-ignore]
    from unstructured.partition.auto import partition  # type: ignore[import-not-found,unused-ignore]

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    tokenize._get_nlp = lambda: pipeline

    def to_text(element: Any) -> str:
        if element.metadata.text_as_html:
            return str(element.metadata.text_as_html)
        if element.category == "Title":
            return "#" * ((element.metadata.category_depth or 0) + 1) + " " + str(element.text)
        return ("- " if element.category == "ListItem" else "") + str(element.text)

    return lambda path: "\n\n".join(map(to_text, partition(str(path), strategy="fast")))


def read_docling() -> Reader:
    """Return the backends of docling that need no models: those of all formats but PDF."""
    from docling.backend import html_backend as html  # type: ignore[import-not-found,unused-ignore]
    from docling.backend import md_backend as md
    from docling.backend import msexcel_backend as excel
    from docling.backend import mspowerpoint_backend as powerpoint
    from docling.backend import msword_backend as word
    from docling.datamodel.base_models import InputFormat  # type: ignore[import-not-found,unused-ignore]
    from docling.datamodel.document import InputDocument  # type: ignore[import-not-found,unused-ignore]

    backends = {
        ".docx": (InputFormat.DOCX, word.MsWordDocumentBackend),
        ".pptx": (InputFormat.PPTX, powerpoint.MsPowerpointDocumentBackend),
        ".xlsx": (InputFormat.XLSX, excel.MsExcelDocumentBackend),
        ".html": (InputFormat.HTML, html.HTMLDocumentBackend),
        ".md": (InputFormat.MD, md.MarkdownDocumentBackend),
    }

    def read(path: Path) -> str:
        if path.suffix not in backends:
            return ""
        kind, backend = backends[path.suffix]
        source = InputDocument(path_or_stream=path, format=kind, backend=backend, filename=path.name)
        return str(source._backend.convert().export_to_markdown())

    return read


def read_pandas() -> Reader:
    """Return the tables that pandas reads from HTML and workbooks."""
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]

    def read(path: Path) -> str:
        if path.suffix == ".html":
            frames = [to_markdown([list(map(_name, frame.columns)), *frame.values.tolist()]) for frame in pandas.read_html(path)]
        elif path.suffix in {".xlsx", ".ods"}:
            frames = [to_markdown(pandas.read_excel(path, header=None).values.tolist())]
        else:
            return ""
        return "\n\n".join(frames)

    return read


def _name(column: Any) -> str:
    return " ".join(column) if isinstance(column, tuple) else str(column)


def to_markdown(rows: list[list[Any]]) -> str:
    """Return rows as a Markdown table."""
    lines = ["| " + " | ".join(str(cell or "").replace("\n", " ").replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) if lines else ""


READERS: dict[str, Callable[[], Reader]] = {
    "markitdown": read_markitdown,
    "unstructured": read_unstructured,
    "docling": read_docling,
    "pymupdf4llm": read_pymupdf4llm,
    "pdfplumber": read_pdfplumber,
    "pandas": read_pandas,
}


def main() -> int:
    """Read the files and report the readers."""
    warnings.simplefilter("ignore")
    paths = sorted(path for path in Path(sys.argv[1]).iterdir() if path.suffix != ".txt")
    for name, make_reader in READERS.items():
        if importlib.util.find_spec(name) is None or name in sys.argv[2:]:
            continue
        read, begin, failures, last_error = make_reader(), time.process_time(), 0, ""
        for path in paths:
            try:
                text = read(path)
            except Exception as error:  # noqa: BLE001 - a reader may fail in any way; its text is empty then
                text, failures, last_error = "", failures + 1, repr(error)[:200]
            path.with_name(f"{path.name}.{name}.txt").write_text(text, encoding="utf-8")
        print(f"{name}: {len(paths)} files, {failures} failed, {time.process_time() - begin:.1f} s CPU {last_error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
