"""Judges questions: reads the passages found, chooses the quotations that answer, and estimates the chance that they do.

The quotations of an account that rests on many passages, such as "How do the islanders fare?": one sentence of each passage.

A sentence is worth its similarity to the question, the question's rare words in it and around it, and whether it is understood by
itself (`independence.rate_independence`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.answering.answerability.estimate import NEAREST, SPECIFIC, account_confidence, estimate_confidence
from agentic_rag_backend.answering.answerability.evidence import (
    EvidenceReading,
    PassageText,
    read_evidence,
)
from agentic_rag_backend.answering.answerability.language_judge import LanguageJudge, Languages, languages_of
from agentic_rag_backend.answering.answerability.question import read_question
from agentic_rag_backend.answering.answerability.selection import (
    Bridges,
    Coefficients,
    Selection,
    choose_candidates,
    load_coefficients,
    select,
)
from agentic_rag_backend.answering.answerability.sentence_features import Features, Interaction, chosen_rows, lexical_features
from agentic_rag_backend.answering.answerability.units import Unit, units_of
from agentic_rag_backend.answering.answerability.windows import MAX_QUOTATIONS, TOTAL_CHARACTERS, choose_windows
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.language.independence import rate_independence
from agentic_rag_backend.language.questions.kinds import AnswerKind, asked_for, asks_twice
from agentic_rag_backend.language.questions.splitting import split_question
from agentic_rag_backend.models.embedding.base import TextVectors, Vectors, WordEncoder
from agentic_rag_backend.telemetry.logs import get_logger

MAX_COMPARED = 16
"""Sentences that are embedded, which is nearly the whole cost."""
MAX_PER_PASSAGE = 2
MAX_QUOTED = 6
WORDS_SHARE = 0.5
"""Weight of the question's words relative to the cosine."""
LEAST_STANDING = 0.6
"""Factor on the worth of a sentence that is not understood by itself."""
WORTH_QUOTING = 5.0
"""Difference of log odds from the best unit, up to which a further unit of its document is quoted."""
LEAST_SHARE = 0.5
"""Share of the best worth from which a further sentence is quoted."""


def select_compared_sentences(reading: EvidenceReading) -> list[int]:
    """Return the numbers of the sentences to compare with the question, at most `MAX_COMPARED`, few of each passage."""
    worth = _weigh_words(reading) * _is_standing(reading, range(len(reading.sentences)))
    per_passage: Counter[int] = Counter()
    numbers: list[int] = []
    for number in np.argsort(-worth, kind="stable").tolist():
        sentence = reading.sentences[number]
        if sentence.statement and per_passage[sentence.passage] < MAX_PER_PASSAGE:
            per_passage[sentence.passage] += 1
            numbers.append(number)
    return numbers[:MAX_COMPARED]


def texts_of(reading: EvidenceReading, numbers: Sequence[int]) -> list[str]:
    """Return the texts of sentences, each after the title of its document."""
    sentences = [reading.sentences[number] for number in numbers]
    return [f"{reading.passages[sentence.passage].title}: {sentence.text}" for sentence in sentences]


def choose_passages(reading: EvidenceReading, numbers: Sequence[int], question: Vectors, vectors: Vectors) -> list[int]:
    """Return the numbers of the quoted sentences, best first, one of each passage.

    Args:
        numbers: see `select_compared_sentences`.
        question: vector of the question, shape (dimensions,).
        vectors: of the sentences, shape (len(numbers), dimensions).
    """
    worth = (vectors @ question + WORDS_SHARE * _weigh_words(reading)[list(numbers)]) * _is_standing(reading, numbers)
    chosen: dict[int, int] = {}
    for index in np.argsort(-worth, kind="stable").tolist():
        passage = reading.sentences[numbers[index]].passage
        if worth[index] >= LEAST_SHARE * worth.max() and passage not in chosen:
            chosen[passage] = numbers[index]
    return list(chosen.values())[:MAX_QUOTED]


def _weigh_words(reading: EvidenceReading) -> NDArray[np.float64]:
    """Return, for each sentence, the rarity of the question's terms in it and, by half, around it."""
    return np.asarray(reading.rarity @ (reading.held + reading.in_window) / 2, dtype=np.float64)


def _is_standing(reading: EvidenceReading, numbers: Sequence[int]) -> NDArray[np.float64]:
    stands = np.array([rate_independence(reading.sentences[number].text) for number in numbers], dtype=np.float64)
    return LEAST_STANDING + (1.0 - LEAST_STANDING) * stands


_log = get_logger(__name__)

COMPARED = 8
"""Passages that are compared with a question for an account."""
UNCOMPARED = 0.01
"""Factor on the words' share that a sentence holds which was not compared, beside the odds of the others."""


@dataclass(frozen=True, slots=True)
class PassageQuotation:
    """A window of passage number ``passage``: its ``text[start:end]``. ``written`` is what an answer writes."""

    passage: int
    start: int
    end: int
    written: str

    def overlaps(self, other: PassageQuotation) -> bool:
        """Return whether both are of one passage and have text in common."""
        return self.passage == other.passage and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one question. ``confidence`` in [0, 1] is the chance that ``quotations``, best first, answer it.

    ``language`` is the question's, if it or the best passage is not in English. ``fallback`` says why the English judge decided
    about another language.
    """

    confidence: float
    quotations: tuple[PassageQuotation, ...]
    asked: AnswerKind
    passages: frozenset[int] = frozenset()
    """The passages with units that answer; all of them for an account that rests on many."""
    language: str = ""
    fallback: str = field(default="", compare=False)

    @property
    def details(self) -> dict[str, object]:
        """What the trace shows of the judgement."""
        details: dict[str, object] = {"answer_type": self.asked.value}
        if self.language:
            details["language"] = self.language
        if self.fallback:
            details["fallback"] = self.fallback
        return details


@dataclass(frozen=True)
class _Prepared:
    reading: EvidenceReading
    lexical: Features
    bridges: Bridges
    candidates: tuple[int, ...]


class AnswerJudge:
    """Judges questions with an encoder of words in context.

    The encoder is not the embedder of the indexes: weights are fitted to one encoder, and hold whatever vectors are searched.
    It knows English. ``languages`` judges other questions and passages.
    """

    def __init__(
        self, encoder: WordEncoder, coefficients: Coefficients | None = None, languages: LanguageJudge | None = None
    ) -> None:
        self._encoder = encoder
        self._weights = coefficients or load_coefficients()
        self._languages = languages or LanguageJudge(None)

    async def judge(self, question: str, passages: Sequence[PassageText]) -> Judgement:
        """Judge a question by the passages found, best first. A question about two things is judged by what answers each.

        Raises:
            ModelUnavailable: the encoder is closed.
        """
        parts = split_question(question)
        if parts is None or any(parts.are_one_in(passage.text) for passage in passages):
            return await self._judge_question(question, passages)
        texts = (question, parts.first_part, parts.second_part)
        return combine_parts(*await asyncio.gather(*(self._judge_question(text, passages) for text in texts)))

    async def _judge_question(self, question: str, passages: Sequence[PassageText]) -> Judgement:
        languages = languages_of(question, passages)
        if not self._languages.judges(question, languages):
            return await self._judge_english(question, passages)
        try:
            judgement = await self._judge_language(question, passages, languages)
        except ModelUnavailable as error:
            _log.warning("languages_not_compared", code=error.code)
            english = await self._judge_english(question, passages)
            return replace(english, fallback=f"the embedder did not compare languages: {error.code}")
        if not languages.english:
            return judgement
        english = await self._judge_english(question, passages)
        return judgement if judgement.confidence > english.confidence else english

    async def _judge_language(self, question: str, passages: Sequence[PassageText], languages: Languages) -> Judgement:
        """Judge by the deployment's embedder: a question in English by the passages in other languages only."""
        chosen = languages.foreign() if languages.english else range(len(passages))
        of_chosen = Languages(languages.question, tuple(languages.passages[number] for number in chosen))
        estimate = await self._languages.estimate(question, [passages[number] for number in chosen], of_chosen)
        places = [(chosen[sentence.passage], sentence.start) for sentence in estimate.sentences]
        units = {passage: units_of(passages[passage].text, passages[passage].header) for passage, _ in places}
        numbers = [(passage, _unit_at(units[passage], start)) for passage, start in places]
        quotations = quote_windows(units, numbers, {})
        answering = frozenset(passage for passage, _ in places)
        return Judgement(estimate.confidence, quotations, asked_for(question), answering, languages.question)

    async def _judge_english(self, question: str, passages: Sequence[PassageText]) -> Judgement:
        selection = await self.select(question, passages)
        if selection is None:
            return Judgement(0.0, (), asked_for(question))
        chance, kind = estimate_confidence(selection, self._weights), selection.reading.question.asked
        if kind is AnswerKind.THEME and (chance < SPECIFIC or asks_twice(question)):
            chance, quotations = await asyncio.gather(self._judge_account(selection), self._account_quotations(selection.reading))
            return Judgement(chance, quotations, kind, frozenset(range(len(passages))))
        answering = frozenset(selection.reading.sentences[number].passage for number in selection.numbers)
        return Judgement(chance, _choose_quotations(selection), kind, answering)

    async def account(self, question: str, passages: Sequence[PassageText]) -> float:
        """Return the chance in [0, 1] that passages, best first, hold an account of what the question asks for.

        Raises:
            ModelUnavailable: the encoder is closed.
        """
        selection = await self.select(question, passages)
        return await self._judge_account(selection) if selection is not None else 0.0

    async def _judge_account(self, selection: Selection) -> float:
        reading = selection.reading
        return account_confidence(selection, await self.nearness(reading.question.text, reading.passages), self._weights)

    async def _account_quotations(self, reading: EvidenceReading) -> tuple[PassageQuotation, ...]:
        numbers = await asyncio.to_thread(select_compared_sentences, reading)
        if not numbers:
            return ()
        vectors = await self._encoder.embed([reading.question.text, *texts_of(reading, numbers)])
        sentences = [reading.sentences[number] for number in choose_passages(reading, numbers, vectors[0], vectors[1:])]
        return tuple(
            PassageQuotation(sentence.passage, sentence.unit.start, sentence.unit.end, sentence.text) for sentence in sentences
        )

    async def nearness(self, question: str, passages: Sequence[PassageText]) -> float:
        """Return the mean cosine, in [0, 1], of the question and the `NEAREST` of the best passages; 0 without passages."""
        texts = [f"{passage.title}\n{passage.text}".strip() for passage in passages[:COMPARED]]
        vectors = await self._encoder.embed([question, *texts])
        return float(np.sort(np.maximum(vectors[1:] @ vectors[0], 0.0))[-NEAREST:].mean()) if texts else 0.0

    async def select(self, question: str, passages: Sequence[PassageText]) -> Selection | None:
        """Return the candidates and the chosen units; None if no passage says anything that the question does not."""
        prepared = await asyncio.to_thread(self._prepare_reading, question, passages)
        if not prepared.candidates:
            return None
        vectors = await self._encoder.encode_words(*_texts_to_encode(prepared))
        return await asyncio.to_thread(self._select_units, prepared, vectors)

    def _prepare_reading(self, question: str, passages: Sequence[PassageText]) -> _Prepared:
        reading = read_evidence(read_question(question), passages)
        lexical = lexical_features(reading)
        bridges = Bridges(reading)
        candidates = choose_candidates(reading, lexical, bridges, self._weights) if reading.sentences else ()
        return _Prepared(reading, lexical, bridges, candidates)

    def _select_units(self, prepared: _Prepared, vectors: Sequence[TextVectors]) -> Selection:
        interaction = Interaction(prepared.reading, prepared.candidates, vectors[0], tuple(vectors[1:]))
        features = {**chosen_rows(prepared.lexical, prepared.candidates), **interaction.features()}
        return select(prepared.reading, prepared.bridges, interaction, features, self._weights)


def combine_parts(undivided: Judgement, first_part: Judgement, second_part: Judgement) -> Judgement:
    """Return the judgement of a question about two things: what answers each comes first_part.

    The judgement of the whole question stands if one place answers both, or one is not answered.
    """
    if not first_part.quotations or not second_part.quotations:
        return undivided
    quotations = [first_part.quotations[0], second_part.quotations[0]]
    if quotations[0].overlaps(quotations[1]):
        return undivided
    for quotation in undivided.quotations:
        length = sum(len(chosen.written) for chosen in (*quotations, quotation))
        fits = len(quotations) < MAX_QUOTATIONS and length <= TOTAL_CHARACTERS
        if fits and not any(quotation.overlaps(chosen) for chosen in quotations):
            quotations.append(quotation)
    return replace(
        undivided,
        confidence=max(undivided.confidence, min(first_part.confidence, second_part.confidence)),
        quotations=tuple(quotations),
        passages=first_part.passages | second_part.passages,
    )


def quote_windows(
    units: Mapping[int, Sequence[Unit]], ranked: Iterable[tuple[int, int]], worth: Mapping[tuple[int, int], float]
) -> tuple[PassageQuotation, ...]:
    """Return the windows of units, best first (see `choose_windows`)."""
    windows = choose_windows(units, ranked, worth)
    return tuple(PassageQuotation(passage, window.start, window.end, window.text) for passage, window in windows)


def _choose_quotations(selection: Selection) -> tuple[PassageQuotation, ...]:
    """Return the windows of the chosen units, then those of the other candidates by their scores."""
    reading = selection.reading
    places = dict.fromkeys((*selection.chosen, *np.argsort(-selection.scores, kind="stable").tolist()))
    numbers = _without_lesser_rows(reading, _without_digressions(selection, list(places)))
    # A sentence that was not compared with the question is worth less than those that were.
    values = np.asarray(reading.rarity @ reading.held, dtype=np.float64) * UNCOMPARED
    values[list(selection.interaction.chosen)] = np.exp(selection.scores - selection.scores.max())
    sentences = reading.sentences
    return quote_windows(
        dict(enumerate(reading.units)),
        [(sentences[number].passage, sentences[number].number) for number in numbers],
        {(sentence.passage, sentence.number): float(value) for sentence, value in zip(sentences, values, strict=True)},
    )


def _without_digressions(selection: Selection, places: Sequence[int]) -> list[int]:
    """Return the numbers of the units at ``places``, without those that only share a document with a unit that was chosen.

    A unit of another document may be the second hop, however little it resembles the question.
    """
    reading, scores = selection.reading, selection.scores
    numbers = selection.interaction.chosen
    passages = [reading.passages[reading.sentences[number].passage] for number in numbers]
    document_of = [passage.document or passage.title for passage in passages]
    quoted = {document_of[place] for place in selection.chosen}
    least = scores.max() - WORTH_QUOTING
    return [
        numbers[place]
        for place in places
        if place in selection.chosen or scores[place] >= least or document_of[place] not in quoted
    ]


def _without_lesser_rows(reading: EvidenceReading, numbers: Sequence[int]) -> list[int]:
    """Return units, best first, without the rows that hold only some of the question's terms that an earlier row holds.

    The phone number of another person does not answer; the rows of both sides of a comparison do.
    """
    better: list[frozenset[int]] = []
    chosen: list[int] = []
    for number in numbers:
        if reading.sentences[number].unit.kind == "row":
            terms = frozenset(np.flatnonzero(reading.held[:, number]).tolist())
            if any(terms < row for row in better):
                continue
            better.append(terms)
        chosen.append(number)
    return chosen


def _unit_at(units: Sequence[Unit], start: int) -> int:
    """Return the number of the unit that contains the character at ``start``, or the next one."""
    return next((number for number, unit in enumerate(units) if start < unit.end), len(units) - 1)


def _texts_to_encode(prepared: _Prepared) -> tuple[list[str], list[list[tuple[int, int]]]]:
    """Return the texts to encode, the question first, and their words. A title says who "he" in a sentence is."""
    question = prepared.reading.question
    texts, spans = [question.text], [[(word.start, word.end) for word in question.words]]
    for number in prepared.candidates:
        sentence = prepared.reading.sentences[number]
        title = prepared.reading.passages[sentence.passage].title
        above = sentence.unit.context if sentence.unit.kind == "row" else ""
        before = "".join(f"{text}: " for text in (title, sentence.headings, above) if text)
        texts.append(before + sentence.text)
        spans.append([(word.start + len(before), word.end + len(before)) for word in sentence.words])
    return texts, spans
