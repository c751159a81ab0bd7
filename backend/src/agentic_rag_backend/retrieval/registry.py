"""Every strategy by name: what it is, how it is built, what else it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.domain.query import LegWeights
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.base import Retriever, Stores
from agentic_rag_backend.retrieval.queries.options import (
    BUDGET_TOKENS,
    ENTITIES,
    FOLLOW_UPS,
    INCLUDE_SUMMARIES,
    LEVEL,
    LOW_STRATEGY,
    MAX_CALLS,
    RATE,
    TREE_LEVELS,
    check_option,
)
from agentic_rag_backend.retrieval.queries.weights import LEG_WEIGHTS
from agentic_rag_backend.retrieval.strategies.auto import Auto
from agentic_rag_backend.retrieval.strategies.community import CommunityOptions, CommunityRetriever
from agentic_rag_backend.retrieval.strategies.drift import Drift, DriftOptions
from agentic_rag_backend.retrieval.strategies.dual_level import DualLevel, DualLevelOptions
from agentic_rag_backend.retrieval.strategies.global_search import GlobalOptions, GlobalRetriever
from agentic_rag_backend.retrieval.strategies.graph import GraphRetriever
from agentic_rag_backend.retrieval.strategies.hybrid import FUSIONS, Hybrid
from agentic_rag_backend.retrieval.strategies.low_level import HybridWithFacts, LowLevel
from agentic_rag_backend.retrieval.strategies.raptor import ORDERS, SEARCHES, RaptorRetriever
from agentic_rag_backend.retrieval.strategies.single_leg import SingleLeg
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.retrieval.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.retrieval.themes.backing import PassagesBehind
from agentic_rag_backend.retrieval.themes.finder import ThemeFinder
from agentic_rag_backend.retrieval.themes.rating import ThemeRater

DUAL_LEVEL = "dual_level"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeOptions:
    """What a deployment says of the strategies that read themes."""

    community: CommunityOptions = field(default_factory=CommunityOptions)
    corpus_wide: GlobalOptions = field(default_factory=GlobalOptions)
    drift: DriftOptions = field(default_factory=DriftOptions)


@dataclass(frozen=True, slots=True)
class Parts:
    """What strategies are built from. ``calls`` ask the cheap model, where a strategy may ask one to retrieve."""

    stores: Stores
    graphs: TenantGraphs
    dual_level: DualLevelOptions
    calls: StructuredCalls
    themes: ThemeOptions = field(default_factory=ThemeOptions)
    leg_weights: LegWeights = LEG_WEIGHTS


@dataclass(frozen=True, slots=True)
class Strategy:
    """One row of ``GET /strategies``; ``options`` is the JSON Schema of the request's ``options``."""

    description: str
    build: Callable[[Parts], Retriever]
    aliases: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def _graph(parts: Parts) -> Retriever:
    return GraphRetriever(parts.stores, parts.graphs, _hybrid(parts))


def _hybrid(parts: Parts) -> Hybrid:
    return Hybrid(parts.stores, parts.graphs, parts.leg_weights)


def _low_level(parts: Parts) -> Retriever:
    with_facts = HybridWithFacts(parts.stores, parts.graphs, _hybrid(parts))
    return LowLevel(_graph(parts), with_facts, default=parts.dual_level.low_strategy)


def _finder(parts: Parts) -> ThemeFinder:
    return ThemeFinder(parts.stores, ThemeRater(parts.calls))


def _community(parts: Parts) -> Retriever:
    return CommunityRetriever(_finder(parts), parts.themes.community, behind=PassagesBehind(parts.stores))


def _dual_level(parts: Parts) -> Retriever:
    high = CommunityRetriever(_finder(parts), parts.themes.community)
    return DualLevel(_low_level(parts), high, parts.dual_level, behind=PassagesBehind(parts.stores))


def _drift(parts: Parts) -> Retriever:
    return Drift(_finder(parts), _hybrid(parts), parts.calls, parts.themes.drift)


_THEMES = {"level": LEVEL, "budget_tokens": BUDGET_TOKENS, "rate": RATE, "max_calls": MAX_CALLS}

STRATEGIES: Mapping[str, Strategy] = {
    "auto": Strategy(
        "dual_level where it is switched on, its low level alone otherwise",
        lambda p: Auto(_low_level(p), _dual_level(p)),
        options={"low_strategy": LOW_STRATEGY},
    ),
    "dense": Strategy(
        "nearest chunks by embedding", lambda p: SingleLeg(p.stores, p.graphs, dense=True), ("basic", "semantic", "vector")
    ),
    "sparse": Strategy("BM25 over chunks", lambda p: SingleLeg(p.stores, p.graphs, dense=False), ("bm25",)),
    "hybrid": Strategy(
        "dense and BM25 fused",
        _hybrid,
        options={"fusion": {"type": "string", "enum": list(FUSIONS), "default": "min_max"}},
    ),
    "graph": Strategy(
        "hybrid seeds, personalised PageRank over chunks and entities, a second hop, facts",
        _graph,
        ("graphrag", "local"),
        {"entities": ENTITIES},
    ),
    "community": Strategy("themes: summaries of communities, none within another", _community, options=_THEMES),
    DUAL_LEVEL: Strategy(
        "graph (or hybrid, by the question's form) and community in parallel, blended by weight",
        _dual_level,
        options={"entities": ENTITIES, "low_strategy": LOW_STRATEGY, **_THEMES},
    ),
    "global": Strategy(
        "themes of the whole corpus within a budget; answers are made of partial answers, each scored (map and reduce)",
        lambda p: GlobalRetriever(_finder(p), p.themes.corpus_wide),
        options=_THEMES,
    ),
    "drift": Strategy(
        "themes, follow-up questions that they raise, and a local search for each in parallel, merged",
        _drift,
        options={"follow_ups": FOLLOW_UPS, **_THEMES},
    ),
    "raptor": Strategy(
        "passages and summaries of clusters of them, in one tree: all levels at once, or from the roots down",
        lambda p: RaptorRetriever(p.stores, p.graphs),
        options={
            "levels": TREE_LEVELS,
            "search": {"type": "string", "enum": list(SEARCHES), "default": SEARCHES[0]},
            "order": {"type": "string", "enum": list(ORDERS), "default": ORDERS[0]},
            "include_summaries": INCLUDE_SUMMARIES,
        },
    ),
}


class RetrieverRegistry:
    """Builds each strategy once; what a tenant has switched on is read from the request."""

    def __init__(self, parts: Parts) -> None:
        self._retrievers = {name: strategy.build(parts) for name, strategy in STRATEGIES.items()}
        self._names = {alias: name for name, strategy in STRATEGIES.items() for alias in (name, *strategy.aliases)}

    def canonical(self, name: str) -> str:
        """Return the strategy's name for itself or an alias.

        Raises:
            InvalidRequest: there is none of that name.
        """
        if name not in self._names:
            raise InvalidRequest(f"unknown strategy {name[:80]!r}; known are {', '.join(sorted(self._names))}")
        return self._names[name]

    def get(self, name: str) -> Retriever:
        """Return the retriever of that name or alias.

        Raises:
            InvalidRequest: there is none of that name.
        """
        return self._retrievers[self.canonical(name)]

    def describe(self, *, dual_level: bool) -> list[dict[str, Any]]:
        """Return the rows of ``GET /strategies``."""
        return [
            {
                "name": name,
                "description": strategy.description,
                "aliases": list(strategy.aliases),
                "options": {"type": "object", "properties": dict(strategy.options), "additionalProperties": False},
                "available": name != DUAL_LEVEL or dual_level,
                "why_not": None
                if name != DUAL_LEVEL or dual_level
                else 'switched off for this tenant: PATCH /features {"DUAL_LEVEL_RETRIEVAL_ENABLED": true}',
            }
            for name, strategy in STRATEGIES.items()
        ]


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the strategy does not have, or with values outside their schema.

    Raises:
        InvalidRequest: naming the option and what is allowed.
    """
    known = STRATEGIES[name].options
    for option, value in options.items():
        schema = known.get(option)
        if schema is None:
            raise InvalidRequest(f"strategy {name!r} has no option {option[:80]!r}; it has {', '.join(known) or 'none'}")
        check_option(option, value, schema)
