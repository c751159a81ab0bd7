"""Claims that put the opposite of a word in its place."""

from __future__ import annotations

from sample_passages import passage_of

from agentic_rag_backend.answering.claims.base import Reason
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier


def reason(text: str, claim: str) -> Reason | None:
    passage = passage_of(text, title="Minutes")
    return LexicalVerifier((passage,)).check(Claim(claim, (1,))).reason


def test_an_opposite_is_a_conflict() -> None:
    for text, claim in [
        (
            "In 1912 the council of Sund accepted the plan for a bridge.",
            "In 1912 the council of Sund rejected the plan for a bridge.",
        ),
        ("The tolls of the harbour rose in 1931.", "The tolls of the harbour fell in 1931."),
        ("Mira Voss sold the northern quay to the port.", "Mira Voss sold the southern quay to the port."),
    ]:
        assert reason(text, text) is None
        assert reason(text, claim) in ("negated", "roles")


def test_a_true_rewording_is_none() -> None:
    for text, claim in [
        ("Mira Voss sold the quay to Brandt Works in 1912.", "Brandt Works bought the quay from Mira Voss in 1912."),
        ("The council did not accept the plan for the bridge in 1912.", "The council rejected the plan for the bridge in 1912."),
        ("The old quay closed in 1912 and the new quay opened in 1915.", "The new quay opened in 1915."),
        ("The bridge opened before the harbour closed.", "The harbour closed after the bridge opened."),
    ]:
        assert reason(text, claim) != "negated"
