"""Every strategy on the embedded stores, over one small corpus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.integration.retrieval.conftest import Corpus

from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import FeatureDisabled, StoreUnavailable

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHUNKS = ("dense", "sparse", "hybrid", "graph", "paths", "temporal", "dual_level", "auto")
TWO_HOPS = "Who founded the organisation that designed the Tidal Array?"


def keys(found: Retrieval) -> list[str | None]:
    return [hit.visible.document_key for hit in found.hits]


def everything_said(found: Retrieval) -> str:
    parts: list[str] = [hit.visible.chunk.text for hit in found.hits]
    parts += [f"{step.source} {step.target}" for hit in found.hits for step in hit.graph_path]
    parts += [fact.fact for fact in found.facts]
    for theme in found.themes:
        parts += [theme.name, theme.summary, *theme.keywords, *(finding.statement for finding in theme.findings)]
    return "\n".join(parts)


def falling(scores: Iterable[float]) -> bool:
    values = list(scores)
    return values == sorted(values, reverse=True) and all(0.0 <= value <= 1.0 for value in values)


def bare(found: Retrieval) -> dict[str, Any]:
    """Return a retrieval without its times."""
    trace = found.trace
    return {
        "found": (found.hits, found.facts, found.themes, found.weights, found.relevance),
        "trace": (trace.strategy, trace.methods_used, trace.fallback_reason, trace.warnings, dict(trace.details)),
    }


@pytest.mark.parametrize("strategy", CHUNKS)
async def test_the_passage_that_says_it_comes_first(corpus: Corpus, acme: TenantId, strategy: str) -> None:
    found = await corpus.ask(acme, "Who engraved the Glass Atlas?", strategy, limit=3)
    assert keys(found)[0] == "atlas"
    assert 1 <= len(found.hits) <= 3
    assert len({hit.id for hit in found.hits}) == len(found.hits)
    assert falling(hit.score for hit in found.hits)
    assert falling(fact.score for fact in found.facts)
    assert falling(theme.score for theme in found.themes)
    assert 0.0 < found.relevance <= 1.0
    assert {"Glass Atlas", "Tomas Rehn"} <= {entity.name for entity in found.hits[0].entities}
    assert found.trace.strategy == strategy
    assert found.trace.processing_time_ms["retrieval"] > 0


async def test_themes_tell_what_their_passages_say(corpus: Corpus, acme: TenantId) -> None:
    found = await corpus.ask(acme, "What is the Lantern Museum known for?", "community", high_limit=2)
    assert found.hits == ()
    assert 1 <= len(found.themes) <= 2
    assert falling(theme.score for theme in found.themes)
    assert "Lantern Museum" in everything_said(found)
    assert found.relevance == found.themes[0].score


@pytest.mark.parametrize("level", [0, 1, 2])
async def test_the_themes_of_one_level(corpus: Corpus, acme: TenantId, level: int) -> None:
    listed = (await corpus.container.communities.list(acme, level=level)).items
    searched = [view for view in listed if view.entity_count >= 3]
    for limit in (1, 100):
        found = await corpus.ask(acme, "Lantern Museum", "community", high_limit=limit, options={"level": level})
        assert {theme.level for theme in found.themes} <= {level}
        assert len(found.themes) == min(limit, len(searched))


async def test_the_second_hop_finds_what_the_question_does_not_name(corpus: Corpus, acme: TenantId) -> None:
    hybrid = await corpus.ask(acme, TWO_HOPS, "hybrid", limit=8)
    graph = await corpus.ask(acme, TWO_HOPS, "graph", limit=8)
    assert keys(hybrid)[0] != "halden"
    assert keys(graph).index("halden") < 3
    share = {
        name: {hit.visible.document_key: hit.score for hit in found.hits}
        for name, found in (("hybrid", hybrid), ("graph", graph))
    }
    assert share["graph"]["halden"] > share["hybrid"]["halden"]
    path = graph.hits[keys(graph).index("halden")].graph_path
    assert [(step.kind, step.source, step.relation, step.target) for step in path] == [
        ("relationship", "Tidal Array", "designed_by", "Halden Institute"),
        ("mention", "Halden Institute", "mentioned_in", "Halden Institute"),
    ]
    assert path[0].fact == "The Tidal Array was designed by the Halden Institute."
    named = graph.hits[keys(graph).index("tidal")].graph_path
    assert [(step.source, step.relation, step.target) for step in named][-1][1:] == ("mentioned_in", "Tidal Array")
    shown = await corpus.container.catalogue.documents.hydrate(
        acme, [str(step.chunk_id) for hit in graph.hits for step in hit.graph_path]
    )
    for hit in graph.hits:
        for step in hit.graph_path:
            text = shown[str(step.chunk_id)].chunk.text
            assert (step.fact or step.source) in text or step.source in shown[str(step.chunk_id)].document_title
        assert not hit.graph_path or hit.graph_path[-1].document_id == hit.visible.chunk.document_id


async def test_a_question_of_no_known_name_falls_back_and_says_so(corpus: Corpus, acme: TenantId) -> None:
    question = "how long does dough rest overnight"
    found = await corpus.ask(acme, question, "graph", limit=3)
    assert keys(found)[0] == "bread"
    assert found.trace.fallback_used
    assert found.trace.fallback_reason == "the question names no entity of the graph; the search starts from passages alone"
    by_default = await corpus.ask(acme, question, "auto", limit=3, dual_level=False)
    assert by_default.hits == found.hits
    assert not by_default.trace.fallback_used
    assert by_default.trace.details["linked_entities"] == 0


async def test_entities_may_be_named_beside_the_question(corpus: Corpus, acme: TenantId) -> None:
    question = "what happened in winter"
    assert (await corpus.ask(acme, question, "graph")).trace.details["linked_entities"] == 0
    options = {"entities": ["Glass Atlas", "Nobody Known"]}
    found = await corpus.ask(acme, question, "graph", options=options, limit=8)
    assert found.trace.details["linked_entities"] == 1
    assert found.trace.warnings == ("options.entities: the graph knows no 'Nobody Known'",)
    assert "atlas" in keys(found)
    glass = next(entity for hit in found.hits for entity in hit.entities if entity.name == "Glass Atlas")
    by_id = await corpus.ask(acme, question, "graph", options={"entities": [glass.id, "Nobody Known"]}, limit=8)
    assert bare(by_id) == bare(found)


async def test_an_entity_named_beside_the_question_is_not_made_weaker_by_how_it_is_written(
    corpus: Corpus, acme: TenantId
) -> None:
    plain = await corpus.ask(acme, "Is Bread old?", "graph", limit=8)
    named = await corpus.ask(acme, "Is Bread old?", "graph", limit=8, options={"entities": ["bread"]})
    assert bare(named) == bare(plain)


async def test_dual_level_asks_both_levels(corpus: Corpus, acme: TenantId) -> None:
    found = await corpus.ask(acme, "Tell me about the Lantern Museum", "dual_level")
    low = await corpus.ask(acme, "Tell me about the Lantern Museum", "graph")
    high = await corpus.ask(acme, "Tell me about the Lantern Museum", "community")
    assert found.hits == low.hits
    assert found.facts == low.facts
    assert set(found.themes) <= set(high.themes)
    assert found.themes
    assert not found.trace.fallback_used
    with pytest.raises(FeatureDisabled):
        await corpus.ask(acme, "Tell me", "dual_level", dual_level=False)
    assert (await corpus.ask(acme, "Tell me", "auto", dual_level=False)).trace.methods_used[0] == "agentic"


THEME = "How do the Halden Institute and the Tidal Array depend on one another?"


async def test_a_theme_question_takes_its_passages_from_hybrid_and_keeps_the_facts(corpus: Corpus, acme: TenantId) -> None:
    found = await corpus.ask(acme, THEME, "dual_level")
    hybrid, graph = await corpus.ask(acme, THEME, "hybrid"), await corpus.ask(acme, THEME, "graph")
    assert found.hits == hybrid.hits != graph.hits
    assert {fact.id for fact in found.facts} == {fact.id for fact in graph.facts}
    assert found.facts
    assert found.themes
    assert found.trace.details["low_level"] == {"strategy": "hybrid", "chosen_by": "form"}
    told = await corpus.ask(acme, THEME, "dual_level", options={"low_strategy": "graph"})
    assert (told.hits, told.facts) == (graph.hits, graph.facts)
    assert told.trace.details["low_level"] == {"strategy": "graph", "chosen_by": "request"}
    alone = await corpus.ask(acme, THEME, "auto", dual_level=False)
    assert (alone.hits, alone.trace.methods_used) == (hybrid.hits, ("hybrid", "dense", "sparse"))
    assert alone.facts == found.facts


async def test_facts_of_a_theme_question_are_left_out_where_they_cannot_be_read(
    corpus: Corpus, acme: TenantId, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> object:
        raise StoreUnavailable("the graph store is away")

    monkeypatch.setattr(type(corpus.container.graph), "relationships", away)
    found = await corpus.ask(acme, THEME, "dual_level")
    assert found.hits
    assert found.facts == ()
    assert found.trace.failures == ("facts are left out: store_unavailable",)
    assert found.trace.fallback_used
