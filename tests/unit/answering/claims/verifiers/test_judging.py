"""A model judges claims: it rejects, never accepts, and a failure is reported."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from sample_passages import passage_of

from agentic_rag_backend.answering.claims.base import Verdict
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.judging import ModelVerifier
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_testing.models.server import ModelServer

TEXT = "Mira Voss founded the Halden Institute in 1994. It studies tides."
PASSAGE = passage_of(TEXT, title="Halden")
TRUE = Claim("Mira Voss founded the Halden Institute in 1994.", (1,))
ALSO_TRUE = Claim("It studies tides.", (1,))
FALSE = Claim("Mira Voss founded the Halden Institute in 1995.", (1,))


@pytest.fixture
async def calls(server: ModelServer) -> AsyncIterator[StructuredCalls]:
    server.reset()
    model = OpenAIModel(api_key="any", base_url=server.base_url, model="judge", timeout_s=2.0, max_concurrency=2)
    yield StructuredCalls(model, timeout_s=2.0)
    await model.close()


UNDECIDED = Claim("The Halden Institute was set up by Mira Voss.", (1,))


def verifier(calls: StructuredCalls, left_s: float | None = None, *, supported_too: bool = False) -> ModelVerifier:
    words = LexicalVerifier((PASSAGE,))
    return ModelVerifier(words, words, calls, left_s, supported_too=supported_too)


async def settled(verifier: ModelVerifier, *claims: Claim) -> list[Verdict]:
    return await verifier.settle(await verifier.verify(claims))


def replies(server: ModelServer, *verdicts: tuple[int, bool, str]) -> None:
    found = [{"number": number, "stated": stated, "reason": reason} for number, stated, reason in verdicts]
    server.matchers[:] = [(lambda _: True, json.dumps({"verdicts": found}))]


async def test_it_decides_about_undecided_claims_only(server: ModelServer, calls: StructuredCalls) -> None:
    replies(server, (1, True, ""))
    judge = verifier(calls)
    verdicts = await settled(judge, FALSE, TRUE, UNDECIDED)
    assert [verdict.status for verdict in verdicts] == ["contradicted", "supported", "supported"]
    assert [support.quote for support in verdicts[2].supports] == ["Mira Voss founded the Halden Institute in 1994."]
    assert judge.usage.calls == server.stats().total.calls == 1


async def test_a_rejected_claim_is_contradicted(server: ModelServer, calls: StructuredCalls) -> None:
    replies(server, (1, False, "roles"))
    (verdict,) = await settled(verifier(calls), UNDECIDED)
    assert (verdict.status, verdict.reason) == ("contradicted", "roles")


async def test_a_rejection_without_a_reason_is_none(server: ModelServer, calls: StructuredCalls) -> None:
    replies(server, (1, False, ""))
    (verdict,) = await settled(verifier(calls), UNDECIDED)
    assert verdict.status == "unverified"


async def test_the_model_cannot_remove_a_suspicion(server: ModelServer, calls: StructuredCalls) -> None:
    replies(server, (1, True, ""))
    denied = Claim("Mira Voss never founded the Halden Institute.", (1,))
    (verdict,) = await settled(verifier(calls), denied)
    assert (verdict.status, verdict.reason) == ("unverified", "negated")


async def test_a_claim_that_the_reply_leaves_out_stays_undecided(server: ModelServer, calls: StructuredCalls) -> None:
    replies(server, (0, True, ""), (7, True, ""))
    (verdict,) = await settled(verifier(calls), UNDECIDED)
    assert verdict.status == "unverified"


async def test_it_can_reject_supported_claims_that_are_no_copies(server: ModelServer, calls: StructuredCalls) -> None:
    replies(server, (1, False, "roles"), (2, False, "name"))
    reworded = Claim("In 1994, Mira Voss founded the Halden Institute.", (1,))
    verdicts = await settled(verifier(calls, supported_too=True), TRUE, reworded, ALSO_TRUE)
    assert [verdict.reason for verdict in verdicts] == [None, "roles", None]


async def test_nothing_is_asked_if_words_decide(server: ModelServer, calls: StructuredCalls) -> None:
    verdicts = await settled(verifier(calls), FALSE, TRUE)
    assert [verdict.reason for verdict in verdicts] == ["number", None]
    assert server.stats().total.calls == 0


async def test_a_failure_is_reported_and_the_other_checks_decide(server: ModelServer, calls: StructuredCalls) -> None:
    server.matchers[:] = [(lambda _: True, "no JSON")]
    judge = verifier(calls)
    verdicts = await settled(judge, FALSE, TRUE, UNDECIDED)
    assert [verdict.status for verdict in verdicts] == ["contradicted", "supported", "unverified"]
    assert judge.failures == ("the model did not check the sentences: model_reply_invalid",)


async def test_the_model_judges_in_the_time_that_is_left(server: ModelServer) -> None:
    replies(server, (1, False, "roles"))
    model = OpenAIModel(api_key="any", base_url=server.base_url, model="judge+latency-30000ms", timeout_s=60.0, max_concurrency=2)
    judge = verifier(StructuredCalls(model, timeout_s=60.0), 0.05)
    assert [verdict.status for verdict in await settled(judge, UNDECIDED)] == ["unverified"]
    assert judge.failures == ("the model did not check the sentences: model_timeout",)
    await model.close()
