"""The chunks that the legs find for a question, fused, with those that may be shown among the first of them.

How many are found does not depend on the request's limit, so that no score moves with it. Documents that are not valid at the
query's moment are few as a rule: only where one is among the first candidates are the legs asked again, without any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.filters import And, Filter, valid_at
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.retrieval.base import Stores
from agentic_rag_backend.retrieval.legs.question_leg import (
    QUESTION,
    QuestionLeg,
    question_leg,
    question_search,
    weights_with_questions,
)
from agentic_rag_backend.retrieval.passages.hydration import FIRST_READ, in_time, passes, visible_chunks
from agentic_rag_backend.retrieval.scoring.rank_fusion import Fuse, rank_scores
from agentic_rag_backend.stores.vector.base import Collection, Legs, NodeKind, ScoredId, Vector, VectorSearch

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
