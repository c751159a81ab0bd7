"""Names with several bearers."""

from __future__ import annotations

from evidence_judge import judge

from agentic_rag_backend.generation.answerability.bearers import Bearers
from agentic_rag_backend.generation.answerability.bridges import Bridges
from agentic_rag_backend.generation.answerability.evidence import EvidenceReading, PassageText, read_evidence
from agentic_rag_backend.generation.answerability.question import read_question

MARSH = ("john", "marsh")
PAINTER = PassageText(
    "Kent painters", "John Marsh, a painter of ships, lived in Dover. John Marsh won the Turner Prize in 1951.", 1.0
)
CHEMIST = PassageText("Leeds laboratory", "John Marsh was a chemist. John Marsh measured arsenic in wallpaper.", 0.9)


def _reading(*passages: PassageText, question: str = "What prize did John Marsh win?") -> EvidenceReading:
    return read_evidence(read_question(question), passages)


def _bearers(*passages: PassageText) -> int:
    return len(Bearers(_reading(*passages), MARSH).known)


def test_other_kinds_without_a_shared_name_are_two_bearers() -> None:
    assert _bearers(PAINTER, CHEMIST) == 2
    shared = PassageText("Letters", "John Marsh was a chemist. John Marsh met Ada Turner at Dover.", 1.0)
    assert _bearers(PAINTER, shared) == 1
    told = PassageText("Note", "The chemist John Marsh of Dover is not to be confused with the Turner of that name.", 1.0)
    assert _bearers(PAINTER, told) == 2
    laureate = PassageText("Laureates", "John Marsh was a politician and a sculptor.", 1.0)
    assert _bearers(PAINTER, laureate) == 1


def test_one_document_may_describe_a_person_twice() -> None:
    once = PassageText("Life", "John Marsh was a painter. In old age John Marsh was a chemist.", 1.0)
    assert _bearers(once) == 1
    twice = PassageText("Register", "John Marsh (born 1702) was a painter.\n\nJohn Marsh (born 1788) was a chemist.", 1.0)
    assert _bearers(twice) == 2


def test_a_document_without_a_description_is_about_nobody_in_particular() -> None:
    plain = PassageText("News", "John Marsh came to the fair. He bought a horse.", 0.5)
    bearers = Bearers(_reading(PAINTER, CHEMIST, plain), MARSH)
    assert [bearers.reading.sentences[number].text for number in bearers.unknown] == [
        "John Marsh came to the fair.",
        "He bought a horse.",
    ]
    assert Bearers(_reading(PAINTER, plain), MARSH).unknown == ()


def test_no_bridge_leads_to_a_namesake() -> None:
    film = PassageText("Night Ferry", "The song Night Ferry was composed by Lena Kroll.", 1.0)
    rower = PassageText("Lena Kroll (rower)", "Lena Kroll was a rower. Lena Kroll was born in Tarn.", 1.0)
    composer = PassageText("Lena Kroll", "Lena Kroll was a pianist. Lena Kroll was born in Orle.", 1.0)
    question = "Where was the composer of Night Ferry born?"
    apart, same = Bridges(_reading(film, rower, question=question)), Bridges(_reading(film, composer, question=question))
    assert apart.strength(0, 2) == apart.title_named(2, 0) == 0.0
    assert same.strength(0, 2) > 0.0
    assert same.title_named(2, 0) > 0.0


async def test_the_question_decides_or_both_are_told_apart() -> None:
    painter = await judge().judge("What prize did the painter John Marsh win?", [PAINTER, CHEMIST], least=0.25)
    assert painter.sentences[0].passage == 0
    assert painter.introduction == ""
    assert [each.answered for each in painter.namesakes[0].bearers] == [True, False]
    chemist = await judge().judge("What prize did the chemist John Marsh win?", [PAINTER, CHEMIST], least=0.25)
    assert chemist.confidence < 0.25
    either = await judge().judge("What prize did John Marsh win?", [PAINTER, CHEMIST], least=0.25)
    assert either.introduction == "The documents speak of more than one John Marsh; this is about the painter (“Kent painters”)."
    assert "Turner Prize" in either.sentences[-1].text
    assert either.details["namesakes"] == [
        {
            "name": "John Marsh",
            "decided": False,
            "bearers": [
                {"label": "painter", "documents": ["Kent painters"], "answered": True},
                {"label": "chemist", "documents": ["Leeds laboratory"], "answered": False},
            ],
        }
    ]


async def test_a_question_for_another_bearer_than_the_known_one_is_not_answered() -> None:
    chemist = await judge().judge("What prize did the chemist John Marsh win?", [PAINTER], least=0.25)
    assert chemist.confidence < 0.25
    politician = await judge().judge("What prize did the politician John Marsh win?", [PAINTER], least=0.25)
    assert politician.confidence >= 0.25


async def test_a_name_in_the_title_of_one_bearers_documents_decides() -> None:
    fleet = PassageText("Night Ferry: the first year", "The service is led by John Marsh, a chemist, who is often aboard.", 1.0)
    judged = await judge().judge("Which John Marsh founded Night Ferry?", [fleet, PAINTER])
    assert [each.decided for each in judged.namesakes] == [True]
    assert [each.passage for each in judged.sentences] == [0]


async def test_where_somebody_works_decides() -> None:
    nurse = PassageText("Profile", "Nurse John Marsh sees the sea. He came to the hospital in 2007.", 1.0)
    judged = await judge().judge("Who is John Marsh of the hospital?", [nurse, PAINTER, CHEMIST])
    assert [each.decided for each in judged.namesakes] == [True]
