"""Finds sentences of different documents that give different values for the same thing."""

from __future__ import annotations

from collections.abc import Set

from agentic_rag_backend.domain.text.answers import answer_spans
from agentic_rag_backend.domain.text.questions import AnswerKind
from agentic_rag_backend.domain.text.words import all_forms
from agentic_rag_backend.generation.answerability.evidence import EvidenceSentence
from agentic_rag_backend.generation.answerability.selection import Selection

MIN_LIKENESS = 0.6
"""Least cosine of two sentences about the same thing."""
WORSE = 0.1
"""Most by which the other sentence may fit the question less, in rarity of its terms."""
_VALUES = frozenset({AnswerKind.TIME, AnswerKind.COLOUR})
"""Kinds of values, in addition to numbers."""


def conflicting(selection: Selection) -> int | None:
    """Return the place of a candidate that contradicts the best sentence; None if there is none.

    It is of another document and as near to the question, it is like the best sentence, and it has values of the requested kind,
    none of which the best sentence has.
    """
    reading, first = selection.reading, selection.first
    if not (reading.question.asked.numeric or reading.question.asked in _VALUES) or selection.connection > 0.0:
        return None
    best = reading.sentences[selection.interaction.chosen[first]]
    values = _values(selection, best)
    fits = selection.features["window"]
    for place, number in enumerate(selection.interaction.chosen):
        other = reading.sentences[number]
        if reading.passages[other.passage].title == reading.passages[best.passage].title or not other.statement:
            continue
        alike = selection.interaction.between[first, place] >= MIN_LIKENESS and fits[place] >= fits[first] - WORSE
        if alike and _differ(values, _values(selection, other)):
            return place
    return None


def _differ(values: Set[frozenset[str]], others: Set[frozenset[str]]) -> bool:
    """Return whether both have values, and none of one agrees with one of the other: "2009" agrees with "3 March 2009"."""
    return bool(values and others) and not any(one <= other or other <= one for one in values for other in others)


def _values(selection: Selection, sentence: EvidenceSentence) -> Set[frozenset[str]]:
    """Return the words of each value in a sentence. Beside a date, a weekday says nothing."""
    question = selection.reading.question
    spans = answer_spans(sentence.text, question.asked, question.text) or []
    found = [sentence.text[start:end] for start, end in spans]
    exact = [value for value in found if any(map(str.isdigit, value))]
    return {all_forms(value) for value in exact or found}
