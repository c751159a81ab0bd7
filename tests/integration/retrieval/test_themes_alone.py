"""If the low level fails or is empty, themes and the passages behind them answer questions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sampling import budget

from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.query import Query, Retrieval, Trace
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.retrieval.strategies.dual_level import DualLevel, DualLevelOptions
from agentic_rag_backend.retrieval.themes.community import CommunityRetriever, PassagesBehind

pytestmark = pytest.mark.asyncio(loop_scope="module")
Examples = tuple[Container, TenantId]
STEP = budget(gate=2, deep=1)
"""The gate asks every second question, `make test-deep` all."""
THEMES, FACTS = budget(gate=1, deep=3), budget(gate=9, deep=16)
"""Questions of each kind that are answered at least."""


class Failing:
    async def retrieve(self, query: Query) -> Retrieval:
        raise StoreUnavailable("away")


class Empty:
    async def retrieve(self, query: Query) -> Retrieval:
        return Retrieval(trace=Trace(strategy="graph"))


@pytest.fixture(scope="module")
def questions(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    lines = (request.config.rootpath / "examples" / "questions.jsonl").read_text().splitlines()
    asked: dict[str, list[str]] = {}
    for line in map(json.loads, lines):
        asked.setdefault(line["type"], []).append(line["question"])
    return {kind: questions[::STEP] for kind, questions in asked.items()}


async def answered(examples: Examples, question: str, low: Any) -> Answer:
    """Answer from both levels, with the default floors and another low level."""
    container, tenant = examples
    query = Query(tenant=await container.catalogue.tenants.tenant(tenant), text=question, limit=10, dual_level=True)
    # The registry's strategy with another low level.
    built: Any = container.retrievers.strategy("dual_level")
    alone = DualLevel(low, built._high, built._options, behind=built._behind)
    assert isinstance(built._high, CommunityRetriever)
    assert isinstance(built._behind, PassagesBehind)
    return await container.answers.synthesise(query, await alone.retrieve(query))


async def citations_check(examples: Examples, answer: Answer) -> None:
    container, tenant = examples
    for citation in answer.citations:
        text = (await container.catalogue.documents.hydrate(tenant, [citation.chunk_id]))[citation.chunk_id].chunk
        start = citation.start_char - text.location.start_char
        assert text.text[start : start + len(citation.quote)] == citation.quote


@pytest.mark.sampled
@pytest.mark.parametrize("low", [Failing, Empty])
async def test_themes_answer_alone(examples: Examples, questions: dict[str, list[str]], low: Any) -> None:
    grounded = dict.fromkeys(questions, 0)
    for kind, asked in questions.items():
        for question in asked:
            try:
                answer = await answered(examples, question, low())
            except StoreUnavailable:
                # Themes do not answer it, and the failed level might have: neither a refusal nor an answer.
                assert low is Failing
                continue
            assert answer.retrieval.hits == ()
            assert answer.retrieval.trace.fallback_used
            await citations_check(examples, answer)
            assert answer.grounded is bool(answer.citations)
            grounded[kind] += answer.grounded
    assert grounded["theme"] >= THEMES
    assert grounded["single"] + grounded["two_hop"] >= FACTS
    # A passage about the person in question is near the question, whether it contains the answer or not.
    assert grounded["unanswerable"] <= 1


async def test_an_answer_of_the_strategy_community_rests_on_passages_too(
    examples: Examples, questions: dict[str, list[str]]
) -> None:
    container, tenant = examples
    query = Query(tenant=await container.catalogue.tenants.tenant(tenant), text=questions["theme"][0])
    answer = await container.answers.answer(query, strategy="community")
    assert answer.grounded
    assert answer.retrieval.hits == ()
    await citations_check(examples, answer)


async def test_a_floor_drops_themes_only_while_the_low_level_answers_or_is_empty(
    examples: Examples, questions: dict[str, list[str]]
) -> None:
    container, tenant = examples
    query = Query(tenant=await container.catalogue.tenants.tenant(tenant), text=questions["theme"][3], dual_level=True)
    built: Any = container.retrievers.strategy("dual_level")
    high, options = built._high, DualLevelOptions(high_min_score=0.99)
    assert (await DualLevel(Empty(), high, options).retrieve(query)).themes == ()
    assert len((await DualLevel(Failing(), high, options).retrieve(query)).themes) == 5
