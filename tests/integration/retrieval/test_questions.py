"""Searches through synthetic questions: named in the result, within the tenant, filtered, and free of cost if off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import pytest_asyncio
from tests.integration.retrieval.conftest import CORPUS, Corpus

from agentic_rag_backend.domain.document import QuestionOptions
from agentic_rag_backend.domain.filters import Comparison
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.retrieval.legs import QUESTION_WEIGHT
from agentic_rag_backend.stores.vector.base import NodeKind, VectorSearch

pytestmark = pytest.mark.asyncio(loop_scope="module")
ASKED = "Who engraved the Glass Atlas?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asked(corpus: Corpus) -> TenantId:
    """Return a tenant whose documents have questions. No test changes it."""
    tenant = (await corpus.container.catalogue.tenants.create("asked")).id
    corpus.documents[tenant] = {}
    fields = {"questions": QuestionOptions("patterns")}
    texts = {
        key: (f"# {title}\n\n{text}", {"title": title, "metadata": metadata, **fields})
        for key, (title, text, metadata) in CORPUS.items()
    }
    await corpus.add_all(tenant, texts)
    return tenant


@pytest.mark.parametrize("strategy", ["hybrid", "graph", "auto", "dual_level", "drift"])
async def test_a_result_names_the_question_that_found_it(corpus: Corpus, asked: TenantId, strategy: str) -> None:
    found = await corpus.ask(asked, ASKED, strategy, synthetic_questions=True)
    best = found.hits[0]
    assert best.visible.document_key == "atlas"
    assert best.matched_question == ASKED
    assert best.scores["question"] == pytest.approx(1.0, abs=1e-3)
    assert "question" in found.trace.methods_used
    without = await corpus.ask(asked, ASKED, strategy)
    assert not any(hit.matched_question or "question" in hit.scores for hit in without.hits)
    assert "question" not in without.trace.methods_used


async def test_questions_vote_for_their_chunk_by_the_nearest_one(corpus: Corpus, asked: TenantId) -> None:
    found = await corpus.ask(asked, ASKED, "hybrid", synthetic_questions=True, limit=20)
    by_key = {hit.visible.document_key: hit for hit in found.hits}
    assert by_key["bread"].matched_question is None
    plain = {hit.id: hit.score for hit in (await corpus.ask(asked, ASKED, "hybrid", limit=20)).hits}
    for hit in found.hits:
        legs = plain[hit.id] / (1 + QUESTION_WEIGHT)
        assert legs - 1e-6 <= hit.score <= legs + QUESTION_WEIGHT / (1 + QUESTION_WEIGHT) + 1e-6
    (questions,) = (await corpus.container.catalogue.questions.of_chunks(asked, [found.hits[0].id])).values()
    assert len(questions) > 1


async def test_filters_and_tenants_bound_the_questions(corpus: Corpus, asked: TenantId, acme: TenantId) -> None:
    energy = Comparison("topic", "eq", "energy")
    found = await corpus.ask(asked, ASKED, "hybrid", synthetic_questions=True, filters=energy, limit=20)
    assert {hit.visible.metadata["topic"] for hit in found.hits} == {"energy"}
    assert all(hit.matched_question != ASKED for hit in found.hits)
    other = await corpus.ask(acme, ASKED, "hybrid", synthetic_questions=True, limit=20)
    assert not any(hit.matched_question for hit in other.hits)
    plain = await corpus.ask(acme, ASKED, "hybrid", limit=20)
    assert [(hit.id, hit.score) for hit in other.hits] == [(hit.id, hit.score) for hit in plain.hits], "no questions, no effect"


async def test_without_questions_nothing_more_is_searched(
    corpus: Corpus, asked: TenantId, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[NodeKind] = []
    search, by_id = corpus.container.vectors.search, corpus.container.catalogue.questions.by_id

    async def counted(tenant: TenantId, collection: Any, searches: Sequence[VectorSearch]) -> Any:
        searched.extend(each.kind for each in searches)
        return await search(tenant, collection, searches)

    async def read(tenant: TenantId, ids: Sequence[str]) -> Any:
        searched.append(NodeKind.QUESTION)
        return await by_id(tenant, ids)

    monkeypatch.setattr(corpus.container.vectors, "search", counted)
    monkeypatch.setattr(corpus.container.catalogue.questions, "by_id", read)
    for strategy in ("hybrid", "graph"):
        await corpus.ask(asked, ASKED, strategy)
    assert searched
    assert NodeKind.QUESTION not in searched
    searched.clear()
    await corpus.ask(asked, ASKED, "hybrid", synthetic_questions=True)
    assert searched == [NodeKind.CHUNK, NodeKind.QUESTION, NodeKind.QUESTION], "one search and one read more"


async def test_questions_of_hidden_text_find_nothing(corpus: Corpus) -> None:
    tenant = (await corpus.container.catalogue.tenants.create("hidden")).id
    corpus.documents[tenant] = {}
    asked = {"questions": QuestionOptions("patterns")}
    title, text, _ = CORPUS["atlas"]
    await corpus.add_all(tenant, {"atlas": (text, {"title": title, **asked}), "bread": (CORPUS["bread"][1], {"title": "Bread"})})
    await corpus.tombstone(tenant, "atlas")
    found = await corpus.ask(tenant, ASKED, "hybrid", synthetic_questions=True)
    assert [hit.visible.document_key for hit in found.hits] == ["bread"]
    assert not any(hit.matched_question for hit in found.hits)
