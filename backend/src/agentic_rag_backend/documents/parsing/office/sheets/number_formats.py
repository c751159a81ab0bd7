"""Number formats of spreadsheets (ECMA-376 part 1, section 18.8.31): what a sheet shows for a number or a date.

Formats that depend on the reader's country, and those with fractions or conditions, are not followed: `NumberFormat.show_value`
returns None for them, and the value is written as it is.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

from agentic_rag_backend.documents.parsing.office.sheets.cell_values import format_value

MAX_FORMAT_CHARACTERS = 255
"""Programs allow as many."""
MAX_DECIMALS = 8
BUILT_IN_FORMATS: Mapping[int, str] = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 48: "##0.0E+0",
}  # fmt: skip
"""Formats that a workbook does not define. Those of dates depend on the reader's country and are left out."""
_SIGNIFICANT_DIGITS = 8
"""A value with more digits was computed. It is written in full only if the format hides more than `_HIDDEN_SHARE` of it."""
_HIDDEN_SHARE = Decimal("0.05")
_HIDDEN_SHARE_NUMBER, _NO_DIFFERENCE, _MOST_USUAL = 0.05, 1e-12, 1e12
_HALF_UP = 1 + 4.5e-16
"""A double that stands for a decimal half may be a little less than it. Programs round it up."""
_MONTHS, _DAYS = calendar.month_name[1:], calendar.day_name[:]
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_(?P<blank>.)|\*.|\[(?P<bracket>[^\[\]]*)\]|(?P<noon>AM/PM|A/P)|(?P<general>General)'
    r"|(?P<exponent>E[+-])|(?P<time>y+|m+|d+|h+|s+)|(?P<digit>[0#?])|(?P<mark>[.,%/@])|(?P<plain>.)",
    re.IGNORECASE | re.DOTALL,
)
_ENGLISH = 9
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


class NumberFormat:
    """A number format by its code, such as ``0.0%`` or ``#,##0.00;(#,##0.00)``."""

    def __init__(self, code: str) -> None:
        """Read a code. Parts of it after `MAX_FORMAT_CHARACTERS` are ignored."""
        self._sections: list[list[_Token]] = [[]]
        self._followed = True
        for match in _TOKEN.finditer(code[:MAX_FORMAT_CHARACTERS]):
            self._add_token(str(match.lastgroup or ""), match[match.lastgroup] if match.lastgroup else "")
        self._numbers = [None if _has_dates(section) else _NumberSection(section) for section in self._sections]

    def show_value(self, value: object) -> str | None:
        """Return a number, date or time as the sheet shows it, followed by the value itself if the form hides it.

        None: the format is not followed. An empty string: the format hides the value.
        """
        if not self._followed or isinstance(value, bool):
            return None
        if isinstance(value, (int, float)):
            usual = self._numbers[0].format_usual(value) if self._numbers[0] is not None and value > 0 else None
            return usual or (self._show_number(Decimal(f"{value:.15g}")) if abs(value) < 1e15 else None)
        if isinstance(value, (date, time, timedelta)):
            return self._show_moment(value)
        return None

    def _add_token(self, kind: str, text: str) -> None:
        section = self._sections[-1]
        if kind == "bracket":
            self._add_bracket(text)
        elif kind == "plain" and text == ";":
            self._sections.append([])
        elif kind == "general" or (kind == "mark" and text == "/" and not _has_dates(section)):
            self._followed = False
        elif kind:
            literal = kind in {"quoted", "escaped", "plain", "blank"} or (kind == "mark" and text == "/")
            section.append(_Token("literal" if literal else kind, " " if kind == "blank" else text))

    def _add_bracket(self, text: str) -> None:
        if text[:1] == "$":
            currency, _, locale = text[1:].partition("-")
            self._sections[-1].append(_Token("literal", currency))
            if not currency and not _is_english(locale):
                self._sections[-1].append(_Token("locale", locale))
        elif text.lower().strip("hms") == "" and text:
            self._sections[-1].append(_Token("elapsed", text.lower()))
        elif text[:1] in set("<>="):
            self._followed = False

    def _show_number(self, value: Decimal) -> str | None:
        index = 1 if value < 0 and len(self._sections) > 1 else 2 if value == 0 and len(self._sections) > 2 else 0
        section = self._numbers[index]
        if section is None or section.is_general:
            return None
        display, rounded = section.format_number(abs(value))
        if value < 0 and index == 0 and rounded:
            display = f"-{display}"
        if value < 0 and "-" not in display:
            rounded = Decimal(0)  # parentheses or a colour tell that it is negative
        return display.strip() + (_describe_difference(value, rounded.copy_sign(value)) if display.strip() else "")

    def _show_moment(self, value: date | time | timedelta) -> str | None:
        section = self._sections[0]
        has_names = any(token.kind == "time" and token.text.lower()[:1] in "md" and len(token.text) > 2 for token in section)
        if not _has_dates(section) or (has_names and any(token.kind == "locale" for token in section)):
            return None
        display = _format_moment(section, value)
        if display is None or not isinstance(value, date) or _ISO_DATE.match(display):
            return display
        return f"{display} ({format_value(value)})"


def _is_english(locale: str) -> bool:
    try:
        return not locale or int(locale, 16) & 0x3FF == _ENGLISH
    except ValueError:
        return locale.lower().startswith("en")


def _has_dates(section: Sequence[_Token]) -> bool:
    return any(token.kind in {"time", "elapsed"} for token in section)


class _NumberSection:
    """A part of a format for numbers: what stands before, between and behind the digits, prepared for many numbers."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        marks = [token.text for token in tokens if token.kind in {"digit", "mark"}]
        point = marks.index(".") if "." in marks else len(marks)
        self.is_general = "@" in marks
        self.has_digits = any(token.kind == "digit" for token in tokens)
        whole_marks = "".join(mark for mark in marks[:point] if mark in "0#?,").rstrip(",")
        self._decimals = [mark for mark in marks[point:] if mark in "0#?"][:MAX_DECIMALS]
        self._groups = "," in whole_marks
        positions = whole_marks.replace(",", "")
        self._least = len(positions) - positions.index("0") if "0" in positions else 0
        numerals = "".join(mark for mark in marks if mark in "0#?,")
        self._factor = Decimal(100) ** min(marks.count("%"), 2) / Decimal(1000) ** min(
            len(numerals) - len(numerals.rstrip(",")), 4
        )
        self._unit = Decimal(1).scaleb(-len(self._decimals))
        exponent = next((number for number, token in enumerate(tokens) if token.kind == "exponent"), None)
        self._places = None
        if exponent is not None:
            self._places = max(len(self._decimals) - sum(token.kind == "digit" for token in tokens[exponent:]), 0)
        self._parts = _split_at_digits(tokens)
        self._is_split = any(self._parts[1:-1])
        is_usual = self._least == 1 and self._places is None and not self._is_split and set(self._decimals) <= {"0"}
        self._usual = f"{',' if self._groups else ''}.{len(self._decimals)}f" if is_usual and not self.is_general else ""
        self._usual_factor = float(self._factor)

    def format_usual(self, value: float) -> str | None:
        """Return a positive number in a format such as ``#,##0.0%``, in a tenth of the time of `format_number`.

        None: the format or the number needs the full way.
        """
        if not self._usual or not value < _MOST_USUAL:
            return None
        text = format(value * self._usual_factor * _HALF_UP, self._usual)
        hidden = abs(float(text.replace(",", "") if self._groups else text) / self._usual_factor - value)
        if hidden > _NO_DIFFERENCE * value and (
            hidden > _HIDDEN_SHARE_NUMBER * value or len(f"{value:.15g}".replace(".", "").strip("0")) <= _SIGNIFICANT_DIGITS
        ):
            return None
        return f"{self._parts[0]}{text}{self._parts[-1]}".strip()

    def format_number(self, value: Decimal) -> tuple[str, Decimal]:
        """Return a positive number in the format, and the number that is shown so."""
        if not self.has_digits:
            return "".join(self._parts), Decimal(0)
        if self._places is not None:
            text = f"{float(value):.{self._places}E}"
            return text, Decimal(text)
        display = (value * self._factor).quantize(self._unit, ROUND_HALF_UP)
        digits, _, fraction = f"{display:f}".partition(".")
        while fraction and fraction[-1] == "0" and self._decimals[len(fraction) - 1] != "0":
            fraction = fraction[:-1]
        digits = digits.lstrip("0").rjust(self._least, "0")
        if self._groups and digits:
            digits = f"{int(digits):,}".rjust(self._least, "0")
        if self._is_split:
            digits = self._split_digits(digits)
        return f"{self._parts[0]}{digits}{f'.{fraction}' if fraction else ''}{self._parts[-1]}", display / self._factor

    def _split_digits(self, digits: str) -> str:
        """Return whole digits with the text that stands between them."""
        count = len(self._parts) - 1
        parts = [digits[: max(len(digits) - count + 1, 0)]]
        for number, text in enumerate(self._parts[1:-1], 1):
            end = len(digits) - count + 1 + number
            parts += [text, digits[max(end - 1, 0) : max(end, 0)]]
        return "".join(parts)


def _split_at_digits(tokens: Sequence[_Token]) -> list[str]:
    """Return the text before, between and behind the whole digits of a section. The last one includes the text of decimals."""
    parts, is_whole = [""], True
    for token in tokens:
        if token.kind == "digit" and is_whole:
            parts.append("")
        elif token.kind == "mark" and token.text == ".":
            is_whole = False
        elif token.kind == "literal" or token.text == "%":
            parts[-1] += token.text
    return parts if len(parts) > 1 else [*parts, ""]


def _describe_difference(value: Decimal, rounded: Decimal) -> str:
    """Return the value in parentheses if the shown number is another one."""
    hidden = abs(value - rounded)
    if not hidden:
        return ""
    digits = len(value.normalize().as_tuple().digits)
    if digits > _SIGNIFICANT_DIGITS and hidden <= _HIDDEN_SHARE * abs(value):
        return ""
    return f" ({format_value(float(value) if digits <= _SIGNIFICANT_DIGITS else float(f'{value:.6g}'))})"


def _format_moment(section: Sequence[_Token], value: date | time | timedelta) -> str | None:
    """Return a date, time or duration in a format; None if the format shows more than the value has."""
    noon = any(token.kind == "noon" for token in section)
    parts: list[str] = []
    previous = ""
    for number, token in enumerate(section):
        letters = token.text.lower()
        if token.kind == "elapsed":
            parts.append(_format_duration(letters, value))
        elif token.kind == "time":
            following = next((later.text.lower() for later in section[number + 1 :] if later.kind == "time"), "")
            minutes = letters[0] == "m" and (previous == "h" or following[:1] == "s") and len(letters) < 3
            part = _format_time(letters, value, noon=noon) if letters[0] in "hs" or minutes else _format_date(letters, value)
            if part is None:
                return None
            parts.append(part)
        elif token.kind == "noon" and isinstance(value, (datetime, time)):
            parts.append("AM" if value.hour < 12 else "PM")
        elif token.kind in {"literal", "mark"} and token.text != "@":
            parts.append(token.text)
        if token.kind in {"time", "elapsed"}:
            previous = letters[0]
    return "".join(parts).strip()


def _format_duration(letters: str, value: date | time | timedelta) -> str:
    seconds = round(value.total_seconds()) if isinstance(value, timedelta) else _count_seconds(value)
    count = seconds // {"h": 3600, "m": 60, "s": 1}[letters[0]]
    return f"{count:0{len(letters)}}"


def _count_seconds(value: date | time) -> int:
    return value.hour * 3600 + value.minute * 60 + value.second if isinstance(value, (datetime, time)) else 0


def _format_time(letters: str, value: date | time | timedelta, *, noon: bool) -> str | None:
    seconds = round(value.total_seconds()) if isinstance(value, timedelta) else _count_seconds(value)
    count = {"h": seconds // 3600, "m": seconds // 60 % 60, "s": seconds % 60}[letters[0]]
    if letters[0] == "h":
        count = (count % 12 or 12) if noon else count % 24
    return f"{count:0{min(len(letters), 2)}}"


def _format_date(letters: str, value: date | time | timedelta) -> str | None:
    if not isinstance(value, date):
        return None
    if letters[0] == "y":
        return f"{value.year % 100:02}" if len(letters) < 3 else f"{value.year:04}"
    number, name = (value.month, _MONTHS[value.month - 1]) if letters[0] == "m" else (value.day, _DAYS[value.weekday()])
    if len(letters) < 3:
        return f"{number:0{len(letters)}}"
    return name[:3] if len(letters) == 3 else name[:1] if len(letters) == 5 and letters[0] == "m" else name
