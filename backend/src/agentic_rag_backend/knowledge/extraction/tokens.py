"""Words, sentences, letter case and dates: the view of a text that every rule reads.

One regular expression with bounded look-ahead walks the text once, so the time is linear in its length for every text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from agentic_rag_backend.knowledge.extraction.lexicon import ABBREVIATIONS, FUNCTION_WORDS, MONTHS, SEASONS

_LETTER = r"[^\W_]"
_TOKEN = re.compile(
    rf"""
      (?:https?://|www\.)\S+                                          # an address is one word and never a name
    | ['’][sS](?![^\W_])                                              # possessive ending, also standing apart
    | (?:[^\W\d_]\.){{2,8}}                                           # U.S., D.C., J.R.R.
    | (?:{_LETTER}[\u0300-\u036f]*)+
      (?:[-‐‑–'’_.](?![sS](?![^\W_]))(?:{_LETTER}[\u0300-\u036f]*|_)++)*+   # O'Hara, Wiley-Blackwell, snake_case, a.b.c
    | ''|``|[^\w\s]|_
    """,
    re.VERBOSE,
)
_LONGEST_LABEL = 40
_CLOSERS = frozenset("\"'”’)]»``''")
_TITLES = frozenset({"mr", "mrs", "ms", "dr", "prof", "st", "rev", "gen", "col", "capt", "sen", "gov", "vs"})
_ENDERS = frozenset(".!?…。！？")


class Shape(IntEnum):
    """The letter case of a word."""

    PUNCTUATION = 0
    LOWER = 1
    CAPITAL = 2
    UPPER = 3
    NUMBER = 4
    INITIAL = 5


@dataclass(frozen=True, slots=True)
class Tokens:
    """Parallel lists over the words and marks of one text; ``sentences`` are ranges of token numbers, in order."""

    text: str
    words: list[str]
    starts: list[int]
    ends: list[int]
    shapes: list[Shape]
    sentences: list[tuple[int, int]]

    def span(self, start: int, end: int) -> str:
        """Return the text from token ``start`` up to token ``end``, exclusive."""
        return self.text[self.starts[start] : self.ends[end - 1]]


def _shape_of(word: str) -> Shape:
    head = word[0]
    if head.isdigit():
        return Shape.NUMBER
    if not head.isalpha():
        return Shape.PUNCTUATION
    if head.isupper() or head.istitle():
        if len(word) == 1:
            return Shape.INITIAL
        return Shape.UPPER if word.isupper() else Shape.CAPITAL
    if head.islower() and len(word) > 2 and word[1].isupper():
        return Shape.CAPITAL
    return Shape.LOWER


def tokenise(text: str) -> Tokens:
    """Cut ``text`` into words, marks and sentences; every token is a verbatim slice of it."""
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for match in _TOKEN.finditer(text):
        words.append(match.group())
        starts.append(match.start())
        ends.append(match.end())
    shapes = [_shape_of(word) for word in words]
    return Tokens(text, words, starts, ends, shapes, _split_sentences(text, words, starts, ends, shapes))


def _split_sentences(
    text: str, words: list[str], starts: list[int], ends: list[int], shapes: list[Shape]
) -> list[tuple[int, int]]:
    sentences: list[tuple[int, int]] = []
    begin = 0
    count = len(words)
    for index in range(count - 1):
        gap_start, gap_end = ends[index], starts[index + 1]
        if gap_start == gap_end:
            continue
        if "\n" in text[gap_start:gap_end] and _ends_line(text, gap_start, gap_end, words[index + 1]):
            stop = True
        else:
            stop = _ends_sentence(words, shapes, index)
        if stop and index + 1 > begin:
            sentences.append((begin, index + 1))
            begin = index + 1
    if begin < count:
        sentences.append((begin, count))
    return sentences


def _ends_line(text: str, gap_start: int, gap_end: int, following: str) -> bool:
    """A blank line, a list mark, a heading or the label of a form ends the sentence; a line wrapped in a paragraph does not."""
    if text.count("\n", gap_start, gap_end) > 1 or following in "-*#•|>+":
        return True
    colon = text.find(": ", gap_end, gap_end + _LONGEST_LABEL) if following[0].isupper() else -1
    if colon > 0 and "\n" not in text[gap_end:colon]:
        return True
    line_start = text.rfind("\n", max(0, gap_start - 200), gap_start) + 1
    return text[line_start : line_start + 1] in ("#", "|")


def _ends_sentence(words: list[str], shapes: list[Shape], index: int) -> bool:
    position = index
    while position > 0 and index - position < 3 and words[position] in _CLOSERS:
        position -= 1
    word = words[position]
    if word not in _ENDERS:
        # "U.S." ends a sentence only before a word that opens one.
        return (
            position == index
            and shapes[index + 1] == Shape.CAPITAL
            and word.endswith(".")
            and words[index + 1].lower() in FUNCTION_WORDS
        )
    following = words[index + 1]
    if shapes[index + 1] == Shape.LOWER and word != "!":
        return False
    if following in ",;:)":
        return False
    if word == "." and position > 0 and position == index:
        before = words[position - 1]
        if before.lower() in ABBREVIATIONS or shapes[position - 1] == Shape.INITIAL:
            # "World War I. The …": a word that opens sentences, or a numeral after "War", speaks for an end.
            opens = shapes[index + 1] == Shape.CAPITAL and following.lower() in FUNCTION_WORDS and before.lower() not in _TITLES
            return opens or (before == "I" and position > 1 and words[position - 2] in ("War", "Act", "Part"))
    return True


_ORDINAL_ENDINGS = ("st", "nd", "rd", "th")
_ERAS = frozenset({"bc", "ad", "bce", "ce", "b.c.", "a.d."})


def date_end(tokens: Tokens, index: int, limit: int) -> int:
    """Return the token number after the date that starts at ``index``, or ``index`` if none does; never beyond ``limit``."""
    shape = tokens.shapes[index]
    if shape == Shape.NUMBER:
        return _from_number(tokens.words, index, limit)
    if shape in (Shape.CAPITAL, Shape.UPPER):
        return _from_word(tokens.words, index, limit)
    return index


def _from_number(words: list[str], index: int, limit: int) -> int:
    word = words[index]
    if is_year(word) or _matches_decades(word):
        if index + 1 < limit and words[index + 1].lower() in _ERAS:
            return index + 2
        return index + 1
    if _is_iso(word):
        return index + 1
    if _is_day(word) and index + 1 < limit:
        after = index + 2 if words[index + 1] == "of" else index + 1
        if after < limit and _is_month(words[after]):
            return _with_year(words, after + 1, limit)
    if word[-2:] in _ORDINAL_ENDINGS and index + 1 < limit and words[index + 1] in ("century", "centuries", "Century"):
        return index + 2
    if word.isdigit() and index + 1 < limit and words[index + 1].lower() in _ERAS:
        return index + 2
    return index


def _from_word(words: list[str], index: int, limit: int) -> int:
    if not _is_month(words[index]):
        if words[index].lower() in SEASONS and index + 1 < limit and is_year(words[index + 1]):
            return index + 2
        return index
    after = index + 1
    if after < limit and words[after] == "." and len(words[index]) < 5:
        after += 1
    if after < limit and (is_year(words[after]) or _is_day(words[after])):
        return _with_year(words, after, limit) if is_year(words[after]) else _with_year(words, after + 1, limit)
    # A month alone dates nothing, and Jan, May and August are names, too.
    return index


def _with_year(words: list[str], after: int, limit: int) -> int:
    if after < limit and is_year(words[after]):
        return after + 1
    if after + 1 < limit and words[after] == "," and is_year(words[after + 1]):
        return after + 2
    return after


def is_year(word: str) -> bool:
    """Return whether ``word`` is a year from 1000 to 2999, or two of them as in "1997-98"."""
    if len(word) == 4:
        return word.isascii() and word.isdigit() and word[0] in "12"
    return 7 <= len(word) <= 9 and word[4] in "-–" and is_year(word[:4]) and word[5:].isdigit()


def _matches_decades(word: str) -> bool:
    return len(word) == 5 and word[4] == "s" and is_year(word[:4])


def _is_iso(word: str) -> bool:
    return len(word) == 10 and word[4] == word[7] == "-" and is_year(word[:4]) and word[5:7].isdigit() and word[8:].isdigit()


def _is_day(word: str) -> bool:
    digits = word[:-2] if word[-2:] in _ORDINAL_ENDINGS else word
    return len(digits) <= 2 and digits.isdigit() and digits.isascii() and 1 <= int(digits) <= 31


def _is_month(word: str) -> bool:
    return word[0].isupper() and word.lower() in MONTHS
