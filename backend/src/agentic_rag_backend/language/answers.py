"""Finds the items of a text that may answer a question: dates, amounts, names, places, colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from agentic_rag_backend.language.questions.kinds import AnswerKind
from agentic_rag_backend.language.words import content_forms, names_and_numbers, words

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
    r"[\s-]{0,3}(?:[a-z]{1,20}[\s-]{1,3})?(?:%|°|(?:kilo|centi|milli|square |cubic )?met(?:re|er)s?|k?m²?|cm|mm|miles?|feet|foot|"
    r"ft|inch(?:es)?|yards?|fathoms?|acres?|hectares?|years?|months?|weeks?|days?|hours?|minutes?|seconds?|tons?|tonnes?|"
    r"kilograms?|kg|grams?|pounds?|lbs?|litres?|liters?|gallons?|knots?|mph|km/h|degrees?|kelvin|(?:kilo|mega|giga)?watts?|"
    r"[kmg]wh?|hertz|horsepower|bar|psi|old|times|light[- ]years?|centuries|decades|people|seats|bytes?)\b",
    re.IGNORECASE,
)
_UNITS_OF = (
    (r"speed|fast", r"knots?|mph|k?m/[hs]|(?:\w{1,20} )?(?:per|an?) (?:second|minute|hour|day)"),
    (r"temperature|hot|cold", r"°|degrees?|kelvin"),
    (r"weight|weigh|heavy", r"tons?|tonnes?|kilograms?|kilos?|kg|grams?|g|pounds?|lbs?|ounces?|stone"),
)
"""What is asked for, and the only units that measure it."""
_MEASURED = tuple(
    (re.compile(rf"\b(?:{kind})\b", re.IGNORECASE), re.compile(rf"[\s-]{{0,3}}(?:{units})(?!\w)", re.IGNORECASE))
    for kind, units in _UNITS_OF
)
_SINCE = re.compile(r"\bhow long\b|\bhow old (?:is|are)\b(?![^?]{0,200}\bwhen\b)", re.IGNORECASE)
"""Questions about a length of time, which a date answers as well."""
_COLOUR = re.compile(
    r"\b(?:red|blue|green|yellow|orange|purple|pink|brown|black|white|gr[ae]y|gold(?:en)?|silver|violet|scarlet|crimson|turquoise|"
    r"beige|cream|navy|maroon|ochre|colou?rless|transparent)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b[A-Z][\w'’.&-]*(?: (?:(?:of|the|de|von|van|la|le|and|al) )?[A-Z][\w'’.&-]*)*")
_PHONE = re.compile(
    r"(?<![\w.–-])(?!\d{4}[–-]\d\d(?:\d\d|[–-]\d\d)?(?![\d–-]))\+?\(?\d(?:[ ()/.–-]{0,3}\d){5,14}(?![\w-])|"
    r"\b(?:ext|extension|tel|(?:tele)?phone|mobile|fax)\b\W{0,3}\d{2,5}\b",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_WEBSITE = re.compile(r"\bhttps?://\S{1,200}|(?<![\w@.])(?:[a-z0-9-]{1,63}\.){1,4}[a-z]{2,12}\b(?!@)", re.IGNORECASE)
_AGE = re.compile(r"(?<=[a-z], )\d{1,3}(?=[,.;)])|\bage[ds]?(?: of)? (\d{1,3}\b|[a-z-]{3,20}\b)", re.IGNORECASE)
_OF_AGE = re.compile(r"\bhow old\b|\bage\b", re.IGNORECASE)
_NOTE_MARK_CHARACTERS = 6
_AFTER = 30
"""Characters after a number in which its unit stands."""


def answer_spans(text: str, kind: AnswerKind, question: str) -> list[Span] | None:
    """Return the items of the asked kind that the question does not contain, in order.

    None if the kind of answer has no recognisable form: then any text may answer.
    """
    find = _FINDERS.get(kind)
    return None if find is None else list(find(text, question))


def _match_new(pattern: re.Pattern[str], text: str, question: str) -> Iterator[re.Match[str]]:
    known_texts = {match[0].casefold() for match in pattern.finditer(question)}
    return (match for match in pattern.finditer(text) if match[0].casefold() not in known_texts)


def _find_times(text: str, question: str) -> Iterator[Span]:
    return (match.span() for match in _match_new(_DATES, text, question))


def _find_numbers(text: str, question: str) -> Iterator[Span]:
    return (match.span() for match in _match_new(_NUMBERS, text, question))


def _find_percentages(text: str, question: str) -> Iterator[Span]:
    return _find_numbers(text, question) if _PERCENT.search(text) else iter(())


def _find_amounts(text: str, question: str) -> Iterator[Span]:
    return _find_numbers(text, question) if _MONEY.search(text) else iter(())


def _find_measures(text: str, question: str) -> Iterator[Span]:
    unit = next((units for pattern, units in _MEASURED if pattern.search(question)), _UNIT)
    for match in _match_new(_NUMBERS, text, question):
        end = _skip_note_mark(text, match.end())
        if unit.match(text, end, end + _AFTER):
            yield match.span()
    if _OF_AGE.search(question):
        yield from (match.span() for match in _AGE.finditer(text))
    if _SINCE.search(question):
        yield from _find_times(text, question)


def _skip_note_mark(text: str, start: int) -> int:
    """Return the end of the mark of a note at ``start``, such as that of "3[12] metres", or ``start``."""
    if text.startswith("[", start):
        return text.find("]", start, start + _NOTE_MARK_CHARACTERS) + 1 or start
    return start


def _find_names(text: str, question: str) -> Iterator[Span]:
    known_forms = content_forms(question)
    name_forms = names_and_numbers(text)
    for match in _NAME.finditer(text):
        forms = [word.form for word in words(match[0]) if word.content]
        if any(form not in known_forms and form in name_forms for form in forms):
            yield match.span()


def _forms_of(pattern: re.Pattern[str]) -> Callable[[str, str], Iterator[Span]]:
    """Return a finder of what always has one form."""
    return lambda text, question: (match.span() for match in _match_new(pattern, text, question))


_FINDERS: Mapping[AnswerKind, Callable[[str, str], Iterator[Span]]] = {
    AnswerKind.TIME: _find_times,
    AnswerKind.NUMBER: _find_numbers,
    AnswerKind.PERCENT: _find_percentages,
    AnswerKind.MONEY: _find_amounts,
    AnswerKind.MEASURE: _find_measures,
    AnswerKind.COLOUR: _forms_of(_COLOUR),
    AnswerKind.PHONE: _forms_of(_PHONE),
    AnswerKind.EMAIL: _forms_of(_EMAIL),
    AnswerKind.WEBSITE: _forms_of(_WEBSITE),
    AnswerKind.NAME: _find_names,
    AnswerKind.PLACE: _find_names,
}
