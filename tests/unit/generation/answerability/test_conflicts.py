"""Documents that give different values for one thing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from evidence_judge import judge

from agentic_rag_backend.generation.answerability.evidence import PassageText
from agentic_rag_backend.generation.answerability.judge import Judgement

OPENED = "When was the new quay at Port Ellery opened?"
OLDER = PassageText("Courier", "The new quay at Port Ellery was opened on Saturday 22 July 2023. Many came.", 1.0, "1", "2023-07")
NEWER = PassageText(
    "Minutes", "The new quay at Port Ellery was opened on Saturday 29 July 2023. It rained.", 0.9, "2", "2023-08-15"
)


async def _judged(question: str, *texts: str | PassageText) -> Judgement:
    passages = [
        each if isinstance(each, PassageText) else PassageText(f"Source {number}", each, 1.0) for number, each in enumerate(texts)
    ]
    return await judge().judge(question, passages)


def _values(judged: Judgement) -> Sequence[str]:
    return [each.value for conflict in judged.conflicts for each in conflict.values]


async def test_the_newer_document_comes_first() -> None:
    judged = await _judged(OPENED, OLDER, NEWER)
    (conflict,) = judged.conflicts
    assert conflict.order == "newer"
    assert [(each.value, each.documents, each.date) for each in conflict.values] == [
        ("29 July 2023", ("Minutes",), "2023-08-15"),
        ("22 July 2023", ("Courier",), "2023-07"),
    ]
    assert [each.passage for each in judged.sentences[:2]] == [1, 0]
    assert judged.introduction == "The documents disagree; the newest comes first."


async def test_without_dates_the_better_supported_value_comes_first() -> None:
    judged = await _judged(
        "How high is the tower of Aldry church?",
        "The tower of Aldry church is 41 metres high.",
        "Aldry church has a tower that is 48 metres high.",
        "The tower of Aldry church is 48 metres high, and white.",
    )
    (conflict,) = judged.conflicts
    assert (conflict.order, _values(judged)) == ("better_supported", ["48", "41"])
    assert set(conflict.values[0].documents) == {"Source 1", "Source 2"}
    assert len(judged.sentences) == 2


async def test_dates_that_are_not_exact_enough_decide_nothing() -> None:
    same = PassageText(NEWER.title, NEWER.text, 0.9, "2", "2023-07-15")
    judged = await _judged(OPENED, OLDER, same)
    assert [conflict.order for conflict in judged.conflicts] == ["nearer"]


async def test_documents_of_one_title_are_two_sources() -> None:
    one = PassageText("Minutes", OLDER.text, 1.0, "1")
    assert _values(await _judged(OPENED, one, PassageText("Minutes", NEWER.text, 1.0, "2")))
    assert not _values(await _judged(OPENED, one, PassageText("Minutes", NEWER.text, 1.0, "1")))


async def test_more_than_two_values_although_a_name_connects_the_sentences() -> None:
    texts = [f"The ferry Linnet was built in {year} at Carrowby." for year in (1921, 1923, 1926)]
    assert sorted(_values(await _judged("When was the ferry Linnet built?", *texts))) == ["1921", "1923", "1926"]


async def test_a_distinguishing_word_about_something_else_and_a_pronoun_do_not_hide_a_conflict() -> None:
    judged = await _judged(
        "When was the tidal array opened?",
        "The tidal array was opened on 2 September 2014, when the last of six turbines was connected.",
        "The tidal array was opened on 14 June 2014 in bright sun.",
    )
    assert sorted(_values(judged)) == ["14 June 2014", "2 September 2014"]
    judged = await _judged(
        "What did the array cost?",
        "The final cost of the array, with interest during construction, was 47.8 million crowns.",
        "The array consists of six turbines. Together they produce 7.2 megawatts. It has cost 41.2 million crowns.",
    )
    assert sorted(_values(judged)) == ["41.2 million", "47.8 million"]


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("When was the bank founded?", "The Kettle Bank was founded on 3 March 2009.", "The Kettle Bank was founded in 2009."),
        ("When was the mill founded?", "The mill at Lowmere was founded in 1901.", "The mill at Lowmere was rebuilt in 1950."),
        (
            "When did a flood destroy the bridge?",
            "A flood destroyed the bridge in 1926.",
            "Another flood destroyed the bridge in 1953.",
        ),
        ("When was the siege?", "The siege of Scarrow lasted from 1641 to 1643.", "The siege of Scarrow was in 1642."),
        ("How many people live in Orle?", "About 4 million people live in Orle.", "Orle has 4.1 million people who live there."),
        ("How many people lived in Orle?", "In 1901, 812 people lived in Orle.", "In 1951, 640 people lived in Orle."),
        ("How many seats does the boat have?", "The clinic boat has twelve seats.", "There are 12 seats on the clinic boat."),
        ("How long is the pipe?", "The pipe of the ring is 2.3 kilometres long.", "The pipe of the ring is 2,300 metres long."),
        (
            "When were the Ellery and Orle schools opened?",
            "The Ellery school was opened in 1901.",
            "The Orle school was opened in 1951.",
        ),
    ],
)
async def test_other_words_and_other_events_are_no_conflict(question: str, one: str, other: str) -> None:
    assert not _values(await _judged(question, one, other))
