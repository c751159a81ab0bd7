"""Names that lead from a sentence of one document to a sentence of another: the second hop of a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agentic_rag_backend.generation.answerability.evidence import EvidenceReading
from agentic_rag_backend.language.words import content_forms, inverse_frequency, names_and_numbers

_CALENDAR = content_forms(
    "January February March April May June July August September October November December Monday Tuesday Wednesday Thursday "
    "Friday Saturday Sunday"
)
"""Capitalised words that connect nothing."""
HALF_RARITY = 2.0
"""Rarity of shared names that counts one half."""


@dataclass(frozen=True)
class Bridges:
    """The names of each sentence and of its title that are absent from the question."""

    reading: EvidenceReading

    @cached_property
    def names(self) -> Sequence[frozenset[str]]:
        """The names by sentence."""
        question_forms = content_forms(self.reading.question.text)
        titles = [names_and_numbers(passage.title, first_word=True) for passage in self.reading.passages]
        return [
            frozenset(
                name
                for name in names_and_numbers(sentence.text, first_word=sentence.statement) | titles[sentence.passage]
                if not name[0].isdigit() and name not in question_forms and name not in _CALENDAR
            )
            for sentence in self.reading.sentences
        ]

    @cached_property
    def _rarity(self) -> Mapping[str, float]:
        return inverse_frequency(self.names)

    def strength(self, number: int, other_number: int) -> float:
        """Return the rarity of the names that two sentences of different documents share, in [0, 1)."""
        passages = self.reading.passages
        if passages[self.reading.sentences[number].passage].title == passages[self.reading.sentences[other_number].passage].title:
            return 0.0
        mass = sum(self._rarity[name] for name in self.names[number] & self.names[other_number])
        return mass / (mass + HALF_RARITY)

    def share_of_title(self, number: int, other_number: int) -> float:
        """Return the share of the words of ``number``'s title, without those of the question, that ``other_number`` contains."""
        passages, sentences = self.reading.passages, self.reading.sentences
        title = passages[sentences[number].passage].title
        forms = content_forms(title) - content_forms(self.reading.question.text)
        if not forms or title == passages[sentences[other_number].passage].title:
            return 0.0
        return len(forms & sentences[other_number].forms) / len(forms)
