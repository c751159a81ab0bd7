"""On the examples, a smaller limit returns the beginning of a larger one's results, and a reranker can be added.

Strategies that hold others are checked by their contract, `agentic_rag_testing.retrievers`.
"""

from __future__ import annotations

from typing import Any

import pytest

from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.retrieval.registry import PLAIN

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTIONS = (
    "Why was the second array delayed?",
    "Who founded the tidal company?",
    "How do fishing and tidal energy depend on one another?",
)
LIMITS = (1, 2, 5, 12, 30)
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "hybrid": [{}, {"fusion": "rrf"}],
    "raptor": [{}, {"search": "levels"}, {"order": "leaves_first"}],
    "dual_level": [{"low_strategy": "graph"}, {"low_strategy": "hybrid"}],
}


async def asked(examples: tuple[Container, TenantId], strategy: str, limit: int, text: str, **options: Any) -> Retrieval:
    container, tenant = examples
    current = await container.catalogue.tenants.tenant(tenant)
    query = Query(tenant=current, text=text, limit=limit, high_limit=limit, dual_level=True, options=options)
    return await container.retrievers.get(strategy).retrieve(query)


def listed(found: Retrieval) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    return [(hit.id, hit.score) for hit in found.hits], [(theme.id, theme.score) for theme in found.themes]


@pytest.mark.parametrize("strategy", sorted(PLAIN))
async def test_a_smaller_limit_returns_the_beginning_of_a_larger_one(examples: tuple[Container, TenantId], strategy: str) -> None:
    for options in OPTIONS.get(strategy, [{}]):
        for question in QUESTIONS:
            whole = await asked(examples, strategy, 100, question, **options)
            hits, themes = listed(whole)
            assert hits or themes
            for limit in LIMITS:
                found = await asked(examples, strategy, limit, question, **options)
                assert listed(found) == (hits[:limit], themes[:limit]), (question, options, limit)
                assert found.relevance == whole.relevance, (question, options, limit)
                assert [(fact.id, fact.score) for fact in found.facts] == [(fact.id, fact.score) for fact in whole.facts]


async def test_more_themes_than_a_screenful_can_be_had(examples: tuple[Container, TenantId]) -> None:
    # The number of themes for a question depends on how the graph was divided. A request without a limit gets 5.
    found = [await asked(examples, "community", 100, question, budget_tokens=100_000) for question in QUESTIONS]
    assert max(len(each.themes) for each in found) > 15
