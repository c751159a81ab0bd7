"""Questions about a name that several bear: the question's other words decide, or each bearer is answered by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.text.descriptions import Description, belonging, describe, names_of
from agentic_rag_backend.domain.text.kinds import FIELDS
from agentic_rag_backend.domain.text.questions import related
from agentic_rag_backend.domain.text.words import content_forms, names_and_numbers
from agentic_rag_backend.generation.answerability.bearers import Bearers, Profile
from agentic_rag_backend.generation.answerability.evidence import EvidenceReading, EvidenceSentence

MAX_BEARERS = 3
"""Bearers of a name that are answered apart. Each costs an encoding of its sentences."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """A bearer of a name: a few words that tell it from others, which may be empty, and the titles of its documents.

    ``answered`` is whether a sentence of the answer is about it.
    """

    label: str
    documents: tuple[str, ...]
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Namesakes:
    """Several bearers of a name as written in the question. ``decided`` is whether the question's other words choose one."""

    name: str
    bearers: tuple[Bearer, ...]
    decided: bool

    @property
    def details(self) -> dict[str, object]:
        """What the trace shows."""
        shown = [{"label": each.label, "documents": list(each.documents), "answered": each.answered} for each in self.bearers]
        return {"name": self.name, "decided": self.decided, "bearers": shown}

    @property
    def introduction(self) -> str:
        """Sentence before the quoted ones that says whom they are about; empty if the question does."""
        if self.decided:
            return ""
        answered = [_called(each) for each in self.bearers if each.answered]
        if not answered:
            return ""
        if len(answered) == 1:
            return f"The documents speak of more than one {self.name}; this is about {answered[0]}."
        return f"The documents speak of more than one {self.name}: first {', then '.join(answered)}."


def _called(bearer: Bearer) -> str:
    if not bearer.label:
        return f"one that is not described (“{bearer.documents[0]}”)"
    return f"the {'one ' if bearer.label[-1].isdigit() else ''}{bearer.label} (“{bearer.documents[0]}”)"


@dataclass(frozen=True, slots=True)
class Separation:
    """The evidence of a question, divided by the bearers of its name.

    ``readings`` has one reading for each bearer that the question may mean: its own sentences and those about nobody of the name.
    ``absent`` are the question's terms that only the left out sentences contain, by reading. ``meant`` are the numbers of these
    bearers. ``own`` are the places of each one's sentences (passage and start), and ``describing`` the
    sentence that says who it is.
    """

    namesakes: Namesakes | None
    readings: tuple[EvidenceReading, ...]
    absent: tuple[NDArray[np.bool_], ...]
    meant: tuple[int, ...] = ()
    own: tuple[frozenset[tuple[int, int]], ...] = ()
    describing: tuple[EvidenceSentence | None, ...] = ()


def separate(reading: EvidenceReading) -> Separation | None:
    """Return the evidence by bearer; None if no name of the question has several, and none is of another bearer."""
    for name in sorted(set(names_of(reading.question.text)), key=lambda name: (-len(name), name)):
        bearers = Bearers(reading, name)
        asked = describe(name, reading.question.text)
        if len(bearers.known) > 1:
            return _separated(reading, bearers, asked)
        if len(bearers.known) == 1 and _other(asked, bearers.known[0]):
            return _separation(reading, None, [_without(reading, bearers.known[0].sentences)])
    return None


def _other(asked: Description, profile: Profile) -> bool:
    return asked.excludes(profile.description) or asked.differs(profile.description)


def _separated(reading: EvidenceReading, bearers: Bearers, asked: Description) -> Separation:
    meant = _meant(reading, bearers, asked)
    decided = len(meant) < len(bearers.known)
    profiles = list(bearers.known)
    if bearers.unknown and not decided:
        # Nothing says who this is: it may be another one.
        meant.append(len(profiles))
        profiles.append(Profile([], sentences=list(bearers.unknown)))
    shown = tuple(Bearer(each.description.label, _titles(reading, each)) for each in profiles)
    of_name = {number for each in profiles for number in each.sentences} | set(bearers.unknown)
    namesakes = Namesakes(_written(reading, bearers.name), shown, decided)
    if not meant:
        return _separation(reading, namesakes, [_without(reading, of_name)])
    chosen = [profiles[number] for number in meant[:MAX_BEARERS]]
    readings = [_without(reading, of_name - set(each.sentences)) for each in chosen]
    return replace(
        _separation(reading, namesakes, readings),
        meant=tuple(meant[:MAX_BEARERS]),
        own=tuple(frozenset(_place(reading, number) for number in each.sentences) for each in chosen),
        describing=tuple(_describing(reading, bearers.name, each) for each in chosen),
    )


def _separation(reading: EvidenceReading, namesakes: Namesakes | None, readings: Sequence[EvidenceReading]) -> Separation:
    descriptive = np.array([form in FIELDS for form in reading.question.forms], dtype=bool)
    terms = (reading.anywhere > 0) & ~descriptive & ~reading.question.named
    return Separation(namesakes, tuple(readings), tuple(terms & (each.anywhere == 0) for each in readings))


def _describing(reading: EvidenceReading, name: Sequence[str], profile: Profile) -> EvidenceSentence | None:
    """Return the first statement that says who a bearer is."""
    sentences = (reading.sentences[number] for number in profile.mentioned)
    return next((each for each in sentences if each.statement and describe(name, each.text).kinds), None)


def _meant(reading: EvidenceReading, bearers: Bearers, asked: Description) -> list[int]:
    """Return the numbers of the bearers that the question may mean, by its description of the name, then by its other words."""
    profiles = bearers.known
    fitting = [number for number, each in enumerate(profiles) if not _other(asked, each)]
    if asked:
        same = [number for number in fitting if _shares(asked, profiles[number].description)]
        return same or fitting
    hints = [number for number, each in enumerate(profiles) if _hinted(reading, bearers.name, each, profiles)]
    return hints if len(hints) == 1 else fitting


def _shares(asked: Description, held: Description) -> bool:
    fields = {FIELDS[kind].name for kind in held.kinds}
    return any(kind in held.kinds or FIELDS[kind].name in fields for kind in asked.kinds) or bool(asked.born & held.born)


def _hinted(reading: EvidenceReading, name: Sequence[str], profile: Profile, profiles: Sequence[Profile]) -> bool:
    """Return whether the question has a word of the bearer's description ("painting"), or names what only it is near.

    What stands in a bearer's sentences or in the titles of its documents is near it.
    """
    forms = [form for form in reading.question.forms if form not in name]
    if any(related(kind, forms) for kind in profile.description.kinds | content_forms(profile.description.label)):
        return True
    others = frozenset[str]().union(*(_forms(reading, each) for each in profiles if each is not profile))
    named = (names_and_numbers(reading.question.text) | belonging(name, reading.question.text)) - frozenset(name) - others
    return not named.isdisjoint(_forms(reading, profile))


def _forms(reading: EvidenceReading, profile: Profile) -> frozenset[str]:
    """Return the forms of a bearer's sentences and of their documents' titles."""
    titles = (content_forms(title) for title in _titles(reading, profile))
    return frozenset[str]().union(*titles, *(reading.sentences[number].forms for number in profile.sentences))


def _place(reading: EvidenceReading, number: int) -> tuple[int, int]:
    each = reading.sentences[number]
    return each.passage, each.sentence.start


def _titles(reading: EvidenceReading, profile: Profile) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reading.passages[reading.sentences[number].passage].title for number in profile.sentences))


def _written(reading: EvidenceReading, name: Sequence[str]) -> str:
    """Return a name as the question writes it."""
    found = reading.question.words
    for place in range(len(found) - len(name) + 1):
        if tuple(word.form for word in found[place : place + len(name)]) == tuple(name):
            return (
                reading.question.text[found[place].start : found[place + len(name) - 1].end].removesuffix("'s").removesuffix("’s")
            )
    return " ".join(name)


def _without(reading: EvidenceReading, numbers: Iterable[int]) -> EvidenceReading:
    """Return the reading without some sentences. A passage that loses all of them has no title, either."""
    dropped = set(numbers)
    kept = [number for number in range(len(reading.sentences)) if number not in dropped]
    sentences = tuple(reading.sentences[number] for number in kept)
    left = {each.passage for each in sentences}
    gone = np.array([number not in left for number in range(len(reading.passages))], dtype=bool)
    titled = reading.titled.copy()
    titled[:, gone] = 0.0
    return replace(reading, sentences=sentences, held=reading.held[:, kept], titled=titled)
