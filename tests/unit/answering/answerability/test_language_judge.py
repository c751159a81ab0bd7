"""Judging questions and passages in languages other than English."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from evidence_judge import judge
from language_answers import ASKED, PASSAGES, SUBJECTS, UNANSWERED
from numpy.typing import NDArray

from agentic_rag_backend.answering.answerability.evidence import PassageText
from agentic_rag_backend.answering.answerability.judge import AnswerJudge
from agentic_rag_backend.answering.answerability.language_judge import (
    ASKED_CHARACTERS,
    MAX_ASKED_WORDS,
    MAX_SAID_WORDS,
    MAX_SENTENCES,
    LanguageJudge,
    languages_of,
)
from agentic_rag_backend.answering.similarity import COHORT, RelativeSimilarity
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.models.embedding.base import Vectors
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder
from agentic_rag_backend.models.embedding.evidence_encoder import EvidenceEncoder

ANSWERED = 0.25
"""Default of ``ANSWER_MIN_CONFIDENCE``."""
MATTERS = (
    ("Werft", "chantier", "造船厂", "shipyard"),
    ("Mühle", "moulin", "磨坊", "mill "),
    ("Brücke", "pont ", "大桥", "bridge"),
)


class ByMatter:
    """An encoder that knows what a text is about, in every language."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.fails:
            raise ModelUnavailable("the embedder is away")
        self.texts += texts
        return np.stack([self.vector(text) for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.vector(text)

    def vector(self, text: str) -> NDArray[np.float32]:
        found = np.full(len(MATTERS) + 1, 0.2, np.float32)
        place = next((number for number, words in enumerate(MATTERS) if any(word in text for word in words)), len(MATTERS))
        found[place] = 1.0
        return found / np.float32(np.linalg.norm(found))


class ByStem(ByMatter):
    """An encoder that knows what a sentence is about, and the stems of single words."""

    def vector(self, text: str) -> NDArray[np.float32]:
        if len(text.split()) > 1:
            return np.pad(super().vector(text), (0, 64))
        seed = int.from_bytes(text.lower()[:5].encode(), "big")
        found = np.random.default_rng(seed).normal(size=64).astype(np.float32)
        return np.pad(found / np.float32(np.linalg.norm(found)), (len(MATTERS) + 1, 0))


def passages_in(code: str) -> list[PassageText]:
    return [PassageText(title, text, 1.0) for title, text in zip(SUBJECTS, PASSAGES[code], strict=True)]


def multilingual(encoder: ByMatter) -> AnswerJudge:
    words = EvidenceEncoder(BundledEmbedder(threads=1))
    return AnswerJudge(words, languages=LanguageJudge(RelativeSimilarity(encoder)))


@pytest.fixture(scope="module")
def judging() -> AnswerJudge:
    return multilingual(ByMatter())


@pytest.mark.parametrize(
    ("question", "passages", "subject"),
    [
        ("Who founded the shipyard?", "de", 0),
        ("Who founded the shipyard?", "zh", 0),
        ("Was hat die Mühle gekostet?", "en", 1),
        ("洪特河大桥有多长？", "fr", 3),
        ("Wann wurde die Brücke eröffnet?", "de", 3),
    ],
)
async def test_a_question_is_answered_in_the_language_of_the_passages(
    judging: AnswerJudge, question: str, passages: str, subject: int
) -> None:
    found = await judging.judge(question, passages_in(passages))
    assert found.confidence >= ANSWERED
    assert found.quotations[0].passage == subject
    text = PASSAGES[passages][subject]
    for quotation in found.quotations:
        if quotation.passage == subject:
            assert "".join(text[quotation.start : quotation.end].split()) == "".join(quotation.written.split())
    # The English judge refused, so that no model was called.
    if passages != "de" or question.startswith("Who"):
        assert (await judge().judge(question, passages_in(passages))).confidence < ANSWERED


async def test_other_matters_are_refused_in_every_language(judging: AnswerJudge) -> None:
    for asked in ("de", "fr", "zh", "en"):
        for question in UNANSWERED[asked][:6]:
            for passages in ("de", "fr", "zh"):
                assert (await judging.judge(question, passages_in(passages))).confidence < ANSWERED, (question, passages)


async def test_a_sentence_about_the_matter_without_a_word_for_what_is_asked_does_not_answer() -> None:
    for answered, near_miss in [
        ("Wann wurde die Mühle verkauft?", "Wer hat die Mühle gebaut?"),
        ("Wie lang ist die Brücke über die Hunte?", "Wer hat die Brücke über die Hunte entworfen?"),
    ]:
        judging = multilingual(ByStem())
        right = await judging.judge(answered, passages_in("de"))
        wrong = await judging.judge(near_miss, passages_in("de"))
        assert 1 - wrong.confidence > 10 * (1 - right.confidence)


async def test_a_question_sends_a_bounded_number_of_texts_to_the_embedder() -> None:
    encoder = ByMatter()
    judging = multilingual(encoder)
    long = PassageText("yard", " ".join(f"Die Werft hat {number} neue Schiffe gebaut." for number in range(500)), 1.0)
    await judging.judge("Wie viele Schiffe hat die Werft " + "wirklich " * 800 + "gebaut?", [long])
    cohort = sum(map(len, COHORT.values())) * 12
    assert len(encoder.texts) <= MAX_SENTENCES + 1 + MAX_ASKED_WORDS + MAX_SAID_WORDS + cohort
    assert max(map(len, encoder.texts)) <= ASKED_CHARACTERS


async def test_a_question_with_the_number_of_another_year_has_less_confidence(judging: AnswerJudge) -> None:
    right = await judging.judge("Who founded the shipyard in 1887?", passages_in("de"))
    wrong = await judging.judge("Who founded the shipyard in 1950?", passages_in("de"))
    assert wrong.confidence < right.confidence


async def test_english_questions_about_english_passages_are_not_compared_by_the_embedder() -> None:
    encoder = ByMatter()
    judging = multilingual(encoder)
    for question, _ in ASKED["en"]:
        assert await judging.judge(question, passages_in("en")) == await judge().judge(question, passages_in("en"))
    assert encoder.texts == []


async def test_an_english_question_takes_the_better_of_english_and_other_passages(judging: AnswerJudge) -> None:
    mixed = [*passages_in("en")[2:], passages_in("de")[0]]
    found = await judging.judge("Who founded the shipyard?", mixed)
    assert found.quotations[0].passage == len(mixed) - 1
    found = await judging.judge("What did Clara Weiss study?", mixed)
    assert found.quotations[0].passage == 0
    assert found.language == ""


async def test_chinese_is_compared_by_pairs_of_characters_without_a_multilingual_embedder() -> None:
    """Words of a Chinese question were whole runs of characters, so that right questions were refused and wrong ones answered."""
    passages = passages_in("zh")
    answered = [(await judge().judge(question, passages)).confidence >= ANSWERED for question, _ in ASKED["zh"]]
    refused = [(await judge().judge(question, passages)).confidence < ANSWERED for question in UNANSWERED["zh"]]
    assert sum(answered) >= len(answered) - 1
    assert sum(refused) >= len(refused) - 1
    found = await judge().judge("洪特河大桥有多长？", passages)
    assert found.quotations[0].written.startswith("洪特河大桥长310米，于1998年10月3日通车。")


async def test_the_english_judge_decides_while_the_embedder_is_away() -> None:
    judging = multilingual(ByMatter(fails=True))
    question = ASKED["de"][0][0]
    found = await judging.judge(question, passages_in("de"))
    assert found == await judge().judge(question, passages_in("de"))
    assert found.details["fallback"] == "the embedder did not compare languages: model_unavailable"


def test_the_language_of_a_question_is_read_beside_the_passages() -> None:
    for code in ("de", "fr", "zh", "en"):
        for question, _ in ASKED[code]:
            assert languages_of(question, passages_in(code)).question == code
    assert languages_of("Johann Harms Elsfleth", passages_in("de")).question == "de"
    assert languages_of("Johann Harms Elsfleth", passages_in("en")).question == "en"
    assert languages_of("Where is El Greco?", passages_in("en")).question == "en"
    assert languages_of("anything", []).question == "en"
