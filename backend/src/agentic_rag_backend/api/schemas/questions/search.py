"""Results of retrieval: their passages, citations, checked sentences, facts and traces."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from agentic_rag_backend.api.doors.permalinks import passage_address
from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.api.schemas.documents.documents import Location, ParentView
from agentic_rag_backend.api.schemas.documents.places import FilePlace, file_place
from agentic_rag_backend.api.schemas.knowledge.entities import (
    CREATED_AT,
    EXPIRED_AT,
    INVALID_AT,
    VALID_AT,
    ContradictionView,
    EntityView,
)
from agentic_rag_backend.api.schemas.questions.passage_chunks import (
    ContextChunkView,
    MatchedChunkView,
    context_chunks,
    matched_chunks,
)
from agentic_rag_backend.application.questions import DualLevelResult
from agentic_rag_backend.domain.answer import CheckedClaim, Citation, ClaimStatus
from agentic_rag_backend.domain.query import FactHit, GraphStep, Hit, LevelWeights, Retrieval, ThemeHit, Trace

ADDRESS = "where people read the passage in the console, below PUBLIC_URL or the address of the request; null in a local program"


class CitationView(FilePlace):
    marker: int
    chunk_id: str
    document_id: str
    title: str
    quote: str
    start_char: int
    end_char: int
    url: str | None = Field(description=ADDRESS)

    @classmethod
    def of(cls, citation: Citation) -> CitationView:
        """Return the view of a citation."""
        return cls(
            marker=citation.marker,
            chunk_id=citation.chunk_id,
            document_id=citation.document_id,
            title=citation.title,
            quote=citation.quote,
            start_char=citation.start_char,
            end_char=citation.end_char,
            url=passage_address(citation.document_id, citation.chunk_id),
            **file_place(citation.regions),
        )


class ClaimView(View):
    text: str
    supported: bool
    status: ClaimStatus = Field(
        description="`unverified`: nothing could decide; `contradicted`: the passages state otherwise, or a language model found "
        "that they do not state it"
    )
    reason: str | None = Field(
        description="why it is not supported: unsupported, negated, number, name, modality, roles, quote or language"
    )
    markers: list[int]
    start_char: int | None = Field(description="place in `answer`, without markers; null if it was left out")
    end_char: int | None

    @classmethod
    def of(cls, claim: CheckedClaim) -> ClaimView:
        """Return the view of a checked sentence."""
        return cls(
            text=claim.text,
            supported=claim.supported,
            status=claim.status,
            reason=claim.reason,
            markers=list(claim.markers),
            start_char=claim.start_char,
            end_char=claim.end_char,
        )


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
    url: str | None = Field(description=ADDRESS)

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
            url=passage_address(hit.visible.chunk.document_id, hit.id),
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
            processing_time_ms=round_times(trace.processing_time_ms),
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
    def of(cls, retrieval: Retrieval) -> SearchView:
        """Return the view of a retrieval."""
        return cls(
            results=[ResultView.of(hit) for hit in retrieval.hits],
            facts=[FactView.of(fact) for fact in retrieval.facts],
            themes=[ThemeView.of(theme, retrieval.weights.high if retrieval.weights else None) for theme in retrieval.themes],
            contradictions=[ContradictionView.of(contradiction) for contradiction in retrieval.contradictions],
            trace=TraceView.of(retrieval.trace),
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
    answer_id: str | None = Field(description="names the answer in `POST /feedback`; null if `synthesize` is false")
    query: str
    low_level_results: list[LowLevelView]
    low_level_facts: list[FactView]
    high_level_results: list[ThemeView]
    synthesized_answer: str | None = Field(description="`answer` of `POST /answers`; null if `synthesize` is false")
    confidence: float
    grounded: bool
    citations: list[CitationView]
    claims: list[ClaimView]
    fallback_used: bool
    fallback_reason: str | None
    weights: LevelWeightsView
    processing_time_ms: dict[str, float]

    @classmethod
    def of(cls, query: str, result: DualLevelResult) -> DualLevelView:
        """Return the view of the results of both levels."""
        retrieval, answer = result.retrieval, result.answer
        weights = retrieval.weights or LevelWeights(0.0, 0.0)
        return cls(
            answer_id=answer.id if answer else None,
            query=query,
            low_level_results=[LowLevelView.of(hit, weights.low) for hit in retrieval.hits],
            low_level_facts=[FactView.of(fact) for fact in retrieval.facts],
            high_level_results=[ThemeView.of(theme, weights.high) for theme in retrieval.themes],
            synthesized_answer=answer.text if answer else None,
            confidence=answer.confidence if answer else retrieval.relevance,
            grounded=answer.grounded if answer else False,
            citations=[CitationView.of(citation) for citation in answer.citations] if answer else [],
            claims=[ClaimView.of(claim) for claim in answer.claims] if answer else [],
            fallback_used=retrieval.trace.fallback_used,
            fallback_reason=retrieval.trace.fallback_reason,
            weights=LevelWeightsView(low=weights.low, high=weights.high),
            processing_time_ms=dict(result.processing_time_ms),
        )


def round_times(times: Mapping[str, float]) -> dict[str, float]:
    """Return milliseconds rounded to two decimals."""
    return {name: round(value, 2) for name, value in times.items()}
