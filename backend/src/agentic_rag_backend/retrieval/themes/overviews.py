"""Retrieves for questions that ask for an overview: themes for all documents, passages for one document that is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentic_rag_backend.domain.filters import Comparison, Not, narrow_filter
from agentic_rag_backend.domain.query import Backing, Hit, Query, Retrieval, Trace
from agentic_rag_backend.language.questions.overviews import (
    asks_about_everything,
    find_mentioned,
    find_named_document,
    strip_vocabulary,
)
from agentic_rag_backend.language.titles import split_words, words_of_name
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.passages.hydration import passes, time_detail
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.stores.catalogue.documents.document_values import Matching

SEARCHED = 30
"""Passages among which a document of the named title is looked for."""
MAX_MENTIONS, MAX_SEARCHES = 100, 20
"""Documents that mention a subject, and searches for them: the work has a limit, whatever the number of documents."""
READ = 48
"""Passages of the document that are read: half of them at its beginning, the others at equal distances."""
OVERVIEW = "overview"
"""Detail of the trace: "documents" or, for one document, its title."""
ALL_DOCUMENTS = "documents"
MENTIONED = "mentioned"
"""Detail of the trace: the subject of a question for the documents that mention it."""


class Overviews:
    """Finds what gives an overview.

    Args:
        themes: returns the coarsest themes for a question about everything.
        passages: finds passages by the title of their document.
        words: finds passages by their words.
        documents: reads the passages of a document.
    """

    def __init__(self, themes: Retriever, passages: Retriever, words: Retriever, documents: DocumentCatalogue) -> None:
        self._themes = themes
        self._passages = passages
        self._words = words
        self._documents = documents

    async def find(self, query: Query) -> Retrieval | None:
        """Return the themes or passages. None: the question asks for no overview, there are no themes, or no such document."""
        if asks_about_everything(query.text):
            retrieval = await self._themes.retrieve(query)
            return _with_overview(retrieval, ALL_DOCUMENTS) if retrieval.themes else None
        subject = find_mentioned(query.text)
        if subject is not None and (mentions := await self._find_mentions(query, subject)) is not None:
            return mentions
        title = find_named_document(query.text)
        return None if title is None else await self._read_document(query, title)

    async def _find_mentions(self, query: Query, subject: str) -> Retrieval | None:
        """Return the best passage of each document that has all words of the subject in its title or in one passage.

        BM25 finds the passages with the words. One document may have all of the best ones, so the search is repeated without the
        documents that mention the subject and, if there are no further ones among the best, without all that were read.
        """
        forms, by_document, read = content_forms(subject), dict[str, Hit](), set[str]()
        search = replace(query, text=subject, limit=SEARCHED, min_score=0.0)
        for _ in range(MAX_SEARCHES if forms else 0):
            results = await self._words.retrieve(search)
            mentions = [
                hit for hit in results.hits if forms <= content_forms(f"{hit.visible.document_title}\n{hit.visible.chunk.text}")
            ]
            for hit in mentions:
                by_document.setdefault(hit.visible.chunk.document_id, hit)
            read.update(hit.visible.chunk.document_id for hit in mentions or results.hits)
            if len(results.hits) < SEARCHED or len(by_document) >= MAX_MENTIONS:
                break
            others = Not(Comparison("document_id", "in", tuple(sorted(read))))
            search = replace(search, filters=narrow_filter(query.filters, others))
        if not by_document:
            return None
        hits = tuple(by_document.values())[:MAX_MENTIONS]
        trace = Trace(strategy="documents", methods_used=results.trace.methods_used, details=time_detail(query))
        backing = Backing(hits=hits, relevance=results.relevance)
        retrieval = Retrieval(hits=hits[: query.limit], backing=backing, relevance=results.relevance, trace=trace)
        return _with_overview(retrieval, subject, **{MENTIONED: subject})

    async def _read_document(self, query: Query, title: str) -> Retrieval | None:
        """Return passages of the document of this title in reading order, with scores of the search."""
        page = await self._documents.documents(query.tenant_id, Matching(name=title, filter=query.filters), limit=1)
        results = await self._passages.retrieve(replace(query, limit=SEARCHED, min_score=0.0))
        ids_of_hits = (hit.visible.chunk.document_id for hit in results.hits if _is_named(hit, title))
        document_id = next((document.id for document in page.items), None) or next(ids_of_hits, None)
        if document_id is None:
            return None
        ids = (await self._documents.visible_chunk_ids(query.tenant_id, [document_id])).get(document_id, [])
        visible = await self._documents.hydrate(query.tenant_id, _select_spread(ids))
        scores = {hit.id: hit.score for hit in results.hits}
        hits = tuple(
            Hit(visible=chunk, score=scores.get(id, 0.0))
            for id in _select_spread(ids)
            if (chunk := visible.get(id)) is not None and passes(query, chunk)
        )
        if not hits:
            return None
        trace = Trace(strategy="document", methods_used=results.trace.methods_used, details=time_detail(query))
        retrieval = Retrieval(
            hits=hits[: query.limit],
            backing=Backing(hits=hits, relevance=results.relevance),
            relevance=results.relevance,
            trace=trace,
        )
        return _with_overview(retrieval, hits[0].visible.document_title)


def _with_overview(retrieval: Retrieval, subject: str, **further: str) -> Retrieval:
    details = {**retrieval.trace.details, OVERVIEW: subject, **further}
    return replace(retrieval, trace=replace(retrieval.trace, details=details))


def _is_named(hit: Hit, title: str) -> bool:
    """Return whether a hit's document has this title, apart from words such as "the", or a file of this name."""
    key = (hit.visible.document_key or "").rpartition("/")[2]
    names = (strip_vocabulary(hit.visible.document_title), key, " ".join(words_of_name(key)))
    return any(name and _normalise(name) == _normalise(title) for name in names)


def _normalise(name: str) -> list[str]:
    return split_words(name.casefold())


def _select_spread(ids: Sequence[str]) -> list[str]:
    """Return `READ` ids in their order: the first half, and the others at equal distances."""
    if len(ids) <= READ:
        return list(ids)
    half = READ // 2
    step = (len(ids) - half) / half
    return [*ids[:half], *(ids[half + int(number * step)] for number in range(half))]
