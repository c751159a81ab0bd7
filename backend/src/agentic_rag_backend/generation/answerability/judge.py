"""Judges questions: reads the passages found, chooses the sentences that answer, and estimates the chance that they do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.text.questions import AnswerKind, asked_for
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.generation.answerability.bridges import Bridges
from agentic_rag_backend.generation.answerability.candidates import choose_candidates
from agentic_rag_backend.generation.answerability.coefficients import Coefficients, fitted
from agentic_rag_backend.generation.answerability.conflicts import Conflict, find_conflict
from agentic_rag_backend.generation.answerability.estimate import (
    NEAREST,
    SPECIFIC,
    account_confidence,
    confidence,
    mean_of_odds,
    share_absent,
)
from agentic_rag_backend.generation.answerability.evidence import EvidenceReading, EvidenceSentence, PassageText, read_evidence
from agentic_rag_backend.generation.answerability.features import (
    Features,
    Interaction,
    chosen_rows,
    lexical_features,
)
from agentic_rag_backend.generation.answerability.languages import LanguageJudge, Languages, languages_of
from agentic_rag_backend.generation.answerability.namesakes import Bearer, Namesakes, Separation, separate
from agentic_rag_backend.generation.answerability.parts import about_the_first, split_question
from agentic_rag_backend.generation.answerability.question import read_question
from agentic_rag_backend.generation.answerability.selection import Selection, select
from agentic_rag_backend.models.embedding.base import TextVectors, WordEncoder
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

COMPARED = 8
"""Passages that are compared with a question for an account."""


@dataclass(frozen=True, slots=True)
class AnsweringSentence:
    """A sentence that answers: ``text`` stands in passage number ``passage`` from ``start`` on.

    ``written`` is the sentence to write. It differs from ``text`` for an entry of a table or list.
    """

    passage: int
    start: int
    text: str
    written: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "written", self.written or self.text)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of one question. ``confidence`` in [0, 1] is the chance that ``sentences``, best first, answer it.

    An account that rests on many passages has no sentences: ``confidence`` is then the chance that the passages hold it.
    ``conflicts`` are the different values that documents give for one thing: a sentence of each value is in ``sentences``, in
    the order of the conflict. ``unanswered`` are the parts of the question that none answers. ``namesakes`` are the bearers of a
    name of the question that has several. ``language`` is the question's, if it or the best passage is not in English.
    ``fallback`` says why the English judge decided about another language.
    """

    confidence: float
    sentences: tuple[AnsweringSentence, ...]
    asked: AnswerKind
    conflicts: tuple[Conflict, ...] = ()
    unanswered: tuple[str, ...] = ()
    namesakes: tuple[Namesakes, ...] = ()
    language: str = ""
    fallback: str = field(default="", compare=False)

    @property
    def introduction(self) -> str:
        """The sentence before the quoted ones that says how they relate; empty if there is nothing to say."""
        said = [each.introduction for each in self.namesakes] + [each.introduction for each in self.conflicts]
        return " ".join(dict.fromkeys(filter(None, said)))

    @property
    def details(self) -> dict[str, object]:
        """What the trace shows of the judgement."""
        shown: dict[str, object] = {"answer_type": self.asked.value}
        if self.conflicts:
            shown["conflict"] = [conflict.details for conflict in self.conflicts]
        if self.namesakes:
            shown["namesakes"] = [each.details for each in self.namesakes]
        if self.unanswered:
            shown["unanswered"] = list(self.unanswered)
        if self.language:
            shown["language"] = self.language
        if self.fallback:
            shown["fallback"] = self.fallback
        return shown


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
        self._weights = coefficients or fitted()
        self._languages = languages or LanguageJudge(None)

    async def judge(self, question: str, passages: Sequence[PassageText], *, least: float = 0.0) -> Judgement:
        """Judge a question, each of its parts by itself.

        Args:
            passages: the passages found, best first.
            least: confidence below which a part counts as unanswered.

        Raises:
            ModelUnavailable: the encoder is closed.
        """
        languages = languages_of(question, passages)
        if not self._languages.judges(question, languages):
            return await self._judge_english(question, passages, least)
        try:
            other = await self._judge_language(question, passages, languages)
        except ModelUnavailable as error:
            _log.warning("languages_not_compared", code=error.code)
            english = await self._judge_english(question, passages, least)
            return replace(english, fallback=f"the embedder did not compare languages: {error.code}")
        if not languages.english:
            return other
        english = await self._judge_english(question, passages, least)
        return other if other.confidence > english.confidence else english

    async def _judge_language(self, question: str, passages: Sequence[PassageText], languages: Languages) -> Judgement:
        """Judge by the deployment's embedder: a question in English by the passages in other languages only."""
        chosen = languages.foreign() if languages.english else range(len(passages))
        of_chosen = Languages(languages.question, tuple(languages.passages[number] for number in chosen))
        found = await self._languages.estimate(question, [passages[number] for number in chosen], of_chosen)
        sentences = tuple(AnsweringSentence(chosen[each.passage], each.start, each.text) for each in found.sentences)
        return Judgement(found.confidence, sentences, asked_for(question), language=languages.question)

    async def _judge_english(self, question: str, passages: Sequence[PassageText], least: float) -> Judgement:
        # An account rests on many passages, all parts of it together.
        parts = (question,) if asked_for(question) is AnswerKind.THEME else split_question(question)
        judged = await asyncio.gather(
            *(self._judge_part(part, about, passages, least) for part, about in zip(parts, about_the_first(parts), strict=True))
        )
        return judged[0] if len(parts) == 1 else _together(parts, judged, least)

    async def _judge_part(self, part: str, about: str, passages: Sequence[PassageText], least: float) -> Judgement:
        """Judge a part with the names that it is ``about``.

        Every passage about these names matches them, so the part without them counts as much.
        """
        named = await self._judge(about, passages, least)
        if about == part:
            return named
        alone = await self._judge(part, passages, least)
        return replace(named, confidence=mean_of_odds(alone.confidence, named.confidence))

    async def _judge(self, question: str, passages: Sequence[PassageText], least: float) -> Judgement:
        separation, prepared = await asyncio.to_thread(self._prepared, question, passages)
        absent = separation.absent if separation is not None else (None,)
        judged = await asyncio.gather(*map(self._judge_prepared, prepared, absent))
        return judged[0] if separation is None else _told_apart(separation, judged, least)

    async def _judge_prepared(self, prepared: _Prepared, absent: NDArray[np.bool_] | None) -> Judgement:
        if not prepared.candidates:
            return Judgement(0.0, (), prepared.reading.question.asked)
        vectors = await self._encoder.encode_words(*_encoded(prepared))
        selection, judged = await asyncio.to_thread(self._judged, prepared, vectors)
        if judged.asked is AnswerKind.THEME and judged.confidence < SPECIFIC:
            judged = Judgement(await self._account(selection), (), judged.asked)
        if absent is None:
            return judged
        return replace(judged, confidence=judged.confidence * (1.0 - share_absent(selection, absent)))

    async def account(self, question: str, passages: Sequence[PassageText]) -> float:
        """Return the chance in [0, 1] that passages, best first, hold an account of what the question asks for.

        Raises:
            ModelUnavailable: the encoder is closed.
        """
        selection = await self.select(question, passages)
        return await self._account(selection) if selection is not None else 0.0

    async def _account(self, selection: Selection) -> float:
        reading = selection.reading
        return account_confidence(selection, await self.nearness(reading.question.text, reading.passages), self._weights)

    async def nearness(self, question: str, passages: Sequence[PassageText]) -> float:
        """Return the mean cosine, in [0, 1], of the question and the `NEAREST` of the best passages; 0 without passages."""
        read = [f"{passage.title}\n{passage.text}".strip() for passage in passages[:COMPARED]]
        vectors = await self._encoder.embed([question, *read])
        return float(np.sort(np.maximum(vectors[1:] @ vectors[0], 0.0))[-NEAREST:].mean()) if read else 0.0

    async def select(self, question: str, passages: Sequence[PassageText]) -> Selection | None:
        """Return the candidates and the chosen sentences; None if no passage says anything that the question does not."""
        prepared = await asyncio.to_thread(lambda: self._prepare(read_evidence(read_question(question), passages)))
        if not prepared.candidates:
            return None
        vectors = await self._encoder.encode_words(*_encoded(prepared))
        return await asyncio.to_thread(self._selected, prepared, vectors)

    def _prepared(self, question: str, passages: Sequence[PassageText]) -> tuple[Separation | None, list[_Prepared]]:
        """Return the division of the evidence by the bearers of a name, and the candidates of each part."""
        reading, separation = _read(question, passages)
        readings = [reading] if separation is None else separation.readings
        return separation, [self._prepare(part) for part in readings]

    def _prepare(self, reading: EvidenceReading) -> _Prepared:
        lexical = lexical_features(reading)
        bridges = Bridges(reading)
        chosen = choose_candidates(reading, lexical, bridges, self._weights) if reading.sentences else ()
        return _Prepared(reading, lexical, bridges, chosen)

    def _selected(self, prepared: _Prepared, vectors: Sequence[TextVectors]) -> Selection:
        interaction = Interaction(prepared.reading, prepared.candidates, vectors[0], tuple(vectors[1:]))
        features = {**chosen_rows(prepared.lexical, prepared.candidates), **interaction.features()}
        return select(prepared.reading, prepared.bridges, interaction, features, self._weights)

    def _judged(self, prepared: _Prepared, vectors: Sequence[TextVectors]) -> tuple[Selection, Judgement]:
        selection = self._selected(prepared, vectors)
        conflict = find_conflict(selection)
        places = list(selection.chosen)
        if conflict is not None:
            further = [place for place in places if place not in conflict.places]
            places = [*(each.place for each in conflict.values), *further]
        sentences = [selection.reading.sentences[selection.interaction.chosen[place]] for place in places]
        return selection, Judgement(
            confidence=confidence(selection, self._weights),
            sentences=tuple(one for each in sentences for one in _answering(selection.reading, each, alike=conflict is None)),
            asked=selection.reading.question.asked,
            conflicts=() if conflict is None else (conflict,),
        )


def _answering(reading: EvidenceReading, sentence: EvidenceSentence, *, alike: bool) -> list[AnsweringSentence]:
    """Return a sentence as an answer states it; for a row of a table, also the rows ``alike``."""
    if sentence.entry is None:
        return [AnsweringSentence(sentence.passage, sentence.sentence.start, sentence.text)]
    rows = (sentence.entry, *(sentence.entry.alike if alike else ()))
    texts = (reading.passages[row.passage].text[row.entry.start : row.entry.end] for row in rows)
    return [AnsweringSentence(row.passage, row.entry.start, text, row.sentence) for row, text in zip(rows, texts, strict=True)]


def _together(parts: Sequence[str], judged: Sequence[Judgement], least: float) -> Judgement:
    """Return one judgement of all parts: the sentences of the answered ones, and the confidence of the weakest of these."""
    answered = [each for each in judged if each.sentences and each.confidence >= least]
    if not answered:
        return max(judged, key=lambda each: each.confidence)
    missing = tuple(part for part, each in zip(parts, judged, strict=True) if each not in answered)
    return Judgement(
        confidence=min(each.confidence for each in answered),
        sentences=tuple(dict.fromkeys(sentence for each in answered for sentence in each.sentences)),
        asked=judged[0].asked,
        conflicts=tuple(conflict for each in answered for conflict in each.conflicts),
        namesakes=tuple(namesakes for each in judged for namesakes in each.namesakes),
        unanswered=missing,
    )


def _read(question: str, passages: Sequence[PassageText]) -> tuple[EvidenceReading, Separation | None]:
    """Return the evidence, and its division by the bearers of a name. An account is about all of them."""
    reading = read_evidence(read_question(question), passages)
    return reading, None if reading.question.asked is AnswerKind.THEME else separate(reading)


def _told_apart(separation: Separation, judged: Sequence[Judgement], least: float) -> Judgement:
    """Return one judgement of the bearers of a name: that of the one that is meant, or all that answer, each with who it is."""
    namesakes = separation.namesakes
    if namesakes is None:
        return judged[0]
    answering = [
        (number, own, describing, each)
        for number, own, describing, each in zip(separation.meant, separation.own, separation.describing, judged, strict=False)
        if each.confidence >= least and any((sentence.passage, sentence.start) in own for sentence in each.sentences)
    ]
    shown = replace(namesakes, bearers=_marked(namesakes.bearers, {number for number, *_ in answering}))
    if not answering or namesakes.decided:
        return replace(max(judged, key=lambda each: each.confidence), namesakes=(shown,))
    sentences = [sentence for _, own, describing, each in answering for sentence in _introduced(each.sentences, own, describing)]
    return replace(
        answering[0][-1],
        confidence=min(each.confidence for *_, each in answering),
        sentences=tuple(dict.fromkeys(sentences)),
        conflicts=tuple(conflict for *_, each in answering for conflict in each.conflicts),
        namesakes=(shown,),
    )


def _marked(bearers: Sequence[Bearer], answered: Set[int]) -> tuple[Bearer, ...]:
    return tuple(replace(each, answered=number in answered) for number, each in enumerate(bearers))


def _introduced(
    sentences: Sequence[AnsweringSentence], own: Set[tuple[int, int]], describing: EvidenceSentence | None
) -> list[AnsweringSentence]:
    """Return a bearer's sentences, after the one that says who it is."""
    answer = [each for number, each in enumerate(sentences) if number == 0 or (each.passage, each.start) in own]
    who = [AnsweringSentence(describing.passage, describing.sentence.start, describing.text)] if describing is not None else []
    return [*who, *answer]


def _encoded(prepared: _Prepared) -> tuple[list[str], list[list[tuple[int, int]]]]:
    """Return the texts to encode, the question first, and their words. A title says who "he" in a sentence is."""
    question = prepared.reading.question
    texts, spans = [question.text], [[(word.start, word.end) for word in question.words]]
    for number in prepared.candidates:
        sentence = prepared.reading.sentences[number]
        title = prepared.reading.passages[sentence.passage].title
        above = sentence.entry.context if sentence.entry else ""
        before = "".join(f"{text}: " for text in (title, above) if text)
        texts.append(before + sentence.text)
        spans.append([(word.start + len(before), word.end + len(before)) for word in sentence.words])
    return texts, spans
