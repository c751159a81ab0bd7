"""The strategy `paths`: chunks that state relationships which lead away from the entities of a question."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.integration.retrieval.conftest import Corpus

from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import StoreUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")

TWO_HOPS = "Who founded the organisation that designed the Tidal Array?"


def keys(found: Retrieval) -> list[str | None]:
    return [hit.visible.document_key for hit in found.hits]


def falling(found: Retrieval) -> bool:
    return all(one.score >= other.score for one, other in pairwise(found.hits)) and all(0 <= hit.score <= 1 for hit in found.hits)


async def test_paths_lead_from_the_question_to_the_chunks_that_state_them(corpus: Corpus, acme: TenantId) -> None:
    found = await corpus.ask(acme, TWO_HOPS, "paths", limit=8)
    assert keys(found).index("halden") < 3
    assert falling(found)
    path = found.hits[keys(found).index("halden")].graph_path
    assert [(step.source, step.relation, step.target) for step in path] == [
        ("Tidal Array", "designed_by", "Halden Institute"),
        ("Halden Institute", "founded_by", "Mira Voss"),
    ]
    shown = await corpus.container.catalogue.documents.hydrate(acme, [str(step.chunk_id) for step in path])
    assert all(step.fact in shown[str(step.chunk_id)].chunk.text for step in path if step.fact)
    assert {"designed_by", "founded_by"} <= {fact.relation for fact in found.facts}
    shown_paths = [[entity["name"] for entity in each["entities"]] for each in found.trace.details["paths"]]
    assert ["Tidal Array", "Halden Institute", "Mira Voss"] in shown_paths[:3]
    assert not found.trace.fallback_used


async def test_options_select_the_relationships(corpus: Corpus, acme: TenantId) -> None:
    async def related(**options: Any) -> set[tuple[str, ...]]:
        found = await corpus.ask(acme, TWO_HOPS, "paths", options=options)
        return {tuple(path["relations"]) for path in found.trace.details["paths"]}

    assert ("designed_by", "founded_by") in await related()
    assert ("designed_by", "founded_by") not in await related(max_hops=1)
    assert await related(relation_types=["designed_by"]) == {("designed_by",)}
    assert await related(direction="in", relation_types=["designed_by"]) == set()
    assert await related(min_weight=1000) == set()
    fallen = await corpus.ask(acme, TWO_HOPS, "paths", options={"min_weight": 1000})
    assert fallen.trace.fallback_reason == "no relationship leads on from its entities; the results are those of hybrid"
    hybrid = await corpus.ask(acme, TWO_HOPS, "hybrid")
    assert keys(fallen) == keys(hybrid)


async def test_paths_keep_to_filters_and_times(corpus: Corpus, acme: TenantId) -> None:
    found = await corpus.ask(acme, TWO_HOPS, "paths", limit=8, filters=parse_filter({"key": "tidal"}))
    assert set(keys(found)) == {"tidal"}
    assert {step.document_id for hit in found.hits for step in hit.graph_path} == {corpus.documents[acme]["tidal"]}
    assert {fact.document_id for fact in found.facts} == {corpus.documents[acme]["tidal"]}


async def test_a_question_without_names_and_a_store_that_is_away(
    corpus: Corpus, acme: TenantId, monkeypatch: pytest.MonkeyPatch
) -> None:
    unnamed = await corpus.ask(acme, "how long does dough rest overnight", "paths", limit=3)
    assert keys(unnamed)[0] == "bread"
    assert unnamed.trace.fallback_reason == "the question names no entity of the graph; the results are those of hybrid"

    async def away(*_: object, **__: object) -> object:
        raise StoreUnavailable("the graph store is away")

    monkeypatch.setattr(type(corpus.container.graph), "edges_at", away)
    found = await corpus.ask(acme, TWO_HOPS, "paths")
    assert found.hits
    assert found.trace.failures == ("paths are left out: store_unavailable",)
