"""Retrieval for questions that ask for an overview: themes, passages of a named document, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sample_passages import theme_of, visible_of

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.retrieval.passages.hydration import passes
from agentic_rag_backend.retrieval.themes.overviews import READ, SEARCHED, Overviews
from agentic_rag_backend.stores.catalogue.documents.document_values import Matching
from agentic_rag_backend.stores.catalogue.pages import Page


@dataclass
class Scripted:
    """Both retrievers, and the catalogue of one document of 60 passages."""

    retrieval: Retrieval

    async def retrieve(self, query: Query) -> Retrieval:
        return self.retrieval

    async def documents(self, tenant: object, matching: Matching, *, limit: int) -> Page[Any]:
        return Page(())

    async def visible_chunk_ids(self, tenant: object, documents: Sequence[str]) -> dict[str, list[str]]:
        return {documents[0]: [f"p{number}" for number in range(60)]}

    async def hydrate(self, tenant: object, ids: Sequence[str]) -> dict[str, VisibleChunk]:
        return {id: visible_of(f"text of {id}", id, title="The Tide Tables") for id in ids}


async def test_themes_a_named_document_or_nothing(query: Callable[..., Query]) -> None:
    hit = Hit(visible=visible_of("Low water.", "p7", title="The Tide Tables", key="tables/tides-2014.pdf"), score=0.5)
    passages = Scripted(Retrieval(hits=(hit,), trace=Trace(strategy="hybrid")))
    for themes, text, subject in [
        ((theme_of("t"),), "What are these documents about?", "documents"),
        ((), "What are these documents about?", None),
        ((theme_of("t"),), "What is the document Tide Tables about?", "The Tide Tables"),
        ((theme_of("t"),), "Summarise tides-2014.pdf", "The Tide Tables"),
        ((theme_of("t"),), "What does tides-2014.pdf contain?", "The Tide Tables"),
        ((theme_of("t"),), "What is the document Tide Table about?", None),
        ((theme_of("t"),), "Who wrote the Tide Tables?", None),
    ]:
        overviews = Overviews(
            Scripted(Retrieval(themes=themes, trace=Trace(strategy="global"))), passages, passages, cast("Any", passages)
        )
        retrieval = await overviews.find(query(text, limit=3))
        assert (None if retrieval is None else retrieval.trace.details["overview"]) == subject
        if retrieval is not None and not retrieval.themes:
            assert [hit.id for hit in retrieval.hits] == ["p0", "p1", "p2"]
            assert retrieval.backing is not None
            assert len(retrieval.backing.hits) == READ
            assert retrieval.backing.hits[-1].id > "p50", "the end of the document is read, too"


@dataclass
class Passages:
    """A search that returns the first passages of one long list that pass the filters."""

    hits: Sequence[Hit]

    async def retrieve(self, query: Query) -> Retrieval:
        passing = [hit for hit in self.hits if passes(query, hit.visible)]
        return Retrieval(hits=tuple(passing[: query.limit]), trace=Trace(strategy="hybrid"))


async def test_a_document_with_all_of_the_best_passages_hides_no_other(query: Callable[..., Query]) -> None:
    places = [("long", number) for number in range(2 * SEARCHED)] + [("short", 0), ("last", 0)]
    hits = [
        Hit(visible=visible_of("The pilot cutter.", f"{document}{n}", document_id=document, title=document), score=0.5)
        for document, n in places
    ]
    passages = Passages([*hits, Hit(visible=visible_of("A pilot.", "x", document_id="other"), score=0.1)])
    overviews = Overviews(cast("Any", None), cast("Any", None), passages, cast("Any", None))
    retrieval = await overviews.find(query("Which documents mention the pilot cutter?", limit=2))
    assert retrieval is not None
    assert retrieval.trace.details["mentioned"] == "the pilot cutter"
    assert [hit.id for hit in retrieval.hits] == ["long0", "short0"]
    assert retrieval.backing is not None
    assert [hit.visible.chunk.document_id for hit in retrieval.backing.hits] == ["long", "short", "last"]
    assert await overviews.find(query("Which documents mention the airship?", limit=2)) is None
