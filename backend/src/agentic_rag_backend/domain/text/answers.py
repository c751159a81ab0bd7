"""Finds the items of a text that may answer a question: dates, amounts, names, places, colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from agentic_rag_backend.domain.text.questions import AnswerKind
from agentic_rag_backend.domain.text.words import content_forms, names_and_numbers, words

Span = tuple[int, int]
"""Start and end of an item in its text."""

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DATES = re.compile(
    r"\b\d{1,2}(?:st|nd|rd|th)? (?:of )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b(?:,? \d{4}\b)?|"
    rf"\b(?:{_MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}\b|\b(?:{_MONTHS}),? \d{{4}}\b|\b\d{{4}}-\d{{2}}-\d{{2}}\b|"
    r"\b(?:1\d{3}|20\d{2})s?\b|\b\d{1,4} ?(?:BCE?|AD|CE)\b|\b\d{1,2}(?:st|nd|rd|th)[ -]century\b|"
    rf"\b(?:(?:{_MONTHS.replace('|may|', '|')}|monday|tuesday|wednesday|thursday|friday|saturday|sunday|spring|autumn|winter)\b|"
    r"(?:in|since|until|by|of|last|next) (?:may|summer)\b|midnight\b|noon\b|\d{1,2}(?:[:.]\d{2})? ?[ap]\.?m\b)|"
    r"\b(?:[01]?\d|2[0-3]):[0-5]\d\b|"
    r"\b\w+ (?:days?|weeks?|months?|years?|decades?|centuries) (?:ago|later|earlier|after|before)\b",
    re.IGNORECASE,
)
_NUMBERS = re.compile(
    r"\d+(?:[.,]\d+)*|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|"
    r"seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|"
    r"billions?|trillions?|dozens?|half|twice|once|third|quarter)\b",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"%|\bper ?cent\b|\bpercentage\b|\b(?:half|third|quarters?|majority|all|none)\b", re.IGNORECASE)
_MONEY = re.compile(
    r"[$£€¥]|\b(?:dollars?|pounds?|euros?|crowns?|cents?|pence|yen|yuan|francs?|marks?|guilders?|kroner?|rupees?|pesos?|roubles?|"
    r"usd|gbp|eur|chf|million|billion|free of charge|for free)\b",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"[\s-]*(?:[a-z]+[\s-]+)?(?:%|°|(?:kilo|centi|milli|square |cubic )?met(?:re|er)s?|k?m²?|cm|mm|miles?|feet|foot|ft|"
    r"inch(?:es)?|yards?|fathoms?|acres?|hectares?|years?|months?|weeks?|days?|hours?|minutes?|seconds?|tons?|tonnes?|kilograms?|kg|grams?|"
    r"pounds?|lbs?|litres?|liters?|gallons?|knots?|mph|km/h|degrees?|kelvin|(?:kilo|mega|giga)?watts?|[kmg]wh?|hertz|"
    r"horsepower|bar|psi|old|times|light[- ]years?|centuries|decades|people|seats|bytes?)\b",
    re.IGNORECASE,
)
_SINCE = re.compile(r"\bhow (?:long|old)\b", re.IGNORECASE)
"""Questions about a length of time, which a date answers as well."""
_COLOUR = re.compile(
    r"\b(?:red|blue|green|yellow|orange|purple|pink|brown|black|white|gr[ae]y|gold(?:en)?|silver|violet|scarlet|crimson|turquoise|"
    r"beige|cream|navy|maroon|ochre|colou?rless|transparent)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-Z][\w'’.&-]*(?: (?:(?:of|the|de|von|van|la|le|and|al) )?[A-Z][\w'’.&-]*)*")
_AFTER = 30
"""Characters after a number in which its unit stands."""


def answer_spans(text: str, asked: AnswerKind, question: str) -> list[Span] | None:
    """Return the items of the asked kind that the question does not contain, in order.

    None if the kind of answer has no recognisable form: then any text may answer.
    """
    find = _FINDERS.get(asked)
    return None if find is None else list(find(text, question))


def may_answer(text: str, asked: AnswerKind, question: str) -> bool:
    """Return whether ``text`` contains an item of the asked kind that is not in the question; False for kinds without form."""
    return bool(answer_spans(text, asked, question))


def _new(pattern: re.Pattern[str], text: str, question: str) -> Iterator[re.Match[str]]:
    known = {match[0].casefold() for match in pattern.finditer(question)}
    return (match for match in pattern.finditer(text) if match[0].casefold() not in known)


def _times(text: str, question: str) -> Iterator[Span]:
    return (match.span() for match in _new(_DATES, text, question))


def _numbers(text: str, question: str) -> Iterator[Span]:
    return (match.span() for match in _new(_NUMBERS, text, question))


def _percentages(text: str, question: str) -> Iterator[Span]:
    return _numbers(text, question) if _PERCENT.search(text) else iter(())


def _amounts(text: str, question: str) -> Iterator[Span]:
    return _numbers(text, question) if _MONEY.search(text) else iter(())


def _measures(text: str, question: str) -> Iterator[Span]:
    for match in _new(_NUMBERS, text, question):
        if _UNIT.match(text, match.end(), match.end() + _AFTER):
            yield match.span()
    if _SINCE.search(question):
        yield from _times(text, question)


def _colours(text: str, question: str) -> Iterator[Span]:
    return (match.span() for match in _new(_COLOUR, text, question))


def _names(text: str, question: str) -> Iterator[Span]:
    known = content_forms(question)
    named = names_and_numbers(text)
    for match in _NAME.finditer(text):
        forms = [word.form for word in words(match[0]) if word.content]
        if any(form not in known and form in named for form in forms):
            yield match.span()


_FINDERS: Mapping[AnswerKind, Callable[[str, str], Iterator[Span]]] = {
    AnswerKind.TIME: _times,
    AnswerKind.NUMBER: _numbers,
    AnswerKind.PERCENT: _percentages,
    AnswerKind.MONEY: _amounts,
    AnswerKind.MEASURE: _measures,
    AnswerKind.COLOUR: _colours,
    AnswerKind.NAME: _names,
    AnswerKind.PLACE: _names,
}
