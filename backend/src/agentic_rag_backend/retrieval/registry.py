"""The registry of strategies: name, description, aliases, options and builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from agentic_rag_backend.domain.query import LegWeights, Query, Retrieval
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.bearers import BearerReader
from agentic_rag_backend.retrieval.agentic.avoiding import ConstraintResolver
from agentic_rag_backend.retrieval.agentic.options import AGENTIC_OPTIONS, AgenticOptions
from agentic_rag_backend.retrieval.agentic.sessions import SessionReader
from agentic_rag_backend.retrieval.base import Retriever, Stores
from agentic_rag_backend.retrieval.caching.results import CachedRetriever, ResultCache
from agentic_rag_backend.retrieval.correction import Corrector
from agentic_rag_backend.retrieval.event_dates import EventDates
from agentic_rag_backend.retrieval.grading.base import Grader
from agentic_rag_backend.retrieval.grading.model import ModelGrader
from agentic_rag_backend.retrieval.latencies import Latencies
from agentic_rag_backend.retrieval.linked_chunks import LinkedChunks
from agentic_rag_backend.retrieval.namesakes import ToldApart
from agentic_rag_backend.retrieval.queries.options import (
    BUDGET_TOKENS,
    COMMUNITIES_OF,
    CONTEXT_WINDOW,
    CONTRADICTIONS,
    DIRECTION,
    ENTITIES,
    FOLLOW_UPS,
    INCLUDE_SUMMARIES,
    LEVEL,
    LOW_STRATEGY,
    MAX_CALLS,
    MAX_CHUNKS,
    MAX_HOPS,
    MAX_LATENCY_MS,
    MAX_REFINEMENT_ATTEMPTS,
    MIN_RELEVANT,
    MIN_WEIGHT,
    PASSAGES,
    RATE,
    RELATION_TYPES,
    RELEVANCE_THRESHOLD,
    REWRITES,
    SYNTHETIC_QUESTIONS,
    TREE_LEVELS,
    check_option,
    choice,
    choices,
    shares_of,
)
from agentic_rag_backend.retrieval.queries.weights import LEG_WEIGHTS
from agentic_rag_backend.retrieval.ranking import RankedRetriever
from agentic_rag_backend.retrieval.rerank.registry import RerankerRegistry
from agentic_rag_backend.retrieval.rewriting.rewriter import QueryRewriter
from agentic_rag_backend.retrieval.scoring.fusion import FUSIONS
from agentic_rag_backend.retrieval.strategies.agentic import RERANK, Agentic, AgenticParts
from agentic_rag_backend.retrieval.strategies.auto import DUAL, LOW, WITH_TREE, Auto, WithSummaries
from agentic_rag_backend.retrieval.strategies.community import CommunityOptions, CommunityRetriever
from agentic_rag_backend.retrieval.strategies.corrective import Corrective
from agentic_rag_backend.retrieval.strategies.drift import Drift, DriftOptions
from agentic_rag_backend.retrieval.strategies.dual_level import DualLevel, DualLevelOptions
from agentic_rag_backend.retrieval.strategies.fusion import DEFAULT_PRESET, MAX_METHODS, MIN_METHODS, PRESETS, Fusion, methods_of
from agentic_rag_backend.retrieval.strategies.global_search import GlobalOptions, GlobalRetriever
from agentic_rag_backend.retrieval.strategies.graph import GraphRetriever
from agentic_rag_backend.retrieval.strategies.hybrid import Hybrid
from agentic_rag_backend.retrieval.strategies.hyde import Hyde
from agentic_rag_backend.retrieval.strategies.low_level import HybridWithFacts, LowLevel
from agentic_rag_backend.retrieval.strategies.multi_query import MultiQuery
from agentic_rag_backend.retrieval.strategies.parent_child import ParentChild
from agentic_rag_backend.retrieval.strategies.paths import PathsRetriever
from agentic_rag_backend.retrieval.strategies.question import QuestionRetriever
from agentic_rag_backend.retrieval.strategies.raptor import ORDERS, SEARCHES, RaptorRetriever
from agentic_rag_backend.retrieval.strategies.single_leg import SingleLeg
from agentic_rag_backend.retrieval.strategies.temporal import Temporal
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.retrieval.themes.backing import PassagesBehind
from agentic_rag_backend.retrieval.themes.finder import ThemeFinder
from agentic_rag_backend.retrieval.themes.rating import ThemeRater
from agentic_rag_backend.stores.catalogue.base import SearchSessions

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

    ``calls`` are the calls of the cheap model that some strategies use for retrieval. ``grader`` grades results without a model.
    """

    stores: Stores
    graphs: TenantGraphs
    dual_level_options: DualLevelOptions
    calls: StructuredCalls
    grader: Grader
    themes: ThemeOptions = field(default_factory=ThemeOptions)
    leg_weights: LegWeights = LEG_WEIGHTS
    rerankers: RerankerRegistry | None = None
    agentic_options: AgenticOptions = field(default_factory=AgenticOptions)
    search_sessions: SearchSessions | None = None

    @cached_property
    def retrievers(self) -> Mapping[str, Retriever]:
        """Each strategy by its canonical name."""
        return {name: strategy.build(self) for name, strategy in STRATEGIES.items()}

    def inside(self, holder: str) -> Inside:
        """Return the strategies as the strategy of the name ``holder`` uses them."""
        return Inside(self, holder)

    @cached_property
    def rewriter(self) -> QueryRewriter:
        """Writes other wordings of a question."""
        return QueryRewriter(self.graphs, self.calls)

    @cached_property
    def corrector(self) -> Corrector:
        """Grades results, and searches other wordings."""
        return Corrector(self.stores, self.rewriter, ModelGrader(self.calls, self.grader))

    @cached_property
    def hybrid(self) -> Hybrid:
        """Dense and BM25 legs, fused. It is a strategy and the search inside five others."""
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

    @cached_property
    def auto(self) -> Auto:
        """The default strategy."""
        dense, sparse = (SingleLeg(self.stores, self.graphs, dense=dense) for dense in (True, False))
        strategies: dict[str, Retriever] = {
            DUAL: self.dual_level,
            LOW: self.low_level,
            WITH_TREE: WithSummaries(self.low_level, RaptorRetriever(self.stores, self.graphs)),
        }
        strategies |= {"hybrid": self.hybrid, "dense": dense, "sparse": sparse}
        return Auto(strategies, graphs=self.graphs, trees=self.stores.trees, latencies=Latencies())

    @cached_property
    def bearers(self) -> BearerReader:
        """Reads the entities that share a name."""
        return BearerReader(self.stores.graph, self.stores.documents)

    @cached_property
    def sessions(self) -> SessionReader | None:
        """What agentic retrieval remembers between requests. None: nothing."""
        if self.search_sessions is None:
            return None
        return SessionReader(self.search_sessions, self.stores.documents, kept_s=self.agentic_options.session_s)

    @cached_property
    def agentic(self) -> Agentic:
        """Rounds of planned searches."""
        links = LinkedChunks(self.graphs, self.stores.communities, self.stores.graph)
        return Agentic(
            AgenticParts(
                stores=self.stores,
                graphs=self.graphs,
                strategies=self.inside("agentic"),
                resolver=ConstraintResolver(links, self.graphs, self.bearers),
                rewriter=self.rewriter,
                calls=self.calls,
                options=self.agentic_options,
                reranker=self.rerankers.get(RERANK.name) if self.rerankers is not None else None,
                sessions=self.sessions,
            )
        )


@dataclass(frozen=True, slots=True)
class Inside:
    """The strategies that another one holds. See `Strategies`."""

    parts: Parts
    holder: str

    async def retrieve(self, name: str, query: Query) -> Retrieval:
        """See `Strategies`. The options of the holder itself are not passed on, even if the inner strategy has the same."""
        known = STRATEGIES[name].options.keys() - STRATEGIES[self.holder].options.keys()
        options = {option: value for option, value in query.options.items() if option in known}
        return await self.parts.retrievers[name].retrieve(replace(query, options=options))


@dataclass(frozen=True, slots=True)
class Strategy:
    """One entry of ``GET /strategies``. ``options`` is the JSON Schema of the request's ``options``.

    ``passages`` is false for a strategy that returns only themes. ``holds`` returns the strategies that a request's valid options
    name, for a strategy that holds others: their options are options of the request, too.
    """

    description: str
    build: Callable[[Parts], Retriever]
    aliases: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    embeds: bool = True
    """Whether it compares embeddings, so that the languages of the embedder matter."""
    passages: bool = True
    holds: Callable[[Mapping[str, Any]], Sequence[str]] | None = None


_QUESTIONS = {"synthetic_questions": SYNTHETIC_QUESTIONS}
_PATHS = {"max_hops": MAX_HOPS, "relation_types": RELATION_TYPES, "min_weight": MIN_WEIGHT, "direction": DIRECTION}
_THEMES = {"level": LEVEL, "budget_tokens": BUDGET_TOKENS, "rate": RATE, "max_calls": MAX_CALLS}

PLAIN: Mapping[str, Strategy] = {
    "auto": Strategy(
        "dual_level if it is switched on, otherwise its low level, with the summaries of raptor for accounts without names",
        lambda p: p.auto,
        options={"low_strategy": LOW_STRATEGY, "max_latency_ms": MAX_LATENCY_MS, **_QUESTIONS},
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
    "question": Strategy(
        "nearest synthetic questions of chunks; hybrid if no chunk has any",
        lambda p: QuestionRetriever(p.stores, p.graphs, p.hybrid),
        ("reverse_hyde",),
    ),
    "graph": Strategy(
        "hybrid seeds, personalised PageRank over chunks and entities, a second hop, facts",
        lambda p: p.graph,
        ("graphrag", "local"),
        {"entities": ENTITIES, **_QUESTIONS},
    ),
    "paths": Strategy(
        "paths over relationships from the entities of the question: the chunks that state them, then those of hybrid",
        lambda p: PathsRetriever(p.stores, p.graphs, p.hybrid),
        ("multi_hop",),
        {"entities": ENTITIES, **_PATHS, **_QUESTIONS},
    ),
    "temporal": Strategy(
        "the low level at the time that the question names: facts and passages that hold then; without a time, the low level",
        lambda p: Temporal(p.low_level, EventDates(p.stores, p.graphs, p.hybrid)),
        options={"entities": ENTITIES, "low_strategy": LOW_STRATEGY, **_QUESTIONS},
    ),
    "community": Strategy(
        "themes: summaries of communities; no theme contains another",
        lambda p: CommunityRetriever(p.finder, p.themes.community, behind=PassagesBehind(p.stores), graphs=p.graphs),
        options={"entities": COMMUNITIES_OF, **_THEMES},
        passages=False,
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
        passages=False,
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

_BASES = [name for name, strategy in PLAIN.items() if strategy.passages]
_BASE = choice(_BASES, "hybrid", "strategy that searches; its options are options of the request, too")


def _base(options: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(options.get("base", "hybrid")),)


WRAPPERS: Mapping[str, Strategy] = {
    "hyde": Strategy(
        "base searched with the vectors of hypothetical passages that a language model writes; base itself without a model",
        lambda p: Hyde(p.stores, p.inside("hyde"), p.calls),
        options={"base": _BASE, "passages": PASSAGES},
        holds=_base,
    ),
    "multi_query": Strategy(
        "base searched with several wordings of the question, fused; without a model, with other names of its entities",
        lambda p: MultiQuery(p.inside("multi_query"), p.rewriter),
        options={
            "base": _BASE,
            "rewrites": REWRITES,
            "fusion": choice(list(FUSIONS), "min_max", "fusion of the wordings' results"),
        },
        holds=_base,
    ),
    "parent_child": Strategy(
        "small chunks that base finds, and the excerpt around them; matches of one excerpt are one result",
        lambda p: ParentChild(p.stores, p.inside("parent_child")),
        ("parent-child",),
        {"base": _BASE, "context_window": CONTEXT_WINDOW, "max_chunks": MAX_CHUNKS},
        holds=_base,
    ),
    "fusion": Strategy(
        "two to five strategies in parallel, fused by weight",
        lambda p: Fusion(p.inside("fusion")),
        options={
            "methods": choices(_BASES, least=MIN_METHODS, most=MAX_METHODS, description="strategies that are fused"),
            "weights": shares_of(_BASES, "weights of the strategies; default: equal weights"),
            "preset": choice(list(PRESETS), DEFAULT_PRESET, "methods and weights by name, if the request names neither"),
            "fusion": choice(list(FUSIONS), "min_max", "fusion of the strategies' results"),
        },
        holds=methods_of,
    ),
}

_CORRECTED = [*_BASES, *WRAPPERS]
STRATEGIES: Mapping[str, Strategy] = {
    **PLAIN,
    **WRAPPERS,
    "corrective": Strategy(
        "base, graded; other wordings are searched if too few results are relevant",
        lambda p: Corrective(p.inside("corrective"), p.corrector),
        options={
            "base": choice(_CORRECTED, "hybrid", "strategy that searches; its options are options of the request, too"),
            "relevance_threshold": RELEVANCE_THRESHOLD,
            "max_refinement_attempts": MAX_REFINEMENT_ATTEMPTS,
            "min_relevant": MIN_RELEVANT,
            "max_calls": MAX_CALLS,
        },
        holds=_base,
    ),
    "agentic": Strategy(
        "rounds of planned searches by vector, BM25 and graph, with reflection; ends when a round brings little news",
        lambda p: p.agentic,
        options=AGENTIC_OPTIONS,
        holds=lambda options: ("dense", "sparse", "graph"),
    ),
}
"""All strategies: `PLAIN`, and strategies that hold others."""

CORRECTABLE = frozenset(name for name, strategy in STRATEGIES.items() if strategy.passages) - {"corrective"}
"""The strategies to which the request field ``corrective`` applies. `corrective` has options instead."""

SHARED_OPTIONS: Mapping[str, Any] = {"contradictions": CONTRADICTIONS}
"""Options of every strategy."""


class RetrieverRegistry:
    """Builds each strategy once. Feature flags are read from each request.

    Args:
        cache: keeps results of all strategies. None: every search is done.
    """

    def __init__(self, parts: Parts, cache: ResultCache | None = None) -> None:
        rerankers = parts.rerankers.get if parts.rerankers is not None else None
        self._retrievers = {
            name: RankedRetriever(retriever, rerankers, parts.stores.documents, parts.corrector)
            for name, retriever in parts.retrievers.items()
        }
        self._embedder = parts.stores.embedder
        bearers = parts.bearers
        cache = cache or ResultCache(0)
        self._cached = {
            name: cache.over(name, ToldApart(ranked, parts.graphs, bearers)) for name, ranked in self._retrievers.items()
        }
        self._names = {alias: name for name, strategy in STRATEGIES.items() for alias in (name, *strategy.aliases)}

    def canonical(self, name: str) -> str:
        """Return the canonical name for a name or alias.

        Raises:
            InvalidRequest: no strategy has this name.
        """
        if name not in self._names:
            raise InvalidRequest(f"unknown strategy {name[:80]!r}; known are {', '.join(sorted(self._names))}")
        return self._names[name]

    def get(self, name: str) -> CachedRetriever:
        """Return the retriever for a name or alias.

        Raises:
            InvalidRequest: no strategy has this name.
        """
        return self._cached[self.canonical(name)]

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
                    # A strategy that holds others also has their options.
                    "additionalProperties": strategy.holds is not None,
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
    own = {**STRATEGIES[name].options, **SHARED_OPTIONS}
    for option, value in options.items():
        if option in own:
            check_option(option, value, own[option])
    for option, value in options.items():
        if option not in own:
            check_option(option, value, _schema_of_inner(name, options, option))


def _schema_of_inner(name: str, options: Mapping[str, Any], option: str) -> Mapping[str, Any]:
    """Return the schema of an option that a strategy has only through the strategies that it holds."""
    known = {**STRATEGIES[name].options, **SHARED_OPTIONS}
    holds = STRATEGIES[name].holds
    for inner in holds(options) if holds is not None else ():
        known = {**STRATEGIES[inner].options, **known}
    if option not in known:
        raise InvalidRequest(f"strategy {name!r} has no option {option[:80]!r}; it has {', '.join(known) or 'none'}")
    schema: Mapping[str, Any] = known[option]
    return schema
