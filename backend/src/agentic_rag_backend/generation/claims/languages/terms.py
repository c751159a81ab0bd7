"""Words of a sentence in any language, with the properties that claim checks compare."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from agentic_rag_backend.generation.claims.languages.lexicon import Lexicon
from agentic_rag_backend.language.unspaced import UNSPACED_RUN

_PIECE = re.compile(
    r"(?P<number>\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+(?![\d])|\d+(?:[.,]\d+)?)|(?P<word>[^\W\d_]+(?:-[^\W\d_]+)*)", re.UNICODE
)
_REFERENCE = re.compile(r"\[\s*\d[\d\s,;–-]*\]")
_GROUPS = re.compile(r"\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+")
_NUMERALS = re.compile("[〇零一二两兩三四五六七八九十百千万萬亿億半]+")
_WEEKDAY = re.compile("(?:星期|礼拜|禮拜|周|週)([一二三四五六日天])")
_DIGITS = {"〇": 0, "零": 0, "一": 1, "二": 2, "两": 2, "兩": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_UNITS = {"十": 10, "百": 100, "千": 1000}
_SCALES = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_STOPS = ',;:.!?()–—，。；：！？、（）…«»„“”"'
_ENDS = ".!?。！？"


@dataclass(frozen=True, slots=True)
class Term:
    """A word, a number, or a character of a script without spaces.

    ``form`` is in lower case and without accents; a number's is its value, a month's ``month:10``. ``breaks`` marks punctuation
    before it, ``first`` the beginning of a sentence, ``stop`` a function word, and ``glued`` a character that follows the one
    before without a space.
    """

    start: int
    end: int
    raw: str
    form: str
    number: bool
    capital: bool
    first: bool
    breaks: bool
    stop: bool
    glued: bool = False

    @property
    def content(self) -> bool:
        """Whether it carries meaning by itself."""
        return not self.stop


def read_terms(text: str, lexicon: Lexicon) -> tuple[Term, ...]:
    """Return the words of ``text``, without bracketed references such as "[3]"."""
    text = _REFERENCE.sub(lambda found: " " * len(found[0]), text)
    found: list[Term] = []
    end = 0
    for match in _PIECE.finditer(text):
        gap = text[end : match.start()]
        first = not found or any(mark in gap for mark in _ENDS)
        breaks = any(mark in gap for mark in _STOPS)
        if match["number"]:
            scaled = _scaled(match["number"], text, match.end(), lexicon)
            found.append(_number(match.start(), match.end(), text, scaled, first=first, breaks=breaks))
        elif UNSPACED_RUN.match(match[0]):
            found += _characters(match.start(), match[0], lexicon, first=first, breaks=breaks)
        else:
            found.append(_word(match.start(), match[0], lexicon, first=first, breaks=breaks))
        end = match.end()
    return tuple(_joined_numbers(found, lexicon)) if lexicon.numbers else tuple(found)


def _joined_numbers(terms: Sequence[Term], lexicon: Lexicon) -> Iterator[Term]:
    """Yield the words, with those of one number joined: "three hundred and forty" is 340, "two million" 2000000."""
    held: Term | None = None
    for index, term in enumerate(terms):
        value = _sum_of(held, term, lexicon) if held is not None else None
        if held is not None and value is not None:
            held = replace(held, end=term.end, raw=f"{held.raw} {term.raw}", form=str(value))
            continue
        if held is not None and _joins(held, terms[index : index + 2], lexicon):
            continue
        if held is not None:
            yield held
        held = term if _is_whole(term) else None
        if held is None:
            yield term
    if held is not None:
        yield held


def _is_whole(term: Term) -> bool:
    """Return whether a term is a whole number in words."""
    return term.number and term.raw[0].isalpha() and term.form.isdigit() and len(term.form) < 16


def _joins(held: Term, following: Sequence[Term], lexicon: Lexicon) -> bool:
    """Return whether "and" stands between a hundred and a smaller number."""
    if following[0].raw != lexicon.joining or len(following) < 2 or int(held.form) < 100:
        return False
    return _sum_of(held, following[1], lexicon) is not None


def _sum_of(held: Term, term: Term, lexicon: Lexicon) -> int | None:
    """Return the value of a number word and the next word, if they are one number."""
    if term.breaks or term.first:
        return None
    number, word = int(held.form), term.raw.lower()
    if word in lexicon.hundreds:
        return number * 100 if number < 100 else None
    if word in lexicon.scales:
        return number * lexicon.scales[word] if number < lexicon.scales[word] else None
    if number >= 100 and number % 100 == 0 and _is_whole(term) and int(term.form) < 100:
        return number + int(term.form)
    return None


def _number(start: int, end: int, text: str, form: str, *, first: bool, breaks: bool) -> Term:
    return Term(start, end, text[start:end], form, True, False, first, breaks, False)


def _word(start: int, raw: str, lexicon: Lexicon, *, first: bool, breaks: bool) -> Term:
    lower = raw.lower()
    known = lexicon.months.get(lower) or lexicon.numbers.get(lower) or lexicon.fixed.get(lower)
    if lower == "may" and raw != "May":
        known = None
    form = known or plain_form(raw)
    stop = lower in lexicon.stops or lower in lexicon.scales
    denies = lower in lexicon.denials or lower in lexicon.hedges
    return Term(start, start + len(raw), raw, form, known is not None, raw[0].isupper(), first, breaks, stop and not denies)


def _characters(start: int, run: str, lexicon: Lexicon, *, first: bool, breaks: bool) -> list[Term]:
    found: list[Term] = []
    place = plain = 0  # the characters before ``plain`` are no number
    while place < len(run):
        if day := _WEEKDAY.match(run, place):
            form = f"day:{'一二三四五六日天'.index(day[1]) + 1 if day[1] != '天' else 7}"
            opening = place == 0
            marks = (first and opening, breaks and opening)
            found.append(Term(start + place, start + day.end(), day[0], form, True, False, *marks, False, not opening))
            place = day.end()
            continue
        numerals = _NUMERALS.match(run, place) if place >= plain else None
        value = _value(numerals[0]) if numerals and _counts(run, numerals) else None
        if numerals and value is None:
            # No later part of these numerals is a number either, except after a half.
            plain = place + numerals[0].rfind("半") + 1 if "半" in numerals[0] else numerals.end()
        width = len(numerals[0]) if numerals and value is not None else 1
        raw = run[place : place + width]
        opening = place == 0
        at = start + place
        marks = (first and opening, breaks and opening)
        if value is not None:
            found.append(Term(at, at + width, raw, str(value), True, False, *marks, False, not opening))
        elif not (opening and raw in _SCALES):
            stop = raw in lexicon.stops and raw not in lexicon.denials
            found.append(Term(at, at + 1, raw, raw, False, False, *marks, stop, not opening))
        place += width
    return found


def _counts(run: str, numerals: re.Match[str]) -> bool:
    """Return whether Chinese numerals are a number: not "一" alone, which is part of many words, nor "百", "千", "半"."""
    if len(numerals[0]) > 1:
        return any(each in _DIGITS for each in numerals[0])
    return numerals[0] in "二两兩三四五六七八九" or (numerals[0] == "一" and run.startswith("第", max(0, numerals.start() - 1)))


def _value(numerals: str) -> int | None:
    """Return the value of Chinese numerals: "三" is 3, "二十五" 25, "二〇二三" 2023."""
    if all(each in _DIGITS for each in numerals):
        return int("".join(str(_DIGITS[each]) for each in numerals[:18]))
    total = part = digit = 0
    for each in numerals:
        if each in _DIGITS:
            digit = _DIGITS[each]
        elif each in _UNITS:
            part += (digit or 1) * _UNITS[each]
            digit = 0
        elif each in _SCALES:
            total += (part + digit or 1) * _SCALES[each]
            part = digit = 0
        else:
            return None
    return total + part + digit


def _scaled(written: str, text: str, end: int, lexicon: Lexicon) -> str:
    """Return the value of a number: "4.200" is 4200, "1,2 Millionen" 1200000, "120万" 1200000, and "10月" a month."""
    plain = re.sub(r"\D", "", written) if _GROUPS.fullmatch(written) else written.replace(",", ".")
    after = text[end : end + 24]
    if after[:1] == "月" and plain.isdigit():
        return f"month:{int(plain)}" if len(plain) < 3 else plain
    word = _PIECE.match(after.lstrip())
    scale = _SCALES.get(after[:1]) or (lexicon.scales.get(word[0].lower()) if word and word["word"] else None)
    value = float(plain) * (scale or 1) if len(plain) < 16 else None
    if value is None:
        return plain
    return str(int(value)) if value == int(value) else repr(round(value, 6))


@lru_cache(maxsize=65536)
def plain_form(word: str) -> str:
    """Return a word in lower case and without accents: "Häuser" is "hauser"."""
    return "".join(each for each in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(each))


SHORTEST = 4
"""Shorter words must be equal."""
ALIKE = 0.6
"""Least share of common trigrams (Dice) of two forms of one word."""
_ALIKE_FROM_START = 0.4
"""The same for forms that begin alike."""


@lru_cache(maxsize=65536)
def alike(one: str, other: str) -> bool:
    """Return whether two forms may be of one word: "gegrundet" and "grundete" share most of their trigrams."""
    if one == other:
        return True
    if min(len(one), len(other)) < SHORTEST or not (one.isalpha() and other.isalpha()):
        return False
    first, second = trigrams(one), trigrams(other)
    wanted = (_ALIKE_FROM_START if one[:3] == other[:3] else ALIKE) * (len(first) + len(second))
    return 2 * min(len(first), len(second)) >= wanted and 2 * len(first & second) >= wanted


@lru_cache(maxsize=65536)
def trigrams(word: str) -> frozenset[str]:
    """Return the trigrams of a word's first letters."""
    return frozenset(word[place : place + 3] for place in range(min(len(word), 60) - 2))


@lru_cache(maxsize=65536)
def same_name(one: str, other: str, endings: frozenset[str]) -> bool:
    """Return whether two forms are of one name or noun: they differ in one of the language's ``endings`` at most."""
    if one == other:
        return True
    common = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    stem = max(3, min(len(one), len(other)) - 3)
    places = range(common, stem - 1, -1)
    allowed = endings | {""}
    return any(one[place:] in allowed and other[place:] in allowed for place in places)


def is_character(term: Term) -> bool:
    """Return whether a term is a character that carries meaning, of a script without spaces."""
    return not term.number and term.content and UNSPACED_RUN.match(term.form) is not None
