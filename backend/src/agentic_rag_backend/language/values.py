"""Dates and amounts of a text as values that can be compared: "2009" agrees with "3 March 2009"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from agentic_rag_backend.language.words import comparable, words

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|"
    r"dec(?:ember)?)\b\.?"
)
_YEAR = r"(?:1\d{3}|20\d{2})"
_DATE = re.compile(
    rf"\b(?P<iso>\d{{4}}-\d{{2}}-\d{{2}})\b|"
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month>{_MONTH})(?:,? (?P<year>{_YEAR})\b)?|"
    rf"\b(?P<month2>{_MONTH}) (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year2>{_YEAR})\b)?|"
    rf"\b(?P<month3>{_MONTH}),? (?P<year3>{_YEAR})\b|"
    rf"\b(?P<since>{_YEAR})(?: ?[–-] ?| (?:to|and|until) )(?P<until>{_YEAR}|\d{{2}})\b|"
    r"\b(?P<decade>1\d{2}0|20\d0)s\b|\b(?P<century>\d{1,2})(?:st|nd|rd|th)[ -]century\b|"
    rf"(?<![\w.,£$€])(?P<only>{_YEAR})\b(?![%\w]|[.,]\d)",
    re.IGNORECASE,
)
NUMBER_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_WORDS = "|".join(NUMBER_WORDS)
_AMOUNT = re.compile(
    r"(?<![\w.,-])(?:(?P<bound>over|under|above|below|(?:more|less|fewer) than|at (?:least|most)|up to) |"
    r"(?P<rounded>about|some|around|roughly|nearly|almost|approximately|circa|c\.|~) ?)?[$£€¥]?"
    rf"(?P<number>\d+(?:[.,]\d+)*(?![\d:]|-\d)|\b(?:{_WORDS})(?:-(?:{_WORDS}))?\b)(?: (?P<scale>{'|'.join(_SCALES)})\b)?",
    re.IGNORECASE,
)
_UPPER = frozenset({"under", "below", "less than", "fewer than", "at most", "up to"})
_FACTORS = {
    "mm": ("length", 0.001), "cm": ("length", 0.01), "m": ("length", 1.0), "metre": ("length", 1.0), "meter": ("length", 1.0),
    "km": ("length", 1000.0), "kilometre": ("length", 1000.0), "kilometer": ("length", 1000.0), "inch": ("length", 0.0254),
    "foot": ("length", 0.3048), "feet": ("length", 0.3048), "ft": ("length", 0.3048), "yard": ("length", 0.9144),
    "mile": ("length", 1609.34), "g": ("mass", 0.001), "gram": ("mass", 0.001), "kg": ("mass", 1.0), "kilogram": ("mass", 1.0),
    "pound": ("mass", 0.4536), "lb": ("mass", 0.4536), "ton": ("mass", 1000.0), "tonne": ("mass", 1000.0),
    "second": ("time", 1.0), "minute": ("time", 60.0), "hour": ("time", 3600.0), "day": ("time", 86400.0),
    "week": ("time", 604800.0), "month": ("time", 2629800.0), "year": ("time", 31557600.0), "kilowatt": ("power", 1.0),
    "kw": ("power", 1.0), "megawatt": ("power", 1000.0), "mw": ("power", 1000.0), "gigawatt": ("power", 1e6),
}  # fmt: skip
"""Dimension and factor of common units."""
_UNITS = {comparable(unit): factor for unit, factor in _FACTORS.items()}
_PREFIXES = frozenset({"square", "cubic", "nautical"})
_ROUNDED = 0.125
"""Relative error of a number after "about"."""
_CONVERTED = 0.03
"""Relative error of a number in another unit."""
_BEYOND = 1.5
"""Largest ratio of a number to its lower bound: "over 40" may be 60."""
_EXACT_BELOW = 1000
_HALF = 0.49
"""Error of a number with decimals or a scale, in units of its last digit: 4.5 million is not 4.6 million."""
_FOLLOWING = 3
"""Words after a number among which the counted noun stands."""
_AFTER = 48


Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a period of years. ``month`` and ``day`` are 0 if they are missing, ``years`` None."""

    text: str
    years: tuple[int, int] | None
    month: int = 0
    day: int = 0

    def agrees_with(self, moment: Moment) -> bool:
        """Return whether no part that both have differs; a year agrees with a period that contains it."""
        if self.years and moment.years and not (self.years[0] <= moment.years[1] and moment.years[0] <= self.years[1]):
            return False
        pairs = ((self.month, moment.month), (self.day, moment.day))
        return all(part == another for part, another in pairs if part and another)


@dataclass(frozen=True, slots=True)
class Amount:
    """A number between ``low`` and ``high``; ``unit`` is empty without a known unit."""

    text: str
    low: float
    high: float
    unit: str = ""

    def agrees_with(self, amount: Amount) -> bool:
        """Return whether the ranges overlap, in one unit. Amounts of different dimensions cannot be compared, so they agree."""
        mine, other_unit = _UNITS.get(self.unit, (self.unit, 1.0)), _UNITS.get(amount.unit, (amount.unit, 1.0))
        if mine[0] != other_unit[0] and self.unit and amount.unit:
            return True
        converted = self.unit != amount.unit and bool(self.unit and amount.unit)
        error = 1.0 + (_CONVERTED if converted else 0.0)
        factor, another = (mine[1], other_unit[1]) if converted else (1.0, 1.0)
        return self.low * factor <= amount.high * another * error and amount.low * another <= self.high * factor * error


def find_moments(text: str) -> list[Moment]:
    """Return the dates of ``text``, in order. Weekdays and "three years later" are no dates."""
    return [_read_moment_match(match) for match in _DATE.finditer(text)]


def placed_moments(text: str) -> list[tuple[Moment, Span]]:
    """Return the dates of ``text`` with their places, in order."""
    return [(_read_moment_match(match), match.span()) for match in _DATE.finditer(text)]


def placed_amounts(text: str) -> list[tuple[Amount, Span]]:
    """Return the amounts of ``text`` with their places, in order. Dates are no amounts."""
    dates = [match.span() for match in _DATE.finditer(text)]
    amounts = []
    for match in _AMOUNT.finditer(text):
        start, end = match.span()
        if not any(begin < end and start < finish for begin, finish in dates):
            following = [word.form for word in words(text[end : end + _AFTER])[:_FOLLOWING]]
            amounts.append((_read_amount_match(match, _read_unit(text, end, following)), (start, end)))
    return amounts


def may_agree(first_text: str, other_text: str) -> bool:
    """Return whether a number of one text may be a number of the other: it is rounded, or within a bound or a range."""
    numbers, other_numbers = ([amount for amount, _ in placed_amounts(text)] for text in (first_text, other_text))
    return any(
        mine.agrees_with(theirs) or rounds_to(mine, theirs) or rounds_to(theirs, mine)
        for mine in numbers
        for theirs in other_numbers
    )


def rounds_to(exact: Amount, rounded: Amount) -> bool:
    """Return whether a number with decimals is the other one, a whole number, when it is rounded: 20.4 and 20."""
    middle = (exact.low + exact.high) / 2
    return exact.low != exact.high and rounded.low == rounded.high and abs(middle - rounded.low) <= _HALF


def _read_moment_match(match: re.Match[str]) -> Moment:
    part = match.groupdict()
    here = partial(Moment, match[0])
    if part["iso"]:
        year, month, day = (int(piece) for piece in part["iso"].split("-"))
        return here((year, year), month, day)
    if part["since"]:
        since = int(part["since"])
        until = int(part["until"]) if len(part["until"]) > 2 else since - since % 100 + int(part["until"])
        return here((since, max(since, until)))
    if part["decade"]:
        return here((int(part["decade"]), int(part["decade"]) + 9))
    if part["century"]:
        century_end = 100 * int(part["century"])
        return here((century_end - 99, century_end))
    year = next((int(part[name]) for name in ("year", "year2", "year3", "only") if part[name]), 0)
    month_name = next((part[name] for name in ("month", "month2", "month3") if part[name]), "")
    month = 1 + _MONTH_NAMES.index(month_name[:3].casefold()) if month_name else 0
    return here((year, year) if year else None, month, int(part["day"] or part["day2"] or 0))


def _read_unit(text: str, end: int, following: list[str]) -> str:
    if text[end : end + 2].strip()[:1] == "%" or following[:1] == ["percent"] or following[:2] == ["per", "cent"]:
        return "percent"
    if following[:1] and following[0] in _PREFIXES:
        return " ".join(following[:2])
    return following[0] if following[:1] and following[0] in _UNITS else ""


def _read_amount_match(match: re.Match[str], unit: str) -> Amount:
    number_text = match["number"].casefold()
    if number_text[0].isdigit():
        plain = comparable(number_text)
        number = float(plain) if plain.count(".") <= 1 else 0.0
        decimals = len(plain.partition(".")[2])
        zeros = len(plain) - len(plain.rstrip("0")) if not decimals else 0
    else:
        number, decimals, zeros = float(sum(NUMBER_WORDS[word] for word in number_text.split("-"))), 0, 0
    scale = _SCALES.get((match["scale"] or "").casefold(), 1.0)
    error = scale * _HALF * 10.0**-decimals if match["scale"] or decimals else 0.0
    if not match["scale"] and number >= _EXACT_BELOW and zeros > 1:
        error = 50.0
    number *= scale
    if match["rounded"]:
        error = max(error, _ROUNDED * number)
    low, high = number - error, number + error
    if bound := (match["bound"] or "").casefold():
        low, high = (low / _BEYOND, high) if bound in _UPPER else (low, high * _BEYOND)
    return Amount(match[0], low, high, unit)
