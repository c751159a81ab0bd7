"""Numbers of a claim, compared with the numbers of the quotes: their values and their units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentic_rag_backend.generation.claims.tokens import Token
from agentic_rag_backend.language.lexicon import Language

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
