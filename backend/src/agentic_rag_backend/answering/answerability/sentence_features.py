"""Features of each sentence: how well its words, its meaning and its form fit the question. Plain functions of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.answering.answerability.evidence import EvidenceReading, EvidenceSentence
from agentic_rag_backend.answering.answerability.question import Matrix, has_negation, is_year
from agentic_rag_backend.language.questions.defined_names import defines, find_defined_name
from agentic_rag_backend.language.questions.kinds import AnswerKind
from agentic_rag_backend.language.vocabulary.word_classes import OPPOSITES
from agentic_rag_backend.models.embedding.base import TextVectors

Features = Mapping[str, Matrix]
"""A value for each sentence, by the feature's name."""
VALUES = frozenset(
    {
        *(AnswerKind.COLOUR, AnswerKind.MONEY, AnswerKind.PERCENT, AnswerKind.MEASURE),
        *(AnswerKind.PHONE, AnswerKind.EMAIL, AnswerKind.WEBSITE),
    }
)
"""Kinds of answers that a text always gives in a recognisable form."""
CONTEXT_SIMILARITY = 0.9
"""Similarity of a term that only the title or a neighbouring sentence contains, and of the strongest match by meaning."""
UNUSUAL = 3.5
"""Standard deviations above the mean similarity of a term and all words at which a match is as likely as not."""
SPREAD = 0.7
LARGEST = 50.0
"""Largest exponent."""
REACH = 2
"""Words between an answer and a matched term that cost nothing."""
DECAY = 8.0
"""Further words after which the weight of a match falls to 1/e."""


def lexical_features(reading: EvidenceReading) -> dict[str, Matrix]:
    """Return the features that need no vectors, each of shape (s,)."""
    names, numbers, counts = reading.question.named, reading.question.numbers, reading.question.counted
    return {
        "held": reading.rarity @ reading.held,
        "window": reading.rarity @ reading.in_window,
        "headed": reading.rarity @ reading.headed,
        "passage": reading.rarity @ reading.in_passage,
        "passage_score": np.array([reading.passages[sentence.passage].score for sentence in reading.sentences], np.float32),
        "names_absent_passage": reading.rarity[names] @ (1.0 - reading.in_passage[names]),
        "numbers_absent": flag_missing(numbers, reading.in_window),
        "numbers_absent_passage": flag_missing(numbers, reading.in_passage),
        "count_absent": flag_missing(counts, reading.in_window),
        "year_differs": _year_differs(reading),
        **_flag_missing_answer(reading),
        "negation": _negation_differs(reading),
        "opposite": _flag_opposites(reading),
        "statement": np.array([sentence.statement for sentence in reading.sentences], np.float32),
        "question": np.array([sentence.is_question for sentence in reading.sentences], np.float32),
        "defines": _flag_definitions(reading),
    }


def flag_missing(terms: NDArray[np.bool_], matrix: Matrix) -> Matrix:
    """Return 1 for each column that lacks one of the chosen terms."""
    return np.asarray(1.0 - matrix[terms].min(axis=0, initial=1.0), dtype=np.float32)


def _year_differs(reading: EvidenceReading) -> Matrix:
    """Return 1 where the question names a year, the sentence and what surrounds it lack it, and the sentence names another."""
    years = reading.question.years
    if not years.any():
        return np.zeros(len(reading.sentences), np.float32)
    has_year = np.array([any(is_year(form) for form in sentence.forms) for sentence in reading.sentences], np.float32)
    return flag_missing(years, reading.in_window) * has_year


def _flag_missing_answer(reading: EvidenceReading) -> dict[str, Matrix]:
    """Return 1 where the question asks for a recognisable item (see `EvidenceSentence.items`) and the sentence has none.

    A colour, a price, a share and a measure are always written in a recognisable form, unlike other items; ``value_absent`` is
    about these alone.
    """
    question = reading.question
    items = [sentence.items(question) for sentence in reading.sentences]
    absent = np.array([spans is not None and not spans for spans in items], np.float32)
    return {"type_absent": absent, "value_absent": absent * (question.asked in VALUES)}


def _negation_differs(reading: EvidenceReading) -> Matrix:
    """Return 1 where a negative question meets a sentence without negation."""
    if not reading.question.negative:
        return np.zeros(len(reading.sentences), np.float32)
    return np.array([not has_negation(sentence.text) for sentence in reading.sentences], np.float32)


def _flag_definitions(reading: EvidenceReading) -> Matrix:
    """Return 1 where the question asks what something is, and the sentence is the first of its passage that says it."""
    name = find_defined_name(reading.question.text)
    flags = np.zeros(len(reading.sentences), np.float32)
    if name is not None:
        defining = (number for number, sentence in enumerate(reading.sentences) if defines(sentence.text, name))
        firsts = {reading.sentences[number].passage: number for number in sorted(defining, reverse=True)}
        flags[list(firsts.values())] = 1.0
    return flags


def _flag_opposites(reading: EvidenceReading) -> Matrix:
    """Return 1 where a sentence contains the opposite of a word of the question, and not the word."""
    opposites = {form: OPPOSITES[form] for form in reading.question.every_form if form in OPPOSITES}
    flags = np.zeros(len(reading.sentences), np.float32)
    if opposites:
        for number, sentence in enumerate(reading.sentences):
            flags[number] = any(
                form not in sentence.forms and not sentence.forms.isdisjoint(antonyms) for form, antonyms in opposites.items()
            )
    return flags


@dataclass(frozen=True)
class Interaction:
    """Late interaction (ColBERT, Khattab & Zaharia 2020) of a question's terms and the words of the encoded sentences.

    ``chosen`` are the numbers of the encoded sentences.
    """

    reading: EvidenceReading
    chosen: tuple[int, ...]
    question: TextVectors
    vectors: tuple[TextVectors, ...]

    def features(self) -> dict[str, Matrix]:
        """Return the features of the chosen sentences, each of shape (len(chosen),)."""
        rarity = self.reading.rarity
        best = np.stack([matrix.max(axis=1, initial=0.0) for matrix in self._similar], axis=1)
        context = CONTEXT_SIMILARITY * self.reading.in_window[:, list(self.chosen)]
        return {
            "cosine": np.array([vector.whole @ self.question.whole for vector in self.vectors], np.float32),
            "similar": rarity @ best,
            "similar_window": rarity @ np.maximum(best, context),
            "near": np.array([self._measure_nearness(index) for index in range(len(self.chosen))], np.float32),
            "question_word": np.array([self._like_question_word(index) for index in range(len(self.chosen))], np.float32),
        }

    @cached_property
    def between(self) -> Matrix:
        """Cosine of each pair of chosen sentences."""
        rows = np.stack([vector.whole for vector in self.vectors])
        return rows @ rows.T

    @cached_property
    def _sentences(self) -> list[EvidenceSentence]:
        return [self.reading.sentences[number] for number in self.chosen]

    @cached_property
    def _content(self) -> list[NDArray[np.bool_]]:
        return [np.array([word.content for word in sentence.words], dtype=bool) for sentence in self._sentences]

    @cached_property
    def _same(self) -> list[Matrix]:
        """For each sentence, (q, words): 1 where a word has a form related to the term."""
        return [self.reading.matches.of_words(sentence.words) for sentence in self._sentences]

    @cached_property
    def _similar(self) -> list[Matrix]:
        """For each sentence, (q, words): similarity of terms and words that carry meaning; 0 for other words."""
        terms = self.question.words[list(self.reading.question.terms)]
        pairs = zip(self.vectors, self._content, strict=True)
        return [np.maximum(terms @ vectors.words.T, 0.0) * content for vectors, content in pairs]

    @cached_property
    def _matches(self) -> list[Matrix]:
        """For each sentence, (q, words): strength of the match in [0, 1]; 1 for related forms, less for similar meaning.

        Similarity is judged against that of the term with all words, so that the encoder's scale does not matter.
        """
        values = np.concatenate(
            [matrix[:, content] for matrix, content in zip(self._similar, self._content, strict=True)], axis=1
        )
        if not values.size:
            return self._same
        mean, scale = values.mean(axis=1, keepdims=True), values.std(axis=1, keepdims=True) + 1e-6
        matches = []
        for similar, content, equal in zip(self._similar, self._content, self._same, strict=True):
            by_meaning = CONTEXT_SIMILARITY / (1.0 + np.exp(np.minimum((UNUSUAL - (similar - mean) / scale) / SPREAD, LARGEST)))
            matches.append(np.maximum(by_meaning * content, equal))
        return matches

    def _measure_nearness(self, index: int) -> float:
        """Return how near the question's terms are to the best possible answer in the sentence, in [0, 1]."""
        sentence, matched = self._sentences[index], self._matches[index]
        spans = sentence.items(self.reading.question)
        if spans is None:
            answers = np.flatnonzero(self._content[index] & (self._same[index].max(axis=0, initial=0.0) == 0.0))
        else:
            starts = [word.start for word in sentence.words]
            answers = np.unique(np.searchsorted(starts, [start for start, _ in spans], side="right") - 1)
        answers = answers[answers >= 0]
        if not len(answers) or not len(matched):
            return 0.0
        distance = np.abs(np.arange(matched.shape[1])[None, :] - answers[:, None])
        kernel = np.exp(-np.maximum(distance - REACH, 0) / DECAY)
        return float(((matched[:, None, :] * kernel[None]).max(axis=2).T @ self.reading.rarity).max())

    def _like_question_word(self, index: int) -> float:
        """Return the largest similarity of "who", "when" … and a word that no term matches: a likely answer."""
        number = self.reading.question.question_word
        if number is None:
            return 0.0
        free = self._content[index] & (self._same[index].max(axis=0, initial=0.0) == 0.0)
        return float((self.vectors[index].words[free] @ self.question.words[number]).max(initial=0.0))


def chosen_rows(features: Features, numbers: Sequence[int]) -> dict[str, Matrix]:
    """Return the features of some sentences."""
    return {name: values[list(numbers)] for name, values in features.items()}
