"""Values of requests: dictionaries with these fields, and the names that a field accepts.

Written by `make client` from the OpenAPI description. Do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

CaseSource = Literal["upload", "graph", "answer", "question"]
DocumentState = Literal["pending", "processing", "ready", "partial", "failed", "unreadable", "cancelled", "deleting"]
ExperimentMetric = Literal["good", "refused", "latency_ms", "tokens"]
JobKind = Literal["ingest", "delete", "rebuild", "reconcile", "import", "raptor", "evaluate", "generate", "tune"]
JobState = Literal["queued", "running", "succeeded", "partial", "failed", "cancelled"]
Parameter = Literal["level_weights", "hybrid_weights", "auto_strategies", "confidence"]
ProposalStatus = Literal["measuring", "failed", "declined", "proposed", "accepted", "rolled_back"]
QuotaName = Literal[
    "requests_per_minute",
    "concurrent_requests",
    "documents",
    "chunks",
    "bytes",
    "jobs_waiting",
    "tokens_per_day",
    "tokens_per_month",
    "cost_per_day",
    "cost_per_month",
]
QuotaScope = Literal["tenant", "key"]
Rating = Literal["good", "bad"]
Scope = Literal["read", "write", "admin"]
TenantState = Literal["active", "importing", "suspended", "deleting"]
UsageGroup = Literal["day", "stage", "model", "key"]


class CaseRequest(TypedDict, total=False):
    """A question with its expected result. Evidence is given by chunk ids, quotes or documents, or as ``gold``."""

    question: Required[str]
    expected_answer: str | None
    must_say: Sequence[str]
    """texts that a right answer contains"""
    answerable: bool
    """false: a refusal is the right answer"""
    kind: str
    """kind of question, such as `fact`; results are reported by kind"""
    tags: Sequence[str]
    gold_chunk_ids: Sequence[str]
    gold_quotes: Sequence[str]
    """passages that a search should find, verbatim; with as many `gold_documents`, each in its document"""
    gold_documents: Sequence[str]
    """ids or keys of documents"""
    gold: Sequence[GoldRequest]
    """evidence as an export writes it"""
    filters: Mapping[str, Any] | None
    """filter of the search for this question"""


class Chunking(TypedDict, total=False):
    """Options of chunking. Sizes are in ``unit``."""

    strategy: Literal["recursive", "fixed", "structure", "ast", "parent_child", "semantic", "agentic", "proposition"]
    chunk_size: int | None
    """default: 220 tokens or 1000 characters; `semantic`: 512 or 2000; `ast` and `agentic`: 500 or 2000"""
    overlap: int | None
    """at most half of chunk_size; default: 32 tokens or 100 characters (`semantic`: 50 or 200; `ast` and `agentic`: 0), or
    that share of a smaller chunk_size
    """
    unit: Literal["tokens", "characters"]
    percentile: int
    """strategy `semantic`: percentile of the distances of sentences above which it cuts"""
    parent_size: int | None
    """strategies `parent_child` and `proposition`: largest parent, in the unit; default: 500 tokens or 2000 characters, at
    least twice chunk_size
    """


class CitedPassage(TypedDict, total=False):
    """A citation of an answer: the chunk, and the quote from it."""

    chunk_id: Required[str]
    quote: str


class ConfigurationRequest(TypedDict, total=False):
    """A way to search and answer, with the fields of a search. ``name`` identifies it in the run."""

    name: Required[str]
    strategy: str | None
    """see GET /strategies; default: DEFAULT_STRATEGY"""
    options: Mapping[str, Any] | None
    """options of the strategy"""
    rerank: Any
    """as in a search"""
    corrective: Any
    """as in a search"""
    weights: Weights | None
    generator: str | None
    """as in an answer; default: DEFAULT_GENERATOR"""


class EntityFieldBody(TypedDict, total=False):
    """A metadata field of documents whose values are names of entities."""

    name: Required[str]
    type: Required[str]
    """one of the entity types"""


class EntityTypeBody(TypedDict, total=False):
    """A type of entities."""

    name: Required[str]
    description: str
    """helps the language model to choose the type"""


class GenerateBody(TypedDict, total=False):
    """Generation of cases from the tenant's documents, by rules."""

    count: int
    """number of questions"""
    kinds: Sequence[Literal["single", "two_hops", "comparison", "theme", "time", "unanswerable"]] | None
    """kinds of questions; default: all"""
    seed: int
    """equal documents and seeds give equal questions"""


class GoldRequest(TypedDict, total=False):
    """One piece of evidence: a quote, a chunk, or a document by its id or key."""

    quote: str
    chunk_id: str | None
    document: str | None


class JudgeBody(TypedDict, total=False):
    """A model that compares the answers of the first configuration with those of the others, in both orders."""

    model: str | None
    """name of the model; default: LLM_MODEL"""


class Questions(TypedDict, total=False):
    """Options of synthetic questions: questions that a chunk answers, which search can find it by."""

    method: Required[Literal["off", "patterns", "model"]]
    """how they are made; `model`: by the language model"""
    per_chunk: int
    """the most of a chunk"""


class QuestionsBody(TypedDict, total=False):
    """Questions that users of the tenant asked, if it allowed to keep them (`QUESTION_LOG_ENABLED`)."""

    count: int
    """maximum number of different questions, the newest ones"""
    rating: Rating | None
    """only questions whose answers users rated so"""
    grounded: bool | None
    """only questions that were answered (true) or refused (false)"""


class RelationTypeBody(TypedDict, total=False):
    """A type of relationships."""

    name: Required[str]
    description: str
    sources: Sequence[str]
    """entity types that it leads from; empty: any"""
    targets: Sequence[str]
    """entity types that it leads to; empty: any"""
    functional: bool
    """a source has one target at a time; a newer fact retires an older one"""
    inverse_functional: bool
    """a target has one source at a time, as of `chief executive of`"""
    permanent: bool
    """the one target or source never changes: a different one is a contradiction"""


class SavedAnswer(TypedDict, total=False):
    """An answer to keep as a case: the question, what a right answer says, and the citations that support it."""

    question: Required[str]
    expected_answer: str | None
    must_say: Sequence[str]
    answerable: bool
    kind: str
    tags: Sequence[str]
    citations: Sequence[CitedPassage]


class StopBody(TypedDict, total=False):
    """When an experiment ends by itself."""

    metric: ExperimentMetric
    """what decides: `good` answers by feedback, `refused` answers, `latency_ms` or `tokens`"""
    cases: int
    """different questions after which it ends"""
    p: float
    """it ends if the always-valid p of the metric is at most this"""


class Turn(TypedDict, total=False):
    role: Required[Literal["user", "assistant"]]
    content: Required[str]


class Weights(TypedDict, total=False):
    """Shares of the two levels (``dual_level``, ``auto``), or of the two legs (``hybrid``).

    If only one of a pair is given, the other is 1 minus it. Shares are normalised to the sum 1. Shares override a preset.
    """

    low: float | None
    """share of chunks and entities (dual_level, auto)"""
    high: float | None
    """share of themes (dual_level, auto)"""
    preset: Literal["factoid", "conceptual", "balanced", "research", "auto"] | None
    """shares by name (dual_level, auto); auto: by the form of the question"""
    dense: float | None
    """share of embedding similarity (hybrid)"""
    sparse: float | None
    """share of BM25 (hybrid)"""
