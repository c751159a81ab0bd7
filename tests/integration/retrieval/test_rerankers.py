"""Every registered reranker keeps its contract, the suite detects rerankers that break it, and any strategy can be reranked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.query import Hit, Query, Rerank, Retrieval
from agentic_rag_backend.domain.tenant import Tenant, TenantId, TenantState
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.models.embedding.evidence_encoder import EvidenceEncoder
from agentic_rag_backend.models.llm.openai import OpenAIModel
from agentic_rag_backend.models.reranking.cross_encoder import CrossEncoder
from agentic_rag_backend.models.reranking.http import EndpointAddress, HttpScorer
from agentic_rag_backend.retrieval.registry import STRATEGIES
from agentic_rag_backend.retrieval.rerank.base import Reranking
from agentic_rag_backend.retrieval.rerank.registry import RERANKERS, RerankerParts, RerankerRegistry
from agentic_rag_backend.retrieval.rerank.scored import TokenVectorCache
from agentic_rag_backend.retrieval.stages.pipeline import RankedRetriever, RerankedRetriever
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_testing.models.cross_encoder import write_cross_encoder
from agentic_rag_testing.models.rerank_server import RerankServer
from agentic_rag_testing.models.server import ModelServer
from agentic_rag_testing.rerankers import CHECKS, Case

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Why was the second array delayed?"
NO_PASSAGES = sorted(STRATEGIES.keys() - {"community", "global"})
"""Strategies that return passages."""
STRANGER = Tenant(TenantId("t_" + "9" * 32), "stranger", TenantState.ACTIVE, 1, datetime(2026, 1, 1, tzinfo=UTC))


def ranking(prompt: str) -> str:
    """Return the reply of a model that reads every passage, and prefers the last one."""
    numbers = range(prompt.count("<passage id="), 0, -1)
    listed = ", ".join(f'{{"passage": {number}, "relevance": {number % 10}}}' for number in numbers)
    return f'{{"ranking": [{listed}]}}'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def registry(
    examples: tuple[Container, TenantId], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RerankerRegistry]:
    """Return the rerankers, each with a model of its own."""
    container, _ = examples
    folder: Path = write_cross_encoder(tmp_path_factory.mktemp("cross-encoder"), {"delayed": 2.0, "array": 1.0, "caisson": 0.5})
    with ModelServer(matchers=[(lambda text: "<passage id=" in text, ranking)]) as server, RerankServer() as endpoint:
        model = OpenAIModel(api_key="any", base_url=server.base_url, model="any", timeout_s=30, max_concurrency=4)
        cross_encoder = CrossEncoder("small", lambda: folder)
        scorer = HttpScorer(EndpointAddress(url=endpoint.url, api="jina", model="any", timeout_s=30))
        encoder = EvidenceEncoder(container.embedder)
        yield RerankerRegistry(
            RerankerParts(
                vectors=container.vectors,
                graphs=container.graphs,
                calls=StructuredCalls(model),
                tokens=encoder,
                token_cache=TokenVectorCache(8 * 1024 * 1024),
                calibrator=container.calibrator,
                cross_encoder=cross_encoder,
                endpoint=scorer,
            )
        )
        for each in (model, cross_encoder, scorer):
            await each.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def case(examples: tuple[Container, TenantId]) -> Case:
    container, tenant = examples
    query = Query(tenant=await container.catalogue.tenants.tenant(tenant), text=QUESTION, limit=12)
    found = await container.retrievers.get("hybrid").retrieve(query)
    assert len(found.hits) == 12
    return Case(query, found.hits, STRANGER)


# --- the contract


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", RERANKERS)
async def test_every_reranker_keeps_the_contract(registry: RerankerRegistry, case: Case, name: str, check: Any) -> None:
    assert registry.why_not(name) is None
    await check(registry.get(name), case)


async def test_each_reranker_orders_differently(registry: RerankerRegistry, case: Case) -> None:
    # Otherwise the contract would hold for rerankers that do nothing.
    orders = {}
    for name in RERANKERS:
        scores = (await registry.get(name).rerank(case.query, case.candidates, UsageAccount())).scores
        orders[name] = tuple(sorted(scores, key=lambda id, scores=scores: -scores[id]))  # type: ignore[misc]
    assert orders["none"] == tuple(hit.id for hit in case.candidates)
    assert len(set(orders.values())) == len(RERANKERS), orders


@dataclass
class Faulty:
    """Reranker with one planted fault."""

    fault: str
    calls: int = 0

    def check(self) -> None:
        """It can be used."""

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        self.calls += 1
        scores = {hit.id: 1 / (2 + place) for place, hit in enumerate(candidates)}
        first = candidates[0].id
        changed: Mapping[str, dict[str, float]] = {
            "range": {**scores, first: 1.5},
            "nan": {**scores, first: float("nan")},
            "foreign": {**scores, "another": 0.5},
            "random": {**scores, first: 1 / self.calls},
            "limit": {**scores, first: 1 / query.limit},
            "tenant": {id: 0.1 if id.startswith("unknown") else score for id, score in scores.items()},
            "one": scores if len(candidates) > 1 else {},
        }
        return Reranking(scores=changed[self.fault])


FAULTS = {
    "range": "check_scores",
    "nan": "check_scores",
    "foreign": "check_scores",
    "random": "check_determinism",
    "limit": "check_limit",
    "tenant": "check_tenant",
    "one": "check_one_candidate",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_suite_detects_faults(case: Case, fault: str) -> None:
    failed = set()
    for check in CHECKS:
        try:
            await check(Faulty(fault), case)
        except (AssertionError, ValueError):
            failed.add(check.__name__)
    assert FAULTS[fault] in failed


# --- strategies


class Shortest:
    """A reranker that prefers short passages, and records how many it reads."""

    def __init__(self) -> None:
        self.read = 0

    def check(self) -> None:
        """It can always be used."""

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        self.read = len(candidates)
        return Reranking(scores={hit.id: 1 / (1 + len(hit.visible.chunk.text)) for hit in candidates})


async def asked(container: Container, tenant: TenantId, strategy: str, rerank: Rerank | None, **fields: Any) -> Retrieval:
    current = await container.catalogue.tenants.tenant(tenant)
    query = Query(tenant=current, text=QUESTION, dual_level=True, rerank=rerank, **fields)
    return await container.retrievers.get(strategy).retrieve(query)


@pytest.mark.parametrize("strategy", NO_PASSAGES)
async def test_a_reranker_reads_as_many_candidates_of_any_strategy_as_it_wants(
    examples: tuple[Container, TenantId], strategy: str
) -> None:
    container, tenant = examples
    plain = await asked(container, tenant, strategy, None, limit=30)
    query = Query(
        tenant=await container.catalogue.tenants.tenant(tenant),
        text=QUESTION,
        limit=3,
        dual_level=True,
        rerank=Rerank(name="shortest", candidates=30),
    )
    reranker = Shortest()
    retriever = container.retrievers.strategy(strategy)
    found = await RankedRetriever(RerankedRetriever(retriever, lambda _: reranker)).retrieve(query)
    assert reranker.read == len(plain.hits) > 10
    assert found.trace.methods_used[-1] == "shortest"
    assert [hit.id for hit in found.hits] == [
        hit.id for hit in sorted(plain.hits, key=lambda hit: len(hit.visible.chunk.text))[:3]
    ]


async def test_a_reranker_reads_only_the_tenant_of_the_query(registry: RerankerRegistry, case: Case) -> None:
    made = await registry.get("mmr").rerank(replace(case.query, tenant=STRANGER), case.candidates, UsageAccount())
    # Without vectors, no candidate is similar to another.
    assert list(made.scores) == [hit.id for hit in case.candidates]
