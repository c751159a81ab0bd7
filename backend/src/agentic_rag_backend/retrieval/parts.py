"""What strategies are made of: an entry of the registry, and the parts that several strategies use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from agentic_rag_backend.domain.query import LegWeights, Query, Retrieval
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.knowledge.visible.entity_reader import BearerReader
from agentic_rag_backend.retrieval.agentic.search_rounds import ConstraintResolver
from agentic_rag_backend.retrieval.agentic.sessions import SessionReader
from agentic_rag_backend.retrieval.agentic.stopping import AgenticOptions
from agentic_rag_backend.retrieval.agentic.strategy import Agentic, AgenticParts
from agentic_rag_backend.retrieval.base import Retriever, Stores
from agentic_rag_backend.retrieval.caching import TenantCache
from agentic_rag_backend.retrieval.grading import Grader, ModelGrader
from agentic_rag_backend.retrieval.options.leg_weights import LEG_WEIGHTS
from agentic_rag_backend.retrieval.options.model import RequestOptions
from agentic_rag_backend.retrieval.passages.linked_chunks import LinkedChunks
from agentic_rag_backend.retrieval.passages.passage_features import PassageFeatures
from agentic_rag_backend.retrieval.rerank.registry import RerankerRegistry
from agentic_rag_backend.retrieval.rewriting import QueryRewriter
from agentic_rag_backend.retrieval.stages.correction import Corrector
from agentic_rag_backend.retrieval.strategies.auto import DUAL, LOW, WITH_TREE, Auto, Latencies, WithSummaries
from agentic_rag_backend.retrieval.strategies.dual_level import BY_FORM, DualLevel, DualLevelOptions, HybridWithFacts, LowLevel
from agentic_rag_backend.retrieval.strategies.graph import GraphRetriever
from agentic_rag_backend.retrieval.strategies.hybrid import Hybrid
from agentic_rag_backend.retrieval.strategies.single_leg import SingleLeg
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.retrieval.themes.community import CommunityOptions, CommunityRetriever, PassagesBehind
from agentic_rag_backend.retrieval.themes.drift import DriftOptions
from agentic_rag_backend.retrieval.themes.finder import ThemeFinder
from agentic_rag_backend.retrieval.themes.global_search import GlobalOptions, GlobalRetriever
from agentic_rag_backend.retrieval.themes.overviews import Overviews
from agentic_rag_backend.retrieval.themes.raptor import RaptorRetriever
from agentic_rag_backend.retrieval.themes.rating import ThemeRater
from agentic_rag_backend.stores.catalogue.base import SearchSessions


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
    theme_cache: TenantCache[Any] | None = None
    passage_cache: TenantCache[Any] | None = None
    strategies: Mapping[str, Strategy] = field(kw_only=True)
    """All strategies by canonical name: `registry.STRATEGIES`."""

    @cached_property
    def retrievers(self) -> Mapping[str, Retriever]:
        """Each strategy by its canonical name."""
        return {name: strategy.build(self) for name, strategy in self.strategies.items()}

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
        features = PassageFeatures(self.stores.vectors, self.passage_cache)
        return GraphRetriever(self.stores, self.graphs, self.hybrid, features)

    @cached_property
    def low_level(self) -> LowLevel:
        """The low level of dual-level retrieval: `graph`, `hybrid` with facts, or `agentic`."""
        with_facts = HybridWithFacts(self.stores, self.graphs, self.hybrid)
        retrievers: Mapping[str, Retriever] = {"graph": self.graph, "hybrid": with_facts, "agentic": self.agentic}
        return LowLevel(retrievers, default=self.dual_level_options.low_strategy)

    @cached_property
    def finder(self) -> ThemeFinder:
        """Finds themes."""
        return ThemeFinder(self.stores, ThemeRater(self.calls), self.theme_cache)

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
        themes = GlobalRetriever(self.finder, self.themes.corpus_wide)
        return Auto(
            strategies,
            overviews=Overviews(themes, self.hybrid, sparse, self.stores.documents),
            graphs=self.graphs,
            trees=self.stores.trees,
            encoder=self.stores.encoder,
            latencies=Latencies(),
            rounds=self.dual_level_options.low_strategy == BY_FORM,
        )

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
        return Agentic(self.agentic_parts)

    @cached_property
    def agentic_parts(self) -> AgenticParts:
        """The parts of `agentic`, from which the optimization of its planner builds searches with other plans."""
        links = LinkedChunks(self.graphs, self.stores.communities, self.stores.graph)
        return AgenticParts(
            stores=self.stores,
            graphs=self.graphs,
            strategies=self.inside("agentic"),
            resolver=ConstraintResolver(links, self.graphs, self.bearers),
            rewriter=self.rewriter,
            calls=self.calls,
            options=self.agentic_options,
            sessions=self.sessions,
        )


@dataclass(frozen=True, slots=True)
class Inside:
    """The strategies that another one holds. See `Strategies`."""

    parts: Parts
    holder: str

    async def retrieve(self, name: str, query: Query) -> Retrieval:
        """See `Strategies`. The options of the holder itself are not passed on, even if the inner strategy has the same."""
        strategies = self.parts.strategies
        names = strategies[name].options.schemas().keys() - strategies[self.holder].options.schemas().keys()
        options = {option: value for option, value in query.options.items() if option in names}
        return await self.parts.retrievers[name].retrieve(replace(query, options=options))


@dataclass(frozen=True, slots=True)
class Strategy:
    """One entry of ``GET /strategies``. ``options`` is the model of the request's ``options``.

    ``passages`` is false for a strategy that returns only themes. ``holds`` returns the strategies that a request's valid options
    name, for a strategy that holds others: their options are options of the request, too.
    """

    description: str
    build: Callable[[Parts], Retriever]
    aliases: tuple[str, ...] = ()
    options: type[RequestOptions] = RequestOptions
    embeds: bool = True
    """Whether it compares embeddings, so that the languages of the embedder matter."""
    passages: bool = True
    holds: Callable[[Mapping[str, Any]], Sequence[str]] | None = None
    without_effect: Callable[[Mapping[str, Any]], Sequence[str]] | None = None
    """Returns warnings about valid options that others override."""
