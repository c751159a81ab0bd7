"""Sentences that stand by themselves, their plain text, and their division into claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.language.independence import rate_independence, simplify_sentence, split_claims

WHOLE = "The clinic boat began regular visits to Hollin Island in 2018."


@pytest.mark.parametrize(
    "text",
    [
        "He was born in Kettlewick and taught geography there.",
        "However, the tender for the counter had lapsed.",
        "We have published our comparison of the tide tables.",
        "The boy is Kit Hallam, aged eleven, of Scarrow.",
        "A hundred of them were bought by families in Scarrow.",
        "Why should anyone believe the harbour authority?",
        "I am told this is a local skill.",
        'Asked about it, Ms Vassall said, "The rest can wait.',
        "Remarks by Henrik Mallory at the supper given for him in the Pilots' Room.",
        "**Schoolroom, Hollin Island, 26 April 2022.",
        "Behind_the_Tech_Transcript.txt the machines are going to be useful.",
        "Well, you know, the turbines are, I mean, quite loud.",
        "KEVIN SCOTT: So, that was the first machine of the series.",
    ],
)
def test_sentences_that_need_their_neighbours_stand_less(text: str) -> None:
    assert rate_independence(text) < 1.0 == rate_independence(WHOLE)


@pytest.mark.parametrize("text", ["# Heading of the page", "| Item | Crowns |", "Three words only.", "PORT ELLERY.", ""])
def test_layout_does_not_stand(text: str) -> None:
    assert rate_independence(text) == 0.0


def test_a_speaker_resolves_the_first_person() -> None:
    assert rate_independence("ANDREW NG: I think there will be partnerships with doctors.") == 1.0


def test_plain_text_has_no_markup() -> None:
    text = "- **Instruments.** The *harbour* radar\nreads `load_wind()` and snake_case_names."
    assert simplify_sentence(text) == "The harbour radar reads load_wind() and snake_case_names."
    assert simplify_sentence("**Agreed** to patch the pier.") == "Agreed to patch the pier."


def test_a_sentence_is_divided_only_if_all_parts_stand() -> None:
    assert split_claims("The post was advertised three times; the bank chose Ada Finch in 2017.") == [
        "The post was advertised three times.",
        "The bank chose Ada Finch in 2017.",
    ]
    for whole in (
        "The post was advertised; nobody came.",
        "The post was advertised three times; it was filled by Ada Finch.",
        "The post (advertised; then filled) went to Ada Finch.",
    ):
        assert split_claims(whole) == [whole]


@given(st.text(max_size=200))
def test_every_text_has_a_value_and_keeps_its_words(text: str) -> None:
    assert 0.0 <= rate_independence(text) <= 1.0
    assert "\n" not in simplify_sentence(text)
    assert "".join(split_claims(text)).replace(" ", "").replace(".", "").casefold().count(";") <= text.count(";")
