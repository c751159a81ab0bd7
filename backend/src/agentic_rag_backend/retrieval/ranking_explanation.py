"""Explains why a search returns a document or not: its rank in each leg and in the result, and the reasons it was dropped."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from agentic_rag_backend.domain.document import Document, VisibleChunk
from agentic_rag_backend.domain.filters import (
    VALID_FROM,
    VALID_TO,
    And,
    ChunkSet,
    Comparison,
    Filter,
    LinkCondition,
    Not,
    Or,
    list_leaves,
    matches_filter,
)
from agentic_rag_backend.domain.query import Hit, Query, Retrieval, ThemeHit, Trace
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.legs import LEG_LIMIT, QUESTION, question_leg
from agentic_rag_backend.retrieval.passages.hydration import in_time
from agentic_rag_backend.retrieval.registry import RetrieverRegistry
from agentic_rag_backend.stores.vector.base import Collection, Legs, NodeKind, ScoredId, VectorSearch

MAX_EXAMINED = 1_000
"""Chunks of each leg within which ranks are reported."""
MAX_RESULTS = 100

DroppedBy = Literal["state", "filters", "as_of", "legs", "limit", "min_score", "strategy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegRank:
    """The document's best chunk in one leg, without filters. ``rank`` counts from 1 and is None beyond `MAX_EXAMINED`."""

    leg: str
    rank: int | None
    score: float | None
    chunk_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """One reason why the document is not in the results."""

    by: DroppedBy
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a search ranked one document. ``rank`` is its place among the first 100 results, whatever the ``limit``."""

    limit: int
    document: Document
    chunks: int
    legs: tuple[LegRank, ...]
    rank: int | None
    best: Hit | None
    themes: tuple[ThemeHit, ...]
    dropped: tuple[Dropped, ...]
    trace: Trace


class Explainer:
    """Runs the search as a request would, then each leg without filters."""

    def __init__(self, stores: Stores, retrievers: RetrieverRegistry) -> None:
        self._stores = stores
        self._retrievers = retrievers

    async def explain(self, query: Query, document_id: str, *, strategy: str) -> Explanation:
        """Explain the result of ``strategy`` for a document.

        Raises:
            NotFound: the tenant has no such document.
            FeatureDisabled: the strategy is switched off.
        """
        document = await self._stores.documents.document(query.tenant_id, document_id)
        visible_ids = (await self._stores.documents.visible_chunk_ids(query.tenant_id, [document_id])).get(document_id, [])
        example = (
            (await self._stores.documents.hydrate(query.tenant_id, visible_ids[:1])).get(visible_ids[0]) if visible_ids else None
        )
        legs = await self._rank_legs(query, document_id) if visible_ids else ()
        # The reranker reads the same candidates as in the request.
        reranking = query.rerank and replace(query.rerank, top_n=None)
        # The trace must have the times of all stages. An explanation uses a session as the request would, and leaves it as it is.
        unlimited = replace(query, limit=MAX_RESULTS, min_score=0.0, rerank=reranking, cache=False, remember=False)
        retrieval = await self._retrievers.get(strategy).retrieve(unlimited)
        places = [number for number, hit in enumerate(retrieval.hits, 1) if hit.visible.chunk.document_id == document_id]
        rank = places[0] if places else None
        best = retrieval.hits[rank - 1] if rank is not None else None
        return Explanation(
            limit=query.limit,
            document=document,
            chunks=len(visible_ids),
            legs=legs,
            rank=rank,
            best=best,
            themes=tuple(theme for theme in retrieval.themes if _rests_on(theme, document_id)),
            dropped=()
            if rank is not None and rank <= query.limit and best is not None and best.score >= query.min_score
            else _list_reasons(query, document, _Shown(example, visible_ids), legs, retrieval, rank),
            trace=retrieval.trace,
        )

    async def _rank_legs(self, query: Query, document_id: str) -> tuple[LegRank, ...]:
        vector = await self._stores.encoder.encode(query.tenant_id, query.text)
        everywhere = VectorSearch(kind=NodeKind.CHUNK, dense=vector, text=query.text, limit=MAX_EXAMINED)
        here = replace(everywhere, limit=1, filter=Comparison("document_id", "eq", document_id))
        all_of, own_legs = await self._stores.vectors.search(query.tenant_id, Collection.CHUNKS, [everywhere, here])
        legs = tuple(_rank_leg(name, all_of, own_legs) for name in ("dense", "sparse"))
        return (*legs, await self._question_leg(query, [everywhere, here])) if query.synthetic_questions else legs

    async def _question_leg(self, query: Query, searches: Sequence[VectorSearch]) -> LegRank:
        """Return the rank of the document's best chunk by synthetic questions."""
        of_questions = [replace(search, kind=NodeKind.QUESTION, text=None) for search in searches]
        legs = await self._stores.vectors.search(query.tenant_id, Collection.CHUNKS, of_questions)
        least = (await self._stores.calibration()).similar_question
        ranked = [await question_leg(self._stores.questions, query, leg.dense, least=least) for leg in legs]
        all_of, own_legs = [Legs(dense=tuple(leg.chunks)) for leg in ranked]
        return replace(_rank_leg("dense", all_of, own_legs), leg=QUESTION)


def _rank_leg(name: str, all_of: Legs, legs: Legs) -> LegRank:
    ranked: Sequence[ScoredId] = getattr(all_of, name)
    best = next(iter(getattr(legs, name)), None)
    if best is None:
        return LegRank(leg=name, rank=None, score=None, chunk_id=None)
    rank = next((number for number, item in enumerate(ranked, 1) if item.id == best.id), None)
    return LegRank(leg=name, rank=rank, score=best.score, chunk_id=best.id)


def _rests_on(theme: ThemeHit, document_id: str) -> bool:
    return any(source.document_id == document_id for finding in theme.findings for source in finding.sources)


@dataclass(frozen=True, slots=True)
class _Shown:
    """One visible chunk of a document, if it has any, and the ids of all. The fields of a document are those of each chunk."""

    one: VisibleChunk | None
    ids: Sequence[str]


def _list_reasons(
    query: Query, document: Document, visible: _Shown, legs: Sequence[LegRank], retrieval: Retrieval, rank: int | None
) -> tuple[Dropped, ...]:
    chunk = visible.one
    if chunk is None:
        return (Dropped(by="state", detail=f"the document is {document.state.value}: it has no chunk that may be shown"),)
    if rank is not None:
        score, least = retrieval.hits[rank - 1].score, query.min_score
        low = [Dropped(by="min_score", detail=f"its score is {score:.4f}; min_score is {least:g}")] if score < least else []
        late = [Dropped(by="limit", detail=f"its rank is {rank}; the limit is {query.limit}")] if rank > query.limit else []
        return (*late, *low)
    fields = chunk.fields
    reasons = [
        Dropped(by="filters", detail=f"{to_json(part)} does not hold: {_describe_fields(part, fields)}")
        for part in _parts(query.filters)
        if not any(matches_filter(part, fields, id) for id in visible.ids)
    ]
    if not in_time(query, chunk):
        period = {name: chunk.metadata[name] for name in (VALID_FROM, VALID_TO) if name in chunk.metadata}
        moment = query.moment.isoformat(timespec="seconds")
        reasons.append(Dropped(by="as_of", detail=f"it is not valid at {moment}: the document has {_json(period)}"))
    if reasons:
        return tuple(reasons)
    if all(leg.rank is None or leg.rank > LEG_LIMIT for leg in legs):
        return (Dropped(by="legs", detail=f"no leg has one of its chunks among the first {LEG_LIMIT}"),)
    why = retrieval.trace.fallback_reason or f"it returns {len(retrieval.hits)} results"
    return (Dropped(by="strategy", detail=f"the strategy {retrieval.trace.strategy!r} leaves it out: {why}"),)


def _parts(filter: Filter | None) -> tuple[Filter, ...]:
    """Return the parts of a conjunction, flattened."""
    if filter is None:
        return ()
    return tuple(part for operand in filter.filters for part in _parts(operand)) if isinstance(filter, And) else (filter,)


def to_json(filter: Filter) -> str:
    """Return a filter in the JSON grammar of requests."""
    return _json(_serialise_filter(filter))


def _serialise_filter(filter: Filter) -> dict[str, Any]:
    if isinstance(filter, And):
        return {"and": [_serialise_filter(part) for part in filter.filters]}
    if isinstance(filter, Or):
        return {"or": [_serialise_filter(part) for part in filter.filters]}
    if isinstance(filter, Not):
        return {"not": _serialise_filter(filter.filter)}
    if isinstance(filter, ChunkSet):
        filter = filter.link
    value: Any = filter.values if isinstance(filter, LinkCondition) else filter.value
    if filter.operator in {"exists", "missing"}:
        value = True
    elif isinstance(value, tuple):
        value = value[0] if filter.operator in {"eq", "ne"} else list(value)
    return {filter.field: {filter.operator: value}}


def _describe_fields(filter: Filter, fields: Mapping[str, Any]) -> str:
    names = dict.fromkeys(leaf.field for leaf in list_leaves(filter) if isinstance(leaf, Comparison))
    if not names:
        return "no passage of the document matches"
    return f"the document has {_json({name: fields.get(name) for name in names})}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
