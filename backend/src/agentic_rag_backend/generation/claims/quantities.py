"""Numbers of a claim, compared with the numbers of the quotes: their values, their units, and the things that they count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentic_rag_backend.generation.claims.tokens import Token, forms_of

UNITS = forms_of(
    "hundred thousand million billion trillion dozen percent km kilometres kilometers m metres meters cm centimetres mm miles "
    "mi feet ft inches yards kg kilograms g grams tons tonnes pounds ounces litres liters gallons seconds minutes hours days "
    "weeks months years decades centuries hectares acres watts kilowatts megawatts gigawatts mw kw gw volts degrees celsius "
    "fahrenheit kelvin bytes kb mb gb tb euros dollars yen francs marks rupees"
)
"""Normalised units and scales."""
_SAME = {
    "kilometr": "km", "kilometer": "km", "metr": "m", "meter": "m", "mile": "mi", "foot": "ft", "feet": "ft", "kilogram": "kg",
    "gram": "g", "megawatt": "mw", "kilowatt": "kw", "gigawatt": "gw", "centimetr": "cm",
}  # fmt: skip
_PERCENT = "percent"


def changes_quantity(claim: Sequence[Token], quotes: Iterable[Sequence[Token]], known: frozenset[str]) -> bool:
    """Return whether a number of the claim is not in the quotes, has another unit there, or counts something else.

    Args:
        known: numbers that need not be in the quotes, such as those of a title.
    """
    quotes = list(quotes)
    stated: dict[str, set[str]] = {}
    counted: dict[str, set[str]] = {}
    labelled: dict[str, set[str]] = {}
    for quote in quotes:
        for index, token in enumerate(quote):
            if token.number:
                stated.setdefault(token.form, set()).add(_unit(quote, index))
                counted.setdefault(_counted(quote, index), set()).add(token.form)
                labelled.setdefault(_label(quote, index), set()).add(token.form)
    for index, token in enumerate(claim):
        if not token.number:
            continue
        if token.form not in stated:
            if token.form in known:
                continue
            return True
        if _unit(claim, index) not in stated[token.form]:
            return True
        thing = _counted(claim, index)
        if thing and thing in counted and token.form not in counted[thing]:
            return True
        label = _label(claim, index)
        if label and label in labelled and token.form not in labelled[label]:
            return True
    return False


def _unit(tokens: Sequence[Token], index: int) -> str:
    """Return the unit after a number, or an empty text."""
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if following is None:
        return ""
    if "%" in following.gap[:2]:
        return _PERCENT
    if following.form == "per" and tokens[index + 2 : index + 3] and tokens[index + 2].form == "cent":
        return _PERCENT
    if following.gap.strip() not in ("", "-") or following.form not in UNITS:
        return ""
    return _SAME.get(following.form, following.form)


def _label(tokens: Sequence[Token], index: int) -> str:
    """Return the name directly before a number: "ann" in "Ann 5" and "Ann: 5"."""
    before, gap = tokens[index - 1] if index else None, tokens[index].gap.strip()
    named = before is not None and before.content and not before.number and gap in ("", ":", "=", "–")
    return before.form if named and before is not None and (before.capital or gap) else ""


def _counted(tokens: Sequence[Token], index: int) -> str:
    """Return the word that a number counts: "eel" in "4,200 eels"."""
    following = tokens[index + 1] if index + 1 < len(tokens) else None
    if following is None or following.gap != " " or following.capital or not following.content or following.number:
        return ""
    return following.form
