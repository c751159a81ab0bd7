"""Which bearers of a name a question means: those that it describes, otherwise all."""

from __future__ import annotations

from agentic_rag_backend.language.descriptions import Description
from agentic_rag_backend.language.words import words
from agentic_rag_backend.retrieval.stages.described_names import select_meant_bearers

NAME = tuple(word.form for word in words("Rowan Teller"))
BEARERS = {
    number: Description.parse(text)
    for number, text in enumerate(("nurse; born 1970; female", "oceanographer; born 1976; female", "chair; male"))
}


def test_the_question_says_whom_it_means() -> None:
    for question, expected in [
        ("Who is Rowan Teller?", [0, 1, 2]),
        ("What did the nurse Rowan Teller propose?", [0]),
        ("What did Rowan Teller, the oceanographer, say?", [1]),
        ("Which physicist is called Rowan Teller, or rather, what did the physicist Rowan Teller say?", [1]),
        ("Where was Rowan Teller (born 1976) educated?", [1]),
        ("What does Mr Rowan Teller think?", [2]),
        ("What does Mrs Rowan Teller think?", [0, 1]),
        ("Is Rowan Teller a nurse or an oceanographer?", [0, 1, 2]),
        ("What does Rowan Teller of the hospital want?", [0, 1, 2]),
        ("What did the painter Rowan Teller paint?", [2]),  # a chair may be a painter
    ]:
        assert select_meant_bearers(question, NAME, BEARERS) == expected
