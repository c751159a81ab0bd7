"""What a PDF file says of itself: title, author, dates, page labels."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pypdfium2

from agentic_rag_backend.documents.metadata_checks import keep_valid_fields
from agentic_rag_backend.documents.parsing.pdf.text_lines import clean_text
from agentic_rag_backend.language.titles import is_placeholder

MAX_CHARACTERS = 500
"""Characters of a value of the metadata that are kept."""
_PLACEHOLDERS = frozenset({"anonymous", "unspecified", "unknown"})
"""What programs write if they know no author, subject or keywords, also in parentheses."""
_DATE = re.compile(r"D?:?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-])(\d\d)'?(\d\d)?)?")


def title_of(document: pypdfium2.PdfDocument) -> str | None:
    """Return the title in the file's metadata, unless it is a placeholder."""
    title = _read_value(document, "Title")
    return None if is_placeholder(title) else title or None


def metadata_of(document: pypdfium2.PdfDocument) -> dict[str, Any]:
    """Return the file's metadata: ``author``, ``subject``, ``keywords``, ``created`` and ``modified`` if given, and ``pages``."""
    values = {name.casefold(): _read_value(document, name) for name in ("Author", "Subject", "Keywords")}
    fields: dict[str, Any] = {name: value for name, value in values.items() if value.strip("()").casefold() not in _PLACEHOLDERS}
    fields |= {"created": date_of(_read_value(document, "CreationDate")), "modified": date_of(_read_value(document, "ModDate"))}
    return keep_valid_fields({**{name: value for name, value in fields.items() if value}, "pages": len(document)})


def _read_value(document: pypdfium2.PdfDocument, name: str) -> str:
    try:
        return clean_text(document.get_metadata_value(name))[:MAX_CHARACTERS]
    except (pypdfium2.PdfiumError, UnicodeDecodeError):
        return ""


def date_of(text: str) -> str | None:
    """Return a date of a PDF file ("D:20250208122313+01'00'") in ISO 8601; None if it is none."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, seconds = (int(part) if part else None for part in match.groups()[:6])
    try:
        moment = datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, seconds or 0)  # noqa: DTZ001 - see below
        if hour is None:
            return moment.date().isoformat()
        if match[7]:
            return moment.replace(tzinfo=UTC).isoformat()
        if match[8]:
            offset = timedelta(hours=int(match[9]), minutes=int(match[10] or 0))
            return moment.replace(tzinfo=timezone(offset if match[8] == "+" else -offset)).isoformat()
    except ValueError:
        return None
    return moment.isoformat()  # a date without a zone stays one


def label_of(document: pypdfium2.PdfDocument, index: int) -> str | None:
    """Return the label of a page; None if it has none, or only its number."""
    try:
        label = clean_text(document.get_page_label(index))[:MAX_CHARACTERS]
    except (pypdfium2.PdfiumError, UnicodeDecodeError):
        return None
    return label or None
