"""The strategy `temporal`: results hold at the time that the question names."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio
from tests.integration.retrieval.conftest import Corpus

from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import TenantId

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OFFICES: dict[str, tuple[str, dict[str, Any]]] = {
    "old": ("Ada Brand is the mayor of Westerhall. She opened the new market.", {"date": "2011-03-01"}),
    "new": ("Osric Vey is the mayor of Westerhall. He opened the new harbour.", {"date": "2019-03-01"}),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def offices(corpus: Corpus) -> TenantId:
    """Return a tenant with two mayors, and documents about other things."""
    tenant = await corpus.tenant("offices", keys=("bread", "seals", "atlas", "museum", "halden"), communities=False)
    await corpus.add_all(tenant, {key: (text, {"title": key.title(), "metadata": data}) for key, (text, data) in OFFICES.items()})
    return tenant


async def ask(corpus: Corpus, tenant: TenantId, question: str, strategy: str = "temporal", **fields: Any) -> Retrieval:
    return await corpus.ask(tenant, question, strategy, **{"asked_at": NOW, "dual_level": False, **fields})


async def test_passages_and_facts_hold_at_the_time_of_the_question(corpus: Corpus, offices: TenantId) -> None:
    for question, first, source, as_of in [
        ("Who was the mayor of Westerhall in 2012?", "old", "question", "2012-12-31"),
        ("Who is the mayor of Westerhall now?", "new", "question", "2026-06-01"),
        ("Who was the mayor of Westerhall before 3 May 2015?", "old", "question", "2015-05-02"),
        ("Who has been the mayor of Westerhall since 2018?", "new", "question", "now"),
        ("Who was the mayor of Westerhall between 2010 and 2012?", "old", "question", "2012-12-31"),
    ]:
        found = await ask(corpus, offices, question)
        keys = [hit.visible.document_key for hit in found.hits]
        assert next(key for key in keys if key in ("old", "new")) == first
        mayors = {fact.document_id for fact in found.facts if fact.relation == "mayor_of"}
        assert mayors == {corpus.documents[offices][first]}
        time = found.trace.details["time"]
        assert time["source"] == source
        assert time["as_of"].startswith(as_of)
        assert all(one.score >= other.score for one, other in pairwise(found.hits))
        assert all(0 <= hit.scores["time"] <= 1 for hit in found.hits)
        assert found.trace.strategy == "temporal"


async def test_without_a_time_the_low_level_answers(corpus: Corpus, offices: TenantId) -> None:
    question = "Who is the mayor of Westerhall?"
    found, plain = await ask(corpus, offices, question), await ask(corpus, offices, question, "auto")
    assert (found.hits, found.facts) == (plain.hits, plain.facts)
    assert found.trace.details["time"] is None


async def test_the_time_of_the_request_overrides_that_of_the_question(corpus: Corpus, offices: TenantId) -> None:
    found = await ask(corpus, offices, "Who was the mayor of Westerhall in 2012?", as_of=datetime(2020, 1, 1, tzinfo=UTC))
    assert found.trace.details["time"]["source"] == "request"
    assert found.trace.details["as_of"].startswith("2020-01-01")
    assert {fact.source.name for fact in found.facts if fact.relation == "mayor_of"} == {"Osric Vey"}
