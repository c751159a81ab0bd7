"""Splits a question about two things into a question about each.

"How does A differ from B?" asks about A and about B, and so does "What are the prices of A and of B?". The rules know English. A
question stays whole if its second part says "it", or if it asks what two things have to do with each other: one passage is likely
to answer both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARACTERS = 400
"""Length up to which a question is split. A longer one tells a story, and its conjunctions join clauses of the story."""
LEAST_CLAUSE_WORDS = 4
"""Words of a clause that asks something by itself."""
_MARKS = " ,;.?!"
# Patterns are for texts with single spaces between words.
_ASKS = r"(?:what|which|who|whom|whose|when|where|why|how)"
_VERB = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|must|should)"
_DETERMINER = r"(?:the|an?|its|his|her|their|our|my|your|each)"
_PREPOSITION = r"(?:of|in|for|on|at|by|from|to|with|under|between|about|according to|than)"
_WORD = r"[^\s,;?!]{1,80}"
_SIDE = rf"{_WORD}(?: {_WORD}){{0,11}}?"
_REST = r"(?P<rest>(?: (?:in|on|for|with|when|according|regarding|concerning) [^?]{0,200})?)[ ?.!]{0,3}$"
_CLAUSES = re.compile(rf"[,;]? and (?=(?:{_PREPOSITION} )?{_ASKS}\b)", re.IGNORECASE)
_REFERS_BACK = re.compile(r"\b(?:it|its|they|them|their|he|him|his|she|her|this|these|those|there|so)\b", re.IGNORECASE)
_NOUN_WORD = rf"(?!{_VERB}\b)[\w-]{{1,40}}"
_ASKED_NOUN = re.compile(rf"\b(?:what|which) ({_NOUN_WORD}(?: {_NOUN_WORD}){{0,2}}?) {_VERB}\b", re.IGNORECASE)
_ONE = re.compile(r"\b(which|what) ones?\b", re.IGNORECASE)
_COMPARISONS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bdifferences? (?:[\w-]{{1,20}} ){{0,4}}?between (?P<first>{_SIDE}) and (?P<second>{_SIDE}){_REST}",
        rf"^how {_VERB} (?P<first>{_SIDE}) (?:differ|different) from (?P<second>{_SIDE}){_REST}",
        rf"^how {_VERB} (?P<first>{_SIDE}) and (?P<second>{_SIDE}) (?:differ|compare)\b{_REST}",
        rf"^(?:please )?compare (?P<first>{_SIDE}) (?:and|with|to) (?P<second>{_SIDE}){_REST}",
    )
)
_NAME_WORD = r"[A-Z\d][^\s,;?!]{0,60}"
_NAMED = (
    rf"(?!(?i:{_VERB}|{_ASKS}|{_PREPOSITION}|both) )(?:(?:the|an?) )?"
    rf"(?:{_NAME_WORD}|[^\s,;?!A-Z\d]{{0,40}}[\d_/.][^\s,;?!]{{0,60}})(?: (?:(?:of|the|von|de) )?{_NAME_WORD}){{0,7}}"
)
"""A name, or a word with digits or marks, such as "/var/tmp" and "bisect_left"."""
_PREPOSITION_FIRST = re.compile(rf"{_PREPOSITION}\b", re.IGNORECASE)
_PREPOSITION_WITHIN = re.compile(rf" {_PREPOSITION} ", re.IGNORECASE)
_DETERMINER_FIRST = re.compile(rf"{_DETERMINER}\b", re.IGNORECASE)
_DETERMINER_WITHIN = re.compile(rf"\b{_DETERMINER}\b", re.IGNORECASE)
_CONJUNCTION = re.compile(r",? (?:and|or) (?:also )?", re.IGNORECASE)
_NAME_BEFORE = re.compile(rf"(?:^|(?<=[ ,:(])){_NAMED}$")
_NAME_AFTER = re.compile(_NAMED)
_RECIPROCAL = re.compile(
    r"\b(?:one another|each other|together|relat(?:e|ed|ion|ionship)|connect(?:ed|ion)?|links?|linked)\b", re.IGNORECASE
)
_RANGE = re.compile(r"\b(?:between|from) $", re.IGNORECASE)
_BOTH = re.compile(r"\bboth $", re.IGNORECASE)
_LEADING = re.compile(rf"^(?:(?:{_PREPOSITION} )?{_ASKS}(?: {_NOUN_WORD}){{0,2}}? {_VERB} |{_ASKS} )", re.IGNORECASE)
_PHRASE_END = re.compile(r" (?:differ|compare|have|has|both|appear|mention|say|require|use|support)\b|[,;?!]|$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionParts:
    """The two questions that one question asks.

    ``joined`` is the text of both things, such as "A and B". It is empty if the question has two clauses, or compares.
    """

    first_part: str
    second_part: str
    joined: str = ""

    def are_one_in(self, text: str) -> bool:
        """Return whether a text has both things in these words: it is about both, or they are one name ("Arts and Letters")."""
        return bool(self.joined) and self.joined.casefold() in " ".join(text.split()).casefold()


def split_question(question: str) -> QuestionParts | None:
    """Return the two questions that ``question`` asks at once; None if it asks one."""
    text = " ".join(question.split())
    if len(text) > MAX_CHARACTERS or _RECIPROCAL.search(text):
        return None
    for rule in (_split_clauses, _split_comparison, _split_phrases):
        for first_part, second_part, joined in rule(text):
            return QuestionParts(f"{first_part.strip(_MARKS)}?", f"{second_part.strip(_MARKS)}?", joined)
    return None


def _split_clauses(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield "Which version does A need?" and "which version does B need?" of a question with two question words."""
    match = _CLAUSES.search(text)
    if match is None:
        return
    before, after = text[: match.start()], text[match.end() :]
    if _REFERS_BACK.search(after) or min(len(before.split()), len(after.split())) < LEAST_CLAUSE_WORDS:
        return
    noun = _ASKED_NOUN.search(before)
    if noun is not None:
        after = _ONE.sub(lambda pronoun: f"{pronoun[1]} {noun[1]}", after)
    yield before, after, ""


def _split_comparison(text: str) -> Iterator[tuple[str, str, str]]:
    for pattern in _COMPARISONS:
        match = pattern.search(text)
        if match is not None:
            yield f"What is {match['first']}{match['rest']}", f"What is {match['second']}{match['rest']}", ""


def _split_phrases(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the question with the first and with the second of two phrases of one form that a conjunction joins."""
    for match in _CONJUNCTION.finditer(text):
        before, after = text[: match.start()], text[match.end() :]
        start = _start_of_phrase(before, after)
        if start is None:
            continue
        leading = before[:start]
        if _RANGE.search(leading):
            continue
        end = match.end() + _end_of_phrase(after)
        leading = _BOTH.sub("", leading)
        yield leading + before[start:] + text[end:], leading + text[match.end() :], text[start:end]


def _start_of_phrase(before: str, after: str) -> int | None:
    """Return where the phrase before a conjunction starts that has the form of the one after it; None if there is none."""
    preposition = _PREPOSITION_FIRST.match(after)
    if preposition is not None:
        start = before.casefold().rfind(f" {preposition[0].casefold()} ")
        return start + 1 if start >= 0 else None
    if _DETERMINER_FIRST.match(after):
        leading = _LEADING.match(before)
        # "the price of A and the weight of B": both phrases have a preposition.
        if leading is not None and _PREPOSITION_WITHIN.search(after[: _end_of_phrase(after)]):
            return leading.end()
        return max((match.start() for match in _DETERMINER_WITHIN.finditer(before)), default=None)
    name = _NAME_BEFORE.search(before)
    return name.start() if name is not None and _NAME_AFTER.match(after) else None


def _end_of_phrase(after: str) -> int:
    name = _NAME_AFTER.match(after)
    if name is not None and not _DETERMINER_FIRST.match(after) and not _PREPOSITION_FIRST.match(after):
        return name.end()
    end = _PHRASE_END.search(after)
    return end.start() if end is not None else len(after)
