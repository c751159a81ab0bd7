"""Claims that are words of a document, but of a part that the document does not assert."""

from __future__ import annotations

from sample_passages import passage_of

from agentic_rag_backend.answering.claims.assertion import list_open_parts
from agentic_rag_backend.answering.claims.base import Reason
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.tokens import read_tokens
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.language.vocabulary.lexicon import language_of_code

CLAIM = "The committee approved the plan."


def reason(document: str, claim: str = CLAIM) -> Reason | None:
    passage = passage_of(document, title="Minutes")
    return LexicalVerifier((passage,)).check(Claim(claim, (1,))).reason


def test_a_part_that_is_not_asserted_is_no_support() -> None:
    for document, expected in [
        ("The mayor did not say that the committee approved the plan.", "negated"),
        ("The mayor never said the committee approved the plan.", "negated"),
        ("It is not true that the committee approved the plan.", "negated"),
        ("There is no evidence that the committee approved the plan.", "negated"),
        ("Nobody told the council that the committee approved the plan.", "negated"),
        ("The mayor was wrong when she said that the committee approved the plan.", "negated"),
        ("The mayor denied that the committee approved the plan.", "negated"),
        ("Anna doubted that the committee approved the plan.", "modality"),
        ("The mayor demanded that the committee approve the plan.", "modality"),
        ("The rumour that the committee approved the plan was false.", "modality"),
        ("It is unclear whether the committee approved the plan.", "modality"),
        ("The mayor asked if the committee approved the plan.", "modality"),
        ("If the committee approved the plan, the road would be built.", "modality"),
        ("The road was closed unless the committee approved the plan.", "modality"),
    ]:
        assert reason(document) == expected


def test_a_part_that_is_asserted_supports() -> None:
    for document in [
        "The mayor said that the committee approved the plan.",
        "The mayor did not know that the committee approved the plan.",
        "Nobody noticed that the committee approved the plan.",
        "There is no doubt that the committee approved the plan.",
        "The committee approved the plan although the mayor did not agree.",
        "The mayor did not attend. She said that the committee approved the plan.",
        "The mayor did not say that the road was closed, but the committee approved the plan.",
        "The committee approved the plan. The mayor did not say that the committee approved the plan.",
        "If the mayor was present, she was silent. The committee approved the plan.",
        "The committee approved the plan even if the mayor was absent.",
        "The committee approved the plan if needed.",
        "It is true that the committee approved the plan.",
        "The committee approved the plan, which is true.",
        "The road was closed, some say. The committee approved the plan.",
    ]:
        assert reason(document) is None


def test_a_claim_that_keeps_the_words_before_the_part_holds() -> None:
    for document, claim in [
        (
            "The mayor did not say that the committee approved the plan.",
            "The mayor did not say that the committee approved the plan.",
        ),
        ("There is no evidence that the committee approved the plan.", "There was no evidence the committee approved the plan."),
        ("It is unclear whether the committee approved the plan.", "Whether the committee approved the plan is unclear."),
        ("The mayor denied that the committee approved the plan.", "The mayor denied the committee approved the plan."),
        ("If the committee approved the plan, the road would be built.", "The road would be built if the committee approved it."),
    ]:
        assert reason(document, claim) is None


def test_a_part_ends_with_its_clause() -> None:
    text = "Nobody said that Anna left, but Kolk stayed; she denied that it rained."
    english, tokens = language_of_code("en"), read_tokens(text)
    parts = [(part.kind, text[tokens[part.start].start : tokens[part.end - 1].end]) for part in list_open_parts(tokens, english)]
    assert parts == [("negated", "Anna left"), ("modality", "it rained")]
