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


def check_entry(claim: str, held: Sequence[IndexedPassage]) -> SupportingSpan | Reason | None:
    """Return the entry of the passages that states ``claim``, or the reason why none does. None if the claim is no entry.

    An entry's claim has the subject of an entry, and begins to state one of its columns.
    """
    text = " ".join(claim.split())
    reason: Reason | None = None
    for passage in held:
        for entry in passage.entries:
            stated = _stated(text, entry)
            if isinstance(stated, tuple):
                return _support(passage, entry, stated)
            reason = reason or stated
    return reason


def misplaces_number(claim: Sequence[Token], rows: Sequence[Entry]) -> bool:
    """Return whether a claim has a number of ``rows`` and names another column or another row than the number's own."""
    forms = content_of(claim)
    columns = {label: _forms(label) for row in rows for label in (*row.blank, *(value.label for value in row.values))}
    named = {label for label, own in columns.items() if own and own <= forms}
    about = [row for row in rows if _forms(row.subject) and _forms(row.subject) <= forms]
    known = frozenset().union(*(columns[label] for label in named), *(_forms(row.subject) for row in about))
    for token in claim:
        if not token.number or token.form in known:
            continue
        places = [(row, value.label) for row in rows for value in row.values if token.form in _forms(value.text)]
        if places and named and not any(label in named for _, label in places):
            return True
        if places and about and not any(row in about for row, _ in places):
            return True
    return False


@lru_cache(maxsize=4096)
def _forms(text: str) -> frozenset[str]:
    return content_of(read_tokens(text))


def _stated(claim: str, entry: Entry) -> tuple[EntryValue, ...] | Reason | None:
    """Return the values of ``entry`` that ``claim`` states; the reason if another value is in one of its columns."""
    rest = claim
    if entry.subject:
        end = next((end for end in _SUBJECT_ENDS if claim.startswith(f"{entry.subject}{end}")), None)
        if end is None:
            return None
        rest = claim[len(entry.subject) + len(end) :]
    labels = [f"{label}: " for label in (*(value.label for value in entry.values), *entry.blank) if label]
    if not any(rest.startswith(label) for label in labels) and (labels or not entry.subject):
        return None
    stated: list[EntryValue] = []
    while rest:
        value = next((each for each in entry.values if each not in stated and _begins(rest, str(each))), None)
        if value is None:
            cut = next((each for each in entry.values if stated and str(each).startswith(rest.rstrip("."))), None)
            if cut is not None:
                return (*stated, cut)
            return "number" if _NUMBER.search(rest) else "unsupported"
        stated.append(value)
        rest = rest[len(str(value)) :].removeprefix(".").removeprefix("; ")
    return tuple(stated)


def _begins(rest: str, value: str) -> bool:
    """Return whether ``rest`` begins with a whole value: the next one or the end follows."""
    return (rest.startswith(value) and rest[len(value) :] in ("", ".")) or rest.startswith(f"{value}; ")


def _support(passage: IndexedPassage, entry: Entry, stated: Sequence[EntryValue]) -> SupportingSpan:
    """Return the quote: the row, or as much of a long list as the claim states."""
    start, end = entry.start, entry.end
    if not entry.row and end - start > LONGEST_QUOTE:
        start, end = min(value.start for value in stated), max(value.end for value in stated)
    forms = frozenset(token.form for token in passage.within(start, end))
    return SupportingSpan(passage.passage, start, end, 1.0, forms)
