"""Values of settings that follow from others: a profile of the language model, and limits that grow with LLM_TIMEOUT_S.

A value that is set explicitly always has priority.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

TIMEOUT = "llm_timeout_s"
PROFILE = "llm_profile"
SCALED = (
    "request_timeout_s",
    "verification_timeout_s",
    "theme_model_timeout_s",
    "agentic_max_seconds",
    "rerank_timeout_s",
)
"""Limits that grow by the same factor as LLM_TIMEOUT_S. A shorter LLM_TIMEOUT_S leaves them as they are."""
MOST_S = 600.0
"""Largest value of each of these limits, in seconds."""
PROFILES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "local": {
        "llm_max_concurrency": 1,
        "llm_timeout_s": 180.0,
        "llm_context_tokens": 4096,
        "answer_context_tokens": 1500,
        "theme_budget_tokens": 1500,
        "global_budget_tokens": 3000,
        "global_max_calls": 3,
        "drift_max_calls": 2,
        "agentic_max_calls": 3,
        "agentic_max_rounds": 2,
        "verification_max_questions": 2,
        "extraction_max_entities": 6,
        "extraction_max_relationships": 8,
    },
}
"""Values of each LLM_PROFILE."""


def derive_values(values: Mapping[str, Any], fields_given: Collection[str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that follow from the profile and from LLM_TIMEOUT_S.

    Args:
        values: all settings by field.
        fields_given: fields that are set explicitly.
        defaults: default of each field.
    """
    derived = {field: value for field, value in PROFILES[values[PROFILE]].items() if field not in fields_given}
    factor = derived.get(TIMEOUT, values[TIMEOUT]) / defaults[TIMEOUT]
    if factor > 1:
        derived |= {field: min(MOST_S, factor * defaults[field]) for field in SCALED if field not in fields_given}
    return derived


def source_of(field: str, fields_given: Collection[str]) -> str:
    """Return the setting from which a derived value of a field follows."""
    return (TIMEOUT if field in SCALED and TIMEOUT in fields_given else PROFILE).upper()
