"""Conversion of settings to the options of each service, and the caches of searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from agentic_rag_backend.answering.corpus_wide.global_answers import GlobalAnswerOptions
from agentic_rag_backend.answering.service import FALLBACK_SHARE, PLACEHOLDERS, REQUIRED_PLACEHOLDERS, AnswerOptions
from agentic_rag_backend.domain.document import QuestionOptions
from agentic_rag_backend.domain.ontology import EntityType, Ontology
from agentic_rag_backend.domain.query import LegWeights, LevelWeights
from agentic_rag_backend.domain.quota import Limits, QuotaName
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ConfigurationError, InvalidRequest
from agentic_rag_backend.ingestion.service import IngestionOptions
from agentic_rag_backend.knowledge.absence import Absence
from agentic_rag_backend.knowledge.extraction.base import Extractor
from agentic_rag_backend.knowledge.extraction.methods import RULES, ExtractionMethods
from agentic_rag_backend.knowledge.extraction.model.by_model import LLM
from agentic_rag_backend.knowledge.extraction.model.inquiries import ModelExtractionOptions
from agentic_rag_backend.knowledge.extraction.model.temporal import GRAPHITI, TemporalEngine
from agentic_rag_backend.knowledge.model_calls import DocumentModel
from agentic_rag_backend.knowledge.resolution.limits import NameLimits
from agentic_rag_backend.memory import MIB
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.prompts import read_file
from agentic_rag_backend.retrieval.agentic import plan
from agentic_rag_backend.retrieval.agentic.stopping import AgenticOptions, Budget
from agentic_rag_backend.retrieval.caching import TenantCache
from agentic_rag_backend.retrieval.options.leg_weights import normalise_weights
from agentic_rag_backend.retrieval.parts import ThemeOptions
from agentic_rag_backend.retrieval.requests.builder import RequestDefaults
from agentic_rag_backend.retrieval.stages.pipeline import ResultCache
from agentic_rag_backend.retrieval.strategies.dual_level import DualLevelOptions
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.retrieval.themes.community import CommunityOptions
from agentic_rag_backend.retrieval.themes.drift import DriftOptions
from agentic_rag_backend.retrieval.themes.global_search import GlobalOptions
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.telemetry.metrics import PASSAGES_CACHE, THEMES_CACHE
from agentic_rag_backend.telemetry.tracing import TraceSettings
from agentic_rag_backend.tenancy.features import (
    AUTO_WEIGHTS,
    COMMUNITY_AUTO_REBUILD,
    DUAL_LEVEL,
    LOW_WEIGHT,
    QUESTION_LOG,
    RAPTOR_AUTO_UPDATE,
    Features,
    FlagDefault,
)
from agentic_rag_backend.themes.communities.detection.hierarchy import DetectionOptions
from agentic_rag_backend.themes.raptor.build_options import TreeOptions
from agentic_rag_backend.transfer.service import TransferOptions

_log = get_logger(__name__)


def quota_defaults(settings: Settings) -> Limits:
    """Return the limits of tenants that have no others."""
    limits = {name: getattr(settings, f"quota_{name.value}") for name in QuotaName}
    return {name: limit for name, limit in limits.items() if limit is not None}


def fast_model(settings: Settings) -> str | None:
    """Return the model of summaries. None if no model is configured."""
    return None if settings.llm == "extractive" else settings.llm_fast_model or settings.llm_model


def synthesis_model(settings: Settings) -> str:
    """Return the model that writes dual-level answers."""
    if settings.llm == "extractive":
        return "extractive"
    return settings.dual_level_synthesis_model or settings.llm_fast_model or settings.llm_model


def detection_options(settings: Settings) -> DetectionOptions:
    """Return the default options of community detection."""
    return DetectionOptions(
        max_cluster_size=settings.community_max_cluster_size,
        min_size=settings.community_min_size,
        resolution=settings.community_resolution,
        max_levels=settings.community_max_levels,
    )


def level_weights(settings: Settings) -> LevelWeights:
    """Return the normalised weights of the two levels."""
    return LevelWeights(*_shares(settings, "dual_level_low_weight", "dual_level_high_weight"))


def leg_weights(settings: Settings) -> LegWeights:
    """Return the normalised weights of the two legs of hybrid search."""
    return LegWeights(*_shares(settings, "hybrid_dense_weight", "hybrid_sparse_weight"))


def warn_of_weights(settings: Settings) -> None:
    """Log a warning for each pair of weights that had to be normalised. Call it once, at the start.

    Raises:
        ConfigurationError: both weights of a pair are 0.
    """
    for first_name, second_name in (
        ("dual_level_low_weight", "dual_level_high_weight"),
        ("hybrid_dense_weight", "hybrid_sparse_weight"),
    ):
        weights = (getattr(settings, first_name), getattr(settings, second_name))
        used = _shares(settings, first_name, second_name)
        if used != weights:
            _log.warning(
                "weights_normalised",
                settings=f"{first_name.upper()} and {second_name.upper()}",
                given=f"{weights[0]:g} and {weights[1]:g}",
                used=f"{used[0]:.4g} and {used[1]:.4g}",
            )


def _shares(settings: Settings, first_name: str, second_name: str) -> tuple[float, float]:
    try:
        shares = normalise_weights(
            getattr(settings, first_name), getattr(settings, second_name), names=(first_name.upper(), second_name.upper())
        )
    except InvalidRequest as error:
        raise ConfigurationError(error.message) from None
    return shares.first, shares.second


def request_defaults(settings: Settings, features: Features) -> RequestDefaults:
    """Return the defaults of limits and weights of requests."""
    return RequestDefaults(
        features,
        low_limit=settings.dual_level_low_limit,
        high_limit=settings.dual_level_high_limit,
        weights=level_weights(settings),
    )


def dual_level_options(settings: Settings) -> DualLevelOptions:
    """Return the minimum scores of dual-level retrieval, and the strategy of its low level."""
    return DualLevelOptions(
        low_min_score=settings.dual_level_low_min_score,
        high_min_score=settings.dual_level_high_min_score,
        low_strategy=settings.dual_level_low_strategy,
    )


def theme_options(settings: Settings) -> ThemeOptions:
    """Return the token budgets of themes, and the limits of model calls about them."""
    return ThemeOptions(
        community=CommunityOptions(budget_tokens=settings.theme_budget_tokens),
        corpus_wide=GlobalOptions(budget_tokens=settings.global_budget_tokens, max_calls=settings.global_max_calls),
        drift=DriftOptions(
            follow_ups=settings.drift_follow_ups, budget_tokens=settings.theme_budget_tokens, max_calls=settings.drift_max_calls
        ),
    )


def agentic_options(settings: Settings) -> AgenticOptions:
    """Return the options of agentic retrieval. An invalid prompt is refused here, at the start."""
    file = settings.agentic_planner_prompt_file
    return AgenticOptions(
        query_planning=settings.agentic_query_planning,
        novelty_circuit=settings.agentic_novelty_circuit,
        negative_memory=settings.agentic_negative_memory,
        cascade_recall=settings.agentic_cascade_recall,
        max_rounds=settings.agentic_max_rounds,
        epsilon=settings.agentic_novelty_epsilon,
        budget=Budget(settings.agentic_max_calls, settings.agentic_max_tokens, settings.agentic_max_seconds),
        session_s=settings.agentic_session_s,
        planner_prompt=read_file(file, required=plan.REQUIRED_PLACEHOLDERS, allowed=plan.PLACEHOLDERS) if file else None,
    )


def fast_calls(settings: Settings, model: LanguageModel) -> StructuredCalls:
    """Return the calls of the fast model, with the timeout of calls during a question."""
    return StructuredCalls(model, fast_model(settings), timeout_s=settings.theme_model_timeout_s)


def answer_options(settings: Settings) -> AnswerOptions:
    """Return the options of answers. An invalid prompt is refused here, at the start."""
    prompt_file = settings.dual_level_prompt_file
    return AnswerOptions(
        min_confidence=settings.answer_min_confidence,
        window_tokens=settings.llm_context_tokens,
        context_tokens=settings.answer_context_tokens,
        generator=settings.default_generator,
        citation_policy=settings.citation_policy,
        verification_questions=settings.verification_max_questions,
        dual_level_model=None if settings.llm == "extractive" else synthesis_model(settings),
        dual_level_temperature=settings.dual_level_synthesis_temperature,
        model_patience_s=FALLBACK_SHARE * settings.request_timeout_s,
        dual_level_prompt=read_file(prompt_file, required=REQUIRED_PLACEHOLDERS, allowed=PLACEHOLDERS) if prompt_file else None,
    )


def global_answer_options(settings: Settings) -> GlobalAnswerOptions:
    """Return the options of `global` answers, which combine partial answers."""
    options = answer_options(settings)
    return GlobalAnswerOptions(
        budget_tokens=settings.global_budget_tokens,
        max_calls=settings.global_max_calls,
        context_tokens=options.context_tokens,
        max_tokens=options.max_tokens,
        temperature=options.dual_level_temperature,
        model=options.dual_level_model,
        window_tokens=options.window_tokens,
        min_confidence=options.min_confidence,
    )


_FLAGS = {
    DUAL_LEVEL: ("dual_level_retrieval_enabled", "dual-level retrieval: chunks and communities in parallel"),
    AUTO_WEIGHTS: ("dual_level_auto_weights", "weights of both levels by the form of the question"),
    LOW_WEIGHT: ("dual_level_low_weight", "weight of chunks and entities, from 0 to 1; the rest is the weight of themes"),
    COMMUNITY_AUTO_REBUILD: ("community_auto_rebuild", "rebuild communities automatically after document changes"),
    QUESTION_LOG: ("question_log_enabled", "keep questions for datasets, for 30 days; administrators can read them"),
    RAPTOR_AUTO_UPDATE: ("raptor_auto_update", "update the tree over passages automatically after document changes"),
}


def features_of(settings: Settings) -> Features:
    """Return the flags. The source of a value that differs from the code's default is the environment."""
    defaults: dict[str, FlagDefault] = {}
    for flag, (field, description) in _FLAGS.items():
        value, code_default = getattr(settings, field), Settings.model_fields[field].default
        if flag == LOW_WEIGHT:
            value = level_weights(settings).low
        source: Literal["default", "environment"] = "environment" if field in settings.model_fields_set else "default"
        defaults[flag] = FlagDefault(value, source, code_default, description)
    return Features(defaults)


def tree_options(settings: Settings) -> TreeOptions:
    """Return the default shape of trees."""
    return TreeOptions(
        max_levels=settings.raptor_max_levels,
        cluster_size=settings.raptor_cluster_size,
        max_clusters_per_level=settings.raptor_max_clusters_per_level,
        method=settings.raptor_clustering,
    )


def extraction_method(settings: Settings) -> str:
    """Return the method of extraction of documents that ask for none.

    Raises:
        ConfigurationError: it needs a language model or Neo4j, and none is configured.
    """
    if settings.extraction is None:
        return RULES if settings.llm == "extractive" else LLM
    if settings.extraction == GRAPHITI and settings.graph_store != "neo4j":
        raise ConfigurationError("EXTRACTION=graphiti needs the graph in Neo4j: set GRAPH_STORE=neo4j, or another EXTRACTION")
    if settings.extraction != RULES and settings.llm == "extractive":
        raise ConfigurationError(f"EXTRACTION={settings.extraction} needs a language model: set LLM=openai, or EXTRACTION=rules")
    return settings.extraction


def extraction_model(settings: Settings) -> str | None:
    """Return the model that extracts. None if no model is configured."""
    return None if settings.llm == "extractive" else settings.extraction_model or fast_model(settings)


def extraction_methods(
    settings: Settings, rules: Extractor, model: LanguageModel, temporal: TemporalEngine | None = None
) -> ExtractionMethods:
    """Return the methods of extraction. ``model`` is asked by all but the rules. ``temporal`` makes episodes of chunks."""
    absence = Absence(settings.job_patience_s)
    document_model = DocumentModel(model, extraction_model(settings), settings.ingestion_model_max_tokens, absence)
    options = ModelExtractionOptions(
        max_entities=settings.extraction_max_entities,
        max_relationships=settings.extraction_max_relationships,
        ontology=Ontology(tuple(map(EntityType, settings.entity_types))),
    )
    return ExtractionMethods(rules, document_model, options, temporal)


def name_limits(settings: Settings) -> NameLimits:
    """Return the limits of names that a document brings into the graph."""
    return NameLimits(
        names_per_chunk=settings.extraction_max_names_per_chunk,
        names_per_document=settings.extraction_max_names_per_document,
        aliases_per_name=settings.extraction_max_aliases_per_name,
    )


def ingestion_options(settings: Settings) -> IngestionOptions:
    """Return the options of ingestion."""
    return IngestionOptions(
        max_upload_mb=settings.max_upload_mb,
        patience_s=settings.job_patience_s,
        commit_together=settings.vector_store == "edge",
        keep_originals=settings.keep_originals,
        extraction=extraction_method(settings),
        questions=QuestionOptions(settings.synthetic_questions, settings.synthetic_questions_per_chunk),
    )


def transfer_options(settings: Settings) -> TransferOptions:
    """Return the folder of archives and their size limits."""
    return TransferOptions(
        folder=settings.data_dir / "transfer",
        max_archive=settings.max_import_mb * MIB,
        max_original=settings.max_upload_mb * MIB,
    )


@dataclass(frozen=True, slots=True)
class SearchCaches:
    """Results, themes and passages by tenant. Vectors of questions are kept by `QueryEncoder`."""

    results: ResultCache
    themes: TenantCache[Any]
    passages: TenantCache[Any]

    @classmethod
    def of(cls, settings: Settings) -> SearchCaches:
        """Return empty caches of the sizes in the settings."""
        return cls(
            results=ResultCache(settings.search_cache_mb * MIB),
            themes=TenantCache(THEMES_CACHE, settings.theme_cache_mb * MIB),
            passages=TenantCache(PASSAGES_CACHE, settings.passage_cache_mb * MIB),
        )

    def forget(self, tenant: TenantId) -> None:
        """Drop everything of a tenant."""
        for cache in (self.results.entries, self.themes, self.passages):
            cache.forget_tenant(tenant)


def trace_settings(settings: Settings) -> TraceSettings:
    """Return where the traces of a process go."""
    return TraceSettings(
        exporter=settings.otel_traces_exporter,
        endpoint=settings.otel_exporter_otlp_endpoint,
        service_name=settings.otel_service_name,
        share=settings.otel_traces_sampler_arg,
        content=settings.otel_traces_content,
    )
