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
from types import MappingProxyType

from agentic_rag_backend.domain.query import Hit, Retrieval
from agentic_rag_backend.language.descriptions import Description, describe, find_belongings, find_mentions, names_of
from agentic_rag_backend.language.questions.kinds import is_related_form
from agentic_rag_backend.language.vocabulary.kinds import FIELDS
from agentic_rag_backend.language.words import content_forms, names_and_numbers, words

SAMPLE = 15
"""First results in which another description proves that the name is shared. A constant: the request's limit has no effect."""

NOTHING_KNOWN: Mapping[tuple[str, ...], Set[str]] = MappingProxyType({})
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

    def matches_bearer(self, text: str) -> bool:
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
    names, question_words = names_and_numbers(question), words(question)
    candidates = (
        DescribedName(
            forms,
            describe(forms, question, question_words).of_sort(_PERSON),
            find_belongings(forms, question, question_words) & names,
        )
        for forms in islice((forms for forms in dict.fromkeys(names_of(question)) if len(forms) > 1), _MAX_NAMES)
    )
    return tuple(name for name in candidates if name.description.tells_kind or name.belongs)


def keep_described_bearers(
    retrieval: Retrieval, names: Sequence[DescribedName], own_documents: Mapping[tuple[str, ...], Set[str]] = NOTHING_KNOWN
) -> Retrieval:
    """Return the results without passages and facts about other bearers of the names.

    If there are any, and one about the described bearer, passages that have the name without a word of its description are left
    out, too: they may be about either.

    Args:
        own_documents: the documents about the described bearer, by names that are known to be shared. Their passages stay.
    """
    for name in names:
        sample = [_text(hit) for hit in retrieval.hits[:SAMPLE]]
        known = name.forms in own_documents
        if known or (any(map(name.is_other, sample)) and any(map(name.matches_bearer, sample))):
            documents = own_documents.get(name.forms, frozenset())

            def stays(document_id: str, text: str, name: DescribedName = name, documents: Set[str] = documents) -> bool:
                return document_id in documents or not (name.is_other(text) or name.is_open(text))

            hits = tuple(hit for hit in retrieval.hits if stays(hit.visible.chunk.document_id, _text(hit)))
            facts = tuple(fact for fact in retrieval.facts if stays(fact.document_id, fact.fact))
            retrieval = replace(retrieval, hits=hits, facts=facts)
    return retrieval


def _text(hit: Hit) -> str:
    return f"{hit.visible.document_title}\n{hit.visible.chunk.text}"


def select_meant_bearers(question: str, name: Sequence[str], bearers: Mapping[int, Description]) -> list[int]:
    """Return the bearers that a question may mean by its description ("the nurse Rowan Teller"): all of them, if it has none.

    Args:
        name: the forms of the name's words.
        bearers: descriptions by number.
    """
    description = describe(name, question)
    fitting = [
        number
        for number, bearer in bearers.items()
        if not description.excludes_bearer(bearer) and not description.has_other_kind(bearer)
    ]
    return [number for number in fitting if _shares(description, bearers[number])] or fitting


def _shares(description: Description, bearer: Description) -> bool:
    fields = {FIELDS[kind].name for kind in bearer.kinds}
    return any(kind in bearer.kinds or FIELDS[kind].name in fields for kind in description.kinds) or bool(
        description.born & bearer.born
    )
