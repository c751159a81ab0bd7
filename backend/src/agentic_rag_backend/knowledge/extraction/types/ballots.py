"""The type of a name from everything that its document says: votes of the rules, scores of the words around it.

The scores are a linear function of the word vectors that the bundled encoder looks up before its first layer, so no pass of the
encoder is needed and the neighbours in a batch have no influence. ``benchmarks/entity_typing.py`` fits the function and
writes the scores of all word pieces to ``word_scores.npz``.
"""

from __future__ import annotations

import json
import math
import unicodedata
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.knowledge.extraction.lexicon import REGIONS, THING_CUES
from agentic_rag_backend.knowledge.extraction.names.extension import is_adjectival
from agentic_rag_backend.knowledge.extraction.names.names import Span
from agentic_rag_backend.knowledge.extraction.tokens import Tokens
from agentic_rag_backend.knowledge.extraction.types.entity_types import (
    GROUP,
    ORGANISATION,
    OTHER,
    PERSON,
    PLACE,
    WORK,
    Votes,
    may_be_personal,
    type_from_context,
    type_from_words,
    type_of_thing,
)

FILE = "word_scores.npz"
SLOTS = ("any", "first", "last", "only", "before", "after", "before_that", "after_that")
"""Places of a word: any, the first, the last or the only one of the name, and the two words before and after it."""
CLASSES = ("person", "organisation", "place", "other")
"""Types with scores; ``other`` includes works. All scores are relative to ``other``, whose scores are 0."""
DECIDED = len(CLASSES) - 1
_LONGEST_WORD = 40
_CACHED_WORDS = 16_384
_BLANK = array("b", bytes(len(SLOTS) * DECIDED))


class WordScores:
    """Scores of words from the scores of their pieces.

    Args:
        pieces: word pieces; those that continue a word begin with ``##``.
        scores: int8, shape (pieces, slots × decided classes).
        unit: value of 1 in ``scores``, in log odds.
        weights: log odds for one unit of each feature of a name, by class without ``other``.
        agreement: log odds for the certainty of related names, by relation.
    """

    def __init__(
        self,
        pieces: Sequence[str],
        scores: NDArray[np.int8],
        unit: float,
        weights: Mapping[str, Sequence[float]],
        agreement: Mapping[str, float],
    ) -> None:
        self._number = {piece: number for number, piece in enumerate(pieces)}
        self._scores = scores
        self.unit = unit
        self.weights = weights
        self.agreement = agreement
        self.of = lru_cache(maxsize=_CACHED_WORDS)(self._score_word)

    def _score_word(self, word: str) -> array[int]:
        """Return the scores of a word, slot by slot, `DECIDED` for each: the mean over its pieces; 0 for unknown words."""
        numbers = [self._number[piece] for piece in word_pieces(word, self._number)]
        if not numbers:
            return _BLANK
        return array("b", self._scores[numbers].mean(axis=0, dtype=np.float64).round().astype(np.int8).tobytes())


def word_pieces(word: str, vocabulary: Mapping[str, int]) -> list[str]:
    """Return the longest known pieces of a word from left to right, without letter case and accents; empty if one is unknown."""
    text = "".join(letter for letter in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(letter))
    if len(text) > _LONGEST_WORD:
        return []
    pieces: list[str] = []
    for part in _split_parts(text):
        start = 0
        while start < len(part):
            mark = "##" if start else ""
            end = next((end for end in range(len(part), start, -1) if mark + part[start:end] in vocabulary), 0)
            if not end:
                return []
            pieces.append(mark + part[start:end])
            start = end
    return pieces


def _split_parts(text: str) -> list[str]:
    """Return runs of letters and digits, and every other character alone."""
    parts: list[str] = []
    previous = False
    for letter in text:
        joins = letter.isalnum()
        if joins and previous:
            parts[-1] += letter
        else:
            parts.append(letter)
        previous = joins
    return parts


@lru_cache(maxsize=1)
def load_scores() -> WordScores:
    """Return the scores that this version ships."""
    with (files(__package__) / FILE).open("rb") as stored, np.load(stored, allow_pickle=False) as arrays:
        fit = json.loads(str(arrays["fit"]))
        return WordScores(str(arrays["pieces"]).split("\n"), arrays["scores"], fit["unit"], fit["weights"], fit["agreement"])


_MOST_VOTES = 6.0
_LEAST_VOTES = 0.6
_TELLING_USES = 3
_THING_WEIGHT = 2.0
_VOTED = (PERSON, ORGANISATION, PLACE, WORK)
_PLAIN = (0.0, 0.0, 0.0)
RELATIONS = ("ends", "opens", "ended_by", "opened_by", "listed")
"""Relations between two names of a document: one ends or opens the other, or they are neighbours in a list."""


@dataclass(slots=True)
class Ballot:
    """What a document says about the type of one name.

    ``uses`` has, for each occurrence, the two words before it and the two after it, nearest last and first; "" at the ends of
    the sentence. ``common`` is the share of the name's words that the document also writes in lower case.
    """

    key: str
    words: list[str]
    votes: Votes = field(default_factory=dict)
    uses: list[tuple[str, str, str, str]] = field(default_factory=list)
    quoted: int = 0
    common: float = 0.0

    def vote(self, type_: str, weight: float) -> None:
        """Add the vote of a rule."""
        if type_ != OTHER:
            self.votes[type_] = self.votes.get(type_, 0.0) + weight

    def add_use(self, tokens: Tokens, span: Span, sentence: tuple[int, int]) -> None:
        """Add one occurrence: its neighbours, and the votes of the rules on them."""
        begin, end = sentence
        places = (span.first - 2, span.first - 1, span.last, span.last + 1)
        first_word, second_word, third, fourth = (
            tokens.words[position] if begin <= position < end else "" for position in places
        )
        self.uses.append((first_word, second_word, third, fourth))
        if span.kind == "quoted":
            self.quoted += 1
            self.vote(WORK, 3.5)
        for type_, weight in type_from_context(tokens, span, sentence):
            self.vote(type_, weight)

    def thing_votes(self) -> dict[str, float]:
        """Return the votes for each type of things. Of many uses, a few votes are chance: "the Microsoft browser"."""
        share = min(len(self.uses), _TELLING_USES) / max(len(self.uses), 1)
        return {thing: self.votes.get(thing, 0.0) * share for thing in THING_CUES}

    def features(self) -> dict[str, float]:
        """Return the features that are not 0, by name."""
        words = [word for word in self.words if word[0].isalnum()] or self.words
        inner = type_from_words(self.words)
        features = {f"votes_{type_}": min(self.votes.get(type_, 0.0), _MOST_VOTES) for type_ in _VOTED}
        features[f"votes_{WORK}"] = min(self.votes.get(WORK, 0.0) + _THING_WEIGHT * sum(self.thing_votes().values()), _MOST_VOTES)
        if inner is not None:
            features[f"own_{inner[0]}"] = inner[1]
        features[f"words_{min(len(words), 4)}"] = 1.0
        single = words[0] if len(words) == 1 else ""
        features["acronym"] = float(single.isupper())
        features["mixed"] = float(any(letter.isupper() for letter in single[1:]) and not single.isupper())
        features["common"] = self.common
        features["common_word"] = self.common * (len(words) == 1)
        features["adjective"] = float(bool(single) and is_adjectival(single))
        features["region"] = float(self.key in REGIONS)
        features["of"] = float("of" in words)
        features["number"] = float(any(word[0].isdigit() for word in words))
        features["initial"] = float(any(len(word) == 1 for word in words))
        features["personal"] = float(2 <= len(words) <= 3 and inner is None and all(map(may_be_personal, words)))
        if self.uses:
            count = len(self.uses)
            features["the"] = sum(use[1].lower() == "the" for use in self.uses) / count
            features["opens_sentence"] = sum(not use[1] for use in self.uses) / count
            features["quoted"] = self.quoted / count
        return {name: value for name, value in features.items() if value}

    def slots(self) -> Iterable[tuple[int, Sequence[str]]]:
        """Return the words of each slot, by its number in `SLOTS`. The score of a slot is the mean over its words."""
        words = [word for word in self.words if word[0].isalnum()] or self.words
        yield 0, words
        yield 1, words[:1]
        yield 2, words[-1:]
        if len(words) == 1:
            yield 3, words
        if self.uses:
            before_that, before, after, after_that = zip(*self.uses, strict=True)
            yield from ((4, before), (5, after), (6, before_that), (7, after_that))


def log_odds(ballot: Ballot, scores: WordScores) -> list[float]:
    """Return the log odds of `CLASSES`, up to a constant: rules and words of this name alone."""
    totals = [0.0] * DECIDED
    for name, value in (*ballot.features().items(), ("bias", 1.0)):
        for number, weight in enumerate(scores.weights.get(name, _PLAIN)):
            totals[number] += weight * value
    for slot, words in ballot.slots():
        offset = slot * DECIDED
        share = scores.unit / len(words)
        for word in words:
            if word:
                row = scores.of(word)
                for number in range(DECIDED):
                    totals[number] += row[offset + number] * share
    return [*totals, 0.0]


def chances(odds: Sequence[float]) -> list[float]:
    """Return the probabilities of `CLASSES`."""
    largest = max(odds)
    exponentials = [math.exp(value - largest) for value in odds]
    total = sum(exponentials)
    return [value / total for value in exponentials]


def relate_names(keys: Iterable[str], lists: Iterable[tuple[str, str]]) -> dict[str, dict[str, list[str]]]:
    """Return, for each name, the names that it is related to, by relation; see `RELATIONS`."""
    relations: dict[str, dict[str, list[str]]] = {key: {} for key in keys}
    for key in relations:
        words = key.split()
        for length in range(1, len(words)):
            for relation, reverse, part in (
                ("ends", "ended_by", " ".join(words[-length:])),
                ("opens", "opened_by", " ".join(words[:length])),
            ):
                if part in relations:
                    relations[part].setdefault(relation, []).append(key)
                    relations[key].setdefault(reverse, []).append(part)
    for left_name, right_name in lists:
        if left_name != right_name and left_name in relations and right_name in relations:
            relations[left_name].setdefault("listed", []).append(right_name)
            relations[right_name].setdefault("listed", []).append(left_name)
    return relations


def agree_on_odds(
    odds: Mapping[str, Sequence[float]], relations: Mapping[str, Mapping[str, Sequence[str]]], weights: Mapping[str, float]
) -> dict[str, list[float]]:
    """Return the log odds after each name has heard the names that it is related to: once, with what they knew alone."""
    alone = {key: chances(values) for key, values in odds.items()}
    result: dict[str, list[float]] = {}
    for key, values in odds.items():
        totals = list(values)
        for relation, neighbours in relations[key].items():
            share = weights.get(relation, 0.0) / len(neighbours)
            for neighbour in neighbours:
                for number, chance in enumerate(alone[neighbour]):
                    totals[number] += share * chance
        result[key] = totals
    return result


def types_of(ballots: Mapping[str, Ballot], lists: Iterable[tuple[str, str]], scores: WordScores) -> dict[str, str]:
    """Return the type of each name of a document. ``lists`` has pairs of neighbours in lists."""
    odds = {key: log_odds(ballot, scores) for key, ballot in ballots.items()}
    heard = agree_on_odds(odds, relate_names(ballots, lists), scores.agreement)
    return {key: _choose_type(ballot, heard[key]) for key, ballot in ballots.items()}


def _choose_type(ballot: Ballot, odds: Sequence[float]) -> str:
    if ballot.key in REGIONS:
        return PLACE
    if len(ballot.words) == 1 and is_adjectival(ballot.words[0]):
        return GROUP
    best = CLASSES[max(range(len(CLASSES)), key=lambda number: odds[number])]
    if best != OTHER:
        return best
    inner = type_from_words(ballot.words)
    votes = {WORK: ballot.votes.get(WORK, 0.0), **ballot.thing_votes()}
    voted = max(votes, key=lambda thing: votes[thing])
    if votes[voted] >= _LEAST_VOTES:
        return voted
    return WORK if inner is not None and inner[0] == WORK else type_of_thing(ballot.words, ballot.common)
