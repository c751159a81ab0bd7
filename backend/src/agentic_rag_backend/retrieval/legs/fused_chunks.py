"""The chunks that the legs find for a question, fused. The legs search at the same time. A failed one affects no other.

How many are found does not depend on the request's limit, so that no score moves with it. Documents that are not valid at the
query's moment are few as a rule: only where one is among the first candidates are the legs asked again, without any of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import And, Filter, valid_at
from agentic_rag_backend.domain.query import FactHit, Hit, Query, Retrieval, ThemeHit
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.passages.hydration import FIRST_READ, in_time, passes, visible_chunks
from agentic_rag_backend.retrieval.scoring import FUSIONS, Fuse, rank_scores
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


def only_valid(query: Query) -> Filter:
    """Return the query's filter, narrowed to documents that are valid at its moment."""
    valid = valid_at(query.moment)
    return valid if query.filters is None else And((query.filters, valid))


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
