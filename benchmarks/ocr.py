"""Recognition of text in pictures: mistakes and time by the resolution of the scan and of the picture that Tesseract gets.

Pages of a PDF file with text are drawn as a scanner would, and read with Tesseract. The text that the parser reads from the same
pages without Tesseract is the truth. *clean*: as drawn; *worn*: blurred, grey, with noise, 0.6 degrees askew, as JPEG; *small*:
the same with type of two thirds of the size. Mistakes are inserted, left out and wrong characters for each hundred of the truth.

    python benchmarks/ocr.py bashref.pdf --pages 21 61 101 151
"""

from __future__ import annotations

import argparse
import asyncio
import io
import resource
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pypdfium2
from PIL import Image, ImageFilter

from agentic_rag_backend.documents.parsing.base import ParsedDocument
from agentic_rag_backend.documents.parsing.pdf.pdf_parser import PdfParser
from agentic_rag_backend.documents.parsing.pdf.scanned import scans
from agentic_rag_backend.documents.recognition.base import RecognitionOptions
from agentic_rag_backend.documents.recognition.ocr import Ocr, OcrSettings
from agentic_rag_backend.plugins.tesseract import tesseract

KINDS = {"clean": (1.0, False), "worn": (1.0, True), "small": (0.65, True)}
SAME = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "`": "'", "—": "-", "–": "-"})


def distance(one: str, other: str) -> int:
    """Return the number of characters to insert, remove or replace (Levenshtein)."""
    codes = np.array([ord(each) for each in other])
    steps = np.arange(len(codes) + 1)
    row = steps.copy()
    for number, character in enumerate(one, start=1):
        best = np.concatenate([[number], np.minimum(row[:-1] + (codes != ord(character)), row[1:] + 1)])
        row = np.minimum.accumulate(best - steps) + steps
    return int(row[-1])


def plain(text: str) -> str:
    """Return a text without the differences that no reader minds: white space, and the form of quotation marks and dashes."""
    return " ".join(text.translate(SAME).split())


def scanned(file: pypdfium2.PdfDocument, number: int, dpi: int, kind: str) -> bytes:
    """Return a PDF file with a picture of the page, as a scanner with ``dpi`` writes it."""
    size, worn = KINDS[kind]
    picture = file[number - 1].render(scale=size * dpi / 72).to_pil().convert("L")
    if worn:
        random = np.random.default_rng(number)
        picture = picture.rotate(0.6, Image.Resampling.BICUBIC, fillcolor=255).filter(ImageFilter.GaussianBlur(0.6))
        grey = np.asarray(picture, dtype=float) * 0.85 + 20 + random.normal(0, 12, (picture.height, picture.width))
        picture = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))
    written = io.BytesIO()
    picture.save(written, "PDF", resolution=dpi, quality=55)
    return written.getvalue()


def alone(file: pypdfium2.PdfDocument, number: int) -> bytes:
    """Return a PDF file with one page."""
    single = pypdfium2.PdfDocument.new()
    single.import_pages(file, [number - 1])
    written = io.BytesIO()
    single.save(written)
    return written.getvalue()


def used_s() -> float:
    """Return the processor seconds of this process and of the programs that it ran."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def read(options: RecognitionOptions, content: bytes) -> ParsedDocument:
    """Return the document as Tesseract reads it."""
    return PdfParser(tesseract.Tesseract(options)).parse(content)


def measure(options: RecognitionOptions, path: Path, numbers: Sequence[int], resolutions: Sequence[int]) -> None:
    """Print a row for each kind, resolution of the scan, and resolution of the picture."""
    file = pypdfium2.PdfDocument(path)
    truths = [plain(PdfParser().parse(alone(file, number)).text) for number in numbers]
    print(f"{len(numbers)} pages with {sum(map(len, truths)) // len(numbers)} characters on average; {options.version}")
    print("| pages | scan, dpi | picture, dpi | mistakes, % | confidence, % | CPU, s a page | s a page |")
    print("|---|---|---|---|---|---|---|")
    for kind in KINDS:
        for scan in (150, 200, 300):
            files = [scanned(file, number, scan, kind) for number in numbers]
            for scans.DPI in resolutions:
                cpu, begin = used_s(), time.perf_counter()
                documents = [read(options, content) for content in files]
                seconds = (used_s() - cpu) / len(files), (time.perf_counter() - begin) / len(files)
                wrong = sum(distance(truth, plain(each.text)) for truth, each in zip(truths, documents, strict=True))
                share = 100 * wrong / sum(map(len, truths))
                sure = 100 * sum(each.metadata["ocr_confidence"] for each in documents) / len(documents)
                row = (kind, scan, scans.DPI, f"{share:.2f}", f"{sure:.0f}", f"{seconds[0]:.2f}", f"{seconds[1]:.2f}")
                print("|", " | ".join(map(str, row)), "|", flush=True)
    peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"Tesseract used at most {peak_mb:.0f} MiB")


def main() -> None:
    """Measure."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("file", type=Path)
    arguments.add_argument("--pages", type=int, nargs="+", default=[21, 61, 101, 151])
    arguments.add_argument("--dpi", type=int, nargs="+", default=[150, 200, 250, 300])
    given = arguments.parse_args()
    options = asyncio.run(Ocr(OcrSettings(mode="tesseract")).choose_options())
    if isinstance(options, str):
        raise SystemExit(options)
    measure(options, given.file, given.pages, given.dpi)


if __name__ == "__main__":
    main()
