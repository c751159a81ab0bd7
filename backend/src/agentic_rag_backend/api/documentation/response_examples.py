"""Examples of the OpenAPI document: a complete one for each response.

Examples use one value for each field name, so that the examples of all routes fit together. ``Model.field`` gives a field of one
model another value. A field without a value here gets a value of its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentic_rag_backend.api.documentation.protocol_examples import PROTOCOL_VALUES
from agentic_rag_backend.errors import (
    AgenticRagError,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    RequestIncomplete,
    RequestTimeout,
    StoreUnavailable,
    TooManyConnections,
    Unauthenticated,
    UnsupportedMediaType,
)

Schema = Mapping[str, Any]

_DOCUMENT = "5f0c7e1a-9b2d-5c3e-8f60-718293a4b5c6"
_ANSWER = "a_5f0c2a9be3d14c7f8a61b2c3d4e5f607"
_CHUNK = "3d1f6c2e-8a4b-5c7d-9e0f-1a2b3c4d5e6f"
_JOB = "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9"
_TENANT = "t_0123456789abcdef0123456789abcdef"
_ENTITY = "8f14e45f-ceea-5e7a-9c3b-2d1f0a9b8c7d"
_RELATIONSHIP = "c4ca4238-a0b9-5238-8dcc-509a6f75849b"
_REQUEST = "req_9f8e7d6c5b4a39281706f5e4d3c2b1a0"
_BEGUN, _ENDED = "2026-03-02T09:30:00Z", "2026-03-02T09:30:04Z"
_TEXT = "The Harbour Authority began the tidal barrage in May 2019."
_DETAIL = "The delay was caused by a cracked caisson."
_ADDRESS = "https://rag.example/console/#/d/0b6f1d9c-8a63-4c1e-9b5d-3e1c2a7f4d10?chunk=6f2d1c3b-5a4e-5d7f-8091-a2b3c4d5e6f7"

VALUES: Mapping[str, Any] = {
    # --- identities, names, times
    "requestId": _REQUEST,
    "timestamp": _ENDED,
    "nextCursor": None,
    "id": _CHUNK,
    "document_id": _DOCUMENT,
    "chunk_id": _CHUNK,
    "job_id": _JOB,
    "tenant_id": _TENANT,
    "title": "Tidal barrage",
    "name": "Harbour Authority",
    "created_at": _BEGUN,
    "updated_at": _ENDED,
    "started_at": _BEGUN,
    "finished_at": _ENDED,
    "built_at": _ENDED,
    "revoked_at": None,
    # --- documents and chunks
    "DocumentView.id": _DOCUMENT,
    "AnswerView.id": _ANSWER,
    "answer_id": _ANSWER,
    "key_id": "198b5b98-57d5-471d-b75e-0f8563cffae9",
    "FeedbackView.rating": "bad",
    "FeedbackView.citation": 1,
    "FeedbackView.result": None,
    "FeedbackView.correction": "The delay was caused by two cracked caissons.",
    "UsageGroupView.group": "2026-03-02",
    "currency": "EUR",
    "RecordedScoresView.scores": {"answer_relevancy": {"value": 0.9, "computed": False}},
    "ScoreGroupView.metrics": {"faithfulness": {"count": 2, "computed": 1, "mean": 0.75, "minimum": 0.5, "maximum": 1.0}},
    "key": "minutes/2019-05",
    "DocumentView.state": "ready",
    "SubmittedView.state": "pending",
    "version": 1,
    "latest_version": 1,
    "content_hash": "9b74c9897bac770ffc029102a200c5de9b74c9897bac770ffc029102a200c5de",
    "media_type": "text/markdown",
    "size_bytes": 2184,
    "metadata": {"category": "minutes", "year": 2019},
    "chunk_count": 3,
    "failures": [],
    "ordinal": 0,
    "parent_id": None,
    "previous_id": None,
    "next_id": "3f0d6a51-8a0e-5d5f-9c1c-0f6f3f6b7a10",
    "characters": 2184,
    "AppliedChunking.strategy": "structure",
    "chunk_size": 220,
    "overlap": 32,
    "unit": "tokens",
    "percentile": 90,
    "parent_size": 500,
    "content": _TEXT,
    "size_tokens": 12,
    "ChunkView.statements": [],
    "ChunkInDocument.statements": [],
    "PreviewedChunk.statements": [],
    "start_char": 18,
    "end_char": 18 + len(_TEXT),
    "start_line": 3,
    "end_line": 3,
    "path": ["Tidal barrage"],
    "page": None,
    "page_label": None,
    "bbox": None,
    "sheet": None,
    "cells": None,
    "regions": [],
    "PageView.page": 3,
    "PageView.page_label": "3",
    "lines": [{"text": _TEXT, "start_char": 18, "end_char": 18 + len(_TEXT), "bbox": [72.0, 697.9, 426.0, 708.4]}],
    "visible_box": [0.0, 0.0, 595.28, 841.89],
    "rotation": 0,
    "file": None,
    "unchanged": False,
    "count": 1,
    "remaining": False,
    # --- jobs
    "JobView.id": _JOB,
    "JobView.state": "succeeded",
    "stage": "done",
    "done": 3,
    "total": 3,
    "message": "",
    "attempt": 1,
    "error": None,
    "result": {"chunks": 3, "entities": 7, "relationships": 5},
    # --- retrieval
    "query": "Why was the tidal barrage delayed?",
    "score": 0.82,
    "weighted_score": 0.49,
    "scores": {"dense": 0.71, "sparse": 0.64, "graph": 0.82},
    "type": "organisation",
    **{f"{model}.id": _ENTITY for model in ("EntityView", "EntityItem", "EntityDetail", "NodeView")},
    "names": ["Harbour Authority", "the Authority"],
    "mention_count": 12,
    "match": "whole",
    "MentioningDocument.id": _DOCUMENT,
    "MentionView.id": _CHUNK,
    "RelationshipView.id": _RELATIONSHIP,
    "EntityRelationshipView.id": _RELATIONSHIP,
    "EntityRelationshipView.direction": "out",
    "valid_at": "2019-05-01T00:00:00Z",
    "invalid_at": None,
    "more_relationships": False,
    "ConnectionView.kind": "relationship",
    "PathStepView.kind": "relationship",
    "forward": True,
    "others": [],
    "hops": 1,
    "ambiguous": [],
    "bounded": False,
    "relation": "builds",
    "StepView.kind": "relationship",
    "StepView.source": "Harbour Authority",
    "StepView.source_id": _ENTITY,
    "StepView.target_id": _ENTITY,
    "StepView.target": "tidal barrage",
    "weight": 1.0,
    "fact": _TEXT,
    "ThemeView.type": "community",
    "ThemeView.name": "The tidal barrage and its delay",
    "summary": f"{_TEXT} {_DETAIL}",
    "keywords": ["barrage", "caisson", "delay"],
    "entity_count": 6,
    "passage_count": None,
    "NodeOut.passage_count": 4,
    "representatives": [],
    "level": 0,
    "strategy": "graph",
    "methods_used": ["dense", "sparse", "graph"],
    "fusion": "rrf",
    "fallback_used": False,
    "fallback_reason": None,
    "processing_time_ms": {"retrieval": 14.2, "total": 14.2},
    "warnings": [],
    "details": {},
    # --- contradictions
    "ContradictionView.id": _RELATIONSHIP,
    "ContradictionView.kind": "date",
    "ContradictionView.reason": "Tidal barrage – opened: the dates 14 June 2014 and 2 September 2014 cannot both be true",
    "subject": "Tidal barrage – opened",
    "SideView.fact": "Tidal barrage – opened – 14 June 2014",
    "SideView.value": "14 June 2014",
    "SideView.quote": "The tidal barrage was opened on 14 June 2014.",
    "SideView.date": "2014-06-16",
    "relationship_id": None,
    # --- edits of the graph
    "GraphEditView.number": 3,
    "GraphEditView.kind": "merge",
    "GraphEditView.document_ids": [],
    "GraphEditView.names": [],
    "GraphEditView.new_entity_id": None,
    "GraphEditView.type": "organisation",
    "GraphEditView.reason": "two spellings of one authority",
    "GraphEditView.undone_at": None,
    "applied": True,
    "EditedEntityView.id": _ENTITY,
    # --- evaluation
    "run_id": _JOB,
    "case_id": _CHUNK,
    "DatasetView.name": "harbour",
    "case_count": 60,
    "kinds": {"single": 40, "unanswerable": 20},
    "CaseView.question": "Who began the tidal barrage?",
    "expected_answer": "Harbour Authority",
    "must_say": [],
    "answerable": True,
    "CaseView.kind": "single",
    "CaseView.filters": None,
    "CaseView.source": "graph",
    "GoldView.quote": _TEXT,
    "GoldView.document": _DOCUMENT,
    "dry_run": False,
    "estimate": None,
    "RunView.dataset": _DOCUMENT,
    "configurations": [{"name": "base", "strategy": "hybrid"}],
    "k": 5,
    "RunView.result": None,
    "OutcomeView.configuration": "base",
    "OutcomeView.kind": "single",
    "measures": {"recall@5": 1.0, "correct": 1.0},
    "times_ms": {"retrieval": 14.2, "total": 80.5},
    "gold_missing": 0,
    # --- tuning
    "proposal_id": _DOCUMENT,
    "searches": 900,
    "ProposalView.status": "proposed",
    "ProposalView.datasets": [_DOCUMENT],
    "ProposalView.values": {"hybrid_weights": {"dense": 0.4, "sparse": 0.6}},
    "ProposalView.result": None,
    "TuningStatus.proposal_id": None,
    "TuningStatus.values": {},
    # --- answers
    "answer": f"{_DETAIL} [1]",
    "introduction": "",
    "synthesized_answer": f"{_DETAIL} [1]",
    "confidence": 0.78,
    "grounded": True,
    "marker": 1,
    "quote": _DETAIL,
    "CitationView.url": _ADDRESS,
    "ResultView.url": _ADDRESS,
    "ClaimView.text": _DETAIL,
    "supported": True,
    "reason": None,
    "markers": [1],
    "verification": None,
    "initial_answer": f"{_DETAIL} [1]",
    "CheckedQuestionView.question": "What caused the delay of the tidal barrage?",
    "generator": "attributed",
    "model": "extractive",
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "calls": 0,
    "low": 0.6,
    "high": 0.4,
    **PROTOCOL_VALUES,
    # --- communities and trees
    "CommunityOut.name": "The tidal barrage and its delay",
    "NodeOut.name": "The tidal barrage and its delay",
    "statement": _DETAIL,
    "parent": None,
    "children": [_CHUNK],
    "generation": 4,
    "rating": 0.7,
    "written_by": "extractive",
    # --- tenants, status, features
    "TenantView.id": _TENANT,
    "TenantView.name": "acme",
    "DeletedTenant.id": _TENANT,
    "removed": {"vectors": 412, "graph": 230, "blobs": 3},
    "KeyView.name": "intake",
    "KeyView.key": "ark_shown-once-when-it-is-issued",
    "prefix": "ark_shown-on",
    "TenantView.labels": {"plan": "trial"},
    "scopes": ["read", "write"],
    "StatusView.version": "0.1.0",
    "stores": {"catalogue": "sqlite", "graph": "sqlite", "vectors": "edge"},
    "Ready.stores": {"catalogue": "ok", "graph": "ok", "vectors": "ok", "blobs": "ok", "jobs": "ok"},
    "models": {"embedding": "all-MiniLM-L6-v2", "language": "extractive"},
    "strategies": ["auto", "dense", "graph", "hybrid"],
    "features": {"DUAL_LEVEL_RETRIEVAL_ENABLED": False},
    "counts": {"documents": 3, "chunks": 21, "entities": 40},
    "state_version": 17,
    "search": "current",
    "synthesis_model": "extractive",
    "low_weight": 0.6,
    "high_weight": 0.4,
    "low_limit": 10,
    "high_limit": 5,
    "synthesis_temperature": 0.3,
    "vector_indexes": None,
    "queue": None,
    "alive": 1,
    "here": True,
    "interval_s": 86_400.0,
    "FlagView.name": "DUAL_LEVEL_RETRIEVAL_ENABLED",
    "FlagView.value": True,
    "FlagView.default": False,
    "FlagView.source": "tenant",
    "FlagView.description": "dual-level retrieval",
    "StrategyView.name": "hybrid",
    "StrategyView.description": "dense and BM25, fused",
    "StrategyView.aliases": [],
    "StrategyView.options": {},
    "StrategyView.languages": ["en"],
    "why_not": None,
    "available": True,
    "Live.status": "ok",
    "Ready.status": "ok",
    "Ready.models": {"llm": "ok", "embedder": "ok"},
    "Ready.workers": 1,
    "reindex_required": False,
}
_BY_TYPE: Mapping[str, Any] = {
    "string": "",
    "integer": 0,
    "number": 0.0,
    "boolean": False,
    "array": [],
    "object": {},
    "null": None,
}

_PROBLEMS: Mapping[str, AgenticRagError] = {
    "401": Unauthenticated("the key is unknown"),
    "403": Forbidden("this route requires a key with scope 'write'"),
    "404": NotFound(f"document {_DOCUMENT!r} does not exist"),
    "408": RequestIncomplete("no byte of the body arrived for 15 s (BODY_TIMEOUT_S); received 1024 bytes before"),
    "409": Conflict(f"job {_JOB!r} has ended as succeeded; only queued and running jobs can be cancelled"),
    "412": PreconditionFailed("the document has changed since the revision in If-Match"),
    "413": PayloadTooLarge("the body may have at most 65536 bytes; got 70000"),
    "415": UnsupportedMediaType("send application/json; got text/plain"),
    "422": InvalidRequest("limit: must be at most 100; got 1000"),
    "429": TooManyConnections("your address has 200 open connections (MAX_CONNECTIONS_PER_CLIENT): close some, or reuse them"),
    "503": StoreUnavailable("the graph store does not answer"),
    "504": RequestTimeout("the request took longer than 60 s (REQUEST_TIMEOUT_S)"),
}


def problem_example(status: str) -> dict[str, Any] | None:
    """Return the example problem of a status; None if it has no example."""
    error = _PROBLEMS.get(status)
    if error is None:
        return None
    return {
        "type": f"urn:agentic-rag:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.message,
        "code": error.code,
        "requestId": _REQUEST,
    }


def example_of(schema: Schema, schemas: Mapping[str, Schema], model: str = "", field: str = "") -> Any:
    """Return an example of ``schema``, which is a model, or the field ``field`` of ``model``."""
    for name in (f"{model}.{field}", field):
        if name in VALUES:
            return VALUES[name]
    if "$ref" in schema:
        referred = schema["$ref"].rpartition("/")[2]
        return example_of(schemas[referred], schemas, model=referred)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return example_of(schema["anyOf"][0], schemas, model, field)
    if "properties" in schema:
        return {name: example_of(member, schemas, model, name) for name, member in schema["properties"].items()}
    if schema.get("type") == "array" and "$ref" in schema.get("items", {}):
        return [example_of(schema["items"], schemas)]
    return schema.get("default", _BY_TYPE.get(schema.get("type", "object")))
