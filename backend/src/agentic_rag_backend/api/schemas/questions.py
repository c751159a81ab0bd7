"""Bodies of requests that search and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, ConfigDict, Field, WithJsonSchema, field_validator

from agentic_rag_backend.api.schemas.base import Body, Number, Switch, Whole
from agentic_rag_backend.api.schemas.moments import AS_OF_DESCRIPTION, AsOf
from agentic_rag_backend.retrieval.building import SearchRequest
from agentic_rag_backend.retrieval.queries.defaults import RequestOverrides
from agentic_rag_backend.retrieval.registry import DUAL_LEVEL

MAX_QUERY_CHARACTERS = 8000
MAX_TURNS = 20
QUESTION_BYTES = MAX_QUERY_CHARACTERS * 12
HISTORY_BYTES = MAX_TURNS * MAX_QUERY_CHARACTERS * 12
"""Bytes of the longest question and history as JSON. A character beyond U+FFFF may be written as two escapes of six bytes."""
QUERY = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS, description="the question, 1 to 8,000 characters")


Preset = Literal["factoid", "conceptual", "balanced", "research", "auto"]


class Weights(Body):
    """Shares of the two levels (``dual_level``, ``auto``), or of the two legs (``hybrid``).

    If only one of a pair is given, the other is 1 minus it. Shares are normalised to the sum 1. Shares override a preset.
    """

    low: Number | None = Field(None, ge=0, le=1, description="share of chunks and entities (dual_level, auto)")
    high: Number | None = Field(None, ge=0, le=1, description="share of themes (dual_level, auto)")
    preset: Preset | None = Field(None, description="shares by name (dual_level, auto); auto: by the form of the question")
    dense: Number | None = Field(None, ge=0, le=1, description="share of embedding similarity (hybrid)")
    sparse: Number | None = Field(None, ge=0, le=1, description="share of BM25 (hybrid)")


RerankSetting = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [{"type": "boolean"}, {"type": "string"}, {"type": "object", "additionalProperties": True}, {"type": "null"}]}
    ),
]
"""A boolean, a name, an object or null. `RerankRequests.resolve` decides which values it takes."""
CorrectiveSetting = Annotated[
    Any,
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "object", "additionalProperties": True}, {"type": "null"}]}),
]
"""A boolean, an object or null. `resolve_correction` decides which values it takes."""


class Question(Body):
    """Fields of every request that retrieves."""

    query: str = QUERY
    timeout_ms: Whole | None = Field(
        None, ge=1, description="time limit in milliseconds, at most REQUEST_TIMEOUT_S; then 504 `timeout`"
    )
    cache: Switch | None = Field(
        True, description="false: search again, even if the results of an equal search are in the cache (SEARCH_CACHE_MB)"
    )

    @field_validator("query")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        if "\x00" in value:
            raise ValueError(f"must not contain a NUL character; got one at offset {value.index(chr(0))}")
        return value


Fields = Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(min_length=1, max_length=50)]


def _fields(items: str, parts: str) -> str:
    """Return the description of ``fields``, with the list whose fields can be named, and examples of parts."""
    return (
        f"parts of `data` that the response has, such as {parts}, and fields of `{items}`, such as `content` or "
        f"`{items}.content`; named fields of a part leave out its other fields; default: everything"
    )


class PassageSearch(Question):
    """Fields of every request that searches passages."""

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
    rerank: RerankSetting = Field(
        None,
        description="name of a reranker, see GET /rerankers; or an object with `name`, `top_n`, `candidates`, `min_score`, "
        "`timeout_ms` and options of the reranker; true: the default one; false: none; default: HYBRID_RERANK for `hybrid`, "
        "otherwise false",
    )
    corrective: CorrectiveSetting = Field(
        None,
        description="true: grade the results, and search other wordings if too few are relevant; or an object with "
        "`relevance_threshold`, `max_refinement_attempts`, `min_relevant` and `max_calls`; default: false",
    )

    def _request(self, strategy: str | None, overrides: RequestOverrides) -> SearchRequest:
        return SearchRequest(
            text=self.query,
            strategy=strategy,
            overrides=overrides,
            filters=self.filters,
            as_of=self.as_of,
            options=self.options or {},
            rerank=self.rerank,
            corrective=self.corrective,
            timeout_ms=self.timeout_ms,
            cache=self.cache is not False,
            min_score=self.min_score or 0.0,
        )


class RankedSearch(PassageSearch):
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

    def request(self) -> SearchRequest:
        """Return the search request of the body."""
        weights = self.weights.model_dump() if self.weights is not None else {}
        overrides = RequestOverrides(limit=self.limit, level_fields=("weights.low", "weights.high"), **weights)
        return self._request(self.strategy, overrides)


class SearchBody(RankedSearch):
    """A search, and the parts of its response."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "Who leads the harbour project?", "strategy": "graph", "filters": {"category": "minutes"}}]
        }
    )

    fields: Fields | None = Field(
        None, description=_fields("results", "`results` and `trace`"), examples=[["title", "content", "score"]]
    )


class Turn(Body):
    role: Literal["user", "assistant"]
    content: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)


class AnswerBody(RankedSearch):
    """A question, and options of its answer."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "Why was the tidal project delayed?", "strategy": "auto", "stream": False}]}
    )

    generator: str | None = Field(
        None,
        max_length=64,
        description="`attributed` (only supported sentences), `standard` (all, unsupported ones marked) or `verified` (revised "
        "after verification questions)",
    )
    stream: Switch = Field(False, description="answer as server-sent events")
    resumable: Switch = Field(
        False, description="go on with a streamed answer although nobody follows it, for STREAM_RESUME_S (120 s)"
    )
    history: list[Turn] = Field(default_factory=list, max_length=MAX_TURNS)
    citation_style: Literal["numeric", "title", "none"] = Field(
        "numeric", description="form of citations in the text: [1], (Title) or none; the list of citations is the same"
    )
    citation_policy: Literal["strict", "checked", "mark"] | None = Field(
        None,
        description="sentences that are not supported: `strict` leaves them out; `checked` leaves out contradicted ones and "
        "keeps others with the mark [unverified]; `mark` also keeps contradicted ones, with the mark [unsupported]; "
        "default: `mark` for `standard`, otherwise `checked`",
    )
    fields: Fields | None = Field(
        None, description=_fields("sources", "`answer` and `citations`"), examples=[["answer", "citations"]]
    )


class DualLevelBody(PassageSearch):
    """A dual-level search. Default limits and weights are the deployment's settings."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "What ties fishing and energy together?", "preset": "conceptual"}]}
    )

    low_limit: Whole | None = Field(None, ge=1, le=100)
    high_limit: Whole | None = Field(None, ge=1, le=100)
    low_weight: Number | None = Field(None, ge=0, le=1)
    high_weight: Number | None = Field(None, ge=0, le=1)
    preset: Preset | None = Field(None, description="auto: by the form of the question")
    synthesize: Switch = True
    fields: Fields | None = Field(
        None, description=_fields("low_level_results", "`synthesized_answer` and `citations`"), examples=[["synthesized_answer"]]
    )
    prompt: str | None = Field(
        None,
        min_length=1,
        max_length=4000,
        description="prompt that replaces the built-in one; must contain {{passages}} and {{question}}",
    )

    def request(self) -> SearchRequest:
        """Return the search request of the body."""
        overrides = RequestOverrides(
            low_limit=self.low_limit,
            high_limit=self.high_limit,
            low=self.low_weight,
            high=self.high_weight,
            preset=self.preset,
        )
        return self._request(DUAL_LEVEL, overrides)
