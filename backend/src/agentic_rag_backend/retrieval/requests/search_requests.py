"""Requests that retrieve, as callers write them. The HTTP API, the library and the command line share them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, ValidationInfo, WithJsonSchema, field_validator

from agentic_rag_backend.retrieval.options.filters import AS_OF_DESCRIPTION, AsOf, Number, RequestModel, Switch, Whole
from agentic_rag_backend.retrieval.options.leg_weights import RequestOverrides
from agentic_rag_backend.retrieval.registry import DUAL_LEVEL

MAX_QUERY_CHARACTERS = 8000

Preset = Literal["factoid", "conceptual", "balanced", "research", "auto"]


class Weights(RequestModel):
    """Shares of the two levels (``dual_level``, ``auto``), or of the two legs (``hybrid``).

    If only one of a pair is given, the other is 1 minus it. Shares are normalised to the sum 1. Shares override a preset.
    """

    low: Number | None = Field(None, ge=0, le=1, description="share of chunks and entities (dual_level, auto)")
    high: Number | None = Field(None, ge=0, le=1, description="share of themes (dual_level, auto)")
    preset: Preset | None = Field(None, description="shares by name (dual_level, auto); auto: by the form of the question")
    dense: Number | None = Field(None, ge=0, le=1, description="share of embedding similarity (hybrid)")
    sparse: Number | None = Field(None, ge=0, le=1, description="share of BM25 (hybrid)")


class PassageRequest(RequestModel):
    """Fields of every request that searches passages."""

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, description="the question, 1 to 8,000 characters")
    timeout_ms: Whole | None = Field(
        None, ge=1, description="time limit in milliseconds, at most REQUEST_TIMEOUT_S; then 504 `timeout`"
    )
    cache: Switch | None = Field(
        True, description="false: search again, even if the results of an equal search are in the cache (SEARCH_CACHE_MB)"
    )
    min_score: Number | None = Field(
        None, ge=0, le=1, description="least `score` of a result, 0 to 1, after reranking; facts and themes have no such limit"
    )
    filters: dict[str, Any] | None = Field(
        None,
        description="filter over metadata, `document_id`, `key`, `title`, `source`, `language`, `entity`, `entity_type` and "
        "`community`; operators are eq, ne, in, nin, gt, gte, lt, lte, contains, prefix, exists and missing. "
        "See docs/reference/filters.md",
        examples=[{"category": "minutes", "key": {"prefix": "2024/"}, "entity": ["Mara Venn", "Harbour Authority"]}],
    )
    as_of: AsOf = Field(None, description=AS_OF_DESCRIPTION)
    options: dict[str, Any] | None = Field(default_factory=dict, description="options of the strategy")
    # `RerankRequests.resolve` decides which values `rerank` takes, and `resolve_correction` those of `corrective`.
    rerank: Annotated[
        Any,
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "boolean"},
                    {"type": "string"},
                    {"type": "object", "additionalProperties": True},
                    {"type": "null"},
                ]
            }
        ),
    ] = Field(
        None,
        description="name of a reranker, see GET /rerankers; or an object with `name`, `top_n`, `candidates`, `min_score`, "
        "`timeout_ms` and options of the reranker; true: the default one; false: none; default: HYBRID_RERANK for `hybrid`, "
        "otherwise false",
    )
    corrective: Annotated[
        Any, WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "object", "additionalProperties": True}, {"type": "null"}]})
    ] = Field(
        None,
        description="true: grade the results, and search other wordings if too few are relevant; or an object with "
        "`relevance_threshold`, `max_refinement_attempts`, `min_relevant` and `max_calls`; default: false",
    )

    @field_validator("query")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        if "\x00" in value:
            raise ValueError(f"must not contain a NUL character; got one at offset {value.index(chr(0))}")
        return value

    @field_validator("options", "cache")
    @classmethod
    def _default_for_null(cls, value: Any, field: ValidationInfo) -> Any:
        """Return the default for null, which means the same as a field that is left out."""
        default = cls.model_fields[str(field.field_name)]
        return default.get_default(call_default_factory=True, validated_data={}) if value is None else value


class SearchRequest(PassageRequest):
    """A search by any strategy."""

    strategy: str | None = Field(None, max_length=64, description="see GET /strategies; default: DEFAULT_STRATEGY")
    limit: Whole | None = Field(
        None,
        ge=1,
        le=100,
        validation_alias=AliasChoices("limit", "top_k"),
        description="maximum results and maximum themes, 1 to 100; default: 5, or DUAL_LEVEL_LOW_LIMIT for dual-level searches",
    )
    weights: Weights | None = None

    def overrides(self) -> RequestOverrides:
        """Return the limits and weights that the request sets."""
        weights = self.weights.model_dump() if self.weights is not None else {}
        return RequestOverrides(limit=self.limit, level_fields=("weights.low", "weights.high"), **weights)


class DualLevelRequest(PassageRequest):
    """A dual-level search. Default limits and weights are the deployment's settings."""

    low_limit: Whole | None = Field(None, ge=1, le=100)
    high_limit: Whole | None = Field(None, ge=1, le=100)
    low_weight: Number | None = Field(None, ge=0, le=1)
    high_weight: Number | None = Field(None, ge=0, le=1)
    preset: Preset | None = Field(None, description="auto: by the form of the question")
    synthesize: Switch = True
    prompt: str | None = Field(
        None,
        min_length=1,
        max_length=4000,
        description="prompt that replaces the built-in one; must contain {{passages}} and {{question}}",
    )

    @property
    def strategy(self) -> str:
        """The strategy of the request."""
        return DUAL_LEVEL

    def overrides(self) -> RequestOverrides:
        """Return the limits and weights that the request sets."""
        return RequestOverrides(
            low_limit=self.low_limit,
            high_limit=self.high_limit,
            low=self.low_weight,
            high=self.high_weight,
            preset=self.preset,
        )
