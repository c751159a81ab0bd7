"""Values of form fields and texts of annotations, which are not in the content of a page."""

from __future__ import annotations

import ctypes
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pypdfium2
import pypdfium2.raw as pdfium

from agentic_rag_backend.documents.parsing.pdf.text_lines import TextLine, clean_text
from agentic_rag_backend.documents.parsing.pdf.text_words import PdfWord, turn_box
from agentic_rag_backend.domain.location import Box

MAX_ANNOTATIONS = 2_000
"""Annotations of a page that are read."""
MAX_VALUE_CHARACTERS = 50_000
"""Characters of a field or of an annotation that are read."""
MAX_PAGE_CHARACTERS = 200_000
"""Characters of all annotations of a page. Many of them may refer to one text."""
MAX_COMPARISONS = 1_000_000
"""Fields times words of a page up to which fields without a label next to them are found."""
TICKED, UNTICKED = "[x]", "[ ]"
_FONT_SIZE = 10.0
_LETTER_WIDTH = 0.5
"""Width of a letter in font sizes, by which words are placed in the rectangle of a field."""
_LABEL_ABOVE = 24.0
"""Points above a field where its label may be."""
_HIDDEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD = 1 << 13
"""Flag of a text field that shows no characters."""
_TICKS = frozenset({pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON})
_CHOICES = frozenset({pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX})
_COMMENTS = frozenset(
    {
        pdfium.FPDF_ANNOT_TEXT, pdfium.FPDF_ANNOT_LINE, pdfium.FPDF_ANNOT_SQUARE, pdfium.FPDF_ANNOT_CIRCLE,
        pdfium.FPDF_ANNOT_POLYGON, pdfium.FPDF_ANNOT_POLYLINE, pdfium.FPDF_ANNOT_HIGHLIGHT, pdfium.FPDF_ANNOT_UNDERLINE,
        pdfium.FPDF_ANNOT_SQUIGGLY, pdfium.FPDF_ANNOT_STRIKEOUT, pdfium.FPDF_ANNOT_STAMP, pdfium.FPDF_ANNOT_CARET,
        pdfium.FPDF_ANNOT_INK, pdfium.FPDF_ANNOT_FILEATTACHMENT,
    }
)  # fmt: skip
"""Annotations whose contents are a comment on the page. Links are not: their contents describe a target."""


@dataclass(slots=True)
class Annotations:
    """Texts of one page's annotations: ``words`` at their places on the page, and ``comments``, which stand outside of its text.

    ``hidden`` counts the texts that the page does not show, and ``files`` the files attached to places of the page.
    ``omitted`` counts the texts beyond `MAX_PAGE_CHARACTERS`.
    """

    words: list[PdfWord] = field(default_factory=list)
    comments: list[TextLine] = field(default_factory=list)
    hidden: int = 0
    files: int = 0
    omitted: int = 0


def annotations_of(page: pypdfium2.PdfPage, number: int, words: Sequence[PdfWord]) -> Annotations:
    """Return the texts of the annotations of page ``number``, whose own words are ``words``."""
    annotations = Annotations()
    count = min(pdfium.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)
    turn, remaining = page.get_rotation() // 90, MAX_PAGE_CHARACTERS
    for index in range(count):
        with _open_annotation(page, index) as annotation:
            if annotation is None:
                continue
            subtype = pdfium.FPDFAnnot_GetSubtype(annotation)
            annotations.files += subtype == pdfium.FPDF_ANNOT_FILEATTACHMENT
            if subtype == pdfium.FPDF_ANNOT_WIDGET:
                text = _read_field(page.formenv, annotation)
            elif subtype == pdfium.FPDF_ANNOT_FREETEXT or subtype in _COMMENTS:
                text = _read_key(annotation, b"Contents")
            else:
                continue
            box = _read_box(annotation)
            if not text.strip() or box is None:
                continue
            remaining -= len(text)
            if pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN:
                annotations.hidden += 1
            elif remaining < 0:
                annotations.omitted += 1
            elif subtype in _COMMENTS:
                annotations.comments.append(_make_comment(text, _read_key(annotation, b"T"), box, number))
            else:
                if subtype == pdfium.FPDF_ANNOT_WIDGET and count * len(words) <= MAX_COMPARISONS and not _has_label(box, words):
                    text = f"{_read_name(page.formenv, annotation)}: {text}"
                annotations.words += place_words(text, turn_box(box, turn), turn)
    return annotations


@contextmanager
def _open_annotation(page: pypdfium2.PdfPage, index: int) -> Iterator[pdfium.FPDF_ANNOTATION | None]:
    annotation = pdfium.FPDFPage_GetAnnot(page, index)
    try:
        yield annotation or None
    finally:
        if annotation:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _read_field(form: pypdfium2.PdfFormEnv | None, annotation: pdfium.FPDF_ANNOTATION) -> str:
    """Return the value of a form field as the page shows it. Empty: it has none, or is a button or a signature."""
    if form is None:
        return ""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in _TICKS:
        return TICKED if pdfium.FPDFAnnot_IsChecked(form, annotation) else UNTICKED
    if kind in _CHOICES:
        options = range(min(max(pdfium.FPDFAnnot_GetOptionCount(form, annotation), 0), MAX_ANNOTATIONS))
        labels = [
            read_string(partial(pdfium.FPDFAnnot_GetOptionLabel, form, annotation, option))
            for option in options
            if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, option)
        ]
        if labels:
            return ", ".join(labels)
    elif kind != pdfium.FPDF_FORMFIELD_TEXTFIELD or pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD:
        return ""
    return read_string(partial(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation))


def _read_name(form: pypdfium2.PdfFormEnv, annotation: pdfium.FPDF_ANNOTATION) -> str:
    """Return the name of a field for people, otherwise its name for programs."""
    name = read_string(partial(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, annotation))
    return name or read_string(partial(pdfium.FPDFAnnot_GetFormFieldName, form, annotation))


def _read_key(annotation: pdfium.FPDF_ANNOTATION, key: bytes) -> str:
    return read_string(partial(pdfium.FPDFAnnot_GetStringValue, annotation, key))


def read_string(fill: Callable[[ctypes.Array[ctypes.c_ushort] | None, int], int]) -> str:
    """Return a text of PDFium, of at most `MAX_VALUE_CHARACTERS`. ``fill`` fills a buffer and returns the bytes that it needs."""
    size = fill(None, 0)
    if not 2 < size <= 2 * MAX_VALUE_CHARACTERS:
        return ""
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    fill(buffer, size)
    return bytes(buffer)[:size].decode("utf-16-le", "replace").rstrip("\0")


def _read_box(annotation: pdfium.FPDF_ANNOTATION) -> Box | None:
    rectangle = pdfium.FS_RECTF()
    if not pdfium.FPDFAnnot_GetRect(annotation, rectangle):
        return None
    x_min, x_max = sorted((rectangle.left, rectangle.right))
    bottom, top = sorted((rectangle.bottom, rectangle.top))
    return x_min, bottom, x_max, top


def _make_comment(text: str, author: str, box: Box, number: int) -> TextLine:
    head = f"Comment by {clean_text(author)[:100]}: " if author.strip() else "Comment: "
    return TextLine(head + clean_text(" ".join(text.split())), box, _FONT_SIZE, 0, number, 0.0)


def _has_label(box: Box, words: Sequence[PdfWord]) -> bool:
    """Whether words are on the row of a field or above it."""
    return any(
        (word.box[1] < box[3] and word.box[3] > box[1])
        or (word.box[0] < box[2] and word.box[2] > box[0] and 0 <= word.box[1] - box[3] < _LABEL_ABOVE)
        for word in words
    )


def place_words(text: str, box: Box, turn: int) -> Iterator[PdfWord]:
    """Yield the words of a text in a box, which is in the frame of the text."""
    width, height = max(box[2] - box[0], 1.0), max(box[3] - box[1], 1.0)
    size = min(height, _FONT_SIZE)
    letters = max(int(width / (_LETTER_WIDTH * size)), 1)
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, letters, break_long_words=False)]
    pitch = min(1.2 * size, height / max(len(lines), 1))
    top = box[3] if len(lines) > 1 else (box[1] + box[3] + size) / 2
    for row, line in enumerate(lines):
        letter_width = min(_LETTER_WIDTH * size, width / len(line))
        x, row_top = box[0], top - row * pitch
        for word in line.split():
            end = x + letter_width * len(word)
            yield PdfWord(word, (x, row_top - size, end, row_top), size, turn)
            x = end + letter_width
