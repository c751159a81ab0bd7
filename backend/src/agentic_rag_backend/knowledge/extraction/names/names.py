"""Spans that are names: capitalised words with their connectors, quoted titles, numbers and initials inside names.

Whether a capitalised word at the start of a sentence is a name is decided from grammar and from the document itself
(the same word in lower case elsewhere, the same word capitalised inside a sentence), never from a list of names.

Code identifiers in prose: snake_case, camelCase, dotted paths, calls, and text between backticks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from agentic_rag_backend.knowledge.extraction.lexicon import (
    COMMON_INITIALS,
    EVENT_HEADS,
    FUNCTION_WORDS,
    GENERIC_ALONE,
    LABELS,
    MONTHS,
    RANK_OPENERS,
    ROLE_WORDS,
    STRIPPED_TITLES,
    WEEKDAYS,
    word_set,
)
from agentic_rag_backend.knowledge.extraction.names.extension import MAX_NAME_WORDS, NAME_SHAPES, SKIPPED, Extension
from agentic_rag_backend.knowledge.extraction.tokens import Shape, Tokens, date_end
from agentic_rag_backend.language.vocabulary.word_classes import VERBS
from agentic_rag_backend.language.words import comparable

_DOTTED = re.compile(r"[A-Za-z_]\w{1,63}(?:\.[A-Za-z_]\w{1,63}){1,16}\Z")
_CAMEL = re.compile(r"(?:[a-z]{2,32}|[A-Z][a-z0-9]{1,32}(?:[A-Z][a-z0-9]{1,32}){1,8})(?:[A-Z][a-z0-9]{1,32}){1,8}\Z")
_LONGEST = 120


def code_end(tokens: Tokens, index: int, limit: int) -> int:
    """Return the token number after the identifier that starts at ``index``, its "()" included, or ``index`` if none does."""
    word = tokens.words[index]
    if tokens.shapes[index] in (Shape.PUNCTUATION, Shape.NUMBER) or len(word) > _LONGEST:
        return index
    quoted = index > 0 and tokens.words[index - 1] == "`" and index + 1 < limit and tokens.words[index + 1] in ("`", "(")
    called = _has_call(tokens, index, limit)
    if quoted or _is_identifier(word) or (called and word.islower()) or (called and _CAMEL.match(word) is not None):
        return index + 3 if called else index + 1
    return index


def _has_call(tokens: Tokens, index: int, limit: int) -> bool:
    """Return whether "()" follows without a space."""
    if index + 2 >= limit or tokens.words[index + 1] != "(" or tokens.words[index + 2] != ")":
        return False
    return tokens.starts[index + 1] == tokens.ends[index] and tokens.starts[index + 2] == tokens.ends[index + 1]


def _is_identifier(word: str) -> bool:
    if word.isalpha():
        return _CAMEL.match(word) is not None and not word[0].isupper()
    if "_" in word:
        return any(letter.isalpha() for letter in word) and word.isascii()
    return "." in word and _DOTTED.match(word) is not None and word[0].islower() and not word.endswith(_DOMAINS)


_DOMAINS = (".com", ".org", ".net", ".edu", ".gov", ".io", ".uk", ".de")


_OPENING = {'"': '"', "“": "”", "``": "''", "«": "»", "„": "“", "″": "″", "‘": "’", "*": "*", "_": "_"}
_EMPHASIS = frozenset("*_")
_SPOKEN = _EMPHASIS | {'"', "“"}


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens ``first`` up to ``last``, exclusive, of one chunk; ``kind`` is "name", "quoted", "code" or "date"."""

    first: int
    last: int
    kind: str = "name"


@dataclass(slots=True)
class DocumentSpellings:
    """How words are spelled across a document: which occur in lower case, which capitalised inside a sentence."""

    lower: Counter[str] = field(default_factory=Counter)
    capitalised: Counter[str] = field(default_factory=Counter)

    def add(self, tokens: Tokens) -> None:
        """Count the words of one chunk."""
        for begin, end in tokens.sentences:
            for index in range(begin, end):
                shape = tokens.shapes[index]
                if shape == Shape.LOWER and "@" not in tokens.words[max(begin, index - 1) : index + 2]:
                    self.lower[tokens.words[index]] += 1
                elif shape in NAME_SHAPES and index > begin and tokens.shapes[index - 1] not in (Shape.PUNCTUATION, Shape.NUMBER):
                    self.capitalised[tokens.words[index]] += 1

    def is_common(self, word: str) -> bool:
        """Return whether the document also writes ``word``, or its plural or singular, in lower case."""
        lower = word.lower()
        return lower in self.lower or lower + "s" in self.lower or (lower.endswith("s") and lower[:-1] in self.lower)

    def is_mostly_common(self, word: str) -> bool:
        """Return whether the document writes ``word`` in lower case more often than with capitals inside a sentence."""
        return self.lower[word.lower()] > self.capitalised[word]


def _gap_follows(tokens: Tokens, index: int) -> bool:
    """Return whether a space follows token ``index``."""
    return index + 1 < len(tokens.starts) and tokens.starts[index + 1] > tokens.ends[index]


def find_spans(tokens: Tokens, vocabulary: DocumentSpellings) -> list[Span]:
    """Return the names and dates of one chunk, in order, without overlaps."""
    spans: list[Span] = []
    for begin, end in tokens.sentences:
        spans.extend(_Sentence(tokens, vocabulary, begin, end).spans())
    return spans


class _Sentence:
    """One walk over one sentence."""

    def __init__(self, tokens: Tokens, vocabulary: DocumentSpellings, begin: int, end: int) -> None:
        self._tokens = tokens
        self._words = tokens.words
        self._shapes = tokens.shapes
        self._vocabulary = vocabulary
        self._begin = begin
        self._end = end
        self._extension = Extension(tokens, end)
        self._shouting = self._is_shouting()

    def spans(self) -> Iterable[Span]:
        index = self._begin
        while index < self._end:
            span = self._span_at(index)
            if span is None:
                index += 1
            else:
                yield span
                index = span.last

    def _span_at(self, index: int) -> Span | None:
        word, shape = self._words[index], self._shapes[index]
        stop = code_end(self._tokens, index, self._end)
        if stop > index:
            return Span(index, stop, "code")
        if shape == Shape.LOWER:
            return None
        if shape == Shape.PUNCTUATION:
            stop = self._quoted_end(index) if word in _OPENING else index
            return Span(index + 1, stop, "quoted") if stop > index + 1 else None
        if shape == Shape.NUMBER:
            name_end = self._numbered_name_end(index)
            if name_end:
                return Span(index, name_end)
        stop = date_end(self._tokens, index, self._end)
        if stop > index:
            return Span(index, stop, "date")
        return self._name_at(index) if shape in NAME_SHAPES else None

    def _name_at(self, index: int) -> Span | None:
        start = self._name_start(index)
        if start is None:
            return None
        stop = self._extension.end_of(start)
        while start < stop and self._strips_title(start, stop):
            start += 1
        if start >= stop or (stop == start + 1 and not self._stands_alone(start)):
            return None
        if all(word.lower() in ROLE_WORDS for word in self._words[start:stop]) or self._is_label(start, stop):
            return None
        return Span(start, stop)

    def _is_label(self, start: int, stop: int) -> bool:
        """Return whether the words label a column, a field or a figure: "Phone", "Figure 3", "Table of Contents"."""
        return self._words[start].lower() in LABELS and all(
            word.lower() in LABELS or word in ("of", "and") or not word[0].isalpha() for word in self._words[start:stop]
        )

    def _is_shouting(self) -> bool:
        words = [index for index in range(self._begin, self._end) if self._shapes[index] not in (Shape.PUNCTUATION, Shape.NUMBER)]
        return len(words) > 4 and sum(self._shapes[index] == Shape.UPPER for index in words) > 0.6 * len(words)

    def _opens_clause(self, index: int) -> bool:
        """Return whether the word's position may explain its capital: after a full stop, a quotation mark, a bullet."""
        before = self._words[index - 1] if index > self._begin else ""
        if not before or (index == self._begin + 1 and before in "-–—"):
            return True
        return self._shapes[index - 1] == Shape.PUNCTUATION and before not in ",)'’&/-–—;" and before.lower() not in ("'s", "’s")

    def _name_start(self, index: int) -> int | None:
        word = self._words[index]
        lower = word.lower()
        if lower.removesuffix("s") in WEEKDAYS:
            return None
        if lower in SKIPPED or (self._shouting and self._shapes[index] == Shape.UPPER):
            return None
        if self._shapes[index] == Shape.UPPER:
            return index
        if lower in FUNCTION_WORDS and (self._opens_clause(index) or lower in ("the", "a", "an", "i", "and", "of", "in")):
            return None
        if self._opens_clause(index) and self._shapes[index] == Shape.CAPITAL and not self._initial_is_name(index):
            return None
        return index

    def _initial_is_name(self, index: int) -> bool:
        """Decide whether a capitalised word that opens a sentence belongs to a name."""
        word = self._words[index]
        lower = word.lower()
        following = self._shapes[index + 1] if index + 1 < self._end else Shape.PUNCTUATION
        if any(letter.isupper() for letter in word[1:]):
            return True
        if following in NAME_SHAPES and self._words[index + 1].lower() not in FUNCTION_WORDS:
            return (
                not (lower.endswith("ly") and len(lower) > len("emily"))
                and (lower not in COMMON_INITIALS or lower in _COMPASS)
                and not self._is_plain(word)
            )
        if lower in COMMON_INITIALS or lower.endswith(("ly", "ing")):
            return word in self._vocabulary.capitalised and not self._vocabulary.is_common(word)
        if word in self._vocabulary.capitalised:
            return True
        return not self._is_plain(word) and not self._reads_as_common(index, lower) and comparable(lower) not in VERBS

    def _reads_as_common(self, index: int, lower: str) -> bool:
        """Return whether form and next word indicate a participle, an adjective or a plural ("Founded by", "Adults have")."""
        if lower.endswith(_COMMON_ENDINGS):
            return True
        following = self._words[index + 1] if index + 1 < self._end else ""
        if following == ":" or (following == "." and index > 0 and self._words[index - 1] in _SPOKEN):
            return True
        if lower.endswith("ed"):
            return following not in _AFTER_NAME
        return lower.endswith("s") and following in _PLURAL_VERBS

    def _is_plain(self, word: str) -> bool:
        return word not in self._vocabulary.capitalised and self._vocabulary.is_common(word)

    def _strips_title(self, start: int, stop: int) -> bool:
        word = self._words[start].lower().rstrip(".")
        if word in RANK_OPENERS:
            return start + 1 < stop and self._words[start + 1].lower() in STRIPPED_TITLES
        if not word:
            return True
        return word in STRIPPED_TITLES and (
            stop == start + 1 or self._shapes[start + 1] in NAME_SHAPES or self._words[start + 1] == "."
        )

    def _stands_alone(self, index: int) -> bool:
        word = self._words[index]
        lower = word.lower()
        if self._shapes[index] == Shape.INITIAL or lower in WEEKDAYS or (lower in MONTHS and lower != "may"):
            return False
        if len(word) >= _SHORTEST_WORD and self._vocabulary.is_mostly_common(word):
            return False
        if self._shapes[index] == Shape.UPPER:
            return lower not in _ORDINARY_ACRONYMS
        opener = lower.replace("’", "'").replace("'", "-").partition("-")[0]
        return lower not in GENERIC_ALONE and (lower if len(opener) < 2 else opener) not in FUNCTION_WORDS

    def _quoted_end(self, index: int) -> int:
        """Return the token after a quoted title that starts after ``index``, or ``index`` if the quotation is no title."""
        closing = _OPENING[self._words[index]]
        start = index + 1
        limit = min(self._end, start + MAX_NAME_WORDS)
        stop = start
        while stop < limit and self._words[stop] != closing:
            stop += 1
        if _gap_follows(self._tokens, index) and self._words[index] in _EMPHASIS:
            return index
        if stop >= limit or stop == start or self._shapes[start] not in (*NAME_SHAPES, Shape.NUMBER):
            return index
        last_word = self._words[stop - 1]
        if self._words[index] in _EMPHASIS and (last_word in ".:" or (stop == start + 1 and last_word.endswith("ed"))):
            # A run-in heading: "**Seabed.** A survey …", "**Agreed** to ask …".
            return index
        if last_word == "." and stop == start + 2 and self._words[index - 1 : index] == [","]:
            # What somebody says: 'said, "Ice."'
            return index
        inside = range(start, stop)
        content = [
            position
            for position in inside
            if self._words[position].lower() not in FUNCTION_WORDS and self._shapes[position] != Shape.PUNCTUATION
        ]
        capitals = sum(self._shapes[position] != Shape.LOWER for position in content)
        lenient = (
            len(inside) <= _SHORT_QUOTATION
            and self._words[stop - 1] not in ",.;!?"
            and self._words[start].lower() not in FUNCTION_WORDS
        )
        if not content or (capitals < 0.5 * len(content) and not lenient):
            return index
        while stop > start and self._words[stop - 1] in ",.;":
            stop -= 1
        return stop if stop > start else index

    def _numbered_name_end(self, index: int) -> int:
        """Return the end of a name that opens with a number ("2018 FIFA World Cup", "20th Century Fox"), or 0."""
        following = index + 1
        word = self._words[index]
        if (
            following >= self._end
            or self._shapes[following] not in NAME_SHAPES
            or date_end(self._tokens, following, self._end) > following
        ):
            return 0
        stop = self._extension.end_of(following)
        if word[-2:] in ("st", "nd", "rd", "th"):
            return stop
        ends_in_event = self._words[stop - 1].lower() in EVENT_HEADS or any(
            item.lower() in EVENT_HEADS for item in self._words[following:stop]
        )
        return stop if len(word) >= 4 and ends_in_event else 0


_COMMON_ENDINGS = (
    "able",
    "ible",
    "ful",
    "less",
    "ous",
    "ive",
    "tion",
    "tions",
    "ment",
    "ments",
    "ness",
    "ity",
    "ities",
    "ical",
    "onal",
    "ual",
)
_AFTER_NAME = word_set("was is had has were are will would did does can could who and or 's ’s , ( became died")
_PLURAL_VERBS = word_set("are were have do can may include of in for such at like from")
_ORDINARY_ACRONYMS = word_set("tv dvd cd lp ep ok ad bc bce ce am pm ceo cfo dj mr dr faq ii iii iv a.m. p.m. b.c. a.d.")
_SHORT_QUOTATION = 5
_SHORTEST_WORD = 4
"""Letters of a word in capitals that may be the same word as in lower case: SELECT, unlike WHO or US."""
_COMPASS = word_set("new north south east west northern southern eastern western central high old")
