"""Judges questions and passages in languages other than English, and questions in another language than the passages.

The fitted judge compares English words with an English encoder. Here the embedder of the deployment compares sentences, if it
knows the languages, and the words of the question are compared in scripts without spaces, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.text.languages import ENGLISH, is_mostly_latin, language_near, language_of_passage
from agentic_rag_backend.domain.text.sentences import split_sentences
from agentic_rag_backend.domain.text.unspaced import is_unspaced
from agentic_rag_backend.generation.answerability.evidence import PassageText
from agentic_rag_backend.generation.claims.languages.conflicts import names_in
from agentic_rag_backend.generation.claims.languages.lexicon import QUESTION_WORDS, lexicon_of
from agentic_rag_backend.generation.claims.languages.passages import Matcher, ReadText, units_of
from agentic_rag_backend.generation.claims.languages.terms import read_terms
from agentic_rag_backend.generation.similarity import RelativeSimilarity, standing

MAX_SENTENCES = 64
"""Sentences that are embedded for a question: those of the best passages."""
MAX_ANSWERING = 2
FURTHER = 0.9
"""Share of the best relative similarity that a second sentence needs to be quoted."""
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
    codes = tuple(language_of_passage(each.text) or each.language or ENGLISH for each in passages)
    near = next(iter(codes), ENGLISH)
    return Languages(language_near(question, near, least=LEAST_DIFFERENT) or ENGLISH, codes)


class LanguageJudge:
    """Estimates whether passages answer, in any language.

    Args:
        similarity: compares by the deployment's embedder; None: it knows English only.
    """

    def __init__(self, similarity: RelativeSimilarity | None) -> None:
        self._similarity = similarity

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
        places = _places(passages)
        if not places:
            return Estimate(0.0, ())
        asked = ReadText(question, languages.question)
        if self._similarity is None:
            return _by_words(asked, places, languages)
        vectors = await self._similarity.embed([question, *(each.text for each in places)])
        cosines = vectors[1:] @ vectors[0]
        order = [int(number) for number in np.argsort(-cosines, kind="stable")]
        best = places[order[0]]
        language = languages.passages[best.passage]
        others = [number for number, each in enumerate(places, 1) if each.passage != best.passage]
        cohort = await self._similarity.cohort(language)
        stands = standing(vectors[0], float(cosines[order[0]]), cohort, vectors[others])
        same = language == languages.question
        features = {
            "relative": stands.relative,
            "covered": _covered(asked, passages[best.passage], language) if same else 0.0,
            "absent": _absent(asked, passages, languages),
        }
        chosen = [number for number in order[:MAX_ANSWERING] if cosines[number] >= _least(cosines[order[0]], cohort @ vectors[0])]
        return Estimate(_logistic(WITHIN if same else ACROSS, features), tuple(places[number] for number in chosen))


WITHIN = {"intercept": -5.0, "relative": 9.0, "covered": 4.5, "absent": -2.0}
"""Log odds that a sentence in the question's language answers. Fitted on the questions of ``tests/benchmarks/languages.py``."""
ACROSS = {"intercept": -4.0, "relative": 20.0, "absent": -3.0}
"""Log odds that a sentence in another language answers."""
BY_WORDS = {"intercept": -3.5, "covered": 8.0}
"""Log odds without an embedder that knows the language."""


def _least(best: float, unrelated: NDArray[np.float32]) -> float:
    mean = float(unrelated.mean())
    return mean + FURTHER * (best - mean)


def _logistic(weights: dict[str, float], features: dict[str, float]) -> float:
    value = weights["intercept"] + sum(weights[name] * features[name] for name in weights if name != "intercept")
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, value))))


def _places(passages: Sequence[PassageText]) -> list[Place]:
    found = [
        Place(number, sentence.start, sentence.text)
        for number, passage in enumerate(passages)
        for sentence in split_sentences(passage.text)
        if sentence.complete
    ]
    return found[:MAX_SENTENCES]


def _by_words(asked: ReadText, places: Sequence[Place], languages: Languages) -> Estimate:
    """Return an estimate from the words alone."""
    shares = []
    for place in places:
        same = languages.passages[place.passage] == languages.question
        shares.append(_share(asked, place.text, languages.question) if same else 0.0)
    order = sorted(range(len(places)), key=lambda number: -shares[number])
    covered = shares[order[0]]
    chosen = tuple(places[number] for number in order[:1])
    return Estimate(_logistic(BY_WORDS, {"covered": covered}), chosen)


def _covered(asked: ReadText, passage: PassageText, language: str) -> float:
    """Return the share of the question's words that its best passage or the passage's title contains."""
    return _share(asked, f"{passage.title}\n{passage.text}", language)


def _share(asked: ReadText, text: str, language: str) -> float:
    units = units_of(ReadText(text, language).terms)
    asking = QUESTION_WORDS.get(language, frozenset())
    wanted = {number for number in asked.content if asked.terms[number].form not in asking}
    return len(Matcher(asked, units).covered(units) & wanted) / len(wanted) if wanted else 0.0


def _absent(asked: ReadText, passages: Sequence[PassageText], languages: Languages) -> float:
    """Return the share of the question's names and numbers that no passage contains, in [0, 1]."""
    numbers = {term.form for term in asked.terms if term.number}
    text = "\n".join(f"{passage.title}\n{passage.text}" for passage in passages)
    # Another script writes the names in other letters.
    names = {term.form for term in names_in(asked.terms, asked.lexicon)} if is_mostly_latin(text) else set()
    wanted = numbers | names
    held = {term.form for code in set(languages.passages) for term in read_terms(text, lexicon_of(code))} if wanted else set()
    return len(wanted - held) / len(wanted) if wanted else 0.0
