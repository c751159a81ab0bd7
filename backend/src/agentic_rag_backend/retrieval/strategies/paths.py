"""Multi-hop search: paths over relationships from the entities of a question, and the chunks that state their steps.

Steps: link the entities that the question names → best paths of up to ``max_hops`` relationships from them → check their steps
with the catalogue → score each path by its relationships and by the question's words in their sentences → chunks that state the
steps of the best paths, each with its path. The results of hybrid search fill the rest. No language model is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from agentic_rag_backend.domain.query import FactHit, GraphStep, Hit, Query, Retrieval, Trace
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.knowledge.paths.base import Connection, EntityPath, PathOptions
from agentic_rag_backend.knowledge.paths.outward import Outward, Shown
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.legs import FACT_LIMIT, NEAR, Candidates, chunk_candidates, methods_with_questions
from agentic_rag_backend.retrieval.options.model import MAX_NAMES, EntitiesOption, SyntheticQuestionsOption, optional_field
from agentic_rag_backend.retrieval.passages.hydration import (
    FIRST_READ,
    entities_of,
    passes,
    shown_graph,
    time_detail,
    visible_chunks,
    visible_in_order,
)
from agentic_rag_backend.retrieval.passages.passage_paths import MAX_STARTS, step_of
from agentic_rag_backend.retrieval.scoring import best_coverage, cover, rank_scores, relevance, weighted_min_max
from agentic_rag_backend.retrieval.strategies.graph import GraphEvidence, gather_evidence
from agentic_rag_backend.retrieval.strategies.hybrid import Hybrid

HOPS = 2
"""Relationships of a path, at most, if the request does not say."""
TRAILS = 120
"""Paths that are checked with the catalogue, the best by their relationships."""
CONNECTING = 2.0
"""Factor for a path that ends at another entity of the question."""
SHOWN_PATHS = 10
"""Paths of the trace, and those whose relationships are the facts of the result."""
PATH_SHARE = 0.5
"""Share of the best path in the score of a chunk. The rest is its hybrid score."""


@dataclass(frozen=True, slots=True)
class ScoredPath:
    """A path and its score for the question, in [0, 1]."""

    path: EntityPath
    score: float

    @property
    def chunk_ids(self) -> tuple[str, ...]:
        """The chunks that state a step, without duplicates."""
        return tuple(dict.fromkeys(id for step in self.path.steps for id in _stated_by(step)))

    def steps(self, chunk_id: str) -> tuple[GraphStep, ...]:
        """Return the path to a chunk. Steps that the chunk states name this chunk, although others may state them, too."""
        return tuple(_step(step, chunk_id) for step in self.path.steps)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The paths of a question, best first. ``bounded`` if connections were left out; ``failure`` if the store did not answer."""

    paths: tuple[ScoredPath, ...] = ()
    bounded: bool = False
    failure: str | None = None


class PathsRequestOptions(EntitiesOption, SyntheticQuestionsOption):
    max_hops: int = Field(2, ge=1, le=4, description="maximum number of relationships of a path")
    relation_types: list[Annotated[str, Field(max_length=128)]] = optional_field(
        max_length=MAX_NAMES, description="only relationships of these types, in any case: `works_for`, `WORKS FOR`"
    )
    min_weight: float = Field(0, ge=0, le=1000, description="least weight of a relationship")
    direction: Literal["any", "out", "in"] = Field(
        "any", description="out: each relationship leads away from the entity of the question; in: towards it"
    )


class PathsRetriever:
    """Runs multi-hop search (see the module).

    Options: ``max_hops`` (1–4), ``relation_types``, ``min_weight`` and ``direction`` select the relationships, and ``entities``
    names additional entities to start from.
    """

    def __init__(self, stores: Stores, graphs: TenantGraphs, hybrid: Hybrid) -> None:
        self._stores = stores
        self._graphs = graphs
        self._hybrid = hybrid

    async def retrieve(self, query: Query) -> Retrieval:
        """Return chunks that state the best paths, then those of hybrid search. Without a path, the latter alone."""
        query = query.with_candidates(NEAR)
        candidates, (graph, graph_failures) = await asyncio.gather(
            chunk_candidates(self._stores, query, weighted_min_max, self._hybrid.weights_of(query).weights.by_leg()),
            shown_graph(self._graphs, query),
        )
        if graph is None:
            retrieval = await self._hybrid.without_graph(query, graph_failures)
            return replace(retrieval, trace=replace(retrieval.trace, strategy="paths"))
        evidence = await asyncio.to_thread(gather_evidence, graph, query, candidates)
        walk = await self._walk(query, graph, evidence)
        scores = {id: (1 - PATH_SHARE) * score for id, score in candidates.scores.items()} if walk.paths else candidates.scores
        best: dict[str, ScoredPath] = {}
        for path in walk.paths:
            for id in path.chunk_ids:
                best.setdefault(id, path)
        scores = {**scores, **{id: scores.get(id, 0.0) + PATH_SHARE * path.score for id, path in best.items()}}
        return await self._answer(query, graph, (candidates, evidence), walk, (scores, best))

    async def _answer(
        self,
        query: Query,
        graph: TenantGraph,
        evidence_of_query: tuple[Candidates, GraphEvidence],
        walk: _Walk,
        scored: tuple[Mapping[str, float], Mapping[str, ScoredPath]],
    ) -> Retrieval:
        (candidates, evidence), (scores, best) = evidence_of_query, scored
        stating = await visible_chunks(self._stores.documents, query, [id for id in best if id not in candidates.visible])
        order = rank_scores(scores)
        chunks = {**candidates.visible, **stating}
        visible = await visible_in_order(self._stores.documents, query, [item.id for item in order], chunks, FIRST_READ)
        hits = tuple(
            _hit(graph, evidence, Hit(visible=visible[item.id], score=min(1.0, item.score)), best.get(item.id))
            for item in order
            if item.id in visible
        )[: query.candidates]
        texts = [item.chunk.text for item in candidates.visible.values()]
        coverage = best_coverage(self._stores.vectors.terms, query.text, texts)
        best_cosine = max((score for id, score in evidence.cosine.items() if id in candidates.visible), default=0.0)
        return Retrieval(
            hits=hits,
            facts=_facts(walk.paths[:SHOWN_PATHS]),
            relevance=relevance(best_cosine, coverage, await self._stores.calibration()) if hits else 0.0,
            trace=_trace(query, evidence, walk),
        )

    async def _walk(self, query: Query, graph: TenantGraph, evidence: GraphEvidence) -> _Walk:
        linked = evidence.linked
        order = sorted(linked, key=lambda number: (-linked[number] * graph.idf[number], graph.entity(number).id))
        starts = [graph.entity(number).id for number in order[:MAX_STARTS]]
        if not starts:
            return _Walk()
        options = path_options(query)
        outward = Outward(query.tenant_id, self._stores.graph, graph, starts, options)
        visibility = Shown(moment=query.moment, known=evidence.visible, passes=partial(passes, query))
        try:
            for _ in range(options.max_hops):
                await outward.extend()
            facts = await outward.read(self._stores.facts, outward.best(TRAILS), visibility)
        except StoreUnavailable as error:
            return _Walk(failure=f"paths are left out: {error.code}")
        return _Walk(tuple(self._score_paths(query, evidence, list(facts.values()), starts)), outward.bounded)

    def _score_paths(
        self, query: Query, evidence: GraphEvidence, paths: Sequence[EntityPath], starts: Sequence[str]
    ) -> list[ScoredPath]:
        """Return the paths, best first.

        The score is ``path score^¼ × (coverage of the question by its sentences + best hybrid score of its chunks)``, doubled
        for a path that ends at another entity of the question.
        """
        terms = self._stores.vectors.terms
        texts = {
            number: frozenset[int]().union(*(terms(_describe_time(step)) for step in path.steps))
            for number, path in enumerate(paths)
        }
        coverage = cover(terms(query.text), texts)
        scores = {}
        for number, path in enumerate(paths):
            passage = max(evidence.hybrid.get(id, 0.0) for step in path.steps for id in _stated_by(step))
            connects = CONNECTING if path.entities[-1].id in starts else 1.0
            scores[number] = connects * path.score**0.25 * (coverage.of(coverage.held[number]) + passage)
        best = max(scores.values(), default=0.0) or 1.0
        scored_paths = [ScoredPath(path, scores[number] / best) for number, path in enumerate(paths)]
        return sorted(
            scored_paths,
            key=lambda scored: (-round(scored.score, 12), [(entity.name, entity.id) for entity in scored.path.entities]),
        )


def path_options(query: Query) -> PathOptions:
    """Return the options of the paths of a query."""
    options = query.options
    types = options.get("relation_types")
    return PathOptions(
        max_hops=int(options.get("max_hops", HOPS)),
        relations=tuple(types) if types else None,
        min_weight=float(options.get("min_weight", 0.0)),
        direction=options.get("direction", "any"),
    )


def _stated_by(step: Connection) -> tuple[str, ...]:
    return (step.chunk_id,) if step.fact is None else tuple(passage.support.chunk_id for passage in step.fact.passages)


def _step(step: Connection, chunk_id: str) -> GraphStep:
    passages = step.fact.passages if step.fact is not None else ()
    passage = next((candidate for candidate in passages if candidate.support.chunk_id == chunk_id), None)
    if passage is None:
        return step_of(step)
    return replace(step_of(step), fact=passage.fact, chunk_id=chunk_id, document_id=passage.support.document_id)


def _describe_time(step: Connection) -> str:
    if step.fact is None:
        raise AssertionError("a path over relationships has no shared mention")
    return f"{step.fact.relation.replace('_', ' ')} {step.fact.fact}"


def _hit(graph: TenantGraph, evidence: GraphEvidence, hit: Hit, path: ScoredPath | None) -> Hit:
    scores = {"combined": evidence.hybrid.get(hit.id, 0.0), **({"path": path.score} if path is not None else {})}
    if hit.id in evidence.cosine:
        scores["dense"] = evidence.cosine[hit.id]
    steps = path.steps(hit.id) if path is not None else ()
    return replace(hit, scores=scores, entities=entities_of(graph, hit.id), graph_path=steps)


def _facts(paths: Iterable[ScoredPath]) -> tuple[FactHit, ...]:
    facts: dict[str, FactHit] = {}
    for path in paths:
        for step in path.path.steps:
            fact = step.fact
            if fact is not None and fact.id not in facts:
                facts[fact.id] = FactHit(
                    id=fact.id,
                    source=fact.source,
                    relation=fact.relation,
                    target=fact.target,
                    fact=fact.fact,
                    chunk_id=step.chunk_id,
                    document_id=step.document_id,
                    score=path.score,
                    weight=fact.weight,
                    valid_at=fact.valid_at,
                    invalid_at=fact.invalid_at,
                    created_at=fact.created_at,
                    expired_at=fact.expired_at,
                )
    return tuple(facts.values())[:FACT_LIMIT]


def _trace(query: Query, evidence: GraphEvidence, walk: _Walk) -> Trace:
    options = path_options(query)
    reason = "no relationship leads on from its entities" if evidence.linked else "the question names no entity of the graph"
    return Trace(
        strategy="paths",
        methods_used=(*methods_with_questions(query, "dense", "sparse"), *(("paths",) if walk.paths else ())),
        fusion="min_max + paths",
        fallbacks=() if walk.paths or walk.failure else (f"{reason}; the results are those of hybrid",),
        failures=(walk.failure,) if walk.failure is not None else (),
        hidden=(walk.failure,) if walk.failure is not None else (),
        warnings=tuple(f"options.entities: the graph knows no {name!r}" for name in evidence.unknown),
        details={
            **time_detail(query),
            "linked_entities": len(evidence.linked),
            "max_hops": options.max_hops,
            "bounded": walk.bounded,
            "paths": [_show_paths(path) for path in walk.paths[:SHOWN_PATHS]],
        },
    )


def _show_paths(scored_path: ScoredPath) -> dict[str, Any]:
    return {
        "score": round(scored_path.score, 4),
        "entities": [{"id": entity.id, "name": entity.name} for entity in scored_path.path.entities],
        "relations": [step.fact.relation for step in scored_path.path.steps if step.fact is not None],
        "chunk_ids": [step.chunk_id for step in scored_path.path.steps],
    }
