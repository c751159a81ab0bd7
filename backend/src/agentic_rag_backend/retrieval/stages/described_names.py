"""Questions that describe a person: passages about other people of the name are left out.

"The nurse Rowan Teller" describes the bearer of the name, and "Rowan Teller of Aldry Hospital" says what it belongs to. The graph
may not know that the name is shared, because a few documents do not suffice to tell its bearers apart. A passage that gives the
name another description is proof enough for this question. Only people count: "the city Ada was born in" describes no city of
the name Ada.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice

from agentic_rag_backend.domain.query import Hit, Retrieval
from agentic_rag_backend.language.descriptions import Description, describe, find_belongings, find_mentions, names_of
from agentic_rag_backend.language.questions import is_related_form
from agentic_rag_backend.language.vocabulary.kinds import FIELDS
from agentic_rag_backend.language.words import Word, content_forms, names_and_numbers, words

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
        description = describe(self.forms, text).of_sort(_PERSON)
        if self.description.excludes_bearer(description) or self.description.has_other_kind(description):
            return True
        return bool(self.belongs and find_belongings(self.forms, text)) and self.belongs.isdisjoint(content_forms(text))

    def is_meant(self, text: str) -> bool:
        """Return whether a text has the name and a word that describes the bearer."""
        return self._fits(text) and bool(find_mentions(self.forms, words(text), text))

    def is_open(self, text: str) -> bool:
        """Return whether a text has the name without a word that describes the bearer."""
        return not self._fits(text) and bool(find_mentions(self.forms, words(text), text))

    def _fits(self, text: str) -> bool:
        forms = content_forms(text)
        if not self.belongs.isdisjoint(forms):
            return True
        return any(is_related_form(kind, forms) for kind in self.description.kinds) or any(
            str(year) in forms for year in self.description.born
        )


def described_names(question: str) -> tuple[DescribedName, ...]:
    """Return the names that a question describes by more than Mr or Ms, or by what they belong to."""
    names, read = names_and_numbers(question), words(question)
    found = (
        DescribedName(forms, describe(forms, question, read).of_sort(_PERSON), find_belongings(forms, question, read) & names)
        for forms in islice((forms for forms in dict.fromkeys(names_of(question)) if len(forms) > 1), _MAX_NAMES)
    )
    return tuple(name for name in found if name.description.tells_kind or name.belongs)


def about_described(retrieval: Retrieval, names: Sequence[DescribedName]) -> Retrieval:
    """Return the results without passages and facts about other bearers of the names.

    If there are any, and one about the described bearer, passages that have the name without a word of its description are left
    out, too: they may be about either.
    """
    for name in names:
        sample = [_text(hit) for hit in retrieval.hits[:SAMPLE]]
        if any(map(name.is_other, sample)) and any(map(name.is_meant, sample)):
            hits = tuple(hit for hit in retrieval.hits if not (name.is_other(_text(hit)) or name.is_open(_text(hit))))
            facts = tuple(fact for fact in retrieval.facts if not (name.is_other(fact.fact) or name.is_open(fact.fact)))
            retrieval = replace(retrieval, hits=hits, facts=facts)
    return retrieval


def _text(hit: Hit) -> str:
    return f"{hit.visible.document_title}\n{hit.visible.chunk.text}"


def meant(
    question: str,
    name: Sequence[str],
    bearers: Mapping[int, Description],
    near: Set[int],
    read: Sequence[Word] | None = None,
) -> list[int]:
    """Return the bearers that a question may mean: all of them, if it does not say.

    The first of these that leaves some bearers decides: the question describes the bearer ("the nurse Rowan Teller"), one
    description alone has a word of the question ("… chair of the association, Rowan Teller"), one bearer alone is near another
    entity of the question.

    Args:
        name: the forms of the name's words.
        bearers: descriptions by number.
        near: the bearers that share a passage with another entity of the question.
        read: the words of ``question``, if they were read before.
    """
    read = words(question) if read is None else read
    description = describe(name, question, read)
    fitting = [
        number
        for number, bearer in bearers.items()
        if not description.excludes_bearer(bearer) and not description.has_other_kind(bearer)
    ]
    matches = [number for number in fitting if _shares(description, bearers[number])]
    if matches:
        return matches
    forms = [word.form for word in read if word.form not in name]
    described = [number for number in fitting if _has_word(bearers[number], forms)]
    for chosen in (described, [number for number in fitting if number in near]):
        if len(chosen) == 1:
            return chosen
    return fitting


def _shares(description: Description, bearer: Description) -> bool:
    fields = {FIELDS[kind].name for kind in bearer.kinds}
    return any(kind in bearer.kinds or FIELDS[kind].name in fields for kind in description.kinds) or bool(
        description.born & bearer.born
    )


def _has_word(description: Description, forms: Sequence[str]) -> bool:
    return any(is_related_form(kind, forms) for kind in description.kinds | content_forms(description.label))
