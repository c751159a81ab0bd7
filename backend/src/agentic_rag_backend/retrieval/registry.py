"""The registry of strategies: name, description, aliases, options and builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from agentic_rag_backend.domain.query import LegWeights
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.retrieval.base import Retriever, Stores
from agentic_rag_backend.retrieval.queries.options import (
    BUDGET_TOKENS,
    COMMUNITIES_OF,
    CONTRADICTIONS,
    ENTITIES,
    FOLLOW_UPS,
    INCLUDE_SUMMARIES,
    LEVEL,
    LOW_STRATEGY,
    MAX_CALLS,
    RATE,
    SYNTHETIC_QUESTIONS,
    TREE_LEVELS,
    check_option,
)
from agentic_rag_backend.retrieval.queries.weights import LEG_WEIGHTS
from agentic_rag_backend.retrieval.ranking import RankedRetriever
from agentic_rag_backend.retrieval.rerank.registry import RerankerRegistry
from agentic_rag_backend.retrieval.scoring.fusion import FUSIONS
from agentic_rag_backend.retrieval.strategies.auto import Auto
from agentic_rag_backend.retrieval.strategies.community import CommunityOptions, CommunityRetriever
from agentic_rag_backend.retrieval.strategies.drift import Drift, DriftOptions
from agentic_rag_backend.retrieval.strategies.dual_level import DualLevel, DualLevelOptions
from agentic_rag_backend.retrieval.strategies.global_search import GlobalOptions, GlobalRetriever
from agentic_rag_backend.retrieval.strategies.graph import GraphRetriever
from agentic_rag_backend.retrieval.strategies.hybrid import Hybrid
from agentic_rag_backend.retrieval.strategies.low_level import HybridWithFacts, LowLevel
from agentic_rag_backend.retrieval.strategies.raptor import ORDERS, SEARCHES, RaptorRetriever
from agentic_rag_backend.retrieval.strategies.single_leg import SingleLeg
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.retrieval.themes.backing import PassagesBehind
from agentic_rag_backend.retrieval.themes.finder import ThemeFinder
from agentic_rag_backend.retrieval.themes.rating import ThemeRater

DUAL_LEVEL = "dual_level"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeOptions:
    """Deployment options of the strategies that read themes."""

    community: CommunityOptions = field(default_factory=CommunityOptions)
    corpus_wide: GlobalOptions = field(default_factory=GlobalOptions)
    drift: DriftOptions = field(default_factory=DriftOptions)


@dataclass(frozen=True)
class Parts:
    """Builds strategies from the stores. Parts that several strategies use are built once.

    ``calls`` are the calls of the cheap model that some strategies use for retrieval.
    """

    stores: Stores
    graphs: TenantGraphs
    dual_level_options: DualLevelOptions
    calls: StructuredCalls
    themes: ThemeOptions = field(default_factory=ThemeOptions)
    leg_weights: LegWeights = LEG_WEIGHTS
    rerankers: RerankerRegistry | None = None

    @cached_property
    def hybrid(self) -> Hybrid:
        """Dense and BM25 legs, fused. It is a strategy and the search inside four others."""
        return Hybrid(self.stores, self.graphs, self.leg_weights)

    @cached_property
    def graph(self) -> GraphRetriever:
        """Walk over chunks and entities."""
        return GraphRetriever(self.stores, self.graphs, self.hybrid)

    @cached_property
    def low_level(self) -> LowLevel:
        """The low level of dual-level retrieval: `graph`, or `hybrid` with facts."""
        with_facts = HybridWithFacts(self.stores, self.graphs, self.hybrid)
        return LowLevel(self.graph, with_facts, default=self.dual_level_options.low_strategy)

    @cached_property
    def finder(self) -> ThemeFinder:
        """Finds themes."""
        return ThemeFinder(self.stores, ThemeRater(self.calls))

    @cached_property
    def dual_level(self) -> DualLevel:
        """Both levels in parallel."""
        high = CommunityRetriever(self.finder, self.themes.community)
        return DualLevel(self.low_level, high, self.dual_level_options, behind=PassagesBehind(self.stores))


@dataclass(frozen=True, slots=True)
class Strategy:
    """One entry of ``GET /strategies``. ``options`` is the JSON Schema of the request's ``options``."""

    description: str
    build: Callable[[Parts], Retriever]
    aliases: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    embeds: bool = True
    """Whether it compares embeddings, so that the languages of the embedder matter."""


_QUESTIONS = {"synthetic_questions": SYNTHETIC_QUESTIONS}
_THEMES = {"level": LEVEL, "budget_tokens": BUDGET_TOKENS, "rate": RATE, "max_calls": MAX_CALLS}

STRATEGIES: Mapping[str, Strategy] = {
    "auto": Strategy(
        "dual_level if it is switched on, otherwise its low level only",
        lambda p: Auto(p.low_level, p.dual_level),
        options={"low_strategy": LOW_STRATEGY, **_QUESTIONS},
    ),
    "dense": Strategy(
        "nearest chunks by embedding", lambda p: SingleLeg(p.stores, p.graphs, dense=True), ("basic", "semantic", "vector")
    ),
    "sparse": Strategy("BM25 over chunks", lambda p: SingleLeg(p.stores, p.graphs, dense=False), ("bm25",), embeds=False),
    "hybrid": Strategy(
        "dense and BM25 fused",
        lambda p: p.hybrid,
        options={"fusion": {"type": "string", "enum": list(FUSIONS), "default": "min_max"}, **_QUESTIONS},
    ),
    "graph": Strategy(
        "hybrid seeds, personalised PageRank over chunks and entities, a second hop, facts",
        lambda p: p.graph,
        ("graphrag", "local"),
        {"entities": ENTITIES, **_QUESTIONS},
    ),
    "community": Strategy(
        "themes: summaries of communities; no theme contains another",
        lambda p: CommunityRetriever(p.finder, p.themes.community, behind=PassagesBehind(p.stores), graphs=p.graphs),
        options={"entities": COMMUNITIES_OF, **_THEMES},
    ),
    DUAL_LEVEL: Strategy(
        "graph (or hybrid, by the question's form) and community in parallel, blended by weight",
        lambda p: p.dual_level,
        options={"entities": ENTITIES, "low_strategy": LOW_STRATEGY, **_QUESTIONS, **_THEMES},
    ),
    "global": Strategy(
        "themes of the whole corpus within a token budget; answers are merged from scored partial answers (map and reduce)",
        lambda p: GlobalRetriever(p.finder, p.themes.corpus_wide, p.hybrid),
        options=_THEMES,
    ),
    "drift": Strategy(
        "themes, follow-up questions made from them, and a parallel local search for each, merged",
        lambda p: Drift(p.finder, p.hybrid, p.calls, p.themes.drift),
        options={"follow_ups": FOLLOW_UPS, **_QUESTIONS, **_THEMES},
    ),
    "raptor": Strategy(
        "a tree of passages and summaries of their clusters: all levels at once, or from the roots down",
        lambda p: RaptorRetriever(p.stores, p.graphs),
        options={
            "levels": TREE_LEVELS,
            "search": {"type": "string", "enum": list(SEARCHES), "default": SEARCHES[0]},
            "order": {"type": "string", "enum": list(ORDERS), "default": ORDERS[0]},
            "include_summaries": INCLUDE_SUMMARIES,
            **_QUESTIONS,
        },
    ),
}

SHARED_OPTIONS: Mapping[str, Any] = {"contradictions": CONTRADICTIONS}
"""Options of every strategy."""


class RetrieverRegistry:
    """Builds each strategy once. Feature flags are read from each request."""

    def __init__(self, parts: Parts) -> None:
        rerankers = parts.rerankers.get if parts.rerankers is not None else None
        self._retrievers = {
            name: RankedRetriever(strategy.build(parts), rerankers, parts.stores.documents)
            for name, strategy in STRATEGIES.items()
        }
        self._embedder = parts.stores.embedder
        self._names = {alias: name for name, strategy in STRATEGIES.items() for alias in (name, *strategy.aliases)}

    def canonical(self, name: str) -> str:
        """Return the canonical name for a name or alias.

        Raises:
            InvalidRequest: no strategy has this name.
        """
        if name not in self._names:
            raise InvalidRequest(f"unknown strategy {name[:80]!r}; known are {', '.join(sorted(self._names))}")
        return self._names[name]

    def get(self, name: str) -> RankedRetriever:
        """Return the retriever for a name or alias.

        Raises:
            InvalidRequest: no strategy has this name.
        """
        return self._retrievers[self.canonical(name)]

    def describe(self, *, dual_level: bool) -> list[dict[str, Any]]:
        """Return the entries of ``GET /strategies``."""
        languages = self._embedder.languages
        return [
            {
                "name": name,
                "description": strategy.description,
                "aliases": list(strategy.aliases),
                "options": {
                    "type": "object",
                    "properties": {**strategy.options, **SHARED_OPTIONS},
                    "additionalProperties": False,
                },
                "languages": list(languages) if strategy.embeds and languages is not None else None,
                "available": name != DUAL_LEVEL or dual_level,
                "why_not": None
                if name != DUAL_LEVEL or dual_level
                else 'switched off for this tenant: PATCH /features {"DUAL_LEVEL_RETRIEVAL_ENABLED": true}',
            }
            for name, strategy in STRATEGIES.items()
        ]


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Validate options against the strategy's schema.

    Raises:
        InvalidRequest: an option is unknown or invalid. The message names the option and the allowed values.
    """
    known = {**STRATEGIES[name].options, **SHARED_OPTIONS}
    for option, value in options.items():
        schema = known.get(option)
        if schema is None:
            raise InvalidRequest(f"strategy {name!r} has no option {option[:80]!r}; it has {', '.join(known) or 'none'}")
        check_option(option, value, schema)
