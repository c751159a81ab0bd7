"""Every claim verifier keeps its contract, and the suite detects verifiers that break it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

import pytest

from agentic_rag_backend.answering.claims.base import ClaimVerifier, Verdict
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.registry import VERIFIERS, VerifierName, VerifierParts, verifier_factory
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.models.entailment.reader import OnnxReader
from agentic_rag_backend.models.facts_files import ReaderFacts
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_testing import verifiers as contract
from agentic_rag_testing.models.cross_encoder import write_reader
from agentic_rag_testing.models.server import ModelServer
from agentic_rag_testing.verifiers import CHECKS, PASSAGES, Check

each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        running.matchers[:] = [(lambda _: True, json.dumps({"verdicts": []}))]
        yield running


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> OnnxReader:
    """A reader for which everything follows."""
    facts = ReaderFacts(("entailment", "neutral", "contradiction"))
    folder = write_reader(tmp_path_factory.mktemp("reader"), {}, bias=(2.0, 0.0, 0.0), facts=facts)
    return OnnxReader("small", folder, facts)


@pytest.fixture
async def parts(server: ModelServer, reader: OnnxReader) -> AsyncIterator[VerifierParts]:
    model = OpenAIModel(api_key="any", base_url=server.base_url, model="judge", timeout_s=5.0, max_concurrency=2)
    yield VerifierParts(StructuredCalls(model, timeout_s=5.0), reader=reader)
    await model.close()


@each_check
@pytest.mark.parametrize("name", get_args(VerifierName))
async def test_verifiers(parts: VerifierParts, name: VerifierName, check: Check) -> None:
    factory = verifier_factory(name, parts)
    await check(lambda passages: factory(passages, "", None))


def test_every_name_has_a_verifier_and_the_reader_is_required(parts: VerifierParts) -> None:
    assert list(VERIFIERS) == list(get_args(VerifierName))
    with pytest.raises(ConfigurationError, match="the verifier nli needs a reader"):
        verifier_factory("nli", replace(parts, reader=None))(PASSAGES, "", None)


@dataclass
class Faulty:
    """A sound verifier with one planted fault, which the subclass defines."""

    sound: ClaimVerifier
    failures: Sequence[str] = ()
    usage: Usage = field(default_factory=Usage)

    async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
        return self.changed(await self.sound.verify(claims))

    def changed(self, verdicts: list[Verdict]) -> list[Verdict]:
        return verdicts

    def may_change(self, verdict: Verdict) -> bool:
        return self.sound.may_change(verdict)

    async def settle(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        return await self.sound.settle(verdicts)


class ChangesFinalVerdicts(Faulty):
    async def settle(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        return [Verdict(verdict.claim, reason="name") for verdict in verdicts]


class DropsEqualClaims(Faulty):
    def changed(self, verdicts: list[Verdict]) -> list[Verdict]:
        return list({verdict.claim: verdict for verdict in verdicts}.values())


class Reverses(Faulty):
    def changed(self, verdicts: list[Verdict]) -> list[Verdict]:
        return verdicts[::-1]


class KeepsQuotesOfFailures(Faulty):
    def changed(self, verdicts: list[Verdict]) -> list[Verdict]:
        quotes = next((verdict.supports for verdict in verdicts if verdict.holds), ())
        return [replace(verdict, supports=quotes) if verdict.status == "contradicted" else verdict for verdict in verdicts]


class QuotesThePassage(Faulty):
    def changed(self, verdicts: list[Verdict]) -> list[Verdict]:
        return [
            replace(verdict, supports=tuple(replace(each, start=0, end=len(each.passage.text)) for each in verdict.supports))
            for verdict in verdicts
        ]


class AcceptsWhatWordsReject(Faulty):
    def changed(self, verdicts: list[Verdict]) -> list[Verdict]:
        quotes = next((verdict.supports for verdict in verdicts if verdict.holds), ())
        return [replace(verdict, reason=None, supports=verdict.supports or quotes) for verdict in verdicts]


class NamesNoReason(Faulty):
    def changed(self, verdicts: list[Verdict]) -> list[Verdict]:
        return [verdict if verdict.holds else replace(verdict, reason="unsupported") for verdict in verdicts]


class TrustsMarkers(Faulty):
    def changed(self, verdicts: list[Verdict]) -> list[Verdict]:
        return [
            verdict
            if all(support.passage.marker in verdict.claim.markers for support in verdict.supports)
            else Verdict(verdict.claim, reason="unsupported")
            for verdict in verdicts
        ]


class DependsOnOthers(Faulty):
    def changed(self, verdicts: list[Verdict]) -> list[Verdict]:
        alone = len(verdicts) == 1
        return [Verdict(verdict.claim, reason="unsupported") if alone else verdict for verdict in verdicts]


class ReportsFailures(Faulty):
    def changed(self, verdicts: list[Verdict]) -> list[Verdict]:
        self.failures = ("the reader failed",)
        return verdicts


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (DropsEqualClaims, contract.a_verdict_for_every_claim_in_order),
        (Reverses, contract.a_verdict_for_every_claim_in_order),
        (KeepsQuotesOfFailures, contract.a_verdict_has_quotes_or_a_reason),
        (QuotesThePassage, contract.a_copied_sentence_holds),
        (AcceptsWhatWordsReject, contract.a_claim_that_no_passage_states_fails),
        (NamesNoReason, contract.a_changed_copy_fails),
        (TrustsMarkers, contract.a_wrong_marker_is_replaced),
        (DependsOnOthers, contract.claims_may_come_one_by_one),
        (ReportsFailures, contract.nothing_failed),
        (ChangesFinalVerdicts, contract.a_final_verdict_stays),
    ],
)
async def test_faulty_verifiers_fail(fault: type[Faulty], check: Check) -> None:
    def make(passages: Sequence[Passage]) -> ClaimVerifier:
        return fault(LexicalVerifier(passages))

    with pytest.raises(AssertionError):
        await check(make)
