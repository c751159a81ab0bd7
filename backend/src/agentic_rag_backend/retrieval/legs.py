"""Searches of one kind that strategies combine: chunks by embeddings, words and questions, fused, and facts.

How many are found does not depend on the request's limit, so that no score moves with it. Documents that are not valid at the
query's moment are few as a rule: only where one is among the first candidates are the legs asked again, without any of them.

A relationship is shown only with a visible chunk that states it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import Filter, narrow_filter, valid_at
from agentic_rag_backend.domain.graph import GraphEdge, StatedFact
from agentic_rag_backend.domain.query import FactHit, Hit, Query, Retrieval, ThemeHit
from agentic_rag_backend.errors import AgenticRagError, StoreUnavailable
from agentic_rag_backend.knowledge.tenant_graph.graph import TenantGraph
from agentic_rag_backend.knowledge.visible.facts import VisibleFact, edge_of
from agentic_rag_backend.retrieval.base import LegAnswer, Stores
from agentic_rag_backend.retrieval.passages.hydration import FIRST_READ, in_time, passes, visible_chunks
from agentic_rag_backend.retrieval.scoring import FUSIONS, Fuse, min_max, rank_scores
from agentic_rag_backend.stores.catalogue.documents.questions import QuestionCatalogue
from agentic_rag_backend.stores.vector.base import Collection, Legs, NodeKind, ScoredId, Vector, VectorSearch
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

SERVER_ERRORS = 500
"""HTTP status from which on an error is the server's. Errors below are the caller's."""


@dataclass(frozen=True, slots=True)
class LegOutcome:
    """The searches that succeeded, by name, and the code of the error of each other one."""

    found: Mapping[str, Retrieval]
    failed: Mapping[str, str]


async def search_all(query: Query, searches: Mapping[str, Awaitable[Retrieval]]) -> LegOutcome:
    """Run searches by name, and return those that succeeded, in the order of ``searches``.

    Raises:
        AgenticRagError: a search refused the request, such as `InvalidRequest` or `FeatureDisabled`.
        AgenticRagError: all searches failed. It is the error of the first one.
    """
    outcomes = await asyncio.gather(*searches.values(), return_exceptions=True)
    retrievals: dict[str, Retrieval] = {}
    failed: dict[str, str] = {}
    for name, outcome in zip(searches, outcomes, strict=True):
        if isinstance(outcome, Retrieval):
            retrievals[name] = outcome
            continue
        if not isinstance(outcome, Exception) or (isinstance(outcome, AgenticRagError) and outcome.status < SERVER_ERRORS):
            raise outcome
        failed[name] = outcome.code if isinstance(outcome, AgenticRagError) else type(outcome).__name__
        _log.error("inner_search_failed", tenant_id=query.tenant_id.value, code=failed[name], exc_info=outcome)
    if not retrievals:
        raise next(outcome for outcome in outcomes if isinstance(outcome, Exception))
    return LegOutcome(retrievals, failed)


QUESTION = "question"
"""Name of the leg in scores, weights and traces."""
QUESTION_LIMIT = 200
"""Questions that are found. A chunk has at most three."""
QUESTION_WEIGHT = 0.1
"""Weight of the leg, relative to 1.0 for the two other legs together: the best of .05 to .3, judged by the worst set."""


@dataclass(frozen=True, slots=True)
class QuestionLeg:
    """Chunks, best first, each with the cosine of its nearest question, and these questions by chunk id."""

    chunks: Sequence[ScoredId] = ()
    matched: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def question_search(query: Query, vector: Vector, filter: Filter | None) -> list[VectorSearch]:
    """Return the search of the leg. Without the leg, there is none."""
    if not query.synthetic_questions:
        return []
    return [VectorSearch(kind=NodeKind.QUESTION, dense=vector, limit=QUESTION_LIMIT, filter=filter)]


async def question_leg(questions: QuestionCatalogue, query: Query, items: Sequence[ScoredId], *, least: float) -> QuestionLeg:
    """Return the chunks of questions, whose ids are ``items``, best first.

    Questions whose text is not visible are left out, and those with a cosine below ``least`` (`Calibration.similar_question`).
    """
    similar = [item for item in items if item.score >= least]
    if not similar:
        return QuestionLeg()
    questions_by_id = await questions.by_id(query.tenant_id, [item.id for item in similar])
    chunks: dict[str, float] = {}
    matched: dict[str, str] = {}
    for item in similar:
        question = questions_by_id.get(item.id)
        if question is not None and question.chunk_id not in chunks:
            chunks[question.chunk_id] = item.score
            matched[question.chunk_id] = question.text
    return QuestionLeg([ScoredId(id, score) for id, score in chunks.items()], matched)


def weights_with_questions(query: Query, weights: Mapping[str, float]) -> Mapping[str, float]:
    """Return the weights of all legs of a query."""
    return {**weights, QUESTION: QUESTION_WEIGHT} if query.synthetic_questions else weights


def methods_with_questions(query: Query, *methods: str) -> tuple[str, ...]:
    """Return the names of the methods of a query's trace."""
    return (*methods, QUESTION) if query.synthetic_questions else methods


LEG_LIMIT = 200
"""Chunks that each leg finds: twice the largest limit of a request."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The legs of a question, the fused score of each chunk, and the ``visible`` chunks among the first in ``order``.

    If none of the first is visible, those among the rest. The relevance of a result is measured on these, so that it does not
    depend on the limit.
    """

    question: Vector
    legs: Legs
    scores: Mapping[str, float]
    order: Sequence[ScoredId]
    visible: Mapping[str, VisibleChunk]
    questions: QuestionLeg = field(default_factory=QuestionLeg)


async def chunk_candidates(stores: Stores, query: Query, fuse: Fuse, weights: Mapping[str, float]) -> Candidates:
    """Return the candidates of a question among the tenant's chunks."""
    vector = await stores.encoder.of(query)
    search = _Asked(query, vector, fuse, weights_with_questions(query, weights))
    candidates, outdated = await _find_candidates(stores, search, query.filters)
    if outdated:
        candidates, _ = await _find_candidates(stores, search, only_valid(query))
    if not candidates.visible and (remaining := [item.id for item in candidates.order[FIRST_READ:]]):
        candidates = replace(candidates, visible=await visible_chunks(stores.documents, query, remaining))
    return candidates


def only_valid(query: Query) -> Filter | None:
    """Return the query's filter, narrowed to documents that are valid at its moment."""
    return narrow_filter(query.filters, valid_at(query.moment))


@dataclass(frozen=True, slots=True)
class _Asked:
    query: Query
    vector: Vector
    fuse: Fuse
    weights: Mapping[str, float]


async def _find_candidates(stores: Stores, request: _Asked, filter: Filter | None) -> tuple[Candidates, bool]:
    """Return the candidates, and whether one of the first is not valid at the query's moment."""
    query = request.query
    search = VectorSearch(kind=NodeKind.CHUNK, dense=request.vector, text=query.text, limit=LEG_LIMIT, filter=filter)
    searches = [search, *question_search(query, request.vector, filter)]
    legs, *question_legs = await stores.vectors.search(query.tenant_id, Collection.CHUNKS, searches)
    questions = QuestionLeg()
    if question_legs:
        least = (await stores.calibration()).similar_question
        questions = await question_leg(stores.questions, query, question_legs[0].dense, least=least)
    by_leg: dict[str, Sequence[ScoredId]] = {"dense": legs.dense, "sparse": legs.sparse}
    if questions.chunks:
        by_leg[QUESTION] = questions.chunks
    scores = request.fuse(by_leg, request.weights)
    order = rank_scores(scores)
    chunks = await stores.documents.hydrate(query.tenant_id, [item.id for item in order[:FIRST_READ]])
    visible = {id: chunk for id, chunk in chunks.items() if passes(query, chunk)}
    candidates = Candidates(request.vector, legs, scores, order, visible, questions)
    return candidates, not all(in_time(query, chunk) for chunk in chunks.values())


DEFAULT_FUSION = "min_max"
"""The best of three on MuSiQue and HotpotQA. Reciprocal ranks lose most: scores say how sure a search is, and ranks do not."""
DEPTH = 100
"""Candidates of each search that are fused. It does not depend on the request's limit, so that no score moves with it."""


def fused_hits(
    retrievals: Mapping[str, Retrieval], weights: Mapping[str, float], fusion: str, *, named: bool = True
) -> tuple[Hit, ...]:
    """Return each chunk once, best first, with its fused score in [0, 1] as ``score`` and ``scores.combined``.

    Args:
        retrievals: the searches by name. The first one that found a chunk gives its path and its matched question.
        weights: by the same names.
        fusion: a name of `scoring.rank_fusion.FUSIONS`.
        named: whether ``scores`` gets the score of each search under its name.
    """
    lists = {name: retrieval.hits[:DEPTH] for name, retrieval in retrievals.items()}
    scores = FUSIONS[fusion]({name: [ScoredId(hit.id, hit.score) for hit in hits] for name, hits in lists.items()}, weights)
    merged: dict[str, Hit] = {}
    for name, hits in lists.items():
        for hit in hits:
            earlier = merged.get(hit.id)
            own_scores = {**hit.scores, name: hit.score} if named else hit.scores
            merged[hit.id] = replace(hit, scores=own_scores) if earlier is None else _with(earlier, hit, own_scores)
    order = [(item.id, max(0.0, min(1.0, item.score))) for item in rank_scores(scores)]
    return tuple(replace(merged[id], score=score, scores={**merged[id].scores, "combined": score}) for id, score in order)


def united_facts(retrievals: Sequence[Retrieval]) -> tuple[FactHit, ...]:
    """Return the facts of all searches, each once with its best score, best first."""
    best: dict[str, FactHit] = {}
    for fact in (fact for retrieval in retrievals for fact in retrieval.facts):
        if fact.id not in best or fact.score > best[fact.id].score:
            best[fact.id] = fact
    return tuple(sorted(best.values(), key=lambda fact: (-fact.score, fact.id)))


def united_themes(retrievals: Sequence[Retrieval]) -> tuple[ThemeHit, ...]:
    """Return the themes of all searches, each once with its best score, best first."""
    best: dict[str, ThemeHit] = {}
    for theme in (theme for retrieval in retrievals for theme in retrieval.themes):
        if theme.id not in best or theme.score > best[theme.id].score:
            best[theme.id] = theme
    return tuple(sorted(best.values(), key=lambda theme: (-theme.score, theme.id)))


def _with(hit: Hit, addition: Hit, scores: Mapping[str, float]) -> Hit:
    """Return a hit with the scores of another search, and the path and the question that it lacks."""
    return replace(
        hit,
        scores={**scores, **hit.scores},
        entities=hit.entities or addition.entities,
        graph_path=hit.graph_path or addition.graph_path,
        matched_question=hit.matched_question or addition.matched_question,
    )


FACT_CANDIDATES = 20
FACT_LIMIT = 10
NEAR = 10
"""Number of best chunks whose facts are near. It does not depend on the limit."""
NEAR_BONUS = 0.25
"""Added to the score of a fact that one of them states."""


@dataclass(frozen=True, slots=True)
class FactCandidates:
    """Relationships found for a question, before a visible passage is known for each.

    Attributes:
        answer: the answer of the graph leg.
        scores: scores in [0, 1] by id.
        failure: a warning if the search failed. Then there are no relationships.
    """

    answer: LegAnswer
    scores: Mapping[str, float] = field(default_factory=dict)
    edges: Sequence[GraphEdge] = ()
    failure: str | None = None


class Facts:
    """The relationship leg of the low level."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._reader = stores.facts

    async def candidates(self, query: Query) -> FactCandidates:
        """Return the relationships that may answer a question. Without an engine, the question is not embedded.

        They do not depend on the passages, so both are searched at the same time. A failure is a part of the result.
        """
        answer = LegAnswer()
        if self._stores.leg.engine is not None:
            answer = await self._stores.leg.ask(query, await self._stores.encoder.of(query))
        try:
            scores = await self._scores(query, answer)
            relationships = await self._stores.graph.relationships(query.tenant_id, list(scores)) if scores else {}
        except StoreUnavailable as error:
            return FactCandidates(answer, failure=_left_out(query, error))
        return FactCandidates(answer, scores, [edge_of(relationship) for relationship in relationships.values()])

    async def choose(
        self, query: Query, graph: TenantGraph, nearby: Set[str], chunks: Mapping[str, VisibleChunk], candidates: FactCandidates
    ) -> tuple[tuple[FactHit, ...], str | None]:
        """Return at most `FACT_LIMIT` facts that hold at the query's moment, best first, and None.

        If a store does not answer, return no facts and a warning: results contain passages even without facts.

        Args:
            nearby: ids of the best chunks, at most `NEAR`.
            chunks: chunks that were hydrated for this query already.
        """
        if candidates.failure is not None or not candidates.edges:
            return (), candidates.failure
        try:
            facts = await self._reader.read(
                query.tenant_id, graph, candidates.edges, moment=query.moment, known=chunks, passes=partial(passes, query)
            )
        except StoreUnavailable as error:
            return (), _left_out(query, error)
        hits = [_fact(fact, candidates.scores[id], nearby) for id, fact in facts.items()]
        hits.sort(key=lambda fact: (-fact.score, fact.id))
        return tuple(hits[:FACT_LIMIT]), None

    async def _scores(self, query: Query, answer: LegAnswer) -> Mapping[str, float]:
        """Return candidates by id with scores in [0, 1]."""
        if answer.findings is not None:
            best = max((item.score for item in answer.findings.relationships), default=1.0)
            return {item.id: item.score / best for item in answer.findings.relationships}
        search = VectorSearch(kind=NodeKind.FACT, text=query.text, limit=FACT_CANDIDATES)
        legs = (await self._stores.vectors.search(query.tenant_id, Collection.NODES, [search]))[0]
        return min_max(legs.sparse)


def _left_out(query: Query, error: StoreUnavailable) -> str:
    _log.warning("facts_left_out", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
    return f"facts are left out: {error.code}"


def _fact(visible: VisibleFact, score: float, near_chunks: Set[str]) -> FactHit:
    passage = min(
        visible.passages,
        key=lambda candidate: (_only_ends(candidate), candidate.support.chunk_id not in near_chunks, candidate.support.chunk_id),
    )
    return FactHit(
        id=visible.id,
        source=visible.source,
        relation=visible.relation,
        target=visible.target,
        fact=passage.fact,
        chunk_id=passage.support.chunk_id,
        document_id=passage.support.document_id,
        score=min(1.0, (1 - NEAR_BONUS) * score + (NEAR_BONUS if passage.support.chunk_id in near_chunks else 0.0)),
        weight=visible.weight,
        valid_at=visible.valid_at,
        invalid_at=visible.invalid_at,
        created_at=visible.created_at,
        expired_at=visible.expired_at,
    )


def _only_ends(fact: StatedFact) -> bool:
    """Return whether a passage gives an end and no beginning: another passage states the fact better."""
    return fact.valid_at is None and fact.invalid_at is not None
