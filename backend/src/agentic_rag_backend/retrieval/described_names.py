"""Questions that describe a person: passages about other people of the name are left out.

"The nurse Rowan Teller" describes the bearer of the name, and "Rowan Teller of Aldry Hospital" says what it belongs to. The graph
may not know that the name is shared, because a few documents do not suffice to tell its bearers apart. A passage that gives the
name another description is proof enough for this question. Only people count: "the city Ada was born in" describes no city of
the name Ada.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from agentic_rag_backend.domain.query import Hit, Retrieval
from agentic_rag_backend.domain.text.descriptions import Description, belonging, describe, mentions, names_of
from agentic_rag_backend.domain.text.questions import related
from agentic_rag_backend.domain.text.words import content_forms, names_and_numbers, words

SAMPLE = 15
"""First results in which another description proves that the name is shared. A constant: the request's limit has no effect."""

_PERSON = "person"
_MAX_NAMES = 20
"""First names of a question that are described. Each is compared at every word of the question."""


@dataclass(frozen=True, slots=True)
class DescribedName:
    """A name of the question, as the forms of its words, with the question's description of it.

    ``belongs`` are the forms of a name that the bearer belongs to: "aldry" for "Rowan Teller of Aldry Hospital".
    """

    forms: tuple[str, ...]
    description: Description
    belongs: frozenset[str] = frozenset()

    def is_other(self, text: str) -> bool:
        """Return whether a text describes another bearer of the name, or one that belongs elsewhere."""
        held = describe(self.forms, text).of_sort(_PERSON)
        if self.description.excludes(held) or self.description.differs(held):
            return True
        return bool(self.belongs and belonging(self.forms, text)) and self.belongs.isdisjoint(content_forms(text))

    def is_meant(self, text: str) -> bool:
        """Return whether a text has the name and a word that describes the bearer."""
        return self._fits(text) and bool(mentions(self.forms, words(text), text))

    def is_open(self, text: str) -> bool:
        """Return whether a text has the name without a word that describes the bearer."""
        return not self._fits(text) and bool(mentions(self.forms, words(text), text))

    def _fits(self, text: str) -> bool:
        held = content_forms(text)
        if not self.belongs.isdisjoint(held):
            return True
        return any(related(kind, held) for kind in self.description.kinds) or any(
            str(year) in held for year in self.description.born
        )


def described_names(question: str) -> tuple[DescribedName, ...]:
    """Return the names that a question describes by more than Mr or Ms, or by what they belong to."""
    names, read = names_and_numbers(question), words(question)
    found = (
        DescribedName(forms, describe(forms, question, read).of_sort(_PERSON), belonging(forms, question, read) & names)
        for forms in islice((forms for forms in dict.fromkeys(names_of(question)) if len(forms) > 1), _MAX_NAMES)
    )
    return tuple(each for each in found if each.description.tells_kind or each.belongs)


def about_described(found: Retrieval, names: Sequence[DescribedName]) -> Retrieval:
    """Return the results without passages and facts about other bearers of the names.

    If there are any, and one about the described bearer, passages that have the name without a word of its description are left
    out, too: they may be about either.
    """
    for name in names:
        sample = [_text(hit) for hit in found.hits[:SAMPLE]]
        if any(map(name.is_other, sample)) and any(map(name.is_meant, sample)):
            hits = tuple(hit for hit in found.hits if not (name.is_other(_text(hit)) or name.is_open(_text(hit))))
            facts = tuple(fact for fact in found.facts if not (name.is_other(fact.fact) or name.is_open(fact.fact)))
            found = replace(found, hits=hits, facts=facts)
    return found


def _text(hit: Hit) -> str:
    return f"{hit.visible.document_title}\n{hit.visible.chunk.text}"
