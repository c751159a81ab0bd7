"""Numbers of a claim, compared with the numbers of the quotes: their values, their units, and their rows and columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from agentic_rag_backend.generation.claims.tokens import Token, content_of, read_tokens
from agentic_rag_backend.language.entries.base import Entry
from agentic_rag_backend.language.vocabulary.lexicon import Language

_PERCENT = "percent"


def changes_quantity(
    claim: Sequence[Token], quotes: Iterable[Sequence[Token]], exempt: frozenset[str], language: Language
) -> bool:
    """Return whether a number of the claim is not in the quotes, or has another unit there.

    Args:
        exempt: numbers that need not be in the quotes, such as those of a title.
    """
    quoted: dict[str, set[str]] = {}
    for quote in quotes:
        for index, token in enumerate(quote):
            if token.number:
                quoted.setdefault(token.form, set()).add(unit_of(quote, index, language))
    for index, token in enumerate(claim):
        units = quoted.get(token.form)
        if (
            token.number
            and (units is not None or token.form not in exempt)
            and unit_of(claim, index, language) not in (units or ())
        ):
            return True
    return False


def unit_of(tokens: Sequence[Token], index: int, language: Language) -> str:
    """Return the unit after a number: "km", "percent", or the value of "million". Empty if there is none."""
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if following is None:
        return ""
    if "%" in following.gap[:2]:
        return _PERCENT
    if following.form == "per" and tokens[index + 2 : index + 3] and tokens[index + 2].form == "cent":
        return _PERCENT
    return language.units.get(following.form, "") if following.gap.strip() in ("", "-") else ""


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
