"""Results of the server. A field that a response lacks raises AttributeError when it is read.

Written by `make client` from the OpenAPI description. Do not edit.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from pydantic import Field

from agentic_rag_client.model import ABSENT, Model
from agentic_rag_client.parameters import (
    CaseSource,
    DocumentState,
    ExperimentMetric,
    JobKind,
    JobState,
    Parameter,
    ProposalStatus,
    QuotaName,
    QuotaScope,
    Rating,
    Scope,
    TenantState,
    UsageGroup,
)
from agentic_rag_client.prompts import AnswerForms, SearchForms


class AmbiguousName(Model):
    """A name that several entities have."""

    name: str = ABSENT
    entities: list[Entity] = ABSENT


class Answer(AnswerForms, Model):
    id: str = ABSENT
    answer: str = ABSENT
    introduction: str = ABSENT
    citations: list[Citation] = ABSENT
    nearest: list[Citation] = ABSENT
    confidence: float = ABSENT
    grounded: bool = ABSENT
    claims: list[Claim] = ABSENT
    verification: Verification | None = ABSENT
    contradictions: list[Contradiction] = ABSENT
    themes: list[Theme] = ABSENT
    sources: list[Result] = ABSENT
    usage: AnswerUsage = ABSENT
    generator: str = ABSENT
    model: str = ABSENT
    trace: Trace = ABSENT


class AnswerUsage(Model):
    prompt_tokens: int = ABSENT
    completion_tokens: int = ABSENT
    calls: int = ABSENT
    failed_calls: int = ABSENT
    cost: float | None = ABSENT


class AppliedChunking(Model):
    """The options with all defaults."""

    strategy: str = ABSENT
    chunk_size: int = ABSENT
    overlap: int = ABSENT
    unit: str = ABSENT
    percentile: int = ABSENT
    parent_size: int = ABSENT


class AskedQuestion(Model):
    """A question that was kept, and how it was answered."""

    id: str = ABSENT
    question: str = ABSENT
    strategy: str = ABSENT
    grounded: bool = ABSENT
    confidence: float = ABSENT
    asked_at: datetime = ABSENT


class Attachment(Model):
    """The document of an attachment."""

    id: str = ABSENT
    place: str | None = ABSENT
    title: str = ABSENT
    state: DocumentState | str = ABSENT


class Calibration(Model):
    """The scale of the embedder's cosines. ``reason`` says why the default is used."""

    encoder: str = ABSENT
    source: Literal["fitted", "measured", "default"] | str = ABSENT
    reason: str | None = ABSENT


class Case(Model):
    id: str = ABSENT
    question: str = ABSENT
    expected_answer: str | None = ABSENT
    must_say: list[str] = ABSENT
    answerable: bool = ABSENT
    kind: str = ABSENT
    tags: list[str] = ABSENT
    gold: list[Gold] = ABSENT
    filters: dict[str, Any] | None = ABSENT
    source: CaseSource | str = ABSENT
    feedback: Ratings = ABSENT


class CheckedQuestion(Model):
    question: str = ABSENT
    answer: str = ABSENT
    grounded: bool = ABSENT
    citations: list[Citation] = ABSENT


class Chunk(Model):
    id: str = ABSENT
    document_id: str = ABSENT
    version: int = ABSENT
    ordinal: int = ABSENT
    parent_id: str | None = ABSENT
    title: str = ABSENT
    content: str = ABSENT
    location: Location = ABSENT
    size_tokens: int = ABSENT
    statements: list[str] = ABSENT
    metadata: dict[str, Any] = ABSENT
    questions: list[Question] = Field(default_factory=list)


class ChunkExtraction(Model):
    """Knowledge that an extraction finds in a chunk. Names are not resolved to entities of the graph."""

    chunk_id: str = ABSENT
    document_id: str = ABSENT
    extraction: str = ABSENT
    entities: list[FoundEntity] = ABSENT
    relationships: list[FoundRelationship] = ABSENT
    rejected: int = ABSENT
    failure: Failure | None = ABSENT


class ChunkInDocument(Model):
    """A chunk with its neighbours, the parent around it, and the knowledge that the graph has from it."""

    id: str = ABSENT
    document_id: str = ABSENT
    version: int = ABSENT
    ordinal: int = ABSENT
    parent_id: str | None = ABSENT
    title: str = ABSENT
    content: str = ABSENT
    location: Location = ABSENT
    size_tokens: int = ABSENT
    statements: list[str] = ABSENT
    metadata: dict[str, Any] = ABSENT
    questions: list[Question] = Field(default_factory=list)
    previous_id: str | None = ABSENT
    next_id: str | None = ABSENT
    parent: Parent | None = ABSENT
    entities: list[Entity] = ABSENT
    relationships: list[Relationship] = ABSENT


class Citation(Model):
    page: int | None = ABSENT
    page_label: str | None = ABSENT
    bbox: tuple[float, float, float, float] | None = ABSENT
    sheet: str | None = ABSENT
    cells: str | None = ABSENT
    regions: list[Region] = ABSENT
    marker: int = ABSENT
    chunk_id: str = ABSENT
    document_id: str = ABSENT
    title: str = ABSENT
    quote: str = ABSENT
    start_char: int = ABSENT
    end_char: int = ABSENT
    url: str | None = ABSENT


class Claim(Model):
    text: str = ABSENT
    supported: bool = ABSENT
    status: Literal["supported", "unverified", "contradicted"] | str = ABSENT
    reason: str | None = ABSENT
    markers: list[int] = ABSENT
    start_char: int | None = ABSENT
    end_char: int | None = ABSENT


class CommunitiesStatus(Model):
    generation: int = ABSENT
    stale: bool = ABSENT
    built_at: datetime | None = ABSENT


class Community(Model):
    """A community. Parts that rest on passages that are no longer visible are withheld."""

    id: str = ABSENT
    name: str = ABSENT
    summary: str = ABSENT
    keywords: list[str] = ABSENT
    findings: list[Finding] = ABSENT
    entity_count: int = ABSENT
    level: int = ABSENT
    parent: str | None = ABSENT
    generation: int = ABSENT
    rating: float = ABSENT
    sources: list[Source] = ABSENT
    stale: bool = ABSENT


class CommunityStatus(Model):
    """State of the communities, and figures of their last rebuild."""

    generation: int = ABSENT
    stale: bool = ABSENT
    built_at: datetime | None = ABSENT
    last_job: Job | None = ABSENT


class Connection(Model):
    """What connects two entities: a relationship, or a chunk that mentions both.

    ``relation``, ``fact`` and ``relationship`` of a shared mention are null.
    """

    kind: Literal["relationship", "mention"] | str = ABSENT
    source: Entity = ABSENT
    relation: str | None = ABSENT
    target: Entity = ABSENT
    fact: str | None = ABSENT
    weight: float = ABSENT
    chunk_id: str = ABSENT
    document_id: str = ABSENT
    relationship: Relationship | None = ABSENT


class ContextChunk(Model):
    """A chunk of a result's passage that is read around the matched ones."""

    id: str = ABSENT
    ordinal: int = ABSENT
    start_char: int = ABSENT
    end_char: int = ABSENT


class Contradiction(Model):
    """Two statements that cannot both be true."""

    id: str = ABSENT
    kind: Literal["denial", "exclusive", "date", "number"] | str = ABSENT
    about: Entity | None = ABSENT
    subject: str = ABSENT
    entity_a: Entity | None = ABSENT
    entity_b: Entity | None = ABSENT
    a: Side = ABSENT
    b: Side = ABSENT
    reason: str = ABSENT
    confidence: float = ABSENT


class Dataset(Model):
    id: str = ABSENT
    name: str = ABSENT
    version: int = ABSENT
    case_count: int = ABSENT
    kinds: dict[str, int] = ABSENT
    job_id: str | None = ABSENT
    created_at: datetime = ABSENT
    updated_at: datetime = ABSENT


class DeletedDocument(Model):
    document_id: str = ABSENT
    job_id: str = ABSENT


class DeletedDocuments(Model):
    """Documents that are now hidden, each with the job that removes it."""

    count: int = ABSENT
    documents: list[DeletedDocument] = ABSENT
    remaining: bool = ABSENT


class DeletedTenant(Model):
    """Receipt with the removed numbers by store and table. The state is ``deleting`` while data is still being removed."""

    id: str = ABSENT
    state: Literal["deleted", "deleting"] | str = ABSENT
    removed: dict[str, int] = ABSENT


class Document(Model):
    id: str = ABSENT
    key: str | None = ABSENT
    title: str = ABSENT
    state: DocumentState | str = ABSENT
    version: int = ABSENT
    latest_version: int = ABSENT
    content_hash: str = ABSENT
    media_type: str = ABSENT
    size_bytes: int = ABSENT
    metadata: dict[str, Any] = ABSENT
    chunk_count: int = ABSENT
    created_at: datetime = ABSENT
    updated_at: datetime = ABSENT
    failures: list[Failure] = ABSENT
    job_id: str | None = ABSENT
    parent_id: str | None = ABSENT
    place: str | None = ABSENT


class DocumentDetail(Model):
    """A document with the documents of its attachments."""

    id: str = ABSENT
    key: str | None = ABSENT
    title: str = ABSENT
    state: DocumentState | str = ABSENT
    version: int = ABSENT
    latest_version: int = ABSENT
    content_hash: str = ABSENT
    media_type: str = ABSENT
    size_bytes: int = ABSENT
    metadata: dict[str, Any] = ABSENT
    chunk_count: int = ABSENT
    created_at: datetime = ABSENT
    updated_at: datetime = ABSENT
    failures: list[Failure] = ABSENT
    job_id: str | None = ABSENT
    parent_id: str | None = ABSENT
    place: str | None = ABSENT
    attachments: list[Attachment] = Field(default_factory=list)


class Dropped(Model):
    by: Literal["state", "filters", "as_of", "legs", "limit", "min_score", "strategy"] | str = ABSENT
    detail: str = ABSENT


class DualLevel(Model):
    answer_id: str | None = ABSENT
    query: str = ABSENT
    low_level_results: list[LowLevel] = ABSENT
    low_level_facts: list[Fact] = ABSENT
    high_level_results: list[Theme] = ABSENT
    synthesized_answer: str | None = ABSENT
    confidence: float = ABSENT
    grounded: bool = ABSENT
    citations: list[Citation] = ABSENT
    claims: list[Claim] = ABSENT
    fallback_used: bool = ABSENT
    fallback_reason: str | None = ABSENT
    weights: LevelWeights = ABSENT
    processing_time_ms: dict[str, float] = ABSENT


class DualLevelStatus(Model):
    enabled: bool = ABSENT
    low_weight: float = ABSENT
    high_weight: float = ABSENT
    auto_weights: bool = ABSENT
    low_limit: int = ABSENT
    high_limit: int = ABSENT
    synthesis_model: str = ABSENT
    synthesis_temperature: float = ABSENT


class EditedEntity(Model):
    """An entity that an edit names, under its name at that time."""

    id: str = ABSENT
    name: str = ABSENT


class Entity(Model):
    id: str = ABSENT
    name: str = ABSENT
    type: str = ABSENT
    description: str = ""


class EntityDetail(Model):
    """An entity with its names, chunks and relationships, of visible documents only."""

    id: str = ABSENT
    name: str = ABSENT
    type: str = ABSENT
    description: str = ""
    names: list[str] = ABSENT
    same_name: list[Entity] = Field(default_factory=list)
    mention_count: int = ABSENT
    documents: list[MentioningDocument] = ABSENT
    chunks: list[Mention] = ABSENT
    relationships: list[EntityRelationship] = ABSENT
    more_relationships: bool = ABSENT


class EntityField(Model):
    """A metadata field of documents whose values are names of entities."""

    name: str = ABSENT
    type: str = ABSENT


class EntityItem(Model):
    """An entity of a list."""

    id: str = ABSENT
    name: str = ABSENT
    type: str = ABSENT
    description: str = ""
    mention_count: int = ABSENT
    match: Literal["whole", "beginning", "word"] | str | None = None


class EntityRelationship(Model):
    """A relationship of one entity."""

    id: str = ABSENT
    source: Entity = ABSENT
    relation: str = ABSENT
    target: Entity = ABSENT
    fact: str = ABSENT
    chunk_id: str = ABSENT
    document_id: str = ABSENT
    weight: float = ABSENT
    valid_at: datetime | None = ABSENT
    invalid_at: datetime | None = ABSENT
    created_at: datetime | None = ABSENT
    expired_at: datetime | None = ABSENT
    passages: list[Statement] = ABSENT
    direction: Literal["out", "in"] | str = ABSENT
    other: Entity = ABSENT


class EntityType(Model):
    """A type of entities."""

    name: str = ABSENT
    description: str = ABSENT


class Estimate(Model):
    cases: int = ABSENT
    configurations: int = ABSENT
    questions: int = ABSENT
    comparisons: int = ABSENT
    prompt_tokens: int = ABSENT
    completion_tokens: int = ABSENT
    cost: float | None = ABSENT
    basis: str = ABSENT


class Example(Model):
    """A labelled document that voted."""

    document_id: str = ABSENT
    chunk_id: str = ABSENT
    title: str = ABSENT
    labels: list[str] = ABSENT
    score: float = ABSENT
    text: str = ABSENT


class Experiment(Model):
    """An experiment. Only `GET /evaluation/experiments/{id}` and `stop` have the ``result``."""

    id: str = ABSENT
    name: str = ABSENT
    state: Literal["running", "stopped"] | str = ABSENT
    configurations: list[dict[str, Any]] = ABSENT
    share: float = ABSENT
    stop: StopBody = ABSENT
    created_at: datetime = ABSENT
    created_by: str = ABSENT
    stopped_at: datetime | None = ABSENT
    stopped_because: str | None = ABSENT
    stopped_by: str | None = ABSENT
    result: dict[str, Any] | None = ABSENT


class Explain(Model):
    """``rank`` is the document's rank in the result, up to 100. ``returned``: it is within ``limit`` and ``min_score``."""

    document_id: str = ABSENT
    title: str = ABSENT
    state: str = ABSENT
    chunks: int = ABSENT
    strategy: str = ABSENT
    limit: int = ABSENT
    returned: bool = ABSENT
    rank: int | None = ABSENT
    legs: list[LegRank] = ABSENT
    dropped_by: list[Dropped] = ABSENT
    best: Result | None = ABSENT
    themes: list[ThemeName] = ABSENT
    trace: Trace = ABSENT


class ExtractionMethod(Model):
    """A method of extraction that a document may ask for. ``why_not``: the reason if it cannot be used."""

    name: str = ABSENT
    available: bool = ABSENT
    why_not: str | None = ABSENT


class Fact(Model):
    id: str = ABSENT
    source: Entity = ABSENT
    relation: str = ABSENT
    target: Entity = ABSENT
    fact: str = ABSENT
    chunk_id: str = ABSENT
    document_id: str = ABSENT
    score: float = ABSENT
    valid_at: datetime | None = ABSENT
    invalid_at: datetime | None = ABSENT
    created_at: datetime | None = ABSENT
    expired_at: datetime | None = ABSENT


class Failure(Model):
    stage: str = ABSENT
    code: str = ABSENT
    message: str = ABSENT
    chunk_id: str | None = None


class Feedback(Model):
    """Feedback, and how its answer was made."""

    id: str = ABSENT
    answer_id: str = ABSENT
    rating: Rating | str = ABSENT
    citation: int | None = ABSENT
    result: str | None = ABSENT
    chunk_id: str | None = ABSENT
    reason: str | None = ABSENT
    correction: str | None = ABSENT
    question: str | None = ABSENT
    texts_removed: bool = ABSENT
    key_id: str = ABSENT
    strategy: str = ABSENT
    generator: str = ABSENT
    confidence: float = ABSENT
    grounded: bool = ABSENT
    created_at: datetime = ABSENT
    updated_at: datetime = ABSENT


class Finding(Model):
    statement: str = ABSENT
    sources: list[Source] = ABSENT


class Flag(Model):
    name: str = ABSENT
    value: bool | float = ABSENT
    default: bool | float = ABSENT
    source: Literal["default", "environment", "tenant", "tuning"] | str = ABSENT
    description: str = ABSENT


class FoundEntity(Model):
    """A name of the chunk."""

    name: str = ABSENT
    type: str = ABSENT
    aliases: list[str] = ABSENT
    count: int = ABSENT
    about: bool = ABSENT


class FoundRelationship(Model):
    """A relationship between two names."""

    source: str = ABSENT
    relation: str = ABSENT
    target: str = ABSENT
    fact: str = ABSENT
    confidence: float = ABSENT
    valid_at: str | None = ABSENT
    invalid_at: str | None = ABSENT


class Gold(Model):
    quote: str = ABSENT
    chunk_id: str | None = ABSENT
    document: str | None = ABSENT


class GraphEdit(Model):
    """An edit of the graph, which stays in effect for later documents until it is undone."""

    number: int = ABSENT
    kind: Literal["merge", "split", "rename", "delete"] | str = ABSENT
    entity: EditedEntity = ABSENT
    entities: list[EditedEntity] = ABSENT
    document_ids: list[str] = ABSENT
    names: list[str] = ABSENT
    new_entity_id: str | None = ABSENT
    name: str | None = ABSENT
    type: str | None = ABSENT
    reason: str = ABSENT
    created_at: datetime = ABSENT
    undone_at: datetime | None = ABSENT
    applied: bool = ABSENT


class GraphNode(Model):
    """An entity of a neighbourhood."""

    id: str = ABSENT
    name: str = ABSENT
    type: str = ABSENT
    description: str = ""
    hops: int = ABSENT
    mention_count: int = ABSENT
    x: float | None = None
    y: float | None = None


class GroupUsage(Model):
    """Usage of one group."""

    calls: int = ABSENT
    failed_calls: int = ABSENT
    prompt_tokens: int = ABSENT
    completion_tokens: int = ABSENT
    cost: float | None = ABSENT
    known_cost: float = ABSENT
    unpriced_calls: int = ABSENT
    requests: int = ABSENT
    group: str = ABSENT


class ImportAccepted(Model):
    """A queued import. The job belongs to the tenant."""

    tenant_id: str = ABSENT
    job_id: str = ABSENT
    state: JobState | str = ABSENT


class IngestionEstimate(Model):
    """What models would cost to ingest the document, except synthetic questions and later summaries."""

    extraction: str = ABSENT
    model_calls: int = ABSENT
    prompt_tokens: int = ABSENT
    completion_tokens: int = ABSENT
    embedding_tokens: int = ABSENT
    cost: float | None = ABSENT


class Job(Model):
    """A job: ``done`` of ``total`` units of ``stage``, and its result or error."""

    id: str = ABSENT
    kind: JobKind | str = ABSENT
    state: JobState | str = ABSENT
    document_id: str | None = ABSENT
    stage: str = ABSENT
    done: int = ABSENT
    total: int = ABSENT
    message: str = ABSENT
    attempt: int = ABSENT
    cancel_requested: bool = ABSENT
    error: dict[str, Any] | None = ABSENT
    result: dict[str, Any] | None = ABSENT
    created_at: datetime = ABSENT
    updated_at: datetime = ABSENT
    started_at: datetime | None = ABSENT
    finished_at: datetime | None = ABSENT


class JobAccepted(Model):
    """A queued job."""

    job_id: str = ABSENT
    state: JobState | str = ABSENT


class Key(Model):
    id: str = ABSENT
    name: str = ABSENT
    prefix: str | None = ABSENT
    scopes: list[Scope | str] = ABSENT
    created_at: datetime = ABSENT
    expires_at: datetime | None = ABSENT
    last_used_at: datetime | None = ABSENT
    replaced_by: str | None = ABSENT
    revoked_at: datetime | None = ABSENT
    filter: dict[str, Any] | None = ABSENT
    quota: dict[str, int | float | None] = ABSENT
    key: str | None = None


class Label(Model):
    """The label of a text."""

    label: str | None = ABSENT
    confidence: float = ABSENT
    method: Literal["votes", "model"] | str = ABSENT
    strategy: str = ABSENT
    votes: list[Vote] = ABSENT
    examples: list[Example] = ABSENT


class LastReconciliation(Model):
    """Figures of the last finished comparison."""

    finished_at: datetime = ABSENT
    repair: bool = ABSENT
    found: int = ABSENT
    mended: int = ABSENT
    skipped: int = ABSENT
    unmendable: int = ABSENT
    withheld: int = ABSENT


class LegRank(Model):
    """Rank of the document's best chunk in one leg, without the request's filters. Null beyond the first 1,000 chunks."""

    leg: str = ABSENT
    rank: int | None = ABSENT
    score: float | None = ABSENT
    chunk_id: str | None = ABSENT


class LevelWeights(Model):
    low: float = ABSENT
    high: float = ABSENT


class Live(Model):
    """The process responds."""

    status: Literal["ok"] | str = ABSENT


class Location(Model):
    page: int | None = ABSENT
    page_label: str | None = ABSENT
    bbox: tuple[float, float, float, float] | None = ABSENT
    sheet: str | None = ABSENT
    cells: str | None = ABSENT
    regions: list[Region] = ABSENT
    start_char: int = ABSENT
    end_char: int = ABSENT
    start_line: int = ABSENT
    end_line: int = ABSENT
    path: list[str] = ABSENT
    header: str = ABSENT
    functions: list[str] = ABSENT
    function: str | None = None


class LowLevel(Model):
    id: str = ABSENT
    content: str = ABSENT
    score: float = ABSENT
    weighted_score: float = ABSENT
    entities: list[Entity] = ABSENT
    document_id: str = ABSENT
    title: str = ABSENT
    location: Location = ABSENT
    graph_path: list[Step] = ABSENT
    matched_question: str | None = None


class MatchedChunk(Model):
    """A chunk of a result's passage that the search matched."""

    id: str = ABSENT
    ordinal: int = ABSENT
    start_char: int = ABSENT
    end_char: int = ABSENT
    score: float = ABSENT


class Mention(Model):
    """A chunk that mentions an entity."""

    id: str = ABSENT
    document_id: str = ABSENT
    title: str = ABSENT
    path: list[str] = ABSENT


class MentioningDocument(Model):
    """A document whose chunks mention an entity."""

    id: str = ABSENT
    title: str = ABSENT
    chunk_count: int = ABSENT


class MetricMean(Model):
    """Scores of one metric."""

    count: int = ABSENT
    computed: int = ABSENT
    mean: float = ABSENT
    minimum: float = ABSENT
    maximum: float = ABSENT


class ModelLimits(Model):
    """What the server of a language model refuses, and the limits that it stated. This process learned them from errors.

    ``refused``: features with the seconds until they are tried again.
    """

    model: str = ABSENT
    refused: dict[str, int] = ABSENT
    window_tokens: int | None = ABSENT
    reply_tokens: int | None = ABSENT
    reasoning_tokens: int = ABSENT


class Neighbourhood(Model):
    nodes: list[GraphNode] = ABSENT
    edges: list[Connection] = ABSENT
    bounded: bool = ABSENT


class Ocr(Model):
    """Recognition of text in pictures by this process. ``reason``: why there is none, and how to change it."""

    available: bool = ABSENT
    engine: str | None = ABSENT
    languages: list[str] = ABSENT
    installed_languages: list[str] = ABSENT
    reason: str | None = ABSENT


class Ontology(Model):
    """The ontology of a tenant. ``source`` says whether the tenant has set it."""

    entity_types: list[EntityType] = ABSENT
    relation_types: list[RelationType] = ABSENT
    entity_fields: list[EntityField] = ABSENT
    source: str = ABSENT


class Outcome(Model):
    """The measures of one case in one configuration."""

    configuration: str = ABSENT
    case_id: str = ABSENT
    kind: str = ABSENT
    tags: list[str] = ABSENT
    measures: dict[str, float] = ABSENT
    times_ms: dict[str, float] = ABSENT
    documents: list[str] = ABSENT
    chunks: list[str] = ABSENT
    confidence: float | None = ABSENT
    prompt_tokens: int = ABSENT
    completion_tokens: int = ABSENT
    calls: int = ABSENT
    cost: float | None = ABSENT
    gold_missing: int = ABSENT
    error: str | None = ABSENT


class OwnTenant(Model):
    """The caller's tenant, with the use of its limits and of the limits of the key."""

    id: str = ABSENT
    name: str = ABSENT
    state: TenantState | str = ABSENT
    labels: dict[str, str] = ABSENT
    quota: dict[str, int | float | None] = ABSENT
    created_at: datetime = ABSENT
    limits: list[QuotaUse] = ABSENT


class Page(Model):
    """A page with the place of each line. ``visible_box`` and ``rotation`` say which part of the page its picture shows."""

    document_id: str = ABSENT
    page: int = ABSENT
    page_label: str | None = ABSENT
    content: str = ABSENT
    lines: list[PageLine] = ABSENT
    visible_box: tuple[float, float, float, float] | None = ABSENT
    rotation: int | None = ABSENT


class PageLine(Model):
    text: str = ABSENT
    start_char: int = ABSENT
    end_char: int = ABSENT
    bbox: tuple[float, float, float, float] | None = ABSENT


class Parent(Model):
    """The parent around a chunk. Its offsets are those of the document's text."""

    id: str = ABSENT
    start_char: int = ABSENT
    end_char: int = ABSENT
    content: str = ABSENT


class Path(Model):
    """A path. No entity comes twice, and no two paths have the same entities in the same order."""

    score: float = ABSENT
    hops: int = ABSENT
    entities: list[Entity] = ABSENT
    steps: list[PathStep] = ABSENT


class PathStep(Model):
    """A step of a path. The path may lead from ``source`` to ``target`` or back."""

    kind: Literal["relationship", "mention"] | str = ABSENT
    source: Entity = ABSENT
    relation: str | None = ABSENT
    target: Entity = ABSENT
    fact: str | None = ABSENT
    weight: float = ABSENT
    chunk_id: str = ABSENT
    document_id: str = ABSENT
    relationship: Relationship | None = ABSENT
    forward: bool = ABSENT
    others: list[Relationship] = ABSENT


class Paths(Model):
    sources: list[Entity] = ABSENT
    targets: list[Entity] = ABSENT
    ambiguous: list[AmbiguousName] = ABSENT
    paths: list[Path] = ABSENT
    bounded: bool = ABSENT


class Preview(Model):
    """The chunks that a document would have. Nothing was stored."""

    media_type: str = ABSENT
    characters: int = ABSENT
    chunking: AppliedChunking = ABSENT
    count: int = ABSENT
    size_tokens: int = ABSENT
    chunks: list[PreviewedChunk] = ABSENT
    warnings: list[str] = ABSENT
    failures: list[Failure] = ABSENT
    usage: Usage = ABSENT
    ingestion: IngestionEstimate | None = ABSENT


class PreviewedChunk(Model):
    ordinal: int = ABSENT
    parent_id: str | None = ABSENT
    content: str = ABSENT
    size_tokens: int = ABSENT
    statements: list[str] = ABSENT
    location: Location = ABSENT


class Proposal(Model):
    """A proposal. ``result`` is null until its job has ended; `GET /jobs/{job_id}` shows the progress."""

    id: str = ABSENT
    status: ProposalStatus | str = ABSENT
    datasets: list[str] = ABSENT
    feedback: bool = ABSENT
    parameters: list[Parameter | str] = ABSENT
    metric: str = ABSENT
    k: int = ABSENT
    seed: int = ABSENT
    job_id: str = ABSENT
    state: JobState | str = ABSENT
    done: int = ABSENT
    total: int = ABSENT
    error: dict[str, Any] | None = ABSENT
    created_at: datetime = ABSENT
    finished_at: datetime | None = ABSENT
    values: dict[str, Any] | None = ABSENT
    result: dict[str, Any] | None = ABSENT
    accepted_at: datetime | None = ABSENT
    accepted_by: str | None = ABSENT
    rolled_back_at: datetime | None = ABSENT
    rolled_back_by: str | None = ABSENT
    warnings: list[str] = ABSENT


class Question(Model):
    """A synthetic question that the chunk answers."""

    text: str = ABSENT
    source: str = ABSENT


class QuestionsForgotten(Model):
    questions: int = ABSENT


class Quota(Model):
    """The limits that were set, by name, and the use of all limits that apply."""

    quota: dict[str, int | float | None] = ABSENT
    limits: list[QuotaUse] = ABSENT


class QuotaUse(Model):
    """The use of a limit."""

    name: QuotaName | str = ABSENT
    scope: QuotaScope | str = ABSENT
    limit: int | float = ABSENT
    used: int | float = ABSENT
    resets_at: datetime | None = ABSENT
    warning: bool = ABSENT


class RaptorNode(Model):
    """A node of the tree. Parts that rest on passages that are no longer visible are withheld."""

    id: str = ABSENT
    name: str = ABSENT
    summary: str = ABSENT
    keywords: list[str] = ABSENT
    findings: list[Finding] = ABSENT
    level: int = ABSENT
    passage_count: int = ABSENT
    children: list[str] = ABSENT
    generation: int = ABSENT
    sources: list[Source] = ABSENT
    stale: bool = ABSENT
    written_by: str = ABSENT


class Ratings(Model):
    good: int = ABSENT
    bad: int = ABSENT


class Ready(Model):
    """Whether requests can be served, with the state of each store and model."""

    status: Literal["ok", "degraded", "unavailable"] | str = ABSENT
    stores: dict[str, str] = ABSENT
    models: dict[str, str] = ABSENT
    workers: int | None = ABSENT
    reindex_required: bool = False


class ReconcileStatus(Model):
    """Interval of the comparisons, and the last comparison. The job's `result` has the counts by kind."""

    interval_s: float = ABSENT
    last_job: Job | None = ABSENT


class RecordedScores(Model):
    """The recorded scores. No text of the request is kept."""

    id: str = ABSENT
    scores: dict[str, Score] = ABSENT
    unknown_chunks: int = ABSENT


class Region(Model):
    start_char: int = ABSENT
    end_char: int = ABSENT
    page: int | None = ABSENT
    page_label: str | None = ABSENT
    bbox: tuple[float, float, float, float] | None = ABSENT
    sheet: str | None = ABSENT
    cells: str | None = ABSENT


class RelationType(Model):
    """A type of relationships."""

    name: str = ABSENT
    description: str = ABSENT
    sources: list[str] = ABSENT
    targets: list[str] = ABSENT
    functional: bool = ABSENT
    inverse_functional: bool = ABSENT
    permanent: bool = ABSENT


class Relationship(Model):
    """A relationship, with the passages that state it."""

    id: str = ABSENT
    source: Entity = ABSENT
    relation: str = ABSENT
    target: Entity = ABSENT
    fact: str = ABSENT
    chunk_id: str = ABSENT
    document_id: str = ABSENT
    weight: float = ABSENT
    valid_at: datetime | None = ABSENT
    invalid_at: datetime | None = ABSENT
    created_at: datetime | None = ABSENT
    expired_at: datetime | None = ABSENT
    passages: list[Statement] = ABSENT


class Reranker(Model):
    """A reranker. ``options`` is the JSON Schema of its options; ``max_candidates`` the most that it scores for a request."""

    name: str = ABSENT
    description: str = ABSENT
    options: dict[str, Any] = ABSENT
    max_candidates: int = ABSENT
    available: bool = ABSENT
    why_not: str | None = ABSENT


class Result(Model):
    """A chunk in the result."""

    id: str = ABSENT
    kind: Literal["chunk"] | str = "chunk"
    document_id: str = ABSENT
    ordinal: int = ABSENT
    parent_id: str | None = ABSENT
    title: str = ABSENT
    content: str = ABSENT
    parent: Parent | None = ABSENT
    matched_chunks: list[MatchedChunk] = ABSENT
    context_chunks: list[ContextChunk] = ABSENT
    score: float = ABSENT
    scores: dict[str, float] = ABSENT
    location: Location = ABSENT
    metadata: dict[str, Any] = ABSENT
    entities: list[Entity] = ABSENT
    graph_path: list[Step] = ABSENT
    matched_question: str | None = None
    url: str | None = ABSENT


class Run(Model):
    """A run. ``result`` is null until its job has ended; `GET /jobs/{job_id}` shows the progress."""

    id: str = ABSENT
    dataset: str = ABSENT
    dataset_version: int = ABSENT
    configurations: list[dict[str, Any]] = ABSENT
    k: int = ABSENT
    max_tokens: int | None = ABSENT
    judge_model: str | None = ABSENT
    job_id: str = ABSENT
    state: JobState | str = ABSENT
    done: int = ABSENT
    total: int = ABSENT
    error: dict[str, Any] | None = ABSENT
    created_at: datetime = ABSENT
    finished_at: datetime | None = ABSENT
    result: dict[str, Any] | None = ABSENT


class RunAccepted(Model):
    """A queued run and its job, or the expected work of a dry run."""

    run_id: str | None = ABSENT
    job_id: str | None = ABSENT
    state: JobState | str | None = ABSENT
    dry_run: bool = ABSENT
    estimate: Estimate | None = ABSENT


class Score(Model):
    value: float = ABSENT
    computed: bool = ABSENT


class ScoreGroup(Model):
    """Means of one day, strategy and configuration."""

    day: date = ABSENT
    strategy: str = ABSENT
    configuration: str = ABSENT
    metrics: dict[str, MetricMean] = ABSENT


class SearchResults(SearchForms, Model):
    results: list[Result] = ABSENT
    facts: list[Fact] = ABSENT
    themes: list[Theme] = ABSENT
    contradictions: list[Contradiction] = ABSENT
    trace: Trace = ABSENT


class Side(Model):
    """One of two statements that contradict each other."""

    fact: str = ABSENT
    value: str = ABSENT
    relationship_id: str | None = ABSENT
    chunk_id: str = ABSENT
    document_id: str = ABSENT
    title: str = ABSENT
    quote: str = ABSENT
    valid_at: datetime | None = ABSENT
    invalid_at: datetime | None = ABSENT
    date: str | None = ABSENT


class Source(Model):
    document_id: str = ABSENT
    chunk_id: str = ABSENT


class Statement(Model):
    """A passage that states a relationship."""

    chunk_id: str = ABSENT
    document_id: str = ABSENT
    fact: str = ABSENT


class Status(Model):
    """Status of the server and of a tenant."""

    version: str = ABSENT
    profile: Literal["embedded", "server", "mixed"] | str = ABSENT
    stores: dict[str, str] = ABSENT
    models: dict[str, str] = ABSENT
    model_states: dict[str, str] = ABSENT
    model_settings: dict[str, float | str | None] = ABSENT
    model_limits: list[ModelLimits] = ABSENT
    calibration: Calibration = ABSENT
    ocr: Ocr = ABSENT
    extraction_methods: list[ExtractionMethod] = ABSENT
    strategies: list[str] = ABSENT
    features: dict[str, bool | float] = ABSENT
    dual_level: DualLevelStatus = ABSENT
    tuning: TuningStatus = ABSENT
    counts: dict[str, int] = ABSENT
    state_version: int = ABSENT
    search: Literal["current", "pending"] | str = ABSENT
    communities: CommunitiesStatus = ABSENT
    raptor: CommunitiesStatus = ABSENT
    vector_indexes: list[VectorIndexStatus] | None = ABSENT
    reconciliation: LastReconciliation | None = ABSENT
    workers: WorkersStatus = ABSENT
    queue: dict[str, int] | None = ABSENT
    warnings: list[str] = ABSENT


class Step(Model):
    """A step of the path to a result, in the form of the steps of `POST /graph/paths` with names for entities.

    The last step is ``mentioned_in``: its target is the title of the result's document.
    """

    kind: Literal["relationship", "mention"] | str = ABSENT
    source: str = ABSENT
    source_id: str | None = ABSENT
    relation: str = ABSENT
    target: str = ABSENT
    target_id: str | None = ABSENT
    fact: str | None = ABSENT
    forward: bool = ABSENT
    weight: float = ABSENT
    chunk_id: str | None = ABSENT
    document_id: str | None = ABSENT


class StopBody(Model):
    """When an experiment ends by itself."""

    metric: ExperimentMetric | str = "good"
    cases: int = 1000
    p: float = 0.05


class Strategy(Model):
    name: str = ABSENT
    description: str = ABSENT
    aliases: list[str] = ABSENT
    options: dict[str, Any] = ABSENT
    languages: list[str] | None = ABSENT
    available: bool = ABSENT
    why_not: str | None = ABSENT


class Submission(Model):
    """Result of a submission. ``job_id`` is null if there is nothing to do."""

    document_id: str | None = ABSENT
    job_id: str | None = None
    state: str = ABSENT
    unchanged: bool = False
    file: str | None = None
    error: dict[str, Any] | None = None
    warnings: list[str] = Field(default_factory=list)


class SubmittedFiles(Model):
    """Results of several files."""

    documents: list[Submission] = ABSENT


class Tenant(Model):
    id: str = ABSENT
    name: str = ABSENT
    state: TenantState | str = ABSENT
    labels: dict[str, str] = ABSENT
    quota: dict[str, int | float | None] = ABSENT
    created_at: datetime = ABSENT


class TenantUsage(Model):
    """Usage of one of the operator's tenants."""

    calls: int = ABSENT
    failed_calls: int = ABSENT
    prompt_tokens: int = ABSENT
    completion_tokens: int = ABSENT
    cost: float | None = ABSENT
    known_cost: float = ABSENT
    unpriced_calls: int = ABSENT
    requests: int = ABSENT
    tenant_id: str = ABSENT
    name: str = ABSENT


class Theme(Model):
    """A community, or a node of the RAPTOR tree. Communities have ``entity_count``, nodes ``passage_count``."""

    type: Literal["community", "raptor"] | str = "community"
    id: str = ABSENT
    name: str = ABSENT
    summary: str = ABSENT
    keywords: list[str] = ABSENT
    entity_count: int = ABSENT
    score: float = ABSENT
    weighted_score: float | None = None
    level: int = ABSENT
    passage_count: int | None = None
    representatives: list[str] = ABSENT


class ThemeName(Model):
    id: str = ABSENT
    name: str = ABSENT


class Trace(Model):
    strategy: str = ABSENT
    methods_used: list[str] = ABSENT
    fusion: str | None = ABSENT
    fallback_used: bool = ABSENT
    fallback_reason: str | None = ABSENT
    processing_time_ms: dict[str, float] = ABSENT
    warnings: list[str] = ABSENT
    details: dict[str, Any] = ABSENT
    sufficient: bool | None = None
    cache: Literal["hit", "shared"] | str | None = None


class TreeStatus(Model):
    """State of the tree, and figures of its last build."""

    generation: int = ABSENT
    stale: bool = ABSENT
    built_at: datetime | None = ABSENT
    last_job: Job | None = ABSENT


class TuningAccepted(Model):
    """A queued proposal and its job, or the expected work of a dry run."""

    proposal_id: str | None = ABSENT
    job_id: str | None = ABSENT
    state: JobState | str | None = ABSENT
    dry_run: bool = ABSENT
    estimate: TuningEstimate | None = ABSENT


class TuningEstimate(Model):
    cases: dict[str, int] = ABSENT
    parameters: list[Parameter | str] = ABSENT
    searches: int = ABSENT


class TuningStatus(Model):
    """Values that accepted proposals of tuning set, by parameter. ``proposal_id``: the proposal that was accepted last."""

    proposal_id: str | None = ABSENT
    values: dict[str, Any] = ABSENT


class Usage(Model):
    prompt_tokens: int = ABSENT
    completion_tokens: int = ABSENT
    calls: int = ABSENT
    failed_calls: int = ABSENT


class UsageReport(Model):
    """Usage of a tenant in a period, and what its documents occupy now."""

    calls: int = ABSENT
    failed_calls: int = ABSENT
    prompt_tokens: int = ABSENT
    completion_tokens: int = ABSENT
    cost: float | None = ABSENT
    known_cost: float = ABSENT
    unpriced_calls: int = ABSENT
    requests: int = ABSENT
    from_: date = Field(default=ABSENT, alias="from")
    to: date = ABSENT
    by: UsageGroup | str = ABSENT
    currency: str = ABSENT
    groups: list[GroupUsage] = ABSENT
    documents: int = ABSENT
    chunks: int = ABSENT
    bytes: int = ABSENT
    quota: list[QuotaUse] = ABSENT


class VectorIndexRun(Model):
    """One build of an index. ``gap_s`` is the longest time during which it blocked requests."""

    finished_at: datetime = ABSENT
    seconds: float = ABSENT
    gap_s: float = ABSENT
    reason: str = ABSENT
    failure: str | None = ABSENT


class VectorIndexStatus(Model):
    """A collection of all tenants. ``indexed_share`` is the share of its points that the index contains."""

    collection: str = ABSENT
    points: int = ABSENT
    indexed_share: float = ABSENT
    state: Literal["idle", "copying", "optimising", "swapping", "failed"] | str = ABSENT
    last: VectorIndexRun | None = ABSENT


class Verification(Model):
    initial_answer: str = ABSENT
    verification_qa: list[CheckedQuestion] = ABSENT


class Vote(Model):
    """The votes for a label."""

    label: str = ABSENT
    share: float = ABSENT
    documents: int = ABSENT


class WorkersStatus(Model):
    """``alive``: workers with a recent heartbeat; ``here``: whether this process runs jobs."""

    alive: int = ABSENT
    here: bool = ABSENT
