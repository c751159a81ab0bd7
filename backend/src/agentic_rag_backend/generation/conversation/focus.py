"""The focus of a conversation: the names, dates and noun phrases that a follow-up question may mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from agentic_rag_backend.generation.conversation.grammar import YEAR
from agentic_rag_backend.generation.conversation.leaning import Lean, Referent, refers_to
from agentic_rag_backend.generation.conversation.mentions import (
    PHRASE,
    Mention,
    is_counted,
    is_group,
    is_personal,
    is_place,
    names_of,
    phrases_of,
)
from agentic_rag_backend.knowledge.extraction.entity_types import DATE, OTHER, PERSON, PLACE
from agentic_rag_backend.knowledge.extraction.lexicon import word_set

MAX_EARLIER = 3
"""Exchanges before the last one whose names count."""
MAX_FOCUS = 3
"""Names that are added to a question that no rule can complete."""
_ASKS_PERSON = re.compile(
    r"\b(?:who|whom|whose)\b|\b(?:what|which) (?:\w+ )?(?:person|man|woman|nurse|pilot|engineer|director)\b", re.IGNORECASE
)
_WHAT_IS = re.compile(r"\s*what (?:is|are|was|were) ", re.IGNORECASE)
_ASKS_PLACE = re.compile(
    r"\bwhere\b|\b(?:what|which) (?:town|village|city|island|port|place|country|university|school)\b", re.IGNORECASE
)
_ASKS_TIME = re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|season)\b", re.IGNORECASE)
_ASKS_THING = re.compile(
    r"\bwhich (?!year|date|day|month|season|town|village|city|island|place|of\b)[a-z]+ |\b(?:name|title) of\b|"
    r"\bwhat (?!year|date|day|month|season|town|village|city|island|place)(?:\w+ ){1,2}(?:is|was|did|does|do|were|are|built)\b",
    re.IGNORECASE,
)
ATTRIBUTES = word_set(
    "cost price capacity name title horizon width length size number date year purpose designer director founder owner budget "
    "population height depth age cause reason result aim leader head chair peak share rate value amount"
)
_OF_NAME = re.compile(r"\A(?:the|a|an)\s(?:[a-z-]+\s){0,3}?([a-z-]+)\s(?:of|for)\s(?=(?:the\s|a\s|an\s)?\S)")


@dataclass(frozen=True)
class Focus:
    """The last exchange of a conversation, with names that were mentioned before. ``question`` is self-contained."""

    question: str = ""
    answer: str = ""
    earlier: tuple[str, ...] = field(default=())

    @cached_property
    def _names(self) -> list[list[Mention]]:
        return names_of([self.question, self.answer, *self.earlier])

    @cached_property
    def asked(self) -> list[Mention]:
        """Noun phrases of the last question."""
        found = phrases_of(self.question, self._names[0])
        described = _WHAT_IS.match(self.question)
        # "What is Greenholm Kelp?" asks about a thing, although the name reads like that of a person.
        return [replace(one, type=OTHER) if described is not None and one.start == described.end() else one for one in found]

    @cached_property
    def answered(self) -> list[Mention]:
        """Names of the last answer that its question lacks."""
        known = self.question.casefold()
        return [one for one in phrases_of(self.answer, self._names[1]) if _bare(one.text).casefold() not in known]

    @cached_property
    def before(self) -> list[Mention]:
        """Noun phrases of earlier exchanges, the newest first."""
        pairs = list(zip(self.earlier, self._names[2:], strict=True))
        return [one for text, names in reversed(pairs) for one in reversed(phrases_of(text, names))]

    @property
    def all_phrases(self) -> list[Mention]:
        """Every noun phrase, the last exchange first."""
        return [*self.asked, *self.answered, *self.before]

    def referent(self, lean: Lean) -> str | None:
        """Return the name, date or noun phrase that a reference means; None if the conversation has none."""
        if lean.noun.startswith("the "):
            return self._described(lean.noun.removeprefix("the "))
        if lean.text.lower().startswith(("this ", "that ", "these ", "those ", "the same ")):
            found = self._described(lean.noun)
            if found is not None:
                return found
        finders = {"person": self._person, "thing": self._thing, "group": self._group, "place": self._place, "time": self._time}
        return finders[lean.referent](lean)

    def kind_of(self, text: str) -> Referent:
        """Return the kind of a noun phrase of a new question."""
        names = names_of([text, self.question, self.answer])[0]
        phrase = next(iter(phrases_of(text, names)), Mention(0, len(text), text, PHRASE))
        return "person" if is_personal(phrase) else "place" if is_place(phrase) else "thing"

    def counted(self) -> Mention | None:
        """Return the counted noun of the last question: "elvers" of "How many elvers …"."""
        return next((one for one in self.asked if is_counted(one)), None)

    def subject(self, kind: Referent) -> Mention | None:
        """Return the noun phrase of the last question that a phrase of ``kind`` replaces."""
        tests = {"person": is_personal, "place": is_place}
        test = tests.get(kind, lambda one: not is_personal(one) and not is_place(one))
        usable = sorted((one for one in self.asked if one.type != DATE), key=is_counted)
        return next((one for one in usable if test(one)), usable[0] if usable else None)

    def names(self) -> list[str]:
        """Return the most important names and numbers of the last exchange, for a question that no rule completes."""
        found = [one for one in self.asked if one.type != PHRASE or one.text != one.text.lower()]
        found += [one for one in self.answered if one.type != PHRASE]
        return list(dict.fromkeys(one.text for one in found or self.asked))[:MAX_FOCUS]

    # --- the referents of pronouns

    def _described(self, noun: str) -> str | None:
        found = next((one for one in self.all_phrases if refers_to(noun, one)), None)
        if found is None:
            found = next((one for one in self.all_phrases if one.head == noun), None)
        return found.text if found is not None else None

    def _person(self, lean: Lean) -> str | None:
        asked = [one for one in self.asked if one.type == PERSON]
        named = [one for one in self.answered if one.type == PERSON]
        # The person that the last question asked for comes before the persons that it named.
        order = [*named, *asked[::-1]] if _ASKS_PERSON.search(self.question) else [*asked[::-1], *named]
        order += [one for one in self.before if one.type == PERSON]
        order += [one for one in self.asked if is_personal(one)]
        fitting = [one for one in order if self._gender(one.text) in {None, _GENDERS.get(lean.noun)}] or order
        # A boat is a she.
        return self._full_name(fitting[0].text) if fitting else self._thing(lean)

    def _thing(self, lean: Lean) -> str | None:
        things = [one for one in self.asked if not is_personal(one) and one.type != DATE]
        named = [one for one in self.answered if not is_personal(one) and one.type not in (DATE, PHRASE)]
        new = [one for one in named if not is_place(one)]
        described = _WHAT_IS.match(self.question)
        if described is not None and things and things[0].start == described.end() and things[0].text != things[0].text.lower():
            return things[0].text
        if _ASKS_THING.search(self.question):
            asked_for = named or [one for one in self.answered if one.type == PHRASE and not is_personal(one)]
            if asked_for:
                return asked_for[0].text
        things.sort(key=is_counted)
        order = [*(one for one in things if not is_place(one)), *things, *new]
        order += [one for one in self.before if not is_personal(one) and one.type != DATE]
        return _without_attribute(order[0].text) if order else None

    def _group(self, lean: Lean) -> str | None:
        groups = sorted((one for one in (*self.asked, *self.answered) if is_group(one) and one.type != DATE), key=is_place)
        if groups:
            return groups[0].text
        persons = [one.text for one in self.answered if one.type == PERSON]
        if len(persons) > 1:
            return " and ".join(dict.fromkeys(persons[:2]))
        return self._thing(lean) or self._person(lean)

    def _place(self, lean: Lean) -> str | None:
        new = [one for one in self.answered if is_place(one)]
        new += [one for one in self._names[1] if one.type == PLACE and one.text not in self.question]
        asked = [one for one in self.asked if is_place(one)]
        order = [*new, *asked] if _ASKS_PLACE.search(self.question) else [*asked[::-1], *new]
        order += [one for one in self.before if is_place(one)]
        return order[0].text if order else self._thing(lean)

    def _time(self, lean: Lean) -> str | None:
        answered = [one.text for one in self._names[1] if one.type == DATE]
        asked = [one.text for one in self._names[0] if one.type == DATE]
        order = [*answered, *asked] if _ASKS_TIME.search(self.question) else [*asked, *answered]
        if not order:
            return None
        year = YEAR.search(order[0])
        return year[0] if year is not None and lean.noun == "year" else order[0]

    def _full_name(self, name: str) -> str:
        """Return the longest name of the conversation that ends with the words of ``name``."""
        names = (one.text for mentions in self._names for one in mentions if one.type == PERSON)
        return max((one for one in names if one == name or one.endswith(f" {name}")), key=len, default=name)

    def _gender(self, name: str) -> str | None:
        """Return "he" or "she" if a title or the next pronoun of the conversation gives it."""
        texts = (self.question, self.answer, *self.earlier)
        return next((found for text in texts if (found := _gender_in(text, name, self._persons)) is not None), None)

    @cached_property
    def _persons(self) -> frozenset[str]:
        return frozenset(one.text for mentions in self._names for one in mentions if one.type == PERSON)


_GENDERS = {"he": "he", "him": "he", "his": "he", "she": "she", "her": "she", "hers": "she"}
_PERSONAL = re.compile(r"\b(he|she|him|her|his|hers)\b", re.IGNORECASE)
_REACH = 160
"""Characters after a name in which a pronoun counts as its own."""


def _gender_in(text: str, name: str, persons: Iterable[str]) -> str | None:
    at = text.find(name)
    if at < 0:
        return None
    title = re.search(r"\b(Mr|Mrs|Ms|Miss)\.? \Z", text[max(0, at - 6) : at])
    if title is not None:
        return "he" if title[1] == "Mr" else "she"
    after = text[at + len(name) : at + len(name) + _REACH]
    ends = [place for other in persons if other not in name and (place := after.find(other)) >= 0]
    pronoun = _PERSONAL.search(after[: min(ends, default=len(after))])
    return _GENDERS[pronoun[1].lower()] if pronoun is not None else None


def _bare(phrase: str) -> str:
    """Return a noun phrase without its article."""
    return re.sub(r"\A(?:the|a|an) ", "", phrase, flags=re.IGNORECASE)


def _without_attribute(phrase: str) -> str:
    """Return "the array" of "the final cost of the array"."""
    match = _OF_NAME.match(phrase)
    return phrase[match.end() :] if match is not None and match[1] in ATTRIBUTES else phrase
