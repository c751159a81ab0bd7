"""The bearers of a name in the passages: people, ships and places of one name, told apart by their descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agentic_rag_backend.domain.text.descriptions import (
    Description,
    describe,
    describe_subject,
    describe_title,
    mentions,
    tells_apart,
)
from agentic_rag_backend.domain.text.statements import leans_on_context
from agentic_rag_backend.domain.text.words import all_forms, content_forms, words
from agentic_rag_backend.generation.answerability.evidence import EvidenceReading, EvidenceSentence

_PRONOUNS = all_forms("he she it they him her his hers its their them")
_GENERIC = all_forms(
    "January February March April May June July August September October November December Monday Tuesday Wednesday Thursday "
    "Friday Saturday Sunday "
    "prize medal award society royal university college school institute street church hall house museum company "
    "club saint north south east west mr mrs ms miss dr sir captain professor great new english british french german italian "
    "spanish dutch american scottish irish welsh danish norwegian swedish russian austrian swiss nobel"
)
"""Capitalised words that two bearers of a name may share."""
MIN_SHARED = 2
"""Words of other names that make a document without a description one about a described bearer."""


@dataclass(slots=True)
class Profile:
    """One bearer of a name. ``sentences`` are numbers in the reading, ``mentioned`` those that contain the name."""

    sources: list[str]
    description: Description = field(default_factory=Description)
    sentences: list[int] = field(default_factory=list)
    mentioned: list[int] = field(default_factory=list)
    names: frozenset[str] = frozenset()
    """Forms of the other names in its sentences."""

    def joined(self, other: Profile) -> Profile:
        """Return the profile of both."""
        return Profile(
            list(dict.fromkeys((*self.sources, *other.sources))),
            self.description | other.description,
            [*self.sentences, *other.sentences],
            [*self.mentioned, *other.mentioned],
            self.names | other.names,
        )


@dataclass(frozen=True)
class Bearers:
    """The bearers of one name, given by the forms of its words.

    Two descriptions belong to two bearers if one excludes the other (years of birth, parentheses of titles, Mr and Mrs), or if
    their kinds differ and their sentences share no name. If a sentence states that the name has several bearers, differing kinds
    are enough.
    """

    reading: EvidenceReading
    name: tuple[str, ...]

    @cached_property
    def known(self) -> tuple[Profile, ...]:
        """The bearers with a description, in the order of the passages."""
        return self._clusters[0]

    @cached_property
    def unknown(self) -> tuple[int, ...]:
        """The numbers of sentences about a bearer of the name that is not described; they may be about any."""
        return self._clusters[1]

    def bearer(self, number: int) -> int | None:
        """Return the place in `known` of the bearer that a sentence is about; None if it is about none or an unknown one."""
        return next((place for place, each in enumerate(self.known) if number in each.sentences), None)

    @cached_property
    def _explicit(self) -> bool:
        """Whether a sentence with a part of the name, or one that continues it, states that the name has several bearers."""
        parts, before = frozenset(self.name), False
        for each in self.reading.sentences:
            named = not each.forms.isdisjoint(parts)
            if (named or (before and leans_on_context(each.text))) and tells_apart(each.text):
                return True
            before = named
        return False

    @cached_property
    def _clusters(self) -> tuple[tuple[Profile, ...], tuple[int, ...]]:
        found: list[Profile] = []
        left: list[Profile] = []
        profiles = list(self._profiles())
        for profile in (each for each in profiles if each.description):
            fitting = [number for number, each in enumerate(found) if not self._different(profile, each)]
            alike = [number for number in fitting if profile.description.kinds & found[number].description.kinds]
            if not fitting:
                found.append(profile)
            elif len(chosen := alike or fitting) == 1:
                found[chosen[0]] = found[chosen[0]].joined(profile)
            else:
                left.append(profile)
        unknown: list[int] = []
        for profile in [*left, *(each for each in profiles if not each.description)]:
            sharing = [number for number, each in enumerate(found) if len(profile.names & each.names) >= MIN_SHARED]
            if len(found) == 1:
                found[0] = found[0].joined(profile)
            elif len(sharing) == 1:
                found[sharing[0]] = found[sharing[0]].joined(profile)
            else:
                unknown += profile.sentences
        return tuple(found), tuple(unknown)

    def _different(self, one: Profile, other: Profile) -> bool:
        if one.description.excludes(other.description):
            return True
        differ = one.description.differs(other.description, strictly=not self._explicit)
        return differ and (self._explicit or not one.names & other.names)

    def _profiles(self) -> Iterator[Profile]:
        """Yield what each document says about each bearer that it names."""
        by_source: dict[str, list[int]] = {}
        for number, each in enumerate(self.reading.sentences):
            by_source.setdefault(self.reading.passages[each.passage].source, []).append(number)
        parts = frozenset(self.name)
        for source, numbers in by_source.items():
            title = self.reading.passages[self.reading.sentences[numbers[0]].passage].title
            if parts <= content_forms(title) or any(parts <= self.reading.sentences[number].forms for number in numbers):
                yield from self._of_document(source, title, numbers)

    def _of_document(self, source: str, title: str, numbers: Sequence[int]) -> Iterator[Profile]:
        titled = self._mentions(title)
        found = [Profile([source], describe_title(self.name, title))] if titled else []
        current = found[0] if found else None
        before: EvidenceSentence | None = None
        for number in numbers:
            each = self.reading.sentences[number]
            continues = before is not None and before.passage == each.passage
            if self._named(each):
                current = self._described(source, found, current, each)
                current.mentioned.append(number)
            elif not (titled or (continues and current is not None and self._refers(each))):
                current = current if titled else None
                before = each
                continue
            elif continues and current is not None:
                current.description |= describe_subject(each.text)
            if current is not None:
                current.sentences.append(number)
                current.names |= self._names(each)
            before = each
        yield from (profile for profile in found if profile.sentences)

    def _described(self, source: str, found: list[Profile], current: Profile | None, each: EvidenceSentence) -> Profile:
        """Return the profile of a document that a sentence with the name is about; a new one if no other fits."""
        said = describe(self.name, each.text)
        fitting = [profile for profile in found if not said or not self._apart_in_document(said, profile.description)]
        alike = [profile for profile in fitting if profile.description.kinds & said.kinds]
        same = [profile for profile in fitting if profile is current]
        chosen = next(iter(alike or same or fitting), None)
        if chosen is None:
            chosen = Profile([source])
            found.append(chosen)
        chosen.description |= said
        return chosen

    def _apart_in_document(self, one: Description, other: Description) -> bool:
        """Return whether one document speaks of two bearers. It often gives one person several descriptions."""
        return one.excludes(other) or (self._explicit and one.differs(other))

    def _names(self, each: EvidenceSentence) -> frozenset[str]:
        """Return the other names of a sentence. Its first word is one if another name follows."""
        found = each.words
        first = 1 if len(found) > 1 and not found[1].name else 0
        return frozenset(word.form for word in found[first:] if word.name and not word.form[0].isdigit()) - self._common

    def _mentions(self, text: str) -> bool:
        return bool(mentions(self.name, words(text), text))

    def _named(self, each: EvidenceSentence) -> bool:
        return frozenset(self.name) <= each.forms and bool(mentions(self.name, each.words, each.text))

    def _refers(self, each: EvidenceSentence) -> bool:
        """Return whether a sentence has a pronoun or a part of the name, so that it continues the one before it."""
        return not each.forms.isdisjoint(_PRONOUNS) or not each.forms.isdisjoint(self.name)

    @cached_property
    def _common(self) -> frozenset[str]:
        return frozenset(self.name) | _GENERIC | content_forms(self.reading.question.text)
