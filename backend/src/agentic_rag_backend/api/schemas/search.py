"""Questions, and the results of retrieval and generation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, ConfigDict, Field, WithJsonSchema, field_validator

from agentic_rag_backend.api.schemas.base import Body, Number, Switch, View, Whole
from agentic_rag_backend.api.schemas.citations import CitationView, ClaimView
from agentic_rag_backend.api.schemas.contradictions import ContradictionView
from agentic_rag_backend.api.schemas.documents import Location, ParentView
from agentic_rag_backend.api.schemas.entities import CREATED_AT, EXPIRED_AT, INVALID_AT, VALID_AT, EntityView
from agentic_rag_backend.api.schemas.excerpts import ContextChunkView, MatchedChunkView, context_chunks, matched_chunks
from agentic_rag_backend.api.schemas.moments import AS_OF_DESCRIPTION, AsOf
from agentic_rag_backend.domain.query import FactHit, GraphStep, Hit, Retrieval, ThemeHit, Trace
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


class PassageSearch(Question):
    """Fields of every request that searches passages."""

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
        )


class SearchBody(PassageSearch):
    """A search."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "Who leads the harbour project?", "strategy": "graph", "filters": {"category": "minutes"}}]
        }
    )

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


class Turn(Body):
    role: Literal["user", "assistant"]
    content: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)


class AnswerBody(SearchBody):
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
    citation_policy: Literal["strict", "mark"] | None = Field(
        None,
        description="unsupported sentences: `strict` leaves them out, `mark` keeps them with the mark [unsupported]; "
        "default: `mark` for `standard`, otherwise `strict`",
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


class StepView(View):
    """A step of the path to a result, in the form of the steps of `POST /graph/paths` with names for entities.

    The last step is ``mentioned_in``: its target is the title of the result's document.
    """

    kind: Literal["relationship", "mention"]
    source: str = Field(description="where the relationship begins: name of an entity; of `mentions`: title of a document")
    source_id: str | None = Field(description="id of the entity; null: a document")
    relation: str = Field(description="type of the relationship; of a mention: `mentioned_in`, `mentions` or `mentioned_with`")
    target: str = Field(description="name of an entity; of `mentioned_in`: title of a document")
    target_id: str | None = Field(description="id of the entity; null: a document")
    fact: str | None = Field(description="the sentence that states the relationship; null: a mention")
    forward: bool = Field(description="whether the path leads from `source` to `target`")
    weight: float = Field(description="of a relationship: its own; of a mention: in (0, 1]")
    chunk_id: str | None = Field(description="the chunk that states the relationship, or has the mentions")
    document_id: str | None

    @classmethod
    def of(cls, step: GraphStep) -> StepView:
        """Return the view of a step."""
        return cls(
            kind=step.kind,
            source=step.source,
            source_id=step.source_id,
            relation=step.relation,
            target=step.target,
            target_id=step.target_id,
            fact=step.fact,
            forward=step.forward,
            weight=step.weight,
            chunk_id=step.chunk_id,
            document_id=step.document_id,
        )


class ResultView(View):
    """A chunk in the result."""

    id: str
    kind: Literal["chunk"] = "chunk"
    document_id: str
    ordinal: int = Field(description="position in the document, from 0")
    parent_id: str | None = Field(description="id of the parent around it (strategy `parent_child`)")
    title: str
    content: str
    parent: ParentView | None = Field(description="the passage around it, which an answer reads; one result a passage")
    matched_chunks: list[MatchedChunkView] = Field(
        default_factory=list, description="strategy `parent_child`: chunks of the passage that matched, best first"
    )
    context_chunks: list[ContextChunkView] = Field(
        default_factory=list, description="strategy `parent_child`: other chunks of the passage, in reading order"
    )
    score: float
    scores: dict[str, float]
    location: Location
    metadata: dict[str, Any]
    entities: list[EntityView]
    graph_path: list[StepView]
    matched_question: str | None = Field(None, description="the synthetic question by which search found the chunk")

    @classmethod
    def of(cls, hit: Hit) -> ResultView:
        """Return the view of a hit."""
        return cls(
            id=hit.id,
            document_id=hit.visible.chunk.document_id,
            ordinal=hit.visible.chunk.ordinal,
            parent_id=hit.visible.chunk.parent_id,
            title=hit.visible.document_title,
            content=hit.visible.chunk.text,
            parent=ParentView.of(hit.parent),
            matched_chunks=matched_chunks(hit),
            context_chunks=context_chunks(hit),
            score=hit.score,
            scores=dict(hit.scores),
            location=Location.of(hit.visible.chunk),
            metadata=dict(hit.visible.metadata),
            entities=[EntityView.of(entity) for entity in hit.entities],
            graph_path=[StepView.of(step) for step in hit.graph_path],
            matched_question=hit.matched_question,
        )


class FactView(View):
    id: str
    source: EntityView
    relation: str
    target: EntityView
    fact: str
    chunk_id: str
    document_id: str
    score: float
    valid_at: datetime | None = Field(description=VALID_AT)
    invalid_at: datetime | None = Field(description=INVALID_AT)
    created_at: datetime | None = Field(description=CREATED_AT)
    expired_at: datetime | None = Field(description=EXPIRED_AT)

    @classmethod
    def of(cls, fact: FactHit) -> FactView:
        """Return the view of a fact."""
        return cls(
            id=fact.id,
            source=EntityView.of(fact.source),
            relation=fact.relation,
            target=EntityView.of(fact.target),
            fact=fact.fact,
            chunk_id=fact.chunk_id,
            document_id=fact.document_id,
            score=fact.score,
            valid_at=fact.valid_at,
            invalid_at=fact.invalid_at,
            created_at=fact.created_at,
            expired_at=fact.expired_at,
        )


class ThemeView(View):
    """A community, or a node of the RAPTOR tree. Communities have ``entity_count``, nodes ``passage_count``."""

    type: Literal["community", "raptor"] = "community"
    id: str
    name: str
    summary: str
    keywords: list[str]
    entity_count: int
    score: float
    weighted_score: float | None = None
    level: int
    passage_count: int | None = None
    representatives: list[str] = Field(default_factory=list, description="its passages most similar to the question")

    @classmethod
    def of(cls, theme: ThemeHit, weight: float | None = None) -> ThemeView:
        """Return the view of a theme; ``weight`` is the high level's."""
        return cls(
            id=theme.id,
            name=theme.name,
            summary=theme.summary,
            keywords=list(theme.keywords),
            entity_count=theme.entity_count,
            score=theme.score,
            weighted_score=None if weight is None else theme.score * weight,
            level=theme.level,
            type=theme.kind,
            passage_count=theme.passage_count,
            representatives=list(theme.representatives),
        )


class TraceView(View):
    strategy: str
    methods_used: list[str]
    fusion: str | None
    fallback_used: bool
    fallback_reason: str | None
    processing_time_ms: dict[str, float]
    warnings: list[str]
    details: dict[str, Any]
    sufficient: bool | None = Field(
        None, description="strategy `corrective`: whether enough results are relevant; null: results are not graded"
    )
    cache: Literal["hit", "shared"] | None = Field(
        None,
        description="`hit`: results of an earlier equal search; `shared`: of a concurrent one; null: searched for this request",
    )

    @classmethod
    def of(cls, trace: Trace) -> TraceView:
        """Return the view of a trace."""
        return cls(
            strategy=trace.strategy,
            methods_used=list(trace.methods_used),
            fusion=trace.fusion,
            fallback_used=trace.fallback_used,
            fallback_reason=trace.fallback_reason,
            processing_time_ms=rounded(trace.processing_time_ms),
            warnings=list(trace.warnings),
            details=dict(trace.details),
            sufficient=trace.sufficient,
            cache=trace.cache,
        )


class SearchView(View):
    results: list[ResultView]
    facts: list[FactView]
    themes: list[ThemeView]
    contradictions: list[ContradictionView] = Field(description="if `options.contradictions`: those of a result or a fact")
    trace: TraceView

    @classmethod
    def of(cls, found: Retrieval) -> SearchView:
        """Return the view of a retrieval."""
        return cls(
            results=[ResultView.of(hit) for hit in found.hits],
            facts=[FactView.of(fact) for fact in found.facts],
            themes=[ThemeView.of(theme, found.weights.high if found.weights else None) for theme in found.themes],
            contradictions=[ContradictionView.of(each) for each in found.contradictions],
            trace=TraceView.of(found.trace),
        )


class LowLevelView(View):
    id: str
    content: str
    score: float
    weighted_score: float
    entities: list[EntityView]
    document_id: str
    title: str
    location: Location
    graph_path: list[StepView]
    matched_question: str | None = Field(None, description="the synthetic question by which search found the chunk")

    @classmethod
    def of(cls, hit: Hit, weight: float) -> LowLevelView:
        """Return the view of a low-level hit."""
        return cls(
            id=hit.id,
            content=hit.visible.chunk.text,
            score=hit.score,
            weighted_score=hit.score * weight,
            entities=[EntityView.of(entity) for entity in hit.entities],
            document_id=hit.visible.chunk.document_id,
            title=hit.visible.document_title,
            location=Location.of(hit.visible.chunk),
            graph_path=[StepView.of(step) for step in hit.graph_path],
            matched_question=hit.matched_question,
        )


class LevelWeightsView(View):
    low: float
    high: float


class DualLevelView(View):
    query: str
    low_level_results: list[LowLevelView]
    low_level_facts: list[FactView]
    high_level_results: list[ThemeView]
    synthesized_answer: str | None
    confidence: float
    grounded: bool
    citations: list[CitationView]
    claims: list[ClaimView]
    fallback_used: bool
    fallback_reason: str | None
    weights: LevelWeightsView
    processing_time_ms: dict[str, float]


def rounded(times: Mapping[str, float]) -> dict[str, float]:
    """Return milliseconds rounded to two decimals."""
    return {name: round(value, 2) for name, value in times.items()}
