"""Checks of claims with a number of a table."""

from __future__ import annotations

from sample_passages import passage_of

from agentic_rag_backend.answering.claims.base import Verdict
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier

LOANS = """| Branch | 2022 | 2023 |
|---|---|---|
| Ellery | 398 | 412 |
| Scarrow | 131 | 118 |
| Sund | | 203 |
"""


def check(claim: str, text: str = LOANS, header: str = "") -> Verdict:
    passage = passage_of(text, title="Loans", start=7, header=header)
    return LexicalVerifier((passage,)).check(Claim(claim, (1,)))


def test_sentences_of_a_model_may_use_the_names_of_columns() -> None:
    for claim, reason in [
        ("In 2023 Ellery had 412.", None),
        ("Ellery had 398 in 2022 and 412 in 2023.", None),
        ("Sund had 203 in 2023.", None),
        ("In 2022 Ellery had 412.", "number"),
        ("Ellery had 118 in 2023.", "number"),
        ("Scarrow had 412 in 2023.", "unsupported"),
    ]:
        assert check(claim).reason == reason


def test_a_model_is_understood_in_a_later_part_of_a_table() -> None:
    rows, header = "| Petra Sauvage | C002 | 555 |\n| Bob Lund | A1 | 107 |", "| Name | Room | Phone |\n|---|---|---|"
    (support,) = check("The phone of Bob Lund is 107.", rows, header).supports
    assert support.quote == "| Bob Lund | A1 | 107 |"
    assert check("The phone of Bob Lund is 555.", rows, header).reason == "number"
