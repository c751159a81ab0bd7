"""Measures parsing by format, and the ingestion of many files of mixed formats.

Each format gets a file made of the example documents by a real writer. ``--files FOLDER`` adds real files. Each file is parsed in
a process of its own, whose processor time and memory are those of the parser. Writes ``results/formats.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from agentic_rag_backend.container import open_container
from agentic_rag_backend.domain.media_types import BY_SUFFIX
from agentic_rag_backend.ingestion.accept.uploads import Upload
from corpora import ingest_uploads
from report import ROOT, finish, make_settings, quiet

sys.path.insert(0, str(ROOT / "tests" / "fixtures"))

MAX_PER_EMBEDDER = 1.4
"""Limit of ingestion ÷ embedder for files of mixed formats."""
_LINES = 48
_CHILD = """
import json, sys, time
from agentic_rag_backend.documents.parsing.registry import parser_of
content, parser = open(sys.argv[1], "rb").read(), parser_of(sys.argv[2])
def peak_mb(): return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) / 1024
def used(): return time.process_time(), peak_mb()
before = used()
parser.parse(content)
first = used()
parsed = parser.parse(content)
second = used()
pages = max([region.page or 0 for region in parsed.regions], default=0)
print(json.dumps({"first_ms": (first[0] - before[0]) * 1000, "ms": (second[0] - first[0]) * 1000, "mb": second[1] - before[1],
    "characters": len(parsed.text), "pages": pages, "regions": len(parsed.regions)}))
"""


def examples() -> list[str]:
    """Return the texts of the example documents."""
    return [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples" / "corpus").rglob("*.md"))]


def pdf(text: str) -> bytes:
    """Return pages of text in Courier."""
    from pdf_files import Page, pdf_of

    lines = [line for each in text.splitlines() for line in (textwrap.wrap(_latin(each), 80) or [""])]
    pages = [Page().column(72, 720, lines[start : start + _LINES]) for start in range(0, len(lines), _LINES)]
    return pdf_of(*pages, compress=True)


def docx(text: str) -> bytes:
    """Return a Word document with headings."""
    from docx import Document

    written = Document()
    for block in _blocks(text):
        written.add_heading(block.lstrip("# "), 1) if block.startswith("#") else written.add_paragraph(block)
    return _saved(written.save)


def pptx(text: str) -> bytes:
    """Return a presentation with a slide for each block."""
    from pptx import Presentation

    written = Presentation()
    for block in _blocks(text):
        slide = written.slides.add_slide(written.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = block[:60], block
    return _saved(written.save)


def xlsx(text: str) -> bytes:
    """Return a workbook with a row for each block."""
    from openpyxl import Workbook

    written = Workbook()
    sheet = written.active
    assert sheet is not None
    sheet.append(["Number", "Text"])
    for number, block in enumerate(_blocks(text), 1):
        sheet.append([number, block])
    return _saved(written.save)


def odt(text: str) -> bytes:
    """Return an OpenDocument text."""
    from office_files import zipped

    space = "urn:oasis:names:tc:opendocument:xmlns"
    names = f'xmlns:office="{space}:office:1.0" xmlns:text="{space}:text:1.0"'
    body = "".join(f"<text:p>{_escaped(block)}</text:p>" for block in _blocks(text))
    content = (
        f"<office:document-content {names}><office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    return zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content}, first="mimetype")


def epub(text: str) -> bytes:
    """Return a book of one chapter."""
    from office_files import zipped

    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="book.opf" '
        'media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
        '</manifest><spine><itemref idref="c"/></spine></package>'
    )
    members = {"META-INF/container.xml": container, "book.opf": package, "c.xhtml": html(text).decode()}
    return zipped({"mimetype": "application/epub+zip", **members}, first="mimetype")


def html(text: str) -> bytes:
    """Return a page with headings."""
    blocks = (f"<h1>{_escaped(b.lstrip('# '))}</h1>" if b.startswith("#") else f"<p>{_escaped(b)}</p>" for b in _blocks(text))
    return f"<!doctype html><html><head><title>Notes</title></head><body>{''.join(blocks)}</body></html>".encode()


def eml(text: str) -> bytes:
    """Return a message."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "petra@example.org", "bob@example.org", "Notes"
    message.set_content(text)
    return message.as_bytes()


def rtf(text: str) -> bytes:
    """Return an RTF file."""
    escaped = "".join(character if character.isascii() else f"\\u{ord(character)}?" for character in text)
    return ("{\\rtf1\\ansi " + escaped.replace("{", "").replace("}", "").replace("\n", "\\par ") + "}").encode()


def rows(text: str) -> bytes:
    """Return CSV with a row for each block."""
    return ("number,text\n" + "".join(f'{n},"{b.replace(chr(34), "")}"\n' for n, b in enumerate(_blocks(text), 1))).encode()


def lines(text: str) -> bytes:
    """Return JSON Lines with an object for each block."""
    return "".join(json.dumps({"number": n, "text": b}) + "\n" for n, b in enumerate(_blocks(text), 1)).encode()


def array(text: str) -> bytes:
    """Return a JSON array with an object for each block."""
    return json.dumps([{"number": n, "text": b} for n, b in enumerate(_blocks(text), 1)]).encode()


def code(text: str) -> bytes:
    """Return Python with a function for each block."""
    parts = (
        f'def section_{n}():\n    """{b.replace(chr(34), "").replace(chr(92), "")}"""\n' for n, b in enumerate(_blocks(text))
    )
    return "\n\n".join(parts).encode()


WRITERS: Mapping[str, Callable[[str], bytes]] = {
    ".txt": str.encode,
    ".md": str.encode,
    ".html": html,
    ".pdf": pdf,
    ".docx": docx,
    ".pptx": pptx,
    ".xlsx": xlsx,
    ".odt": odt,
    ".rtf": rtf,
    ".epub": epub,
    ".eml": eml,
    ".csv": rows,
    ".json": array,
    ".jsonl": lines,
    ".py": code,
}


def _blocks(text: str) -> list[str]:
    return [" ".join(block.split()) for block in text.split("\n\n") if block.strip()]


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _latin(text: str) -> str:
    return text.encode("cp1252", errors="replace").decode("cp1252")


def _saved(save: Callable[[Any], Any]) -> bytes:
    target = io.BytesIO()
    save(target)
    return target.getvalue()


def parsed(path: Path) -> dict[str, float]:
    """Return the cost of parsing a file in a process of its own. ``ms`` is that of a second time, without imports."""
    command = [sys.executable, "-c", _CHILD, str(path), BY_SUFFIX[path.suffix.lower()]]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return {name: round(value, 1) for name, value in found.items()} | {"kb": round(path.stat().st_size / 1024, 1)}


def mixed(texts: Sequence[str], count: int) -> Iterator[tuple[str, bytes]]:
    """Yield ``count`` files, one format after the other. Each has a few paragraphs of its own order."""
    suffixes = sorted(WRITERS)
    for number in range(count):
        suffix = suffixes[number % len(suffixes)]
        text = texts[number % len(texts)]
        blocks = text.split("\n\n")
        turn = number // len(texts) % max(1, len(blocks))
        yield f"{number}{suffix}", WRITERS[suffix]("\n\n".join([f"Notes {number}.", *blocks[turn:], *blocks[:turn]]))


async def ingested(files: Sequence[tuple[str, bytes]]) -> dict[str, float]:
    """Ingest the files into a new data folder. Return the figures."""
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as folder:
        async with open_container(make_settings(data_dir=Path(folder), community_auto_rebuild=False)) as services:
            tenant = (await services.tenants.create("formats")).id
            uploads = [Upload(content=content, file_name=name, key=name) for name, content in files]
            return await ingest_uploads(services, tenant, uploads)


def table(results: Mapping[str, Any]) -> str:
    """Return the tables."""
    head = "| file | KB | pages | characters | ms | ms a page | first time, ms | MB |\n|---|---|---|---|---|---|---|---|"
    shown = [head]
    for name, cost in results["parsing"].items():
        page = round(cost["ms"] / cost["pages"], 2) if cost["pages"] else "–"
        cells = [
            name,
            cost["kb"],
            int(cost["pages"]) or "–",
            int(cost["characters"]),
            cost["ms"],
            page,
            cost["first_ms"],
            cost["mb"],
        ]
        shown.append(f"| {' | '.join(map(str, cells))} |")
    if found := results.get("mixed"):
        shown.append(
            f"\n{found['documents']} files of {len(WRITERS)} formats: {found['chunks']} chunks in {found['total_s']} s, "
            f"÷ embedder {found['total_per_embedder']}."
        )
    return "\n".join(shown)


def main() -> int:
    """Measure, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, metavar="FOLDER", help="parse the files of this folder as well")
    parser.add_argument("--mixed", type=int, default=1_000, help="files of mixed formats to ingest (default 1,000)")
    given = parser.parse_args()
    quiet()
    texts = examples()
    results: dict[str, Any] = {"parsing": defaultdict(dict)}
    with tempfile.TemporaryDirectory(prefix="agentic-rag-bench-") as folder:
        for suffix, write in WRITERS.items():
            path = Path(folder) / f"examples{suffix}"
            path.write_bytes(write("\n\n".join(texts)))
            results["parsing"][path.name] = parsed(path)
        for path in sorted(given.files.iterdir()) if given.files else ():
            if path.suffix.lower() in BY_SUFFIX:
                results["parsing"][path.name] = parsed(path)
    if given.mixed:
        results["mixed"] = asyncio.run(ingested(list(mixed(texts, given.mixed))))
    missed = []
    if (found := results.get("mixed")) and found["total_per_embedder"] > MAX_PER_EMBEDDER:
        missed.append(f"ingestion ÷ embedder is {found['total_per_embedder']}, above {MAX_PER_EMBEDDER}")
    return finish("formats", results, table(results), missed)


if __name__ == "__main__":
    sys.exit(main())
