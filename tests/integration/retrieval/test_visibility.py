"""Retrieval does not depend on deleted documents, other tenants or the order of submission."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.integration.retrieval.conftest import Corpus

from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import TenantId

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERY = ("dense", "sparse", "hybrid", "graph", "community", "dual_level", "global", "drift", "auto")
QUESTIONS = (
    "Who founded the organisation that designed the Tidal Array?",
    "Who engraved the Glass Atlas?",
    "Tell me about the Lantern Museum in Westerhall",
    "how long does dough rest",
)


def said(found: Retrieval) -> str:
    """Return every text of a retrieval."""
    parts: list[str] = [f"{hit.visible.document_title} {hit.visible.chunk.text}" for hit in found.hits]
    parts += [f"{step.source} {step.target}" for hit in found.hits for step in hit.graph_path]
    parts += [entity.name for hit in found.hits for entity in hit.entities]
    parts += [f"{fact.source.name} {fact.target.name} {fact.fact}" for fact in found.facts]
    for theme in found.themes:
        parts += [theme.name, theme.summary, *theme.keywords, *(finding.statement for finding in theme.findings)]
    return "\n".join(parts)


def bare(found: Retrieval) -> dict[str, Any]:
    trace = found.trace
    return {
        "found": (found.hits, found.facts, found.themes, found.weights, found.relevance),
        "trace": (trace.methods_used, trace.fallback_reason, trace.warnings, dict(trace.details)),
    }


async def test_a_deleted_document_is_gone_at_once(corpus: Corpus) -> None:
    tenant = await corpus.tenant("deleting")
    question = "Tomas Rehn engraved the Glass Atlas"
    for strategy in EVERY:
        assert "Tomas Rehn" in said(await corpus.ask(tenant, question, strategy, limit=8)), strategy
    document = corpus.documents[tenant]["atlas"]
    await corpus.tombstone(tenant, "atlas")
    for strategy in EVERY:
        after = await corpus.ask(tenant, question, strategy, limit=8)
        assert "Tomas Rehn" not in said(after), strategy
        assert document not in {hit.visible.chunk.document_id for hit in after.hits} | {fact.document_id for fact in after.facts}
        sources = [source for theme in after.themes for finding in theme.findings for source in finding.sources]
        assert document not in {source.document_id for source in sources}


async def test_hidden_passages_do_not_count_as_relevant(corpus: Corpus) -> None:
    tenant = await corpus.tenant("hiding", ("bread", "seals"), communities=False)
    alone = await corpus.tenant("alone", ("seals",), communities=False)
    question = "Sourdough needs flour, water, salt and patience"
    strategies = ("dense", "hybrid", "graph")
    relevant = {each: (await corpus.ask(tenant, question, each)).relevance for each in strategies}
    await corpus.tombstone(tenant, "bread")
    for each in strategies:
        hidden = (await corpus.ask(tenant, question, each)).relevance
        assert hidden == pytest.approx((await corpus.ask(alone, question, each)).relevance, abs=1e-6), each
        assert hidden < relevant[each] / 2


async def test_an_entity_of_deleted_documents_only_is_unknown(corpus: Corpus) -> None:
    tenant = await corpus.tenant("forgetting", ("atlas", "bread"), communities=False)
    found = await corpus.ask(tenant, "Glass Atlas")
    rehn = next(entity for hit in found.hits for entity in hit.entities if entity.name == "Tomas Rehn")
    await corpus.tombstone(tenant, "atlas")
    for name in (rehn.id, "Tomas Rehn"):
        after = await corpus.ask(tenant, "dough", options={"entities": [name]})
        assert after.trace.details["linked_entities"] == 0
        assert after.trace.warnings == (f"options.entities: the graph knows no {name!r}",)


async def test_excluded_passages_take_no_ranks(corpus: Corpus) -> None:
    """Results of the walk that filter or time exclude must not take the places of other results."""
    tenant = await corpus.tenant("filtered", (), communities=False)
    loud = "The Halden Institute and Mira Voss met in Brennmoor about the Tidal Array, protocol"
    noise = {f"loud-{number}": (f"{loud} {number}.", {"metadata": {"kept": False, "valid_to": "2010"}}) for number in range(40)}
    quiet = {f"quiet-{number}": (f"Butter and jam, recipe {number}.", {"metadata": {"kept": True}}) for number in range(3)}
    await corpus.add_all(tenant, noise | quiet)  # type: ignore[operator]
    question = "What did Mira Voss and the Halden Institute say about the Tidal Array in Brennmoor?"
    narrowed = ({"filters": parse_filter({"kept": True})}, {"as_of": datetime(2020, 1, 1, tzinfo=UTC)})
    for strategy in ("dense", "hybrid", "graph"):
        for limit in (1, 3, 5):
            for fields in narrowed:
                found = await corpus.ask(tenant, question, strategy, limit=limit, **fields)
                assert len(found.hits) == min(limit, 3), (strategy, fields)


async def test_the_order_of_handing_in_does_not_matter(corpus: Corpus) -> None:
    keys = tuple(corpus.documents[await corpus.tenant("forwards")])
    one = next(reversed(corpus.documents))
    other = await corpus.tenant("backwards", keys[::-1])
    for strategy in EVERY:
        for question in QUESTIONS:
            found = [await corpus.ask(tenant, question, strategy, limit=8) for tenant in (one, other)]
            order = [[hit.visible.document_key for hit in each.hits] for each in found]
            assert order[0] == order[1], (strategy, question)
            assert [hit.score for hit in found[0].hits] == pytest.approx([hit.score for hit in found[1].hits], abs=1e-5)
            # Facts and themes of equal scores are ordered by their ids, which depend on the tenant.
            facts = [sorted((round(fact.score, 5), fact.fact) for fact in each.facts) for each in found]
            assert facts[0] == facts[1]
            assert {theme.name for theme in found[0].themes} == {theme.name for theme in found[1].themes}
            assert found[0].relevance == pytest.approx(found[1].relevance, abs=1e-5)


async def test_another_tenant_changes_nothing(corpus: Corpus, acme: TenantId) -> None:
    before = {(s, q): bare(await corpus.ask(acme, q, s, limit=8)) for s in EVERY for q in QUESTIONS}
    shouting = await corpus.tenant("neighbour")
    text = "Tomas Rehn, Mira Voss and the Halden Institute baked bread in the Lantern Museum. " * 3
    await corpus.add_all(shouting, {f"noise-{n}": (f"{text} Copy {n}.", {"title": "Tidal Array"}) for n in range(12)})
    await corpus.rebuild(shouting)
    after = {(s, q): bare(await corpus.ask(acme, q, s, limit=8)) for s in EVERY for q in QUESTIONS}
    assert after == before
    own = set(corpus.documents[acme].values())
    for strategy in EVERY:
        found = await corpus.ask(acme, "Tidal Array", strategy, limit=100)
        assert {hit.visible.chunk.document_id for hit in found.hits} <= own
        assert {fact.document_id for fact in found.facts} <= own


async def test_an_empty_tenant_finds_nothing(corpus: Corpus) -> None:
    tenant = await corpus.tenant("empty", (), communities=False)
    for strategy in EVERY:
        found = await corpus.ask(tenant, "Who engraved the Glass Atlas?", strategy)
        assert (found.hits, found.facts, found.themes, found.relevance) == ((), (), (), 0.0)
