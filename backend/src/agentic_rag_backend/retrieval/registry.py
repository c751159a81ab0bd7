"""The registry of strategies: name, description, aliases, options and builder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, create_model

from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.agentic.stopping import AgenticRequestOptions, circuit_without_effect
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.options.model import (
    ContradictionsOption,
    CorrectionOptions,
    RequestOptions,
    ThemesOptions,
    one_of,
)
from agentic_rag_backend.retrieval.parts import Parts, Strategy
from agentic_rag_backend.retrieval.stages.pipeline import Pipeline, ResultCache
from agentic_rag_backend.retrieval.strategies.auto import AutoRequestOptions
from agentic_rag_backend.retrieval.strategies.corrective import Corrective
from agentic_rag_backend.retrieval.strategies.dual_level import DualLevelRequestOptions
from agentic_rag_backend.retrieval.strategies.fusion import (
    MAX_METHODS,
    MIN_METHODS,
    Fusion,
    fusion_options,
    methods_of,
    preset_without_effect,
)
from agentic_rag_backend.retrieval.strategies.graph import GraphRequestOptions
from agentic_rag_backend.retrieval.strategies.hybrid import HybridRequestOptions
from agentic_rag_backend.retrieval.strategies.hyde import Hyde, HydeRequestOptions
from agentic_rag_backend.retrieval.strategies.multi_query import MultiQuery, MultiQueryRequestOptions
from agentic_rag_backend.retrieval.strategies.parent_child import ParentChild, ParentChildRequestOptions
from agentic_rag_backend.retrieval.strategies.paths import PathsRequestOptions, PathsRetriever
from agentic_rag_backend.retrieval.strategies.single_leg import SingleLeg
from agentic_rag_backend.retrieval.strategies.synthetic_questions import QuestionRetriever
from agentic_rag_backend.retrieval.strategies.temporal_search import Temporal, TemporalRequestOptions
from agentic_rag_backend.retrieval.themes.community import CommunityRequestOptions, CommunityRetriever, PassagesBehind
from agentic_rag_backend.retrieval.themes.drift import Drift, DriftRequestOptions
from agentic_rag_backend.retrieval.themes.global_search import GlobalRetriever
from agentic_rag_backend.retrieval.themes.raptor import RaptorRequestOptions, RaptorRetriever

DUAL_LEVEL = "dual_level"

PLAIN: Mapping[str, Strategy] = {
    "auto": Strategy(
        "dual_level if it is switched on, otherwise its low level, with the summaries of raptor for accounts without names",
        lambda p: p.auto,
        options=AutoRequestOptions,
    ),
    "dense": Strategy(
        "nearest chunks by embedding", lambda p: SingleLeg(p.stores, p.graphs, dense=True), ("basic", "semantic", "vector")
    ),
    "sparse": Strategy("BM25 over chunks", lambda p: SingleLeg(p.stores, p.graphs, dense=False), ("bm25",), embeds=False),
    "hybrid": Strategy(
        "dense and BM25 fused",
        lambda p: p.hybrid,
        options=HybridRequestOptions,
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
        GraphRequestOptions,
    ),
    "paths": Strategy(
        "paths over relationships from the entities of the question: the chunks that state them, then those of hybrid",
        lambda p: PathsRetriever(p.stores, p.graphs, p.hybrid),
        ("multi_hop",),
        PathsRequestOptions,
    ),
    "temporal": Strategy(
        "the low level at the time that the question names: facts and passages that hold then; without a time, the low level",
        lambda p: Temporal(p.low_level),
        options=TemporalRequestOptions,
    ),
    "community": Strategy(
        "themes: summaries of communities; no theme contains another",
        lambda p: CommunityRetriever(p.finder, p.themes.community, behind=PassagesBehind(p.stores), graphs=p.graphs),
        options=CommunityRequestOptions,
        passages=False,
    ),
    DUAL_LEVEL: Strategy(
        "graph (or hybrid, by the question's form) and community in parallel, blended by weight",
        lambda p: p.dual_level,
        options=DualLevelRequestOptions,
    ),
    "global": Strategy(
        "themes of the whole corpus within a token budget; answers are merged from scored partial answers (map and reduce)",
        lambda p: GlobalRetriever(p.finder, p.themes.corpus_wide, p.hybrid),
        options=ThemesOptions,
        passages=False,
    ),
    "drift": Strategy(
        "themes, follow-up questions made from them, and a parallel local search for each, merged",
        lambda p: Drift(p.finder, p.hybrid, p.calls, p.themes.drift),
        options=DriftRequestOptions,
    ),
    "raptor": Strategy(
        "a tree of passages and summaries of their clusters: all levels at once, or from the roots down",
        lambda p: RaptorRetriever(p.stores, p.graphs),
        options=RaptorRequestOptions,
    ),
}

_BASES = [name for name, strategy in PLAIN.items() if strategy.passages]


def _with_base(options: type[RequestOptions], names: Sequence[str]) -> type[RequestOptions]:
    """Return options with ``base``, one of some strategies."""
    base = Field("hybrid", description="strategy that searches; its options are options of the request, too")
    return create_model(options.__name__, __base__=options, base=(one_of(names), base))


def _base(options: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(options.get("base", "hybrid")),)


WRAPPERS: Mapping[str, Strategy] = {
    "hyde": Strategy(
        "base searched with the vectors of hypothetical passages that a language model writes; base itself without a model",
        lambda p: Hyde(p.stores, p.inside("hyde"), p.calls),
        options=_with_base(HydeRequestOptions, _BASES),
        holds=_base,
    ),
    "multi_query": Strategy(
        "base searched with several wordings of the question, fused; without a model, with other names of its entities",
        lambda p: MultiQuery(p.inside("multi_query"), p.rewriter),
        options=_with_base(MultiQueryRequestOptions, _BASES),
        holds=_base,
    ),
    "parent_child": Strategy(
        "small chunks that base finds, and the excerpt around them; matches of one excerpt are one result",
        lambda p: ParentChild(p.stores, p.inside("parent_child")),
        ("parent-child",),
        _with_base(ParentChildRequestOptions, _BASES),
        holds=_base,
    ),
    "fusion": Strategy(
        "two to five strategies in parallel, fused by weight",
        lambda p: Fusion(p.inside("fusion")),
        options=fusion_options(_BASES),
        holds=methods_of,
        without_effect=preset_without_effect,
    ),
}

_CORRECTED = [*_BASES, *WRAPPERS]
STRATEGIES: Mapping[str, Strategy] = {
    **PLAIN,
    **WRAPPERS,
    "corrective": Strategy(
        "base, graded; other wordings are searched if too few results are relevant",
        lambda p: Corrective(p.inside("corrective"), p.corrector),
        options=_with_base(CorrectionOptions, _CORRECTED),
        holds=_base,
    ),
    "agentic": Strategy(
        "rounds of planned searches by vector, BM25 and graph, with reflection; ends when a round brings little news",
        lambda p: p.agentic,
        options=AgenticRequestOptions,
        holds=lambda options: ("dense", "sparse", "graph"),
        without_effect=circuit_without_effect,
    ),
}
"""All strategies: `PLAIN`, and strategies that hold others."""

CORRECTABLE = frozenset(name for name, strategy in STRATEGIES.items() if strategy.passages) - {"corrective"}
"""The strategies to which the request field ``corrective`` applies. `corrective` has options instead."""

NAMES: Mapping[str, str] = {alias: name for name, strategy in STRATEGIES.items() for alias in (name, *strategy.aliases)}
"""The canonical name for each name and alias."""

SHARED_OPTIONS = ContradictionsOption
"""Options of every strategy."""


class RetrieverRegistry:
    """Builds each strategy once. Feature flags are read from each request.

    Args:
        cache: keeps results of all strategies. None: every search is done.
    """

    def __init__(self, parts: Parts, cache: ResultCache | None = None) -> None:
        pipeline = Pipeline(
            cache=cache or ResultCache(0),
            graphs=parts.graphs,
            bearers=parts.bearers,
            documents=parts.stores.documents,
            rerankers=parts.rerankers,
            corrector=parts.corrector,
        )
        self._embedder = parts.stores.embedder
        self._strategies = parts.retrievers
        self._retrievers = {name: pipeline.wrap_strategy(name, retriever) for name, retriever in self._strategies.items()}

    def canonical(self, name: str) -> str:
        """Return the canonical name for a name or alias.

        Raises:
            InvalidRequest: no strategy has this name.
        """
        if name not in NAMES:
            raise InvalidRequest(f"unknown strategy {name[:80]!r}; known are {', '.join(sorted(NAMES))}")
        return NAMES[name]

    def get(self, name: str) -> Retriever:
        """Return the retriever for a name or alias: a strategy behind all stages.

        Raises:
            InvalidRequest: no strategy has this name.
        """
        return self._retrievers[self.canonical(name)]

    def strategy(self, name: str) -> Retriever:
        """Return a strategy alone, which finds candidates."""
        return self._strategies[self.canonical(name)]

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
                    "properties": {**strategy.options.schemas(), **SHARED_OPTIONS.schemas()},
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


def with_names(strategy: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the canonical names of strategies in ``base``, ``methods`` and ``weights``.

    Names that cannot be used there stay as they are, so that the message that refuses them has the caller's name.

    Raises:
        InvalidRequest: a strategy has two weights.
    """
    renamed = dict(options)
    base, methods, weights = (options.get(option) for option in ("base", "methods", "weights"))
    if isinstance(base, str):
        renamed["base"] = _canonical_among(STRATEGIES[strategy].options.schemas().get("base", {"enum": _BASES})["enum"], base)
    if isinstance(methods, list) and MIN_METHODS <= len(methods) <= MAX_METHODS:
        renamed["methods"] = [_canonical_among(_BASES, name) if isinstance(name, str) else name for name in methods]
    if isinstance(weights, Mapping):
        renamed["weights"] = {_canonical_among(_BASES, name): weight for name, weight in weights.items()}
        if len(renamed["weights"]) < len(weights):
            got = ", ".join(weights)[:200]
            raise InvalidRequest(f"options.weights must name each strategy once; got {got}", field="weights")
    return renamed


def _canonical_among(names: Sequence[str], name: str) -> str:
    """Return the canonical name if it is among ``names``, else the name as it is given."""
    canonical = NAMES.get(name, name)
    return canonical if canonical in names else name


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Validate options against the schemas of the strategy and of the strategies that it holds.

    Raises:
        InvalidRequest: an option is unknown or invalid. The message names the option and the allowed values.
    """
    models: tuple[type[RequestOptions], ...] = (STRATEGIES[name].options, SHARED_OPTIONS)
    remaining = {option: value for option, value in options.items() if not _check_option(models, option, value)}
    inner: list[type[RequestOptions]] = []
    for inner_name in held_by(name, options):
        held_by(inner_name, options)  # its own names are valid, too
        inner.append(STRATEGIES[inner_name].options)
    for option, value in remaining.items():
        if not _check_option(inner, option, value):
            has = ", ".join(dict.fromkeys(option_name for model in (*inner, *models) for option_name in model.schemas()))
            raise InvalidRequest(f"strategy {name!r} has no option {option[:80]!r}; it has {has}", field=option)


def _check_option(models: Sequence[type[RequestOptions]], option: str, value: Any) -> bool:
    """Validate an option against the first of the models that has it. Return whether one has it."""
    model = next((model for model in models if option in model.schemas()), None)
    if model is not None:
        model.check_option(option, value)
    return model is not None


def held_by(name: str, options: Mapping[str, Any]) -> Sequence[str]:
    """Return the strategies that a strategy holds with these options.

    Raises:
        InvalidRequest: the names or their weights do not go together.
    """
    holds = STRATEGIES[name].holds
    return holds(options) if holds is not None else ()


def options_without_effect(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return warnings about valid options that have no effect, of the strategy and of those that it holds."""
    entries = [STRATEGIES[strategy_name] for strategy_name in (name, *held_by(name, options))]
    return tuple(warning for entry in entries if entry.without_effect is not None for warning in entry.without_effect(options))
