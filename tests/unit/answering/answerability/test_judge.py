"""Judging whether passages answer a question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from evidence_judge import judge
from hypothesis import given
from hypothesis import strategies as st
from sampling import sampled

from agentic_rag_backend.answering.answerability.evidence import PassageText, read_evidence
from agentic_rag_backend.answering.answerability.judge import MAX_QUOTED, AnswerJudge
from agentic_rag_backend.answering.answerability.question import read_question
from agentic_rag_backend.answering.answerability.selection import MAX_CANDIDATES
from agentic_rag_backend.answering.answerability.sentence_features import lexical_features
from agentic_rag_backend.answering.answerability.windows import MAX_QUOTATIONS
from agentic_rag_backend.language.questions.kinds import AnswerKind
from agentic_rag_backend.language.questions.splitting import split_question
from agentic_rag_backend.models.embedding.base import TextVectors

ACCORD = PassageText(
    "Narrows Accord",
    "The Narrows Accord was signed in the net loft at Scarrow on 9 November 2012. A corridor 400 metres wide shall be kept open "
    "to fishing. Tomas Garrow signed for the association.",
    1.0,
)
BOAT = PassageText(
    "The clinic boat",
    "The clinic boat Ada Finch, built by Pellow Marine Works, began regular visits to Hollin Island on 1 October 2018.",
    0.9,
)
YARD = PassageText(
    "Pellow Marine Works", "Pellow Marine Works was founded in 1887 by two brothers. It employs forty people.", 0.6
)
SHED = PassageText("Sheds", "The shed at Sund was painted in summer, and its roof was mended by volunteers from Scarrow.", 0.5)
CORPUS = (ACCORD, BOAT, YARD, SHED)


async def test_the_sentence_that_answers_comes_first() -> None:
    for question, answer in [
        ("When was the Narrows Accord signed?", "9 November 2012"),
        ("How wide is the corridor of the Narrows Accord?", "400 metres"),
        ("Who signed the Narrows Accord for the association?", "Tomas Garrow"),
        ("When did the clinic boat Ada Finch begin its visits?", "1 October 2018"),
    ]:
        judgement = await judge().judge(question, CORPUS)
        assert answer in judgement.quotations[0].written
        assert judgement.confidence > 0.3


async def test_what_something_is_comes_before_what_it_does() -> None:
    used = PassageText(
        "About Tideline",
        "You can find a longer list of harbours that use Tideline on the page of Tideline. Ask the makers of Tideline.",
        1.0,
    )
    said = PassageText(
        "About Tideline", "In short, Tideline is a small program that reads gauges and draws curves of the water.", 0.3
    )
    judgement = await judge().judge("What is Tideline?", (used, said, *CORPUS))
    assert judgement.quotations[0].written == said.text


async def test_questions_about_other_things_have_little_confidence() -> None:
    for question in [
        "Who painted the ceiling of the Sistine Chapel?",
        "How many goals did Brazil score in the final of 1998?",
        "What is the boiling point of ethanol?",
    ]:
        assert (await judge().judge(question, CORPUS)).confidence < 0.1


async def test_an_absent_attribute_has_less_confidence_than_a_stated_one() -> None:
    for answered, absent in [
        ("When did the clinic boat Ada Finch begin its visits?", "What colour is the clinic boat Ada Finch?"),
        ("When was the Narrows Accord signed?", "When was the Narrows Accord cancelled?"),
        ("When was Pellow Marine Works founded?", "What did Pellow Marine Works earn?"),
        ("How many people does Pellow Marine Works employ?", "How many boats did Pellow Marine Works sink?"),
    ]:
        stated, unknown = await judge().judge(answered, CORPUS), await judge().judge(absent, CORPUS)
        assert unknown.confidence < stated.confidence - 0.1


async def test_a_document_is_quoted_once_if_its_other_sentences_are_about_something_else() -> None:
    judgement = await judge().judge("How wide is the corridor of the Narrows Accord?", [ACCORD])
    assert [quotation.passage for quotation in judgement.quotations] == [0]
    far = PassageText(ACCORD.title, "The oyster beds at Lowmere were leased to a family from Hestermark.", 0.4)
    judgement = await judge().judge("How wide is the corridor of the Narrows Accord?", [ACCORD, far])
    assert [quotation.passage for quotation in judgement.quotations] == [0], "another passage of the same document"


async def test_two_questions_in_one_ask_for_an_account() -> None:
    question = "What was promised to Hollin Island, and how do its people fare?"
    island = [
        PassageText("Letter", "The council promised Hollin Island a new ferry in 2019.", 1.0, "d1"),
        PassageText("Clinic", "Hollin Island has 640 people and no doctor.", 0.9, "d2"),
        PassageText("Array", "The cable passes Hollin Island without stopping, and its people burn diesel.", 0.8, "d3"),
    ]
    judgement = await judge().judge(question, island)
    assert {quotation.passage for quotation in judgement.quotations} == {0, 1, 2}


async def test_a_second_hop_comes_from_another_document() -> None:
    judgement = await judge().judge("In which year was the yard that built the Ada Finch founded?", CORPUS)
    assert {quotation.passage for quotation in judgement.quotations} >= {1, 2}
    assert any("1887" in quotation.written for quotation in judgement.quotations)


async def test_nothing_is_judged_without_passages() -> None:
    judgement = await judge().judge("Who?", [])
    assert (judgement.confidence, judgement.quotations, judgement.asked) == (0.0, (), AnswerKind.NAME)
    only_title = await judge().judge("What is a shed?", [PassageText("Sheds", "A shed.", 1.0)])
    assert only_title.quotations == ()


def test_a_sentence_with_a_pronoun_has_the_words_of_the_sentences_before_it() -> None:
    text = (
        "Ms Aster went to sea at seventeen. She was a pilot for nine years. She has written two handbooks. The harbour is old. "
        "It is deep."
    )
    reading = read_evidence(read_question("Which handbooks did Aster write?"), [PassageText("", text, 1.0)])
    assert reading.referred == ((), (0,), (1, 0), (), (3,))
    aster = reading.question.forms.index("aster")
    assert reading.in_window[aster].tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]


def test_the_year_of_a_document_counts_as_its_title() -> None:
    passages = [PassageText("Notice", "There were fourteen candidates.", 1.0, date=date) for date in ("2016-09-06", "")]
    reading = read_evidence(read_question("How many candidates were there in 2016?"), passages)
    assert lexical_features(reading)["numbers_absent"].tolist() == [0.0, 1.0]


def test_rows_have_the_name_of_their_first_column_and_numbers_without_unit() -> None:
    table = "| Quay | Berth | Depth |\n|---|---|---|\n| North | N2 | 6.1 |\n| South | N3 | 4 m |\n"
    for question, held, in_window, items in (
        ("Which quay is berth N2?", [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], None),
        ("What is the depth of N2?", [1.0, 1.0], [1.0, 1.0], ["6.1"]),
        ("What is the width of N2?", [0.0, 1.0], [0.0, 1.0], []),
    ):
        reading = read_evidence(read_question(question), [PassageText("Fleet", table, 1.0)])
        first = reading.sentences[0]
        assert (reading.held[:, 0].tolist(), reading.in_window[:, 0].tolist()) == (held, in_window)
        spans = first.items(reading.question)
        assert items == (None if spans is None else [first.text[start:end] for start, end in spans])


def test_features_of_words() -> None:
    reading = read_evidence(
        read_question("Who did not accept the first medal of 1998?"),
        [
            PassageText(
                "Medals", "Garrow declined the last medal. He was given the medal of 1998 first, and never accepted it.", 1.0
            )
        ],
    )
    features = lexical_features(reading)
    assert features["opposite"].tolist() == [1.0, 0.0], "the last medal is not the first"
    assert features["negation"].tolist() == [1.0, 0.0], "to decline is no negation by word"
    assert features["numbers_absent"].tolist() == [0.0, 0.0], "the year is in the window"
    assert features["held"][1] > features["held"][0]


@sampled(gate=25, deep=500)
@given(st.text(max_size=200), st.lists(st.tuples(st.text(max_size=30), st.text(max_size=300)), max_size=4))
def test_any_text_is_judged(question: str, texts: list[tuple[str, str]]) -> None:
    passages = [PassageText(title, text, 1 / place) for place, (title, text) in enumerate(texts, 1)]
    judgement = asyncio.run(judge().judge(question, passages))
    assert 0.0 <= judgement.confidence <= 1.0
    assert len(judgement.quotations) <= max(MAX_QUOTATIONS, MAX_QUOTED)
    for quotation in judgement.quotations:
        quote = passages[quotation.passage].text[quotation.start : quotation.end]
        assert quote == quote.strip() != ""
    spans = sorted((quotation.passage, quotation.start, quotation.end) for quotation in judgement.quotations)
    assert len(set(spans)) == len(spans), "no place is quoted twice"


async def test_only_few_sentences_are_encoded() -> None:
    encoded: list[str] = []

    class Counting:
        async def encode_words(self, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> list[TextVectors]:
            encoded.extend(texts)
            return [TextVectors(np.ones(4, np.float32) / 2, np.ones((len(each), 4), np.float32) / 2) for each in spans]

    many = [PassageText(f"T{number}", f"The medal of {number} was given to Garrow. It was gold.", 1.0) for number in range(40)]
    await AnswerJudge(Counting()).judge("Who was given the medal?", many)
    assert len(encoded) == MAX_CANDIDATES + 1


async def test_a_question_about_two_things_is_answered_by_what_answers_each() -> None:
    both = "When was the Narrows Accord signed and when was Pellow Marine Works founded?"
    judgement = await judge().judge(both, CORPUS)
    first, second = judgement.quotations[:2]
    assert ("9 November 2012" in first.written, "1887" in second.written) == (True, True)
    parts = [await judge().judge(text, CORPUS) for text in split_texts(both)]
    assert judgement.confidence >= min(part.confidence for part in parts) > 0.3
    assert judgement.passages >= parts[0].passages | parts[1].passages

    unanswered = await judge().judge("When was the Narrows Accord signed and when was Zebulon Quark born?", CORPUS)
    assert unanswered.confidence < judgement.confidence


def split_texts(question: str) -> tuple[str, str]:
    parts = split_question(question)
    assert parts is not None
    return parts.first_part, parts.second_part
