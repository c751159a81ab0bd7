"""What the settings say to each service, in that service's own terms."""

from __future__ import annotations

from typing import Literal

from agentic_rag_backend.communities.detection import DetectionOptions
from agentic_rag_backend.generation.global_answers import GlobalAnswerOptions
from agentic_rag_backend.generation.service import PLACEHOLDERS, REQUIRED_PLACEHOLDERS, AnswerOptions
from agentic_rag_backend.models.llm.base import LanguageModel
from agentic_rag_backend.prompts import read_file
from agentic_rag_backend.retrieval.community import CommunityOptions
from agentic_rag_backend.retrieval.corpus_wide import GlobalOptions
from agentic_rag_backend.retrieval.drift import DriftOptions
from agentic_rag_backend.retrieval.dual_level import DualLevelOptions, choose_weights
from agentic_rag_backend.retrieval.registry import ThemeOptions
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.tenancy.features import (
    AUTO_WEIGHTS,
    COMMUNITY_AUTO_REBUILD,
    DUAL_LEVEL,
    LOW_WEIGHT,
    RAPTOR_AUTO_UPDATE,
    Features,
    FlagDefault,
)


def fast_model(settings: Settings) -> str | None:
    """Return the model of summaries; None where no model is configured."""
    return None if settings.llm == "extractive" else settings.llm_fast_model or settings.llm_model


def synthesis_model(settings: Settings) -> str:
    """Return the model that writes dual-level answers."""
    if settings.llm == "extractive":
        return "extractive"
    return settings.dual_level_synthesis_model or settings.llm_fast_model or settings.llm_model


def detection_options(settings: Settings) -> DetectionOptions:
    """Return how communities are found where a rebuild says nothing else."""
    return DetectionOptions(
        max_cluster_size=settings.community_max_cluster_size,
        min_size=settings.community_min_size,
        resolution=settings.community_resolution,
        max_levels=settings.community_max_levels,
    )


def dual_level_options(settings: Settings) -> DualLevelOptions:
    """Return the weights and floors of dual-level retrieval."""
    weights, _ = choose_weights(settings.dual_level_low_weight, settings.dual_level_high_weight)
    return DualLevelOptions(
        weights=weights,
        low_min_score=settings.dual_level_low_min_score,
        high_min_score=settings.dual_level_high_min_score,
        low_strategy=settings.dual_level_low_strategy,
    )


def theme_options(settings: Settings) -> ThemeOptions:
    """Return how much of the themes is read, and what the language model may be asked about them."""
    return ThemeOptions(
        community=CommunityOptions(budget_tokens=settings.theme_budget_tokens),
        corpus_wide=GlobalOptions(budget_tokens=settings.global_budget_tokens, max_calls=settings.global_max_calls),
        drift=DriftOptions(
            follow_ups=settings.drift_follow_ups, budget_tokens=settings.theme_budget_tokens, max_calls=settings.drift_max_calls
        ),
    )


def fast_calls(settings: Settings, model: LanguageModel) -> StructuredCalls:
    """Return the calls of the cheap model while a question waits for them."""
    return StructuredCalls(model, fast_model(settings), timeout_s=settings.theme_model_timeout_s)


def answer_options(settings: Settings) -> AnswerOptions:
    """Return how answers are written; a prompt that cannot work is refused here, before anything is served."""
    prompt_file = settings.dual_level_prompt_file
    return AnswerOptions(
        min_confidence=settings.answer_min_confidence,
        generator=settings.default_generator,
        dual_level_model=None if settings.llm == "extractive" else synthesis_model(settings),
        dual_level_temperature=settings.dual_level_synthesis_temperature,
        dual_level_prompt=read_file(prompt_file, required=REQUIRED_PLACEHOLDERS, allowed=PLACEHOLDERS) if prompt_file else None,
    )


def global_answer_options(settings: Settings) -> GlobalAnswerOptions:
    """Return how corpus-wide answers are made of partial ones."""
    usual = answer_options(settings)
    return GlobalAnswerOptions(
        budget_tokens=settings.global_budget_tokens,
        max_calls=settings.global_max_calls,
        context_tokens=usual.context_tokens,
        max_tokens=usual.max_tokens,
        temperature=usual.dual_level_temperature,
        model=usual.dual_level_model,
        min_confidence=usual.min_confidence,
    )


_FLAGS = {
    DUAL_LEVEL: ("dual_level_retrieval_enabled", "dual-level retrieval: chunks and communities in parallel"),
    AUTO_WEIGHTS: ("dual_level_auto_weights", "weights of both levels by the form of the question"),
    LOW_WEIGHT: ("dual_level_low_weight", "weight of chunks and entities, from 0 to 1; themes have the rest"),
    COMMUNITY_AUTO_REBUILD: ("community_auto_rebuild", "rebuild communities after documents changed"),
    RAPTOR_AUTO_UPDATE: ("raptor_auto_update", "the tree over passages takes in what changed by itself"),
}


def features_of(settings: Settings) -> Features:
    """Return the flags: a value that differs from the code's own default comes from the environment."""
    defaults: dict[str, FlagDefault] = {}
    for flag, (field, description) in _FLAGS.items():
        value, code_default = getattr(settings, field), Settings.model_fields[field].default
        source: Literal["default", "environment"] = "environment" if field in settings.model_fields_set else "default"
        defaults[flag] = FlagDefault(value, source, code_default, description)
    return Features(defaults)
