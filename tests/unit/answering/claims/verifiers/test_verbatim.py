"""Claims that stand in passages word for word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sample_passages import passage_of

from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier

TEXT = (
    "MarkItDown reads PDF, PowerPoint, Word (with tables), Excel and EPubs. The committee denied that the plan was approved. "
    "The total was $11,250.00 after the discount of 10 %.\n\n"
    "- Every Android device\n- Every iPhone\n\n"
    "| Cashier | Emily Rodriguez |\n|---|---|\n| Sales tax | 66.23 |\n\n"
    "    if lo < 0:\n        raise ValueError('lo must be non-negative')\n\n"
    "| Country | Medals |\n|---|---|\n| Sweden | 9 |\n| Norway | 12 |\n\n"
    "The inquiry did not find that\nthe captain stole the money;\nit found that he was ill.\n"
)
OTHER = "Python 3.8 is no longer supported. Mira Voss, a painter from Oslo, founded the mill."


VERIFIER = LexicalVerifier((passage_of(TEXT, 1), passage_of(OTHER, 2)))


def test_a_copy_is_supported() -> None:
    for text in [
        "The **total** was $11,250.00\nafter the discount of 10 %",
        "PDF, PowerPoint, Word, Excel, EPub.",
        "Word and Excel",
        "66.23",
        "11,250, 3.8",
        "- Every Android device\n- Every iPhone",
        "Cashier | Emily Rodriguez",
        "raise ValueError('lo must be non-negative')",
        "The committee denied that the plan was approved.",
    ]:
        verdict = VERIFIER.check(Claim(text, (1,)))
        assert verdict.holds
        assert all(support.quote in TEXT + OTHER for support in verdict.supports)


def test_items_of_several_passages_are_quoted_from_each() -> None:
    verdict = VERIFIER.check(Claim("11,250, 3.8.", (1,)))
    assert [support.passage.marker for support in verdict.supports] == [1, 2]


def test_what_is_no_copy_is_not_supported() -> None:
    for text in [
        "The plan was approved.",  # cut out of a denial
        "11,251",
        "| Sweden | 12 |",  # the number of another row
        "The captain stole the money.",  # a line that ends with a semicolon, cut out of a denial
        "PDF, PowerPoint, Word, OpenOffice.",
        "Emily Rodriguez, a painter from Oslo, founded the mill.",  # each part stands somewhere
    ]:
        assert not VERIFIER.check(Claim(text, (1,))).holds


@given(st.integers(0, len(TEXT) - 1), st.integers(1, 60))
def test_every_quote_of_a_copy_is_verbatim(start: int, length: int) -> None:
    for support in VERIFIER.quotes_copied_by(Claim(TEXT[start : start + length], (1,))):
        assert support.passage.text[support.start : support.end] == support.quote
        assert support.quote.strip()


def test_a_part_of_a_sentence_is_not_read_without_its_limits() -> None:
    for text, claim, status in [
        ("Fewer than 12 people died in 1912.", "12 people died", "unverified"),
        ("It was -5 °C outside.", "5 °C", "unverified"),
        ("Members may vote only by letter.", "Members may vote.", "unverified"),
        ("Only members may vote.", "Members may vote.", "unverified"),
        ("The path leads to the old mill.", "the old mill", "supported"),
        ("In 1912, 12 people died.", "12 people died.", "supported"),
        ("The brother of Holt sold the mill.", "Holt sold the mill.", "unverified"),
        ("The brother of Holt sold the mill.", "Holt", "supported"),
        ("After the death of Voss, Holt sold the mill.", "Holt sold the mill.", "supported"),
        ("Then use:\nx = a - b\ny = 2", "x = a", "unverified"),
        ("total = price * count", "total = price count", "unverified"),
        ("y = (x = a) + b", "x = a", "supported"),
        ("Then use:\nx = a - b\ny = 2", "`x = a - b`", "supported"),
    ]:
        assert LexicalVerifier((passage_of(text, 1),)).check(Claim(claim, (1,))).status == status
