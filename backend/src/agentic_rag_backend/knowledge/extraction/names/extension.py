"""Extends names over connectors, numbers, initials, company endings and titles inside them."""

from __future__ import annotations

from agentic_rag_backend.knowledge.extraction.lexicon import (
    ADJECTIVES,
    COMPANY_SUFFIXES,
    CONNECTORS,
    EVENT_HEADS,
    FUNCTION_WORDS,
    GENERATIONS,
    INNER_TITLES,
    LABELS,
    NAME_PARTICLES,
    OF_HEADS_WITH_AND,
    ORGANISATION_HEADS,
    PLACE_HEADS,
    RANK_OPENERS,
    STRIPPED_TITLES,
    WORK_HEADS,
    word_set,
)
from agentic_rag_backend.knowledge.extraction.tokens import Shape, Tokens, date_end, is_year

MAX_NAME_WORDS = 14
_SHORT_LINE = 50
"""Characters of a line that no paragraph has: a name does not continue on the next one."""
NAME_SHAPES = frozenset({Shape.CAPITAL, Shape.UPPER, Shape.INITIAL})
SKIPPED = word_set("i i'm i'd i've i'll i’m vs pm am")
_HEADS = ORGANISATION_HEADS | PLACE_HEADS | EVENT_HEADS | WORK_HEADS
_ABSTRACT_ENDINGS = ("ship", "tion", "ment", "ity", "ry", "ies")
_ABBREVIATED = word_set("st mt ft dr mr mrs ms jr sr prof rev gen col capt lt gov sen")


def is_ordinal(word: str) -> bool:
    return word[-2:] in ("st", "nd", "rd", "th") and word[:-2].isdigit()


def is_adjectival(word: str) -> bool:
    """Return whether a word has the form of the adjective of a country or a people ("Norwegian", "Japanese")."""
    return word[:1].isupper() and (word.lower() in ADJECTIVES or (len(word) > 4 and word.endswith(("ian", "ish", "ese", "ean"))))


class Extension:
    """Grows a name that begins at a token, word by word, up to the end of its sentence."""

    def __init__(self, tokens: Tokens, end: int) -> None:
        self._tokens = tokens
        self._words = tokens.words
        self._shapes = tokens.shapes
        self._end = end

    def end_of(self, start: int) -> int:
        stop = start + 1
        limit = min(self._end, start + MAX_NAME_WORDS)
        while stop < limit:
            step = self._next_step(start, stop, limit)
            if step == 0:
                break
            stop += step
        return stop

    def _next_step(self, start: int, stop: int, limit: int) -> int:
        """Return how many tokens the name grows by at ``last``; 0 ends it."""
        word, shape = self._words[stop], self._shapes[stop]
        if shape in NAME_SHAPES:
            return int(self._name_continues(start, stop))
        if shape == Shape.NUMBER:
            return int(self._number_continues(stop))
        if word == "." and self._takes_full_stop(stop):
            return 1
        following = stop + 1
        if following >= limit:
            return 0
        if word == "," and self._words[following].lower() in COMPANY_SUFFIXES:
            return 2
        if word == '"' and self._is_nickname(stop):
            return 3
        if word == "-" and is_adjectival(self._words[stop - 1]) and is_adjectival(self._words[following]):
            return 0
        if word in ("&", "-", "–", "+"):
            return 2 * int(self._shapes[following] in NAME_SHAPES or (self._shapes[following] == Shape.NUMBER and word == "-"))
        if shape == Shape.LOWER:
            return self._connector_step(start, stop, limit)
        if word.lower() in ("'s", "’s") or (word in ("'", "’") and self._is_plural_possessive(stop)):
            return 2 * int(self._shapes[following] in NAME_SHAPES and self._head_follows(following))
        return 0

    def _is_plural_possessive(self, mark: int) -> bool:
        """Return whether an apostrophe ends a possessive: Fishers' Association, but not 'the Beatles' Museum'."""
        before, starts = self._words[mark - 1], self._tokens.starts
        return before.endswith("s") and starts[mark] == self._tokens.ends[mark - 1] and starts[mark + 1] > self._tokens.ends[mark]

    def _number_continues(self, stop: int) -> bool:
        word = self._words[stop]
        if self._shapes[stop - 1] == Shape.UPPER and word.replace(".", "").isdigit():
            # ISO 9001, IEEE 802.11; five digits are a postcode.
            return len(word) <= 4 + 2 * ("." in word) and not is_year(word)
        return len(word) <= 3 if word.isdigit() else word[-1].isalpha() and not is_ordinal(word)

    def _is_nickname(self, quote: int) -> bool:
        """Return whether a word in quotation marks is inside a name: Wilhelm "Willi" Keller."""
        if quote + 3 >= self._end or self._words[quote + 2] != '"':
            return False
        return self._shapes[quote + 1] == Shape.CAPITAL and self._shapes[quote + 3] == Shape.CAPITAL

    def _name_continues(self, start: int, stop: int) -> bool:
        """Return whether the capitalised word at ``last`` continues the name before it."""
        lower = self._words[stop].lower()
        if self._opens_title(stop, lower):
            return False
        if lower in FUNCTION_WORDS and self._words[stop - 1].endswith("."):
            return False
        if self._ends_before(start, stop, lower):
            return False
        return lower == "i" or (lower not in SKIPPED and date_end(self._tokens, stop, self._end) == stop)

    def _ends_before(self, start: int, stop: int, lower: str) -> bool:
        """Return whether a name ends: before a label ("Emily Hart Register: 7"), after a short line or a legal form."""
        end, begin = self._tokens.ends[stop - 1], self._tokens.starts[stop]
        following = self._words[stop + 1] if stop + 1 < self._end else ""
        if following == ":" and self._tokens.starts[stop + 1] == self._tokens.ends[stop]:
            # Before a quotation, the words are who said it: "Lise Arnaud of the University of Port Ellery: “…”".
            return self._words[stop + 2 : stop + 3] not in (['"'], ["“"])
        if lower in LABELS and (following == "#" or (following and self._shapes[stop + 1] == Shape.NUMBER)):
            return True
        if stop - start > 1 and self._words[stop - 1].lower() in COMPANY_SUFFIXES and lower not in COMPANY_SUFFIXES:
            return self._words[stop - 1].lower() not in GENERATIONS
        if "\n" not in self._tokens.text[end:begin]:
            return False
        return end < _SHORT_LINE or "\n" in self._tokens.text[end - _SHORT_LINE : end]

    def _opens_title(self, index: int, lower: str) -> bool:
        """Return whether a title before a person's name starts at ``index``: "Afghan | Prime Minister Keller"."""
        if lower in RANK_OPENERS and index + 1 < self._end:
            lower, index = self._words[index + 1].lower(), index + 1
        if lower not in INNER_TITLES or index + 1 >= self._end:
            return False
        return self._shapes[index + 1] == Shape.CAPITAL or self._words[index + 1] == "."

    def _takes_full_stop(self, stop: int) -> bool:
        """Return whether a full stop after an initial or an abbreviated title belongs to the name: only if the name continues."""
        before = self._words[stop - 1]
        if stop + 1 >= self._end or self._shapes[stop + 1] not in NAME_SHAPES:
            return False
        return self._shapes[stop - 1] == Shape.INITIAL or before.lower() in _ABBREVIATED

    def _head_follows(self, index: int) -> bool:
        for position in range(index, min(index + 4, self._end)):
            if self._shapes[position] not in NAME_SHAPES:
                return False
            if self._words[position].lower() in _HEADS:
                return True
        return False

    def _connector_step(self, start: int, stop: int, limit: int) -> int:
        word = self._words[stop]
        if word in ("plc", "gmbh") and self._shapes[stop - 1] in NAME_SHAPES:
            return 1
        if word in ("of", "for", "in", "on", "to", "at"):
            return self._preposition_step(start, stop, limit)
        if word == "and":
            return 2 * int(self._joins_with_and(start, stop))
        if word in NAME_PARTICLES and word not in CONNECTORS:
            following = stop + 1
            if following < limit and self._words[following] in NAME_PARTICLES:
                following += 1
            if following < limit and self._shapes[following] in NAME_SHAPES:
                return following - stop + 1
        return 0

    def _preposition_step(self, start: int, stop: int, limit: int) -> int:
        word = self._words[stop]
        following = stop + 1
        if self._words[following] == "the":
            following += 1
        if following >= limit or self._shapes[following] not in NAME_SHAPES:
            return 0
        if date_end(self._tokens, following, self._end) > following:
            return 0
        before = self._words[stop - 1].lower()
        if word == "of":
            joins = before not in STRIPPED_TITLES and (
                stop - start == 1 or self._heads_of(before, self._words[stop + 1] == "the")
            )
        elif word in ("for", "on"):
            joins = before in ORGANISATION_HEADS or before in EVENT_HEADS
        else:
            joins = False
        return following - stop + 1 if joins else 0

    @staticmethod
    def _heads_of(before: str, article: bool) -> bool:
        """Return whether a name of several words continues with "of" after the word ``before``."""
        return not article or before in _HEADS or before.endswith(_ABSTRACT_ENDINGS)

    def _joins_with_and(self, start: int, stop: int) -> bool:
        following = stop + 1
        if self._shapes[following] not in NAME_SHAPES or self._words[start].replace(".", "").isupper():
            # "IBM and International Business Machines" are two names.
            return False
        if any(word.lower() in OF_HEADS_WITH_AND for word in self._words[start:stop]) and any(
            word in ("of", "for") for word in self._words[start:stop]
        ):
            return True
        if self._words[stop - 1].lower() in _HEADS and self._words[following].lower() in _HEADS:
            return True
        position = following + 1
        while position < self._end and self._shapes[position] in NAME_SHAPES and position - following < 4:
            position += 1
        return stop - start == 1 and position - following >= 2 and self._words[position - 1].lower() in ORGANISATION_HEADS
