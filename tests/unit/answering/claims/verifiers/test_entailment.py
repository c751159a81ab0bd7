"""A reader decides about claims that words do not show to be false."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from sample_passages import passage_of

from agentic_rag_backend.answering.claims.base import Verdict
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers import entailment
from agentic_rag_backend.answering.claims.verifiers.entailment import MIN_OVERLAP, EntailmentVerifier
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.models.entailment.base import Inference, Label, Pair

TEXT = "Mira Voss founded the Halden Institute in 1994. It studies tides and currents along the northern coast."
TABLE = "| Room | Seats |\n|---|---|\n| Fjord | 40 |\n| Kelp | 12 |\n"
GERMAN = "Mira Voss gründete das Institut im Jahr 1994. Es untersucht die Gezeiten an der Küste und nicht die Fische."
COPIED = "Mira Voss founded the Halden Institute in 1994."
REORDERED = "In 1994, Mira Voss founded the Halden Institute."
WRONG_YEAR = "Mira Voss founded the Halden Institute in 1995."
OTHER_WORDS = "The institute examines tides near the northern shore."


class ScriptedReader:
    """Reader that finds the relation of a script, and records its pairs."""

    name = "scripted"

    def __init__(self, *labels: Label, error: Exception | None = None, pause_s: float = 0.0) -> None:
        self.labels = labels
        self.error = error
        self.pause_s = pause_s
        self.pairs: list[Pair] = []

    async def read(self, pairs: Sequence[Pair]) -> list[Inference]:
        await asyncio.sleep(self.pause_s)
        if self.error is not None:
            raise self.error
        first = len(self.pairs)
        self.pairs += pairs
        labels = [self.labels[number % len(self.labels)] for number in range(first, len(self.pairs))]
        return [
            Inference(*(0.8 if label == each else 0.1 for each in ("contradiction", "entailment", "neutral"))) for label in labels
        ]

    async def close(self) -> None:
        return None


def verifier_of(reader: ScriptedReader, *passages: Passage, left_s: float | None = None) -> EntailmentVerifier:
    words = LexicalVerifier(passages or (passage_of(TEXT),))
    return EntailmentVerifier(words, words, reader, left_s)


@pytest.mark.parametrize(("label", "reason"), [("entailment", None), ("contradiction", "negated"), ("neutral", "unsupported")])
async def test_a_claim_that_words_accept_is_decided_by_the_reader(label: Label, reason: str | None) -> None:
    reader = ScriptedReader(label)
    (verdict,) = await verifier_of(reader).verify([Claim(REORDERED, (1,))])
    assert (verdict.reason, verdict.holds, bool(verdict.supports)) == (reason, reason is None, reason is None)
    assert reader.pairs == [(COPIED, REORDERED)]


@pytest.mark.parametrize(
    ("label", "reason"), [("entailment", None), ("contradiction", "unsupported"), ("neutral", "unsupported")]
)
async def test_a_claim_in_other_words_needs_a_quote_that_entails_it(label: Label, reason: str | None) -> None:
    reader = ScriptedReader(label)
    (verdict,) = await verifier_of(reader).verify([Claim(OTHER_WORDS, (1,))])
    assert verdict.reason == reason
    (premise, claim), *_ = reader.pairs
    assert claim == OTHER_WORDS
    assert premise == TEXT
    if reason is None:
        (support,) = verdict.supports
        assert support.score == 0.8
        assert support.quote in TEXT


async def test_a_premise_has_what_its_words_refer_to() -> None:
    reader = ScriptedReader("entailment")
    claims = [Claim("Along the northern coast, it studies tides and currents.", (1,)), Claim("Halden opened in May.", (2,))]
    await verifier_of(reader, passage_of(TEXT, title="Halden"), passage_of("It opened in May 1994.", 2, "Halden")).verify(claims)
    assert [premise for premise, _ in reader.pairs] == [f"Halden: {TEXT}", "Halden: It opened in May 1994."]


async def test_what_words_show_to_be_false_and_copies_are_not_read() -> None:
    reader = ScriptedReader("entailment", "contradiction")
    claims = [Claim(WRONG_YEAR, (1,)), Claim(COPIED, (1,)), Claim("Bread rises slowly.", (1,))]
    assert [verdict.reason for verdict in await verifier_of(reader).verify(claims)] == ["number", None, "unsupported"]
    assert reader.pairs == []


async def test_a_quote_for_other_words_does_not_outweigh_a_contradiction() -> None:
    reader = ScriptedReader("entailment")
    passages = (passage_of(TEXT), passage_of("Mira Voss led the Halden Institute from 1995 on.", 2))
    (verdict,) = await verifier_of(reader, *passages).verify([Claim(WRONG_YEAR, (1,))])
    assert LexicalVerifier(passages).quotes_for_paraphrase(verdict.claim, least=MIN_OVERLAP)
    assert (verdict.reason, reader.pairs) == ("number", [])


async def test_a_translation_is_not_read() -> None:
    class Translated(LexicalVerifier):
        async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
            copied = self.check(Claim(COPIED, (1,)))
            return [Verdict(claim, copied.supports) for claim in claims]

    reader = ScriptedReader("contradiction")
    words = Translated((passage_of(TEXT),))
    claim = Claim("Mira Voss gründete das Institut und nicht die Schule im Jahr 1994.", (1,))
    (verdict,) = await EntailmentVerifier(words, words, reader).verify([claim])
    assert (verdict.holds, reader.pairs) == (True, [])


async def test_tables_and_other_languages_are_left_to_words() -> None:
    reader = ScriptedReader("contradiction")
    passages = (passage_of(TABLE, title="Rooms"), passage_of(GERMAN, 2, language="de"))
    claims = [Claim("Fjord – Seats: 40.", (1,)), Claim("Das Institut untersucht die Gezeiten an der Küste.", (2,))]
    words = [verdict.reason for verdict in await LexicalVerifier(passages).verify(claims)]
    assert [verdict.reason for verdict in await verifier_of(reader, *passages).verify(claims)] == words == [None, None]
    assert reader.pairs == []


async def test_a_failure_is_reported_and_words_decide() -> None:
    for reader, left_s, failure in (
        (ScriptedReader(error=ModelUnavailable("the reader is closed")), None, "the reader did not read the sentences: "),
        (ScriptedReader("contradiction", pause_s=30.0), 0.01, "the reader did not read the sentences in time"),
    ):
        verifier = verifier_of(reader, left_s=left_s)
        claims = [Claim(REORDERED, (1,)), Claim(OTHER_WORDS, (1,))]
        assert [verdict.reason for verdict in await verifier.verify(claims)] == [None, "unsupported"]
        assert [each.startswith(failure) for each in verifier.failures] == [True]


async def test_the_number_of_pairs_of_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entailment, "MAX_PAIRS", 3)
    reader = ScriptedReader("neutral")
    verifier = verifier_of(reader)
    first = await verifier.verify([Claim(REORDERED, (1,))] * 2)
    second = await verifier.verify([Claim(REORDERED, (1,))] * 2)
    assert [verdict.reason for verdict in (*first, *second)] == ["unsupported"] * 3 + [None]
    assert len(reader.pairs) == 3
