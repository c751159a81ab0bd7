"""Words of a sentence with the properties that claim checks compare."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.generation.claims.lexicon import common_form
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.words import STOP_WORDS, Word, comparable, words

_NUMBER_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
NUMERALS = {comparable(word): str(number) for word, number in _NUMBER_WORDS.items()}
"""Normalised number words and their digits. "One" is left out: it is also a pronoun."""


def forms_of(text: str) -> frozenset[str]:
    """Return the normalised forms of words separated by spaces."""
    return frozenset(common_form(comparable(word)) for word in text.split())


MAY = "mai"
"""The form of the month: "may" is a verb."""
DATE_WORDS = forms_of(
    "January February March April June July August September October November December Monday Tuesday Wednesday Thursday "
    "Friday Saturday Sunday spring summer autumn winter"
) | {MAY}
"""Normalised names of months, days and seasons."""
BRACKETED_NUMBER = re.compile(r"\[\s*(\d[\d\s,;–-]*)\]")
_PARENTHESISED_NUMBER = re.compile(r"\(\s*(\d[\d\s,;–-]*)\)")
_TRAILING_ZEROS = re.compile(r"(?<=\d)\.0+\Z")


@dataclass(frozen=True, slots=True)
class Token:
    """A word: ``form`` is normalised, number words are digits. ``gap`` is the text between the word before and this one.

    ``capital`` marks an upper-case first letter, ``first`` the first word of a sentence.
    """

    start: int
    end: int
    raw: str
    form: str
    gap: str
    capital: bool
    first: bool

    @property
    def content(self) -> bool:
        """Whether the word carries meaning by itself."""
        return self.form not in STOP_WORDS

    @property
    def number(self) -> bool:
        """Whether it begins with a digit, or is a number word."""
        return self.form[:1].isdigit()

    @property
    def breaks(self) -> bool:
        """Whether punctuation separates it from the word before."""
        return any(mark in self.gap for mark in ",;:()–—.!?")


def read_tokens(text: str) -> tuple[Token, ...]:
    """Return the words of ``text``, without bracketed references such as "[3]"."""
    spans = [match.span() for match in BRACKETED_NUMBER.finditer(text)]
    starts = [sentence.start for sentence in split_sentences(text)]
    found: list[Token] = []
    end = place = span = 0
    first = False
    for word in words(text):
        while span < len(spans) and spans[span][1] <= word.start:
            span += 1
        if span < len(spans) and spans[span][0] <= word.start:
            continue
        while place < len(starts) and starts[place] <= word.start:
            place, first = place + 1, True
        raw = text[word.start : word.end]
        form = _form(word, raw, first=first)
        found.append(Token(word.start, word.end, raw, form, text[end : word.start], raw[0].isupper(), first))
        first, end = False, word.end
    return tuple(found)


def references_in(texts: Iterable[str]) -> frozenset[str]:
    """Return the numbers of bracketed references such as "[3]"."""
    return frozenset(match[1].strip() for text in texts for match in BRACKETED_NUMBER.finditer(text))


def without_references(text: str, references: Collection[str]) -> str:
    """Return ``text`` with spaces instead of "(3)" for each of ``references``: prompts show "[3]" in a passage as "(3)"."""
    if not references:
        return text
    return _PARENTHESISED_NUMBER.sub(lambda match: " " * len(match[0]) if match[1].strip() in references else match[0], text)


def outside_parentheses(tokens: Sequence[Token]) -> list[Token]:
    """Return the words that are in no parentheses, as if the parentheses were not there."""
    kept: list[Token] = []
    depth = 0
    passed = False
    for token in tokens:
        depth = 0 if token.first else max(0, depth + token.gap.count("(") - token.gap.count(")"))
        if depth:
            passed = True
            continue
        gap = re.sub(r"[()]", "", token.gap) if passed else token.gap
        kept.append(replace(token, gap=gap) if gap != token.gap else token)
        passed = False
    return kept


def comparable_number(form: str) -> str:
    """Return the digits of a number word, a number without trailing zeros, and any other form as it is."""
    return NUMERALS.get(form) or _TRAILING_ZEROS.sub("", form)


def _form(word: Word, raw: str, *, first: bool) -> str:
    if raw == "May" and not first:
        return MAY
    # Names keep their form: "Ford" is not the past of a verb, nor is "Rose".
    return comparable_number(word.form) if raw[0].isupper() and not first else comparable_number(common_form(word.form))


def content_of(tokens: Iterable[Token]) -> frozenset[str]:
    """Return the forms of the words that carry meaning."""
    return frozenset(token.form for token in tokens if token.content)


def names_in(tokens: Iterable[Token], known: Collection[str] = ()) -> frozenset[str]:
    """Return the forms of capitalised words. The first word of a sentence counts only if it is among ``known``."""
    return frozenset(
        token.form for token in tokens if token.capital and token.content and (not token.first or token.form in known)
    )


@dataclass(frozen=True, slots=True)
class Mention:
    """Consecutive words that name one thing, or one number: tokens ``first`` to ``last`` of their text."""

    first: int
    last: int
    forms: frozenset[str]
    number: bool


def lists_of(tokens: Sequence[Token], mentions: Sequence[Mention]) -> list[list[int]]:
    """Return the indices of ``mentions`` in groups: the members of one list ("A, B and C") together, others alone.

    A comma alone makes no list ("Oslo, Norway"), nor does ", and" between two names, which may begin a clause.
    """
    groups: list[list[int]] = []
    joins: list[list[str]] = []
    for index, mention in enumerate(mentions):
        join = _join(tokens, mentions[index - 1], mention) if index else ""
        if join and (not joins[-1] or joins[-1][-1] == ","):
            groups[-1].append(index)
            joins[-1].append(join)
        else:
            groups.append([index])
            joins.append([])
    found: list[list[int]] = []
    for group, joined in zip(groups, joins, strict=True):
        is_list = joined and joined[-1] != "," and (len(joined) > 1 or joined[-1] == "and")
        found += [group] if is_list else [[index] for index in group]
    return found


def _join(tokens: Sequence[Token], before: Mention, mention: Mention) -> str:
    """Return the words between two mentions of the same kind, if they may join members of a list: a comma, "and", or both."""
    between = tokens[before.last + 1 : mention.first]
    first = tokens[before.last + 1]
    if before.number != mention.number or any(mark in token.gap for token in (first, tokens[mention.first]) for mark in ";:()."):
        return ""
    comma = "," if "," in first.gap else ""
    if not between:
        return "and" if "&" in first.gap else comma
    if between[0].form not in ("and", "or") or any(token.form not in ("the", "both") for token in between[1:]):
        return ""
    return f"{comma}and"


_LINKS = forms_of("of de von van der da del la le di du al bin")


def mentions_in(tokens: Sequence[Token], names: Collection[str], *, linked: bool = True) -> list[Mention]:
    """Return the names and numbers in order.

    "Oslo and Bergen" are two. "University of Oslo" is one mention if ``linked``, otherwise two.
    """
    found: list[Mention] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.number:
            found.append(Mention(index, index, frozenset({token.form}), number=True))
        elif _names(token, names) or _begins_name(tokens, index, names):
            last = index
            while (following := _next_of_name(tokens, last, names, linked=linked)) is not None:
                last = following
            forms = frozenset(each.form for each in tokens[index : last + 1] if each.content)
            found.append(Mention(index, last, forms, number=False))
            index = last
        index += 1
    return found


def _names(token: Token, names: Collection[str]) -> bool:
    return token.capital and token.content and (not token.first or token.form in names)


def _begins_name(tokens: Sequence[Token], index: int, names: Collection[str]) -> bool:
    """Return whether the first word of a sentence begins a name of several words: "Mira Voss founded …"."""
    token = tokens[index]
    following = tokens[index + 1 : index + 2]
    return (
        token.first
        and token.capital
        and token.content
        and any(each.gap == " " and _names(each, names) and not each.first for each in following)
    )


def _next_of_name(tokens: Sequence[Token], last: int, names: Collection[str], *, linked: bool) -> int | None:
    # A possessive ends a name: "Oslo's Mira Voss" are two.
    if tokens[last].raw.endswith(("'s", "’s")):
        return None
    for step in (1, 2) if linked else (1,):
        at = last + step
        if at >= len(tokens) or tokens[at].first or tokens[at].gap.strip() not in ("", ".", "-"):
            return None
        if _names(tokens[at], names):
            return at
        if tokens[at].form not in _LINKS:
            return None
    return None
