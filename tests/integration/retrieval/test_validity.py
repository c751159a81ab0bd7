"""Without `as_of`, only documents that are valid now are shown, and they fill the limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from agentic_rag_backend.domain.filters import Filter, matches_filter, valid_at
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.retrieval.registry import STRATEGIES
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorSearch

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Who keeps the lighthouse of Sarn Rock?"
CURRENT = {f"now-{number}" for number in range(4)}
PAST = datetime(2016, 5, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def keepers(corpus: Any) -> TenantId:
    """A tenant with 75 documents that ended in 2018, 3 that begin later, and 4 valid ones."""
    tenant: TenantId = await corpus.tenant("keepers", (), communities=False)
    text = "# Sarn Rock\n\n{name} Alder keeps the lighthouse of Sarn Rock. The lighthouse of Sarn Rock was built by {name} Alder."
    documents = {f"old-{number}": {"valid_to": "2018"} for number in range(75)}
    documents |= {f"new-{number}": {"valid_from": "2090-01"} for number in range(3)}
    documents |= {key: ({"valid_from": "2019"} if key == "now-0" else {}) for key in sorted(CURRENT)}
    await corpus.add_all(
        tenant, {key: (text.format(name=f"Keeper{key}"), {"metadata": metadata}) for key, metadata in documents.items()}
    )
    await corpus.rebuild(tenant)
    return tenant


def rests_on(found: Retrieval, keys: dict[str, str]) -> set[str]:
    """Return the keys of the documents that a retrieval depends on."""
    ids = {hit.visible.chunk.document_id for hit in found.hits} | {fact.document_id for fact in found.facts}
    ids |= {source.document_id for theme in found.themes for finding in theme.findings for source in finding.sources}
    return {keys[id] for id in ids}


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
async def test_expired_facts_are_hidden_and_limits_are_filled(corpus: Any, keepers: TenantId, strategy: str) -> None:
    keys = {id: key for key, id in corpus.documents[keepers].items()}
    found = await corpus.ask(keepers, QUESTION, strategy, limit=4, asked_at=NOW)
    assert rests_on(found, keys) <= CURRENT
    if strategy not in {"community", "global"}:
        assert {hit.visible.document_key for hit in found.hits} == CURRENT
        assert found.trace.details["as_of"] == "now"
        past = await corpus.ask(keepers, QUESTION, strategy, limit=100, as_of=PAST)
        # Each leg of `agentic` has 50 passages, however many results are requested.
        assert len(past.hits) == 78 or (strategy == "agentic" and len(past.hits) >= 50)
        assert "now-0" not in {hit.visible.document_key for hit in past.hits}
        assert past.trace.details["as_of"] == PAST.isoformat()


async def test_a_smaller_limit_is_still_the_beginning(corpus: Any, keepers: TenantId) -> None:
    for strategy in ("dense", "sparse", "hybrid", "graph", "drift"):
        whole = await corpus.ask(keepers, QUESTION, strategy, limit=100, asked_at=NOW)
        for limit in (1, 2, 3):
            found = await corpus.ask(keepers, QUESTION, strategy, limit=limit, asked_at=NOW)
            assert [(hit.id, hit.score) for hit in found.hits] == [(hit.id, hit.score) for hit in whole.hits][:limit]


async def test_the_store_decides_as_the_filter_says(corpus: Any) -> None:
    for metadata, valid in [
        ({}, True),
        ({"valid_to": "2019"}, True),
        ({"valid_to": 2018}, False),
        ({"valid_to": "2018-12-31"}, False),
        ({"valid_from": "2019-06"}, True),
        ({"valid_from": "2019-07-02"}, False),
        ({"valid_from": "soon", "valid_to": None}, True),
        ({"valid_to": ["2018", "2020"]}, True),
        ({"valid_to": []}, True),
    ]:
        moment = datetime(2019, 7, 1, tzinfo=UTC)
        only: Filter = valid_at(moment)
        assert matches_filter(only, metadata) is valid
        tenant: TenantId = await corpus.tenant(f"validity {metadata}", (), communities=False)
        await corpus.add_all(tenant, {"d": ("# Sarn Rock\n\nThe lighthouse of Sarn Rock.", {"metadata": metadata})})
        search = VectorSearch(kind=NodeKind.CHUNK, text="lighthouse", filter=only)
        (legs,) = await corpus.container.vectors.search(tenant, Collection.CHUNKS, [search])
        assert bool(legs.sparse) is valid
