"""Judges questions and passages in languages other than English, and questions in another language than the passages.

The fitted judge compares English words with an English encoder. Here the embedder of the deployment compares sentences, if it
knows the languages, and the words of the question are compared in scripts without spaces, too.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agentic_rag_backend.generation.answerability.evidence import PassageText
from agentic_rag_backend.generation.claims.languages.conflicts import names_in
from agentic_rag_backend.generation.claims.languages.lexicon import QUESTION_WORDS, lexicon_of
from agentic_rag_backend.generation.claims.languages.passages import Matcher, ReadText, pair_at, units_of
from agentic_rag_backend.generation.claims.languages.terms import is_character, read_terms
from agentic_rag_backend.generation.similarity import COHORT, RelativeSimilarity, relative_to
from agentic_rag_backend.language.languages import ENGLISH, is_mostly_latin, language_near, language_of_passage
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.unspaced import is_unspaced
from agentic_rag_backend.models.embedding.base import Vectors

MAX_SENTENCES = 64
"""Sentences that are embedded for a question: those of the best passages."""
MAX_ANSWERING = 2
FURTHER = 0.9
"""Share of the best relative similarity that a second sentence needs to be quoted."""
MAX_ASKED_WORDS = 12
"""Words of a question that are compared with those of its best sentence: the first ones."""
MAX_SAID_WORDS = 64
"""Words of the best sentence and its neighbours that are compared with those of a question."""
ASKED_CHARACTERS = 1000
"""Characters of a question that are read."""
LEAST_DIFFERENT = 2
"""Function words that show that a question is in another language than English."""


@dataclass(frozen=True, slots=True)
class Place:
    """A sentence of a passage, by the passage's number."""

    passage: int
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """The chance in [0, 1] that ``sentences``, best first, answer a question."""

    confidence: float
    sentences: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Languages:
    """The language of a question, and of each passage. None: unclear, as English."""

    question: str
    passages: tuple[str, ...]

    @property
    def english(self) -> bool:
        """Whether the question is in English."""
        return self.question == ENGLISH

    def foreign(self) -> list[int]:
        """Return the numbers of the passages that are not in English."""
        return [number for number, code in enumerate(self.passages) if code != ENGLISH]


def languages_of(question: str, passages: Sequence[PassageText]) -> Languages:
    """Return the languages of a question and its passages. A question that shows none has that of the best passage."""
    codes = tuple(language_of_passage(passage.text) or passage.language or ENGLISH for passage in passages)
    best_language = next(iter(codes), ENGLISH)
    return Languages(language_near(question, best_language, least=LEAST_DIFFERENT) or ENGLISH, codes)


class LanguageJudge:
    """Estimates whether passages answer, in any language.

    Args:
        similarity: compares by the deployment's embedder; None: it knows English only.
    """

    def __init__(self, similarity: RelativeSimilarity | None) -> None:
        self._similarity = similarity
        self._everyday: dict[str, Vectors] = {}

    def judges(self, question: str, languages: Languages) -> bool:
        """Return whether this judge knows more about a question than the English one."""
        if self._similarity is not None:
            return not languages.english or bool(languages.foreign())
        return not languages.english and is_unspaced(question)

    async def estimate(self, question: str, passages: Sequence[PassageText], languages: Languages) -> Estimate:
        """Return the sentences that answer, and the chance that they do.

        Raises:
            ModelUnavailable: the embedder did not answer.
        """
        places = _list_sentences(passages)
        if not places:
            return Estimate(0.0, ())
        question_text = ReadText(question[:ASKED_CHARACTERS], languages.question)
        if self._similarity is None:
            return await asyncio.to_thread(_by_words, question_text, places, languages)
        vectors = await self._similarity.embed([question_text.text, *(sentence.text for sentence in places)])
        cosines = vectors[1:] @ vectors[0]
        order = [int(number) for number in np.argsort(-cosines, kind="stable")]
        best = places[order[0]]
        language = languages.passages[best.passage]
        cohort = await self._similarity.cohort(language)
        mean = float((cohort @ vectors[0]).mean())
        features = {
            "relative": relative_to(mean, cosines[order[0]]),
            "least_word": await self._least_word(
                self._similarity, question_text, ReadText(_join_neighbours(places, order[0]), language)
            ),
            "absent": _share_missing(question_text, passages, languages),
        }
        weights = WITHIN if language == languages.question else ACROSS
        least = mean + FURTHER * (cosines[order[0]] - mean)
        chosen = [number for number in order[:MAX_ANSWERING] if cosines[number] >= least]
        return Estimate(_apply_logistic(weights, features), tuple(places[number] for number in chosen))

    async def _least_word(self, similarity: RelativeSimilarity, read_text: ReadText, said: ReadText) -> float:
        """Return how near the best word of a text is to a word of the question, for the word for which it is least near.

        A sentence about the subject of a question may not answer it: "mayor" is far from every word of "the harbour was
        built in 1887". Near is relative to everyday words of the text's language.
        """
        asking = QUESTION_WORDS.get(read_text.language or "", frozenset())
        words = [word for word in _words_of(read_text) if word.lower() not in asking and asking.isdisjoint(word)]
        question_words, sentence_words = words[:MAX_ASKED_WORDS], _words_of(said)[:MAX_SAID_WORDS]
        if not question_words or not sentence_words:
            return 0.0
        vectors = await similarity.embed([*question_words, *sentence_words])
        everyday = await self._everyday_words(similarity, said.language)
        asked_for, word_vectors = vectors[: len(question_words)], vectors[len(question_words) :]
        means = (asked_for @ everyday.T).mean(axis=1)
        return float(relative_to(means, (asked_for @ word_vectors.T).max(axis=1)).min())

    async def _everyday_words(self, similarity: RelativeSimilarity, language: str | None) -> Vectors:
        code = language if language is not None and language in COHORT else ENGLISH
        if code not in self._everyday:
            words = [word for sentence in COHORT[code] for word in _words_of(ReadText(sentence, code))]
            self._everyday[code] = await similarity.embed(list(dict.fromkeys(words)))
        return self._everyday[code]


WITHIN = {"intercept": -6.0, "relative": 8.0, "least_word": 3.9, "absent": -2.0}
"""Log odds that a sentence in the question's language answers.

Chosen by hand near a logistic regression on the questions of ``tests/fixtures/language_answers.py`` with multilingual-e5-small.
How far the best passage is ahead of the others tells as much there, but two documents that say the same are both right.
"""
ACROSS = {"intercept": -2.8, "relative": 9.0, "least_word": 1.5, "absent": -3.0}
"""Log odds that a sentence in another language answers. Chosen by hand on the same questions."""
BY_WORDS = {"intercept": -3.5, "covered": 8.0}
"""Log odds without an embedder that knows the language."""


def _join_neighbours(places: Sequence[Place], number: int) -> str:
    """Return a sentence with its neighbours in the passage."""
    neighbours = places[max(0, number - 1) : number + 2]
    return " ".join(sentence.text for sentence in neighbours if sentence.passage == places[number].passage)


def _words_of(read: ReadText) -> list[str]:
    """Return the words of a text that carry meaning, and pairs of characters of scripts without spaces, in order."""
    word_list: list[str] = []
    for index, term in enumerate(read.terms):
        if not is_character(term):
            word_list += [term.raw] * term.content
        elif pair := pair_at(read.terms, index):
            word_list.append(pair)
    return list(dict.fromkeys(word_list))


def _apply_logistic(weights: dict[str, float], features: dict[str, float]) -> float:
    value = weights["intercept"] + sum(weights[name] * features[name] for name in weights if name != "intercept")
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, value))))


def _list_sentences(passages: Sequence[PassageText]) -> list[Place]:
    sentences = [
        Place(number, sentence.start, sentence.text)
        for number, passage in enumerate(passages)
        for sentence in split_sentences(passage.text)
        if sentence.complete
    ]
    return sentences[:MAX_SENTENCES]


def _by_words(read_text: ReadText, places: Sequence[Place], languages: Languages) -> Estimate:
    """Return an estimate from the words alone."""
    shares = []
    for sentence in places:
        one_language = languages.passages[sentence.passage] == languages.question
        shares.append(_share_covered(read_text, sentence.text, languages.question) if one_language else 0.0)
    order = sorted(range(len(places)), key=lambda number: -shares[number])
    covered = shares[order[0]]
    chosen = tuple(places[number] for number in order[:1])
    return Estimate(_apply_logistic(BY_WORDS, {"covered": covered}), chosen)


def _share_covered(read_text: ReadText, text: str, language: str) -> float:
    units = units_of(ReadText(text, language).terms)
    asking = QUESTION_WORDS.get(language, frozenset())
    content = {number for number in read_text.content if read_text.terms[number].form not in asking}
    return len(Matcher(read_text, units).covered(units) & content) / len(content) if content else 0.0


def _share_missing(read_text: ReadText, passages: Sequence[PassageText], languages: Languages) -> float:
    """Return the share of the question's names and numbers that no passage contains, in [0, 1]."""
    numbers = {term.form for term in read_text.terms if term.number}
    text = "\n".join(f"{passage.title}\n{passage.text}" for passage in passages)
    # Another script writes the names in other letters.
    names = {term.form for term in names_in(read_text.terms, read_text.lexicon)} if is_mostly_latin(text) else set()
    terms = numbers | names
    present = {term.form for code in set(languages.passages) for term in read_terms(text, lexicon_of(code))} if terms else set()
    return len(terms - present) / len(terms) if terms else 0.0
