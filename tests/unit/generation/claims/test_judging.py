"""A model judges claims: it rejects, never accepts, and a failure is reported."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import pytest

from agentic_rag_backend.generation.claims.judging import ModelVerifier
from agentic_rag_backend.generation.claims.lexical import LexicalVerifier
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.context import Passage
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.testing.models.server import ModelServer

TEXT = "Mira Voss founded the Halden Institute in 1994. It studies tides."
PASSAGE = Passage(marker=1, chunk_id="c1", document_id="d1", title="Halden", text=TEXT, start_char=0, score=1.0)
TRUE = Claim("Mira Voss founded the Halden Institute in 1994.", (1,))
ALSO_TRUE = Claim("It studies tides.", (1,))
FALSE = Claim("Mira Voss founded the Halden Institute in 1995.", (1,))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
async def calls(server: ModelServer) -> AsyncIterator[StructuredCalls]:
    model = OpenAIModel(api_key="any", base_url=server.base_url, model="judge", timeout_s=2.0, max_concurrency=2)
    yield StructuredCalls(model, timeout_s=2.0)
    await model.close()


def replies(server: ModelServer, *not_stated: tuple[int, str]) -> None:
    found = [{"number": number, "reason": reason} for number, reason in not_stated]
    server.matchers[:] = [(lambda _: True, json.dumps({"not_stated": found}))]


async def test_it_rejects_claims_that_passed_the_other_checks(server: ModelServer, calls: StructuredCalls) -> None:
    replies(server, (2, "roles"))
    verifier = ModelVerifier(LexicalVerifier((PASSAGE,)), calls)
    verdicts = await verifier.verify([FALSE, TRUE, ALSO_TRUE])
    assert [verdict.reason for verdict in verdicts] == ["number", None, "roles"]
    assert verifier.usage.calls == server.stats().total.calls == 1
    assert verifier.whole is True


async def test_it_accepts_nothing_and_ignores_unknown_numbers(server: ModelServer, calls: StructuredCalls) -> None:
    replies(server, (0, "roles"), (7, "name"))
    verdicts = await ModelVerifier(LexicalVerifier((PASSAGE,)), calls).verify([FALSE, TRUE])
    assert [verdict.reason for verdict in verdicts] == ["number", None]


async def test_nothing_is_asked_if_no_claim_passed(server: ModelServer, calls: StructuredCalls) -> None:
    verifier = ModelVerifier(LexicalVerifier((PASSAGE,)), calls)
    assert [verdict.reason for verdict in await verifier.verify([FALSE])] == ["number"]
    assert server.stats().total.calls == 0


async def test_a_failure_is_reported_and_the_other_checks_decide(server: ModelServer, calls: StructuredCalls) -> None:
    server.matchers[:] = [(lambda _: True, "no JSON")]
    verifier = ModelVerifier(LexicalVerifier((PASSAGE,)), calls)
    assert [verdict.reason for verdict in await verifier.verify([FALSE, TRUE])] == ["number", None]
    assert verifier.failures == ("the model did not check the sentences: model_reply_invalid",)


async def test_the_model_judges_in_the_time_that_is_left(server: ModelServer) -> None:
    replies(server, (1, "roles"))
    model = OpenAIModel(api_key="any", base_url=server.base_url, model="judge+latency-30000ms", timeout_s=60.0, max_concurrency=2)
    verifier = ModelVerifier(LexicalVerifier((PASSAGE,)), StructuredCalls(model, timeout_s=60.0), 0.05)
    assert [verdict.reason for verdict in await verifier.verify([TRUE])] == [None]
    assert verifier.failures == ("the model did not check the sentences: model_timeout",)
    await model.close()
