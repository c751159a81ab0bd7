"""A retrieval request and its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from agentic_rag_backend.domain.contradictions import Contradiction
from agentic_rag_backend.domain.document import ParentPassage, VisibleChunk
from agentic_rag_backend.domain.filters import Filter
from agentic_rag_backend.domain.graph import EntityRef as EntityRef
from agentic_rag_backend.domain.graph import Finding
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.domain.tuning import NOT_TUNED, TunedValues
from agentic_rag_backend.domain.usage import Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LevelWeights:
    """Shares of the two levels, each in [0, 1], summing to 1."""

    low: float
    high: float


BALANCED = LevelWeights(0.6, 0.4)
"""Default weights."""


@dataclass(frozen=True, slots=True)
class LegWeights:
    """Shares of the dense and the sparse leg of hybrid search, each in [0, 1], summing to 1."""

    dense: float
    sparse: float

    def by_leg(self) -> dict[str, float]:
        """Return the shares by the leg names that fusion uses."""
        return {"dense": self.dense, "sparse": self.sparse}


def _current_time() -> datetime:
    return datetime.now(UTC)


class SeenVersions:
    """The document versions that a query has read.

    A query runs several reads, and a commit may happen between two of them. The first read of a document fixes its version,
    so that no answer mixes old and new text.
    """

    def __init__(self) -> None:
        self._by_document: dict[str, int] = {}
        self.valid_until: datetime | None = None
        """The earliest time at which a document that was read becomes invalid. None: none does."""

    def agree_on_version(self, document_id: str, version: int) -> bool:
        """Return whether this is the version that was read first. The first call for a document fixes its version."""
        return self._by_document.setdefault(document_id, version) == version

    def ends_at(self, time: datetime) -> None:
        """Record the time at which a document or fact that was read becomes invalid."""
        self.valid_until = time if self.valid_until is None else min(self.valid_until, time)

    @property
    def versions(self) -> Mapping[str, int]:
        """The versions that were read so far, by document. A copy."""
        return dict(self._by_document)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerank:
    """The reranking of one request.

    Attributes:
        name: name of the reranker.
        candidates: number of candidates that it scores, the best ones of the strategy. Further candidates stay behind them.
        top_n: maximum number of results. None: the request's limit applies alone.
        min_score: least score of a result, in [0, 1], in the scale of the reranker.
        timeout_s: time limit in seconds. After it, the results keep the order of the strategy.
        own_timeout: whether the request sets the time limit.
        options: options of the reranker.
    """

    name: str
    candidates: int
    top_n: int | None = None
    min_score: float = 0.0
    timeout_s: float = 5.0
    own_timeout: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The correction of a search.

    Attributes:
        threshold: least grade of a relevant result, in [0, 1].
        attempts: maximum number of searches with other wordings.
        min_relevant: number of relevant results that are sufficient.
        max_calls: maximum number of model calls; the default is three gradings and one rewriting.
    """

    threshold: float = 0.7
    attempts: int = 2
    min_relevant: int = 1
    max_calls: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One retrieval request. ``limit`` counts chunks (1–100); ``high_limit`` communities (1–100).

    ``min_score`` in [0, 1] is the least score of a result. ``least_candidates`` is set where a later stage needs more chunks than
    the results have.
    ``leg_weights`` None: the deployment's weights apply. ``as_of`` None: the request names no time, and results must be
    valid at ``asked_at``.
    """

    tenant: Tenant
    text: str
    limit: int = 5
    high_limit: int = 5
    min_score: float = 0.0
    least_candidates: int = 0
    weights: LevelWeights = BALANCED
    leg_weights: LegWeights | None = None
    tuned: TunedValues = NOT_TUNED
    """The tuned values that apply to this request: those that its strategy uses, and that the request does not set itself."""
    filters: Filter | None = None
    as_of: datetime | None = None
    asked_at: datetime = field(default_factory=_current_time)
    timeout_s: float | None = None
    """Time limit of the request in seconds, if it sets one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    rerank: Rerank | None = None
    """None keeps the order of the strategy."""
    corrective: Correction | None = None
    """None: other wordings are not searched, unless the strategy does so itself."""
    dual_level: bool = False
    """Whether dual-level retrieval is enabled for the tenant at this request."""
    synthetic_questions: bool = False
    """Whether strategies with both legs also search the synthetic questions of chunks."""
    embedding: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    """Unit vector that is searched instead of the vector of ``text``. BM25 and entity linking read ``text`` in either case."""
    not_meant: frozenset[str] = frozenset()
    """Ids of entities that have a name of the question, but that it does not mean."""
    session: str | None = None
    """Digest of the caller's API key and session id (`search_session.session_digest`), if the request has a session."""
    remember: bool = True
    """Whether the session keeps what this search finds."""
    diverse: bool = True
    """Whether `graph` prefers results that differ. A later stage that compares similar passages needs their plain scores."""
    cache: bool = True
    """Whether results of an earlier or concurrent equal query may be returned."""
    seen: SeenVersions = field(default_factory=SeenVersions, compare=False, repr=False)
    """Shared by all copies made with `dataclasses.replace`. A new request needs a new query."""

    @property
    def tenant_id(self) -> TenantId:
        """The tenant of every store call made for this query."""
        return self.tenant.id

    @property
    def candidates(self) -> int:
        """The number of chunks that a strategy finds, if there are as many. The last stage chooses the results among them."""
        return max(self.limit, self.least_candidates)

    def with_candidates(self, least: int) -> Query:
        """Return a copy that asks for at least ``least`` candidates."""
        return replace(self, least_candidates=max(least, self.least_candidates))

    @property
    def moment(self) -> datetime:
        """The time at which every result must be valid: ``as_of`` or, by default, the time of the request."""
        return self.as_of or self.asked_at


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphStep:
    """One step of the path to a chunk: a relationship of two entities, or a mention.

    ``source`` and ``target`` are the names of entities, with their ids. The target of ``mentioned_in`` and the source of
    ``mentions`` are titles of documents, without an id. ``chunk_id`` is the chunk that states the relationship (``fact``), or
    that has the mentions. ``forward`` is whether the path leads from ``source`` to ``target``.
    """

    source: str
    relation: str
    target: str
    weight: float
    chunk_id: str | None = None
    document_id: str | None = None
    kind: Literal["relationship", "mention"] = "mention"
    source_id: str | None = None
    target_id: str | None = None
    fact: str | None = None
    forward: bool = True


@dataclass(frozen=True, slots=True)
class MatchedChunk:
    """A chunk of a result's passage that the search matched, with its score in [0, 1]."""

    id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A chunk found. ``score`` in [0, 1] orders the list; ``scores`` holds its components.

    ``parent`` is the passage around it, if its document was cut with parents or the strategy reads around chunks. Other chunks of
    the passage are no hits. ``matched`` lists the chunks of the passage that matched, best first, if the strategy records them.
    """

    visible: VisibleChunk
    score: float
    scores: Mapping[str, float] = field(default_factory=dict)
    entities: tuple[EntityRef, ...] = ()
    graph_path: tuple[GraphStep, ...] = ()
    parent: ParentPassage | None = None
    matched_question: str | None = None
    """The chunk's synthetic question that is nearest to the query, if search found one."""
    matched: tuple[MatchedChunk, ...] = ()

    @property
    def id(self) -> str:
        """The chunk's id."""
        return self.visible.chunk.id


@dataclass(frozen=True, slots=True, kw_only=True)
class FactHit:
    """A relationship found, with one visible chunk that states it."""

    id: str
    source: EntityRef
    relation: str
    target: EntityRef
    fact: str
    chunk_id: str
    document_id: str
    score: float
    weight: float = 1.0
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    created_at: datetime | None = None
    expired_at: datetime | None = None
    """Times of `VisibleFact`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeHit:
    """A community or a tree node found. ``findings`` hold only statements whose chunks are visible now.

    ``rating`` in [0, 10] is a measure of how well documented it is, or a model's rating. For a tree node, ``passage_count``
    is the number of passages below it, and ``representatives`` are the passages nearest to the question.
    """

    id: str
    name: str
    summary: str
    keywords: tuple[str, ...]
    entity_count: int
    level: int
    generation: int
    score: float
    findings: tuple[Finding, ...] = ()
    rating: float = 0.0
    kind: Literal["community", "raptor"] = "community"
    passage_count: int | None = None
    representatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """How the results were found; ``meta`` and ``trace`` of a response are made from it.

    Attributes:
        fallbacks: reasons why the strategy used a fallback although nothing failed, such as an empty level.
        failures: the parts that failed. A strategy passes on the failures of its inner strategies.
        hidden: failures that may have hidden evidence, such as a store that did not answer. A refusal to answer would be wrong.
        processing_time_ms: milliseconds by stage.
        sufficient: whether enough results were graded as relevant. None: the strategy grades no results.
        cache: ``hit`` for results of an earlier equal query, ``shared`` for results of a concurrent one. None: searched for this
            query.
    """

    strategy: str
    methods_used: tuple[str, ...] = ()
    fusion: str | None = None
    fallbacks: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    processing_time_ms: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    sufficient: bool | None = None
    cache: Literal["hit", "shared"] | None = None

    @property
    def fallback_used(self) -> bool:
        """Whether the strategy used a fallback."""
        return bool(self.fallbacks or self.failures)

    @property
    def fallback_reason(self) -> str | None:
        """Reason for the fallback; None if there was none."""
        return "; ".join((*self.fallbacks, *self.failures)) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """Passages behind themes, nearest to the question first, and how well they answer it; see `Retrieval.relevance`."""

    hits: tuple[Hit, ...]
    relevance: float


@dataclass(frozen=True, slots=True)
class KnownBearer:
    """An entity that shares its name and that documents describe. ``documents`` are ids of documents that mean it."""

    entity: EntityRef
    documents: frozenset[str]


@dataclass(frozen=True, slots=True)
class SharedName:
    """A name of the question that several described entities have. ``decided``: the question does not mean all of them."""

    name: str
    decided: bool
    bearers: tuple[KnownBearer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """The result of a retriever: chunks, facts and themes, each best first, and a trace.

    ``backing`` is set if only themes were found. An answer uses it as evidence, but it is not part of the results.
    """

    hits: tuple[Hit, ...] = ()
    facts: tuple[FactHit, ...] = ()
    themes: tuple[ThemeHit, ...] = ()
    weights: LevelWeights | None = None
    backing: Backing | None = None
    relevance: float = 0.0
    """How well the best evidence answers the question, in [0, 1]. Comparable between questions, unlike a hit's score."""
    usage: Usage = field(default_factory=Usage)
    """Language model usage of the retrieval itself."""
    contradictions: tuple[Contradiction, ...] = ()
    """Contradictions with a chunk or a fact of the results, if the request asks for them."""
    shared_names: tuple[SharedName, ...] = ()
    """Names of the question that several entities have."""
    trace: Trace

    def with_warnings(self, warnings: tuple[str, ...]) -> Retrieval:
        """Return a copy with warnings about the request placed first."""
        if not warnings:
            return self
        return replace(self, trace=replace(self.trace, warnings=(*warnings, *self.trace.warnings)))
