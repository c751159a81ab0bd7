"""Builds a `Query` from a request, and validates strategy, weights, filters and options."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.search_session import session_digest
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import in_field
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.retrieval.options.correction_options import resolve_correction
from agentic_rag_backend.retrieval.options.filters import parse_filter
from agentic_rag_backend.retrieval.passages.linked_chunks import LinkedChunks, unknown_values
from agentic_rag_backend.retrieval.registry import (
    CORRECTABLE,
    STRATEGIES,
    RetrieverRegistry,
    check_options,
    options_without_effect,
    with_names,
)
from agentic_rag_backend.retrieval.requests.defaults import RequestDefaults
from agentic_rag_backend.retrieval.requests.rerank_options import RerankRequests
from agentic_rag_backend.retrieval.requests.search_requests import DualLevelRequest, SearchRequest
from agentic_rag_backend.tenancy.features import DUAL_LEVEL, Features


@dataclass(frozen=True, slots=True)
class BuiltQuery:
    """A query, the canonical name of its strategy, and warnings about adjusted values."""

    query: Query
    strategy: str
    warnings: tuple[str, ...] = ()


class QueryBuilder:
    """Completes and validates requests of the HTTP API, the library and the command line.

    Args:
        retrievers: the registered strategies.
        defaults: completes limits and weights.
        features: the feature flags.
        embedder: knows how much of a question it reads.
        links: resolves filters by entity and community.
        rerank: completes the reranking. None: no request is reranked.
        default_strategy: used if a request names no strategy.
        synthetic_questions: whether searches use synthetic questions if a request does not say.
    """

    def __init__(
        self,
        retrievers: RetrieverRegistry,
        defaults: RequestDefaults,
        features: Features,
        embedder: Embedder,
        links: LinkedChunks,
        *,
        default_strategy: str,
        synthetic_questions: bool = False,
        rerank: RerankRequests | None = None,
    ) -> None:
        self._retrievers = retrievers
        self._defaults = defaults
        self._features = features
        self._embedder = embedder
        self._links = links
        self._default_strategy = default_strategy
        self._synthetic_questions = synthetic_questions
        self._rerank = rerank

    async def build(self, caller: Principal, request: SearchRequest | DualLevelRequest) -> BuiltQuery:
        """Return the query for a request.

        Raises:
            InvalidRequest: the strategy is unknown, or it does not accept an option, filter or weight of the request.
            StoreUnavailable: the graph, which a filter by entity or community needs, cannot be read.
            RerankerUnavailable: this deployment cannot use the reranker.
            ModelUnavailable: the model of the reranker is known to be unavailable.
        """
        with in_field("strategy"):
            strategy = self._retrievers.canonical(self._default_strategy if request.strategy is None else request.strategy)
        with in_field("options"):
            options = with_names(strategy, request.options or {})
            check_options(strategy, options)
        with in_field("filters"):
            parsed = parse_filter(request.filters)
        resolved = self._defaults.resolve(request.overrides(), strategy=strategy, question=request.query, flags=caller.flags)
        with in_field("rerank"):
            rerank = self._rerank.resolve(request.rerank, strategy=strategy, limit=resolved.limit) if self._rerank else None
        with in_field("corrective"):
            corrective = resolve_correction(request.corrective, strategy, CORRECTABLE)
        filters = await self._links.resolve(caller.tenant, parsed)
        session_id = options.get("session_id")
        query = Query(
            tenant=caller.tenant,
            text=request.query,
            limit=resolved.limit,
            high_limit=resolved.high_limit,
            min_score=request.min_score or 0.0,
            weights=resolved.weights,
            leg_weights=resolved.leg_weights,
            filters=filters,
            as_of=request.as_of,
            options=options,
            rerank=rerank,
            corrective=corrective,
            timeout_s=None if request.timeout_ms is None else request.timeout_ms / 1000,
            dual_level=self._features.is_on(DUAL_LEVEL, caller.flags),
            synthetic_questions=bool(options.get("synthetic_questions", self._synthetic_questions)),
            session=session_digest(caller.key_id, session_id) if session_id is not None else None,
            cache=bool(request.cache),
        )
        warnings = (*options_without_effect(strategy, options), *_warn_unranked_fields(query, strategy), *unknown_values(filters))
        return BuiltQuery(query, strategy, (*resolved.warnings, *warnings, *self._warn_cut(request.query)))

    def _warn_cut(self, question: str) -> tuple[str, ...]:
        """Return a warning if the embedder reads only the beginning of a question."""
        limit = self._embedder.query_characters(question)
        if limit == len(question):
            return ()
        return (
            f"query has {len(question)} characters; only the first {limit} were embedded, and all of it was searched as words",
        )


def _warn_unranked_fields(query: Query, strategy: str) -> tuple[str, ...]:
    """Return a warning for each field of the request that concerns passages, if the strategy returns none."""
    if STRATEGIES[strategy].passages:
        return ()
    fields = {"rerank": query.rerank is not None, "min_score": query.min_score > 0}
    return tuple(f"{name} has no effect: strategy {strategy!r} returns no passages" for name, is_set in fields.items() if is_set)
