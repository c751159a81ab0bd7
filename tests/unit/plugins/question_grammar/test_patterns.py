"""Questions by patterns: what is asked of a sentence or a row, and what is left alone."""

from __future__ import annotations

from sample_passages import chunk_of

from agentic_rag_backend.knowledge.model_calls import Unrecorded
from agentic_rag_backend.plugins.question_grammar.patterns import PatternQuestions, pattern_questions
from agentic_rag_backend.plugins.question_grammar.verbs import BY_PARTICIPLE, BY_PAST


def asked(text: str, *, title: str = "", most: int = 3, header: str = "") -> list[str]:
    return pattern_questions(title, chunk_of(text, header=header), most)


def test_a_sentence_answers_its_question() -> None:
    for text, questions in [
        ("The Glass Atlas was engraved by Tomas Rehn in Westerhall.", ["Who engraved the Glass Atlas?"]),
        ("The tide mill was opened on Saturday 3 May 2014 by the mayor.", ["When was the tide mill opened?"]),
        ("In 2009, Ingrid Vassall founded the Tidal Company.", ["When did Ingrid Vassall found the Tidal Company?"]),
        ("Mira Voss was born in Brennmoor near the sea.", ["Where was Mira Voss born?"]),
        ("The new ferry cost 1.4 million crowns in the end.", ["How much did the new ferry cost?"]),
        ("The rescue boat was sold for 260,000 crowns to a museum.", ["How much was the rescue boat sold for?"]),
        ("The Heron has three blades and one gearbox.", ["How many blades does the Heron have?"]),
        ("The channel is 400 metres wide at its western end.", ["How wide is the channel?"]),
        ("Petra Okafor is the director of the Lantern Museum.", ["Who is the director of the Lantern Museum?"]),
        ("Paris is the capital of France since long ago.", ["What is the capital of France?"]),
        ("Palash Sen is an Indian singer and composer.", ["Who is Palash Sen?"]),
        ("The Glass Atlas is a book of maps from Westerhall.", ["What is the Glass Atlas?"]),
        ("Ingrid Vassall will leave the company on 1 June 2018.", ["When will Ingrid Vassall leave the company?"]),
        ("Petra Okafor leads the harbour project.", ["Who leads the harbour project?"]),
    ]:
        assert asked(text, most=1) == questions


def test_a_pronoun_stands_for_the_subject_before_or_for_the_title() -> None:
    text = "Neighbours is a television soap opera. It was created by Reg Watson in Melbourne."
    assert "Who created Neighbours?" in asked(text)
    assert asked("She founded the Tidal Institute in 2009.", title="Mara Voss") == [
        "When did Mara Voss found the Tidal Institute?",
        "Who founded the Tidal Institute in 2009?",
        "What did Mara Voss found?",
    ]
    assert asked("She founded the Tidal Institute in 2009.", title="Minutes of the meeting of May") == []
    assert asked("The old mill was sold in 2009. He founded a museum in 2010.") == ["When was the old mill sold?"]


def test_a_sentence_in_doubt_is_left_alone() -> None:
    for text in [
        "He was a good man who lived by the sea.",
        "However, this was decided by the committee in 2012.",
        "Was the mill sold in 2009 or later than that?",
        "It was not sold until 2012, said the owner of the mill.",
        "## The mill of 2009",
        "Present: Mara Voss, Tomas Eld, Ines Carrow and others of the town.",
        '"The mill was sold in 2009," she said to the crowd.',
        "The mill was repaired until 2012 and after that nobody cared.",
        "A mill near the river was sold in 2009.",
        "雨が降った。",
        "",
    ]:
        assert asked(text) == []


def test_rows_ask_for_their_columns() -> None:
    table = "| Name | Role | Room |\n|---|---|---|\n| Petra Sauvage | Archivist | C002 |\n| Tomas Eld | Skipper | B117 |\n"
    assert asked(table) == ["What is the role of Petra Sauvage?", "What is the room of Tomas Eld?"]
    row = "| Tomas Eld | Skipper | B117 |"
    assert asked(row, header="| Name | Role | Room |\n|---|---|---|") == ["What is the role of Tomas Eld?"]
    amounts = "| Loan | Crowns lent |\n|---|---|\n| Boats | 700 |\n"
    assert asked(amounts) == ["How many crowns lent are given for Boats?"]
    assert asked("| Work | Planned |\n|---|---|\n| Design | May |\n") == []


def test_the_best_question_of_each_sentence_comes_first() -> None:
    text = (
        "Mara Voss founded the Tidal Institute in 2009. The institute is the oldest house of the port. The Heron has two blades."
    )
    assert asked(text) == [
        "When did Mara Voss found the Tidal Institute?",
        "How many blades does the Heron have?",
        "What is the institute?",
    ]
    assert [len(asked(text, most=most)) for most in (1, 2, 3)] == [1, 2, 3]
    assert asked(text, most=2) == asked(text)[:2]


async def test_the_writer_answers_for_each_chunk() -> None:
    writer = PatternQuestions()
    long = "The old mill was sold in 2009. " * 900
    texts = ["The Heron has two blades.", "Nothing.", long]
    written = await writer.write("Report", [chunk_of(text) for text in texts], 2, Unrecorded())
    assert [(each.texts, each.source, each.failure) for each in written] == [
        (("How many blades does the Heron have?",), "patterns", None),
        ((), "patterns", None),
        (("When was the old mill sold?",), "patterns", None),
    ]


def test_forms_of_verbs() -> None:
    pairs = {"carried": "carry", "stopped": "stop", "moved": "move", "opened": "open", "wrote": "write", "won": "win"}
    assert {past: BY_PAST[past].base for past in pairs} == pairs
    assert (BY_PARTICIPLE["written"].past, BY_PAST["found"].base, BY_PAST["founded"].base) == ("wrote", "find", "found")
    assert all(verb.base and " " not in verb.base for verb in BY_PAST.values())
