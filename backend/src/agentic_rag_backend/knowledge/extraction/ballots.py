"""The type of a name from everything that its document says: votes of the rules, scores of the words, and related names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.knowledge.extraction.entity_types import (
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
)
from agentic_rag_backend.knowledge.extraction.extension import is_adjectival
from agentic_rag_backend.knowledge.extraction.geography import REGIONS
from agentic_rag_backend.knowledge.extraction.names import Span
from agentic_rag_backend.knowledge.extraction.tokens import Tokens
from agentic_rag_backend.knowledge.extraction.word_scores import CLASSES, DECIDED, WordScores

_MOST_VOTES = 6.0
_LEAST_VOTES = 0.6
_VOTED = (PERSON, ORGANISATION, PLACE, WORK)
_PLAIN = (0.0, 0.0, 0.0)
RELATIONS = ("ends", "opens", "ended_by", "opened_by", "listed")
"""Relations between two names of a document: one ends or opens the other, or they are neighbours in a list."""


@dataclass(slots=True)
class Ballot:
    """What a document says about the type of one name.

    ``uses`` has, for each occurrence, the two words before it and the two after it, nearest last and first; "" at the ends of
    the sentence.
    """

    key: str
    words: list[str]
    votes: Votes = field(default_factory=dict)
    uses: list[tuple[str, str, str, str]] = field(default_factory=list)
    quoted: int = 0

    def vote(self, type_: str, weight: float) -> None:
        """Add the vote of a rule."""
        if type_ != OTHER:
            self.votes[type_] = self.votes.get(type_, 0.0) + weight

    def add_use(self, tokens: Tokens, span: Span, sentence: tuple[int, int]) -> None:
        """Add one occurrence: its neighbours, and the votes of the rules on them."""
        begin, end = sentence
        places = (span.first - 2, span.first - 1, span.last, span.last + 1)
        first, second, third, fourth = (tokens.words[place] if begin <= place < end else "" for place in places)
        self.uses.append((first, second, third, fourth))
        if span.kind == "quoted":
            self.quoted += 1
            self.vote(WORK, 3.5)
        for type_, weight in type_from_context(tokens, span, sentence):
            self.vote(type_, weight)

    def features(self) -> dict[str, float]:
        """Return the features that are not 0, by name."""
        words = [word for word in self.words if word[0].isalnum()] or self.words
        own = type_from_words(self.words)
        found = {f"votes_{type_}": min(self.votes.get(type_, 0.0), _MOST_VOTES) for type_ in _VOTED}
        if own is not None:
            found[f"own_{own[0]}"] = own[1]
        found[f"words_{min(len(words), 4)}"] = 1.0
        single = words[0] if len(words) == 1 else ""
        found["acronym"] = float(single.isupper())
        found["adjective"] = float(bool(single) and is_adjectival(single))
        found["region"] = float(self.key in REGIONS)
        found["of"] = float("of" in words)
        found["number"] = float(any(word[0].isdigit() for word in words))
        found["initial"] = float(any(len(word) == 1 for word in words))
        found["personal"] = float(2 <= len(words) <= 3 and own is None and all(map(may_be_personal, words)))
        if self.uses:
            count = len(self.uses)
            found["the"] = sum(use[1].lower() == "the" for use in self.uses) / count
            found["opens_sentence"] = sum(not use[1] for use in self.uses) / count
            found["quoted"] = self.quoted / count
        return {name: value for name, value in found.items() if value}

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
        for place, weight in enumerate(scores.weights.get(name, _PLAIN)):
            totals[place] += weight * value
    for slot, words in ballot.slots():
        first = slot * DECIDED
        share = scores.unit / len(words)
        for word in words:
            if word:
                row = scores.of(word)
                for place in range(DECIDED):
                    totals[place] += row[first + place] * share
    return [*totals, 0.0]


def chances(odds: Sequence[float]) -> list[float]:
    """Return the probabilities of `CLASSES`."""
    most = max(odds)
    exponentials = [math.exp(each - most) for each in odds]
    total = sum(exponentials)
    return [each / total for each in exponentials]


def related(keys: Iterable[str], lists: Iterable[tuple[str, str]]) -> dict[str, dict[str, list[str]]]:
    """Return, for each name, the names that it is related to, by relation; see `RELATIONS`."""
    found: dict[str, dict[str, list[str]]] = {key: {} for key in keys}
    for key in found:
        words = key.split()
        for length in range(1, len(words)):
            for relation, reverse, part in (
                ("ends", "ended_by", " ".join(words[-length:])),
                ("opens", "opened_by", " ".join(words[:length])),
            ):
                if part in found:
                    found[part].setdefault(relation, []).append(key)
                    found[key].setdefault(reverse, []).append(part)
    for one, other in lists:
        if one != other and one in found and other in found:
            found[one].setdefault("listed", []).append(other)
            found[other].setdefault("listed", []).append(one)
    return found


def agreed(
    odds: Mapping[str, Sequence[float]], relations: Mapping[str, Mapping[str, Sequence[str]]], weights: Mapping[str, float]
) -> dict[str, list[float]]:
    """Return the log odds after each name has heard the names that it is related to: once, with what they knew alone."""
    alone = {key: chances(each) for key, each in odds.items()}
    result: dict[str, list[float]] = {}
    for key, each in odds.items():
        totals = list(each)
        for relation, others in relations[key].items():
            share = weights.get(relation, 0.0) / len(others)
            for other in others:
                for place, chance in enumerate(alone[other]):
                    totals[place] += share * chance
        result[key] = totals
    return result


def types_of(ballots: Mapping[str, Ballot], lists: Iterable[tuple[str, str]], scores: WordScores) -> dict[str, str]:
    """Return the type of each name of a document. ``lists`` has pairs of neighbours in lists."""
    odds = {key: log_odds(ballot, scores) for key, ballot in ballots.items()}
    heard = agreed(odds, related(ballots, lists), scores.agreement)
    return {key: _decided(ballot, heard[key]) for key, ballot in ballots.items()}


def _decided(ballot: Ballot, odds: Sequence[float]) -> str:
    if ballot.key in REGIONS:
        return PLACE
    if len(ballot.words) == 1 and is_adjectival(ballot.words[0]):
        return GROUP
    best = CLASSES[max(range(len(CLASSES)), key=lambda place: odds[place])]
    if best != OTHER:
        return best
    own = type_from_words(ballot.words)
    work = ballot.votes.get(WORK, 0.0) >= _LEAST_VOTES or (own is not None and own[0] == WORK)
    return WORK if work else OTHER
