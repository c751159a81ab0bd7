"""Judges questions and passages in languages other than English, and questions in another language than the passages.

The fitted judge compares English words with an English encoder. Here the embedder of the deployment compares sentences, if it
knows the languages, and the words of the question are compared in scripts without spaces, too.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agentic_rag_backend.answering.answerability.evidence import PassageText
from agentic_rag_backend.answering.claims.tokens import Token, names_in, read_tokens
from agentic_rag_backend.answering.similarity import COHORT, RelativeSimilarity, relative_to
from agentic_rag_backend.language.languages import ENGLISH, is_mostly_latin, language_near, language_of_passage
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.unspaced import uses_no_spaces
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code
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
        return not languages.english and uses_no_spaces(question)

    async def estimate(self, question: str, passages: Sequence[PassageText], languages: Languages) -> Estimate:
        """Return the sentences that answer, and the chance that they do.

        Raises:
            ModelUnavailable: the embedder did not answer.
        """
        places = _list_sentences(passages)
        if not places:
            return Estimate(0.0, ())
        excerpt = question[:ASKED_CHARACTERS]
        question_language = language_of_code(languages.question)
        if self._similarity is None:
            return await asyncio.to_thread(_estimate_by_words, excerpt, places, languages)
        vectors = await self._similarity.embed([excerpt, *(sentence.text for sentence in places)])
        cosines = vectors[1:] @ vectors[0]
        order = [int(number) for number in np.argsort(-cosines, kind="stable")]
        best = places[order[0]]
        language = languages.passages[best.passage]
        cohort = await self._similarity.cohort(language)
        mean = float((cohort @ vectors[0]).mean())
        features = {
            "relative": relative_to(mean, cosines[order[0]]),
            "least_word": await self._least_word(
                self._similarity,
                _question_words(excerpt, question_language),
                _join_neighbours(places, order[0]),
                language_of_code(language),
            ),
            "absent": _share_missing(excerpt, passages, languages),
        }
        weights = WITHIN if language == languages.question else ACROSS
        least = mean + FURTHER * (cosines[order[0]] - mean)
        chosen = [number for number in order[:MAX_ANSWERING] if cosines[number] >= least]
        return Estimate(_apply_logistic(weights, features), tuple(places[number] for number in chosen))

    async def _least_word(
        self, similarity: RelativeSimilarity, question_words: Sequence[str], text: str, language: Language
    ) -> float:
        """Return how near the best word of a text is to a word of the question, for the word for which it is least near.

        A sentence about the subject of a question may not answer it: "mayor" is far from every word of "the harbour was
        built in 1887". Near is relative to everyday words of the text's language.
        """
        sentence_words = _words_of(text, language)[:MAX_SAID_WORDS]
        if not question_words or not sentence_words:
            return 0.0
        vectors = await similarity.embed([*question_words, *sentence_words])
        everyday = await self._everyday_words(similarity, language.code)
        question_vectors, word_vectors = vectors[: len(question_words)], vectors[len(question_words) :]
        means = (question_vectors @ everyday.T).mean(axis=1)
        return float(relative_to(means, (question_vectors @ word_vectors.T).max(axis=1)).min())

    async def _everyday_words(self, similarity: RelativeSimilarity, language: str) -> Vectors:
        code = language if language in COHORT else ENGLISH
        if code not in self._everyday:
            words = [word for sentence in COHORT[code] for word in _words_of(sentence, language_of_code(code))]
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


def _words_of(text: str, language: Language) -> list[str]:
    """Return the words of a text that carry meaning, and pairs of characters of scripts without spaces, in order."""
    return list(dict.fromkeys(word for word, _ in _list_words(text, language)))


def _question_words(question: str, language: Language) -> list[str]:
    """Return the words of a question, as `_words_of`, without those that ask; `MAX_ASKED_WORDS` at most."""
    words = [
        word
        for word, form in _list_words(question, language)
        if form not in language.question_words and language.question_words.isdisjoint(word)
    ]
    return list(dict.fromkeys(words))[:MAX_ASKED_WORDS]


def _list_words(text: str, language: Language) -> Iterator[tuple[str, str]]:
    """Yield the words of a text that carry meaning with their forms. Of scripts without spaces, these are pairs of characters."""
    tokens = read_tokens(text, language)
    for index, token in enumerate(tokens):
        if not token.character:
            yield from [(token.raw, token.form)] * token.content
        elif pair := _pair_at(tokens, index):
            yield pair, pair


def _pair_at(tokens: Sequence[Token], index: int) -> str:
    """Return the character at a place and the next one; empty if there are no such two."""
    pair = tokens[index : index + 2] if index >= 0 else ()
    joined = len(pair) == 2 and not pair[1].gap and all(len(token.raw) == 1 for token in pair)
    return pair[0].raw + pair[1].raw if joined else ""


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


def _estimate_by_words(question: str, places: Sequence[Place], languages: Languages) -> Estimate:
    """Return an estimate from the words alone."""
    language = language_of_code(languages.question)
    shares = [
        _covered_share(question, sentence.text, language) if languages.passages[sentence.passage] == language.code else 0.0
        for sentence in places
    ]
    best = max(range(len(places)), key=lambda number: shares[number])
    return Estimate(_apply_logistic(BY_WORDS, {"covered": shares[best]}), (places[best],))


def _covered_share(question: str, text: str, language: Language) -> float:
    """Return the share of the question's words that a text has. A character counts with the one before or after it."""
    tokens, quoted = read_tokens(question, language), read_tokens(text, language)
    forms = {token.form for token in quoted} | {_pair_at(quoted, index) for index in range(len(quoted))}
    content = [index for index, token in enumerate(tokens) if token.content and token.form not in language.question_words]
    covered = [
        not forms.isdisjoint({_pair_at(tokens, index - 1), _pair_at(tokens, index)} - {""})
        if tokens[index].character
        else tokens[index].form in forms
        for index in content
    ]
    return sum(covered) / len(covered) if covered else 0.0


def _share_missing(question: str, passages: Sequence[PassageText], languages: Languages) -> float:
    """Return the share of the question's names and numbers that no passage contains, in [0, 1]."""
    tokens = read_tokens(question, language_of_code(languages.question))
    numbers = {token.form for token in tokens if token.number}
    text = "\n".join(f"{passage.title}\n{passage.text}" for passage in passages)
    # Another script writes the names in other letters.
    terms = numbers | (names_in(tokens) if is_mostly_latin(text) else set())
    codes = set(languages.passages) if terms else ()
    present = {token.form for code in codes for token in read_tokens(text, language_of_code(code))}
    return len(terms - present) / len(terms) if terms else 0.0
