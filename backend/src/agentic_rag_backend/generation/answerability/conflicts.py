"""Finds sentences of different documents that give different values for the same thing, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.text.dates import years
from agentic_rag_backend.domain.text.occasions import BESIDE, DISTINGUISHING
from agentic_rag_backend.domain.text.questions import AnswerKind
from agentic_rag_backend.domain.text.values import Value, values_of
from agentic_rag_backend.generation.answerability.evidence import EvidenceSentence
from agentic_rag_backend.generation.answerability.selection import Selection

MIN_LIKENESS = 0.6
"""Least cosine of two sentences about the same thing."""
WORSE = 0.1
"""Most by which the other sentence may fit the question less, in rarity of its terms."""
MATCHED = 0.5
"""Least strength of a match of a question's word in a sentence that speaks of it."""
MAX_VALUES = 4
_VALUES = frozenset({AnswerKind.TIME, AnswerKind.COLOUR})
"""Kinds of values, in addition to numbers."""
Order = Literal["newer", "better_supported", "nearer"]
"""What decides which value comes first; ``nearer`` is nearer to the question."""


@dataclass(frozen=True, slots=True)
class StatedValue:
    """A value with the titles of the documents that give it.

    ``place`` is that of its best sentence among the candidates. ``date`` is that of the newest document, or empty. ``sentence``
    is the best sentence, at ``start_char`` of the passage with the number ``passage``.
    """

    value: str
    place: int
    documents: tuple[str, ...]
    date: str = ""
    passage: int = 0
    sentence: str = ""
    start_char: int = 0


@dataclass(frozen=True, slots=True)
class Conflict:
    """Different values for one thing, the first one first. ``places`` are those of all sentences with one of them."""

    order: Order
    values: tuple[StatedValue, ...]
    places: frozenset[int]

    @property
    def introduction(self) -> str:
        """Sentence before the sentences with the values."""
        return f"The documents disagree; {_ORDERS[self.order]} first."

    @property
    def details(self) -> dict[str, object]:
        """What the trace shows."""
        values = [{"value": each.value, "documents": list(each.documents), "date": each.date or None} for each in self.values]
        return {"order": self.order, "values": values}


_ORDERS: dict[Order, str] = {
    "newer": "the newest comes",
    "better_supported": "the value that most of them give comes",
    "nearer": "the sentence nearest to the question comes",
}


@dataclass(slots=True)
class _Group:
    """Sentences that agree: places among the candidates, the best first."""

    places: list[int]
    values: list[Value]


def find_conflict(selection: Selection) -> Conflict | None:
    """Return the values that contradict the best sentence, and its own; None if there are none.

    A sentence contradicts if it is of another document, as near to the question and like the best sentence, and no value of the
    requested kind agrees with a value of the best sentence.
    """
    question = selection.reading.question
    if not (question.asked.numeric or question.asked in _VALUES):
        return None
    groups = _groups(selection, [selection.first, *_comparable(selection)])
    if len(groups) < 2:
        return None
    order, ranked = _ordered(selection, groups[:MAX_VALUES])
    stated = tuple(_stated(selection, group, groups) for group in ranked)
    return Conflict(order, stated, frozenset(place for group in groups for place in group.places))


def _comparable(selection: Selection) -> list[int]:
    """Return the places of the statements about the same thing as the best sentence, the best first.

    They have the question's names near them that the best sentence has, and they, or the sentences to which they refer, contain
    or paraphrase all other words of the question that it does.
    """
    reading, first, fits = selection.reading, selection.first, selection.features["window"]
    names = reading.in_window[reading.question.named][:, list(selection.interaction.chosen)] > 0
    matter = _spoken_of(selection)[~(reading.question.named | reading.question.numbers)]
    if len(matter) and not matter[:, first].any():
        return []
    same = (names == names[:, [first]]).all(axis=0) & (matter >= matter[:, [first]]).all(axis=0)
    near = (selection.interaction.between[first] >= MIN_LIKENESS) & (fits >= fits[first] - WORSE) & same
    best = _sentence(selection, first)
    order = sorted(np.flatnonzero(near).tolist(), key=lambda place: -float(selection.scores[place]))
    found = ((place, _sentence(selection, place)) for place in order if place != first)
    return [place for place, other in found if other.statement and _same_matter(selection, best, other)]


def _spoken_of(selection: Selection) -> NDArray[np.bool_]:
    """(q, candidates): whether a candidate, or a sentence to which it refers ("it cost"), contains or paraphrases the term."""
    reading = selection.reading
    found = selection.interaction.strength >= MATCHED
    for place, number in enumerate(selection.interaction.chosen):
        if earlier := reading.referred[number]:
            found[:, place] |= reading.held[:, list(earlier)].max(axis=1) > 0
    return found


def _same_matter(selection: Selection, best: EvidenceSentence, other: EvidenceSentence) -> bool:
    """Return whether nothing shows that two sentences speak of different events, things or times."""
    question = selection.reading.question
    if (_distinguishing(selection, best) ^ _distinguishing(selection, other)) - question.every_form:
        return False
    if question.asked is AnswerKind.TIME:
        return True
    one, another = set(years(best.text)), set(years(other.text))
    return not one or not another or not one.isdisjoint(another)


def _distinguishing(selection: Selection, sentence: EvidenceSentence) -> frozenset[str]:
    """Return the words that make a thing another one, and stand beside a word of the question."""
    held = np.flatnonzero(selection.reading.matches.of_words(sentence.words).max(axis=0, initial=0.0))
    return frozenset(
        word.form
        for place, word in enumerate(sentence.words)
        if word.form in DISTINGUISHING and bool((np.abs(held - place) <= BESIDE + 1).any())
    )


def _groups(selection: Selection, places: Sequence[int]) -> list[_Group]:
    """Group sentences by value. Each further group is of other documents than the groups before it."""
    question = selection.reading.question
    groups: list[_Group] = []
    for place in places:
        values = values_of(_sentence(selection, place).text, question.asked, question.text)
        same = next((group for group in groups if _agree(values, group.values)), None)
        if same is not None:
            same.places.append(place)
        elif values and _source(selection, place) not in {_source(selection, each) for group in groups for each in group.places}:
            groups.append(_Group([place], list(values)))
        if not groups:
            return []
    return groups


def _agree(values: Sequence[Value], others: Sequence[Value]) -> bool:
    return any(one.agrees(other) for one in values for other in others)


def _ordered(selection: Selection, groups: Sequence[_Group]) -> tuple[Order, list[_Group]]:
    """Return the groups: the newer first, if the documents of all have different dates; else the better supported first."""
    dates = [_newest(selection, group) for group in groups]
    if all(dates) and len({_shortened(date, dates) for date in dates}) > 1:
        ranked = sorted(zip(groups, dates, strict=True), key=lambda pair: _shortened(pair[1], dates), reverse=True)
        return "newer", [group for group, _ in ranked]
    support = {id(group): len(_documents(selection, group)) for group in groups}
    if len(set(support.values())) > 1:
        return "better_supported", sorted(groups, key=lambda group: -support[id(group)])
    return "nearer", list(groups)


def _shortened(date: str, dates: Sequence[str]) -> str:
    """Return a date as exact as the least exact one: 2019 is neither before nor after August 2019."""
    return date[: min(map(len, dates))]


def _stated(selection: Selection, group: _Group, groups: Sequence[_Group]) -> StatedValue:
    others = [value for other in groups if other is not group for value in other.values]
    own = next((value for value in group.values if not _agree([value], others)), group.values[0])
    documents = tuple(dict.fromkeys(_documents(selection, group).values()))
    best = _sentence(selection, group.places[0])
    return StatedValue(
        own.text,
        group.places[0],
        documents,
        _newest(selection, group),
        passage=best.passage,
        sentence=best.text,
        start_char=best.sentence.start,
    )


def _documents(selection: Selection, group: _Group) -> dict[str, str]:
    """Return the titles of a group's documents by what tells them apart."""
    passages = selection.reading.passages
    return {passages[each.passage].source: passages[each.passage].title for each in _sentences(selection, group)}


def _newest(selection: Selection, group: _Group) -> str:
    return max(selection.reading.passages[each.passage].date for each in _sentences(selection, group))


def _sentences(selection: Selection, group: _Group) -> list[EvidenceSentence]:
    return [_sentence(selection, place) for place in group.places]


def _sentence(selection: Selection, place: int) -> EvidenceSentence:
    return selection.reading.sentences[selection.interaction.chosen[place]]


def _source(selection: Selection, place: int) -> str:
    return selection.reading.passages[_sentence(selection, place).passage].source
