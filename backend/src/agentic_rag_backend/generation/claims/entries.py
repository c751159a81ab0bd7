"""Checks claims that state an entry of a table or list: "Petra Sauvage – Room: C002; Phone: 555-0142."

Such a claim names a row, columns and their cells. Words alone would accept the number of another row or column, so each value is
compared with the cell of its own row and column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from agentic_rag_backend.generation.claims.base import Reason, SupportingSpan
from agentic_rag_backend.generation.claims.passages import LONGEST_QUOTE, IndexedPassage
from agentic_rag_backend.generation.claims.tokens import Token, content_of, read_tokens
from agentic_rag_backend.language.entries.base import Entry, EntryValue

_NUMBER = re.compile(r"\d")
_SUBJECT_ENDS = (" – ", ": ")


def check_entry(claim: str, passages: Sequence[IndexedPassage]) -> SupportingSpan | Reason | None:
    """Return the entry of the passages that states ``claim``, or the reason why none does. None if the claim is no entry.

    An entry's claim has the subject of an entry, and begins to state one of its columns.
    """
    text = " ".join(claim.split())
    reason: Reason | None = None
    for passage in passages:
        for entry in passage.entries:
            result = _read_values(text, entry)
            if isinstance(result, tuple):
                return _quote_entry(passage, entry, result)
            reason = reason or result
    return reason


def misplaces_number(claim: Sequence[Token], rows: Sequence[Entry]) -> bool:
    """Return whether a claim has a number of ``rows`` and names another column or another row than the number's own."""
    forms = content_of(claim)
    columns = {label: _forms_of(label) for row in rows for label in (*row.blank, *(value.label for value in row.values))}
    claimed = {label for label, column_forms in columns.items() if column_forms and column_forms <= forms}
    about = [row for row in rows if _forms_of(row.subject) and _forms_of(row.subject) <= forms]
    labels = frozenset().union(*(columns[label] for label in claimed), *(_forms_of(row.subject) for row in about))
    for token in claim:
        if not token.number or token.form in labels:
            continue
        places = [(row, value.label) for row in rows for value in row.values if token.form in _forms_of(value.text)]
        if places and claimed and not any(label in claimed for _, label in places):
            return True
        if places and about and not any(row in about for row, _ in places):
            return True
    return False


@lru_cache(maxsize=4096)
def _forms_of(text: str) -> frozenset[str]:
    return content_of(read_tokens(text))


def _read_values(claim: str, entry: Entry) -> tuple[EntryValue, ...] | Reason | None:
    """Return the values of ``entry`` that ``claim`` states; the reason if another value is in one of its columns."""
    remaining = claim
    if entry.subject:
        end = next((end for end in _SUBJECT_ENDS if claim.startswith(f"{entry.subject}{end}")), None)
        if end is None:
            return None
        remaining = claim[len(entry.subject) + len(end) :]
    labels = [f"{label}: " for label in (*(value.label for value in entry.values), *entry.blank) if label]
    if not any(remaining.startswith(label) for label in labels) and (labels or not entry.subject):
        return None
    values: list[EntryValue] = []
    while remaining:
        value = next((value for value in entry.values if value not in values and _begins_with(remaining, str(value))), None)
        if value is None:
            cut = next((value for value in entry.values if values and str(value).startswith(remaining.rstrip("."))), None)
            if cut is not None:
                return (*values, cut)
            return "number" if _NUMBER.search(remaining) else "unsupported"
        values.append(value)
        remaining = remaining[len(str(value)) :].removeprefix(".").removeprefix("; ")
    return tuple(values)


def _begins_with(text: str, value: str) -> bool:
    """Return whether ``text`` begins with a whole value: the next one or the end follows."""
    return (text.startswith(value) and text[len(value) :] in ("", ".")) or text.startswith(f"{value}; ")


def _quote_entry(passage: IndexedPassage, entry: Entry, values: Sequence[EntryValue]) -> SupportingSpan:
    """Return the quote: the row, or as much of a long list as the claim states."""
    start, end = entry.start, entry.end
    if not entry.row and end - start > LONGEST_QUOTE:
        start, end = min(value.start for value in values), max(value.end for value in values)
    forms = frozenset(token.form for token in passage.within(start, end))
    return SupportingSpan(passage.passage, start, end, 1.0, forms)
