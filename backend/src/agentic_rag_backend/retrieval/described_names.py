"""Questions that describe a person ("the nurse Rowan Teller"): passages about other people of the name are left out.

The graph may not know that the name is shared, because a few documents do not suffice to tell its bearers apart. A passage that
gives the name another description is proof enough for this question. Only people count: "the city Ada was born in" describes no
city of the name Ada.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.query import Hit, Retrieval
from agentic_rag_backend.domain.text.descriptions import Description, describe, mentions, names_of
from agentic_rag_backend.domain.text.questions import related
from agentic_rag_backend.domain.text.words import content_forms, words

SAMPLE = 15
"""First results in which another description proves that the name is shared. A constant: the request's limit has no effect."""

_PERSON = "person"


@dataclass(frozen=True, slots=True)
class DescribedName:
    """A name of the question, as the forms of its words, with the question's description of it."""

    forms: tuple[str, ...]
    description: Description

    def is_other(self, text: str) -> bool:
        """Return whether a text describes another bearer of the name."""
        held = describe(self.forms, text).of_sort(_PERSON)
        return self.description.excludes(held) or self.description.differs(held)

    def is_open(self, text: str) -> bool:
        """Return whether a text has the name without a word that describes the bearer."""
        held = content_forms(text)
        fits = any(related(kind, held) for kind in self.description.kinds) or any(
            str(year) in held for year in self.description.born
        )
        return not fits and bool(mentions(self.forms, words(text), text))


def described_names(question: str) -> tuple[DescribedName, ...]:
    """Return the names that a question describes by more than Mr or Ms."""
    found = ((forms, describe(forms, question).of_sort(_PERSON)) for forms in dict.fromkeys(names_of(question)) if len(forms) > 1)
    return tuple(DescribedName(forms, description) for forms, description in found if description.tells_kind)


def about_described(found: Retrieval, names: Sequence[DescribedName]) -> Retrieval:
    """Return the results without passages and facts about other bearers of the names.

    If there are any, passages that have the name without a word of its description are left out, too: they may be about either.
    """
    for name in names:
        if any(name.is_other(_text(hit)) for hit in found.hits[:SAMPLE]):
            hits = tuple(hit for hit in found.hits if not (name.is_other(_text(hit)) or name.is_open(_text(hit))))
            facts = tuple(fact for fact in found.facts if not (name.is_other(fact.fact) or name.is_open(fact.fact)))
            found = replace(found, hits=hits, facts=facts)
    return found


def _text(hit: Hit) -> str:
    return f"{hit.visible.document_title}\n{hit.visible.chunk.text}"
