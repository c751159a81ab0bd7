"""Builds a `Query` from a request: limits and weights, reranking, strategy, filters and options are resolved and validated.

Precedence: the request, then a preset, then values that tuning set, then the tenant's flags, then the deployment's settings.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.filters import Filter, narrow_filter
from agentic_rag_backend.domain.query import LegWeights, LevelWeights, Query, Rerank
from agentic_rag_backend.domain.search_session import session_digest
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.domain.tuning import NOT_TUNED, TunedValues
from agentic_rag_backend.errors import InvalidRequest, ModelUnavailable, in_field
from agentic_rag_backend.language.questions.overviews import asks_about_everything
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.retrieval.options.leg_weights import LevelPolicy, RequestOverrides, choose_leg_weights
from agentic_rag_backend.retrieval.options.model import RequestOptions, optional_field, resolve_correction
from agentic_rag_backend.retrieval.passages.linked_chunks import LinkedChunks, unknown_values
from agentic_rag_backend.retrieval.registry import (
    CORRECTABLE,
    STRATEGIES,
    RetrieverRegistry,
    check_options,
    options_without_effect,
    with_names,
)
from agentic_rag_backend.retrieval.requests.search_requests import DualLevelRequest, SearchRequest
from agentic_rag_backend.retrieval.rerank.registry import (
    MAX_CANDIDATES,
    NONE,
    RERANKERS,
    RerankerRegistry,
    check_reranker_options,
)
from agentic_rag_backend.retrieval.themes.global_search import MAX_THEMES
from agentic_rag_backend.tenancy.features import DUAL_LEVEL, Features
from agentic_rag_backend.wording import format_value

DEFAULT_LIMIT = 5
_LEVELS = ("low", "high", "preset")
_LEGS = ("dense", "sparse")
_WEIGHTS_OF: Mapping[str, tuple[str, ...]] = {"auto": _LEVELS, "dual_level": _LEVELS, "hybrid": _LEGS}
_OFF = "weights have no effect: dual-level retrieval is switched off for this tenant (DUAL_LEVEL_RETRIEVAL_ENABLED)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Resolved values of a query, and warnings about adjusted values. If ``leg_weights`` is None, the deployment's apply.

    ``tuned`` are the tuned values that apply.
    """

    limit: int
    high_limit: int
    weights: LevelWeights
    leg_weights: LegWeights | None = None
    tuned: TunedValues = NOT_TUNED
    warnings: tuple[str, ...] = ()


class RequestDefaults:
    """Completes requests from the deployment's settings and the tenant's flags.

    Args:
        features: the feature flags.
        low_limit: default number of chunks if both levels answer.
        high_limit: default number of themes for `community` and for strategies that also return chunks.
        weights: level weights of tenants that set none.
    """

    def __init__(self, features: Features, *, low_limit: int, high_limit: int, weights: LevelWeights) -> None:
        self._features = features
        self.low_limit = low_limit
        self.high_limit = high_limit
        self.weights = LevelPolicy(features, weights)

    def resolve(
        self,
        overrides: RequestOverrides,
        *,
        strategy: str,
        question: str,
        flags: Mapping[str, object],
        tuned: TunedValues = NOT_TUNED,
    ) -> Resolved:
        """Return limits and weights for a request.

        Args:
            strategy: canonical name.
            flags: the tenant's flags.
            tuned: the tenant's tuned values.

        Raises:
            InvalidRequest: a weight is outside its limits, or the strategy does not accept it.
        """
        weight_names = tuple(name for name in (*_LEVELS, *_LEGS) if getattr(overrides, name) is not None)
        _check_weights(strategy, weight_names)
        both_levels = strategy == "dual_level" or (strategy == "auto" and self._features.is_on(DUAL_LEVEL, flags))
        weights, warnings = self.weights.choose(overrides, question=question, flags=flags, tuned=tuned)
        if weight_names and strategy == "auto" and not both_levels:
            warnings = (_OFF,)
        leg_weights, about_legs = choose_leg_weights(overrides.dense, overrides.sparse)
        low_limit, high_limit = self._choose_limits(overrides, strategy, both_levels, question)
        return Resolved(
            limit=low_limit,
            high_limit=high_limit,
            weights=weights,
            leg_weights=leg_weights,
            tuned=_select_tuned(tuned, strategy, both_levels=both_levels, weight_names=weight_names),
            warnings=about_legs or warnings,
        )

    def _choose_limits(self, overrides: RequestOverrides, strategy: str, both_levels: bool, question: str) -> tuple[int, int]:
        low = overrides.low_limit or overrides.limit or (self.low_limit if both_levels else DEFAULT_LIMIT)
        if strategy == "global" or (strategy == "auto" and asks_about_everything(question)):
            # Unless the request sets a lower limit, the answer uses as many themes as the token budget holds.
            return low, overrides.high_limit or overrides.limit or MAX_THEMES
        if strategy == "community":
            return low, overrides.limit or self.high_limit
        return low, overrides.high_limit or min(overrides.limit or self.high_limit, self.high_limit)


def _select_tuned(tuned: TunedValues, strategy: str, *, both_levels: bool, weight_names: Collection[str]) -> TunedValues:
    """Return the tuned values that the strategy uses and that the weights of the request do not replace."""
    return replace(
        tuned,
        low_weight=tuned.low_weight if both_levels and not set(weight_names).intersection(_LEVELS) else None,
        dense_weight=tuned.dense_weight if strategy == "hybrid" and not set(weight_names).intersection(_LEGS) else None,
        low_strategies=tuned.low_strategies if strategy == "auto" else {},
    )


def _check_weights(strategy: str, weight_names: tuple[str, ...]) -> None:
    accepted = _WEIGHTS_OF.get(strategy, ())
    wrong = [name for name in weight_names if name not in accepted]
    if wrong:
        takes = f"takes the weights {', '.join(accepted)}" if accepted else "takes no weights"
        got = [f"weights.{name}" for name in wrong]
        raise InvalidRequest(f"strategy {strategy!r} {takes}; got {', '.join(got)}", field=got[0])


OVER_RETRIEVAL = 3
"""Candidates for each result."""


class SharedRerankOptions(RequestOptions):
    """Options of every reranker."""

    top_n: int = optional_field(ge=1, le=100)
    candidates: int = optional_field(ge=1, le=MAX_CANDIDATES)
    min_score: float = optional_field(ge=0, le=1)
    timeout_ms: int = optional_field(ge=1, le=600_000)


RerankValue = bool | str | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankDefaults:
    """Deployment defaults.

    Attributes:
        reranker: the one of ``rerank: true``. `graph` is the best one without a further model (docs/reference/rerankers.md).
        hybrid: reranker of `hybrid` for requests without ``rerank``. None: such requests are not reranked.
        timeout_s: time limit of reranking in seconds.
    """

    reranker: str = "graph"
    hybrid: str | None = None
    timeout_s: float = 10.0


class RerankRequests:
    """Completes and validates the reranking of requests."""

    def __init__(self, rerankers: RerankerRegistry, defaults: RerankDefaults) -> None:
        self._rerankers = rerankers
        self._defaults = defaults

    def resolve(self, value: RerankValue, *, strategy: str, limit: int) -> Rerank | None:
        """Return the reranking of a request; None: none.

        Args:
            value: as the caller wrote it. None: the request does not name it.
            strategy: canonical name.
            limit: maximum number of results.

        Raises:
            InvalidRequest: an unknown reranker or option, or a value outside its limits.
            RerankerUnavailable: this deployment lacks something that the reranker requires.
            ModelUnavailable: the model of the reranker that the request names is known to be unavailable. With a reranker by
                default, results keep the strategy's order in this case.
        """
        options = self._to_options(value, strategy)
        name = str(options.pop("name"))
        if name == NONE and set(options) <= {"candidates", "timeout_ms"}:
            return None
        with in_field("name") if isinstance(value, Mapping) and "name" in value else nullcontext():
            reranker = self._rerankers.get(name)
            try:
                reranker.check()
            except ModelUnavailable:
                if isinstance(value, str) or (isinstance(value, Mapping) and "name" in value):
                    raise
        shared = {option: options.pop(option) for option in SharedRerankOptions.schemas() if option in options}
        for option, number in shared.items():
            SharedRerankOptions.check_option(option, number, of="rerank")
        check_reranker_options(name, options)
        entry = RERANKERS[name]
        candidates = shared.get("candidates", max(entry.least, OVER_RETRIEVAL * limit))
        timeout_ms = shared.get("timeout_ms")
        return Rerank(
            name=name,
            candidates=min(candidates, entry.most),
            top_n=shared.get("top_n"),
            min_score=float(shared.get("min_score", 0.0)),
            timeout_s=self._defaults.timeout_s if timeout_ms is None else timeout_ms / 1000,
            own_timeout=timeout_ms is not None,
            options=options,
        )

    def _to_options(self, value: RerankValue, strategy: str) -> dict[str, Any]:
        """Return the object form of a value."""
        if value is None:
            return {"name": (self._defaults.hybrid if strategy == "hybrid" else None) or NONE}
        if isinstance(value, bool):
            return {"name": self._defaults.reranker if value else NONE}
        if isinstance(value, str):
            return {"name": value}
        if not isinstance(value, Mapping):
            raise InvalidRequest(f"rerank must be true, false, a name or an object; got {format_value(value)}")
        name = value.get("name", self._defaults.reranker)
        if not isinstance(name, str):
            raise InvalidRequest(f"rerank.name must be a text; got {format_value(name)}", field="name")
        return {**value, "name": name}


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

    async def build(
        self, caller: Principal, request: SearchRequest | DualLevelRequest, *, within: Filter | None = None
    ) -> BuiltQuery:
        """Return the query for a request, whose results also pass the filter ``within`` and that of the caller's key.

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
        resolved = self._defaults.resolve(
            request.overrides(), strategy=strategy, question=request.query, flags=caller.flags, tuned=caller.tenant.tuned
        )
        with in_field("rerank"):
            rerank = self._rerank.resolve(request.rerank, strategy=strategy, limit=resolved.limit) if self._rerank else None
        with in_field("corrective"):
            corrective = resolve_correction(request.corrective, strategy, CORRECTABLE)
        readable = caller.tenant.id.access
        within = within if readable is None else narrow_filter(readable.filter, within)
        filters = narrow_filter(within, await self._links.resolve(caller.tenant, parsed))
        session_id = options.get("session_id")
        query = Query(
            tenant=caller.tenant,
            text=request.query,
            limit=resolved.limit,
            high_limit=resolved.high_limit,
            min_score=request.min_score or 0.0,
            weights=resolved.weights,
            leg_weights=resolved.leg_weights,
            tuned=_without_options(resolved.tuned, options),
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


def _without_options(tuned: TunedValues, options: Mapping[str, Any]) -> TunedValues:
    """Return the tuned values that no option of the request replaces."""
    return replace(tuned, low_strategies={}) if {"low_strategy", "entities"} & options.keys() else tuned


def _warn_unranked_fields(query: Query, strategy: str) -> tuple[str, ...]:
    """Return a warning for each field of the request that concerns passages, if the strategy returns none."""
    if STRATEGIES[strategy].passages:
        return ()
    fields = {"rerank": query.rerank is not None, "min_score": query.min_score > 0}
    return tuple(f"{name} has no effect: strategy {strategy!r} returns no passages" for name, is_set in fields.items() if is_set)
