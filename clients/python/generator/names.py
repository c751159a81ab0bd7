"""Names of the routes in the client, and what the OpenAPI description does not say about them."""

from __future__ import annotations

from typing import Any

# Name in the client → route. `documents.list` is `client.documents.list`.
OPERATIONS: dict[str, str] = {
    "search": "POST /api/v1/search",
    "search_dual_level": "POST /api/v1/search/dual-level",
    "explain": "POST /api/v1/search/explain",
    "label": "POST /api/v1/label",
    "status": "GET /api/v1/status",
    "usage": "GET /api/v1/usage",
    "tenant": "GET /api/v1/tenants/me",
    "strategies": "GET /api/v1/strategies",
    "rerankers": "GET /api/v1/rerankers",
    "documents.add": "POST /api/v1/documents",
    "documents.list": "GET /api/v1/documents",
    "documents.delete_matching": "DELETE /api/v1/documents",
    "documents.get": "GET /api/v1/documents/{document_id}",
    "documents.update": "PATCH /api/v1/documents/{document_id}",
    "documents.delete": "DELETE /api/v1/documents/{document_id}",
    "documents.chunks": "GET /api/v1/documents/{document_id}/chunks",
    "documents.chunk_again": "POST /api/v1/documents/{document_id}/chunks",
    "documents.extract_again": "POST /api/v1/documents/{document_id}/extract",
    "documents.content": "GET /api/v1/documents/{document_id}/content",
    "documents.page": "GET /api/v1/documents/{document_id}/pages/{page}",
    "documents.page_image": "GET /api/v1/documents/{document_id}/pages/{page}/image",
    "documents.preview": "POST /api/v1/chunking/preview",
    "chunks.get": "GET /api/v1/chunks/{chunk_id}",
    "chunks.extract_again": "POST /api/v1/chunks/{chunk_id}/extract",
    "chunks.preview_extraction": "POST /api/v1/chunks/{chunk_id}/extract",
    "jobs.list": "GET /api/v1/jobs",
    "jobs.get": "GET /api/v1/jobs/{job_id}",
    "jobs.cancel": "POST /api/v1/jobs/{job_id}/cancel",
    "jobs.retry": "POST /api/v1/jobs/{job_id}/retry",
    "answers.create": "POST /api/v1/answers",
    "answers.stop": "DELETE /api/v1/answers/streams/{stream_id}",
    "feedback.give": "POST /api/v1/feedback",
    "feedback.list": "GET /api/v1/feedback",
    "graph.entities": "GET /api/v1/graph/entities",
    "graph.entity": "GET /api/v1/graph/entities/{entity_id}",
    "graph.neighbourhood": "GET /api/v1/graph/entities/{entity_id}/neighbourhood",
    "graph.paths": "POST /api/v1/graph/paths",
    "graph.contradictions": "GET /api/v1/graph/contradictions",
    "graph.export": "GET /api/v1/graph/export",
    "graph.merge_entities": "POST /api/v1/graph/entities/{entity_id}/merge",
    "graph.split_entity": "POST /api/v1/graph/entities/{entity_id}/split",
    "graph.rename_entity": "POST /api/v1/graph/entities/{entity_id}/rename",
    "graph.delete_entity": "DELETE /api/v1/graph/entities/{entity_id}",
    "graph.edits": "GET /api/v1/graph/edits",
    "graph.edit": "GET /api/v1/graph/edits/{number}",
    "graph.undo_edit": "DELETE /api/v1/graph/edits/{number}",
    "communities.list": "GET /api/v1/communities",
    "communities.get": "GET /api/v1/communities/{community_id}",
    "raptor.list": "GET /api/v1/raptor",
    "raptor.get": "GET /api/v1/raptor/{node_id}",
    "features.list": "GET /api/v1/features",
    "features.update": "PATCH /api/v1/features",
    "ontology.get": "GET /api/v1/ontology",
    "ontology.replace": "PUT /api/v1/ontology",
    "admin.rebuild_communities": "POST /api/v1/admin/communities/rebuild",
    "admin.communities": "GET /api/v1/admin/communities",
    "admin.rebuild_raptor": "POST /api/v1/admin/raptor/rebuild",
    "admin.raptor": "GET /api/v1/admin/raptor",
    "admin.reconcile": "POST /api/v1/admin/reconcile",
    "admin.reconciliation": "GET /api/v1/admin/reconcile",
    "tuning.propose": "POST /api/v1/admin/tuning",
    "tuning.list": "GET /api/v1/admin/tuning",
    "tuning.get": "GET /api/v1/admin/tuning/{proposal_id}",
    "tuning.delete": "DELETE /api/v1/admin/tuning/{proposal_id}",
    "tuning.accept": "POST /api/v1/admin/tuning/{proposal_id}/accept",
    "tuning.roll_back": "POST /api/v1/admin/tuning/{proposal_id}/rollback",
    "datasets.create": "POST /api/v1/evaluation/datasets",
    "datasets.list": "GET /api/v1/evaluation/datasets",
    "datasets.get": "GET /api/v1/evaluation/datasets/{dataset_id}",
    "datasets.delete": "DELETE /api/v1/evaluation/datasets/{dataset_id}",
    "datasets.cases": "GET /api/v1/evaluation/datasets/{dataset_id}/cases",
    "datasets.add_cases": "POST /api/v1/evaluation/datasets/{dataset_id}/cases",
    "datasets.remove_case": "DELETE /api/v1/evaluation/datasets/{dataset_id}/cases/{case_id}",
    "datasets.export": "GET /api/v1/evaluation/datasets/{dataset_id}/export",
    "runs.start": "POST /api/v1/evaluation/runs",
    "runs.list": "GET /api/v1/evaluation/runs",
    "runs.get": "GET /api/v1/evaluation/runs/{run_id}",
    "runs.delete": "DELETE /api/v1/evaluation/runs/{run_id}",
    "runs.report": "GET /api/v1/evaluation/runs/{run_id}/report",
    "runs.outcomes": "GET /api/v1/evaluation/runs/{run_id}/outcomes",
    "experiments.start": "POST /api/v1/evaluation/experiments",
    "experiments.list": "GET /api/v1/evaluation/experiments",
    "experiments.get": "GET /api/v1/evaluation/experiments/{experiment_id}",
    "experiments.delete": "DELETE /api/v1/evaluation/experiments/{experiment_id}",
    "experiments.stop": "POST /api/v1/evaluation/experiments/{experiment_id}/stop",
    "questions.list": "GET /api/v1/evaluation/questions",
    "questions.delete": "DELETE /api/v1/evaluation/questions/{question_id}",
    "questions.delete_all": "DELETE /api/v1/evaluation/questions",
    "scores.submit": "POST /api/v1/evaluation/submit",
    "scores.metrics": "GET /api/v1/evaluation/metrics",
    "tenants.create": "POST /api/v1/tenants",
    "tenants.list": "GET /api/v1/tenants",
    "tenants.get": "GET /api/v1/tenants/{tenant_id}",
    "tenants.change": "PATCH /api/v1/tenants/{tenant_id}",
    "tenants.delete": "DELETE /api/v1/tenants/{tenant_id}",
    "tenants.usage": "GET /api/v1/tenants/usage",
    "tenants.quota": "GET /api/v1/tenants/{tenant_id}/quota",
    "tenants.set_quota": "PUT /api/v1/tenants/{tenant_id}/quota",
    "tenants.set_key_quota": "PUT /api/v1/tenants/{tenant_id}/keys/{key_id}/quota",
    "tenants.export": "POST /api/v1/tenants/{tenant_id}/export",
    "tenants.create_key": "POST /api/v1/tenants/{tenant_id}/keys",
    "tenants.keys": "GET /api/v1/tenants/{tenant_id}/keys",
    "tenants.rotate_key": "POST /api/v1/tenants/{tenant_id}/keys/{key_id}/rotate",
    "tenants.revoke_key": "DELETE /api/v1/tenants/{tenant_id}/keys/{key_id}",
    "health.live": "GET /health/live",
    "health.ready": "GET /health/ready",
    "health.metrics": "GET /metrics",
}
STREAMED: dict[str, str] = {
    "jobs.events": "GET /api/v1/jobs/{job_id}/events",
    "answers.stream": "POST /api/v1/answers",
    "answers.resume": "GET /api/v1/answers/streams/{stream_id}",
}
"""Operations that return events."""
EVENTS: dict[str, tuple[str, str]] = {"answers": ("read_answer", "AnswerEvent"), "jobs": ("read_job", "JobEvent")}
"""Group of operations → the function that reads its events, and their type."""
WRITTEN: dict[str, tuple[str, str]] = {
    "documents.upload": ("POST /api/v1/documents", "multipart/form-data"),
    "documents.preview_file": ("POST /api/v1/chunking/preview", "multipart/form-data"),
    "datasets.upload": ("POST /api/v1/evaluation/datasets", "multipart/form-data"),
    "tenants.import_archive": ("POST /api/v1/tenants/import", "application/gzip"),
}
"""Operations that are written by hand, because they send files: name in the client → route and media type."""
OTHER_PROTOCOLS = ("/openai/", "/retrieval", "/v1/", "/v2/", "/.well-known/")
"""Addresses of other protocols (OpenAI's, Dify's, Cohere's and Jina's, OAuth's). They exist for the clients of these protocols;
what they offer is offered by the product's own routes, with typed results and all options.
"""
BASES: dict[str, str] = {
    "datasets": "DatasetFiles",
    "documents": "DocumentFiles",
    "jobs": "JobEvents",
    "tenants": "TenantArchives",
}
"""Classes with the methods that are written by hand."""
FIXED: dict[str, dict[str, Any]] = {
    "answers.create": {"stream": None, "resumable": None},
    "answers.stream": {"stream": True},
    "chunks.extract_again": {"dry_run": None},
    "chunks.preview_extraction": {"dry_run": True},
}
"""Fields that are no parameters, with the value to send; None: nothing."""
RETURNS: dict[str, str] = {
    "documents.add": "SubmittedView",
    "chunks.extract_again": "SubmittedView",
    "chunks.preview_extraction": "ChunkExtractionView",
}
"""The result where the description has several."""
READING = frozenset(
    [
        "search",
        "search_dual_level",
        "explain",
        "label",
        "answers.create",
        "documents.preview",
        "chunks.preview_extraction",
        "graph.paths",
        "feedback.give",
        "answers.stream",
    ]
)
"""Requests by POST that may be sent twice without harm, although they have no Idempotency-Key."""
HEADERS: dict[str, str] = {
    "if-match": "the `etag` of the response that is to be unchanged",
    "idempotency-key": "default: a new one",
    "last-event-id": "",
}
"""Headers that are parameters, with their text; empty: that of the description."""
BODY = "changes"
"""Parameter of a body that is a mapping of any names."""
LIMITS: dict[str, str] = {
    "tenants.set_quota": "limits by name; None: no limit; a limit that is left out has its default",
    "tenants.set_key_quota": "limits by name; None: no limit",
}
"""Methods whose body is one parameter, with its text, because a member that is None and one that is left out differ."""
NOT_READY = {"health.ready": 503}
"""Statuses of failures whose body is a result."""
NAMES: dict[str, str] = {
    "NodeOut": "RaptorNode",
    "NodeView": "GraphNode",
    "SearchView": "SearchResults",
    "SubmittedView": "Submission",
    "UsageGroupView": "GroupUsage",
}
"""Names of results that are not those of their schemas without `View` and `Out`."""
MIXINS: dict[str, str] = {"SearchView": "SearchForms", "AnswerView": "AnswerForms"}
