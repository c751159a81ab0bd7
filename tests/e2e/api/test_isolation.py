"""Ids of another tenant are treated like unknown ids, by every route and for every kind of id.

`CASES` has a row for each route of the application. `test_every_route_has_a_row` fails for a route without one.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import pytest_asyncio
from fastapi.routing import APIRoute
from tests.e2e.api.conftest import DOORS, Client, World

from agentic_rag_backend.retrieval.registry import STRATEGIES

pytestmark = pytest.mark.asyncio(loop_scope="module")

BASE = "/api/v1"


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which a request can carry an id: ``{id}`` in the path, the query string or the body is its placeholder."""

    kind: str
    where: str = ""
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 404
    owner_status: int = 200
    fixed: str | None = None
    """The first id of the path, if it is not the placeholder."""


NO_ID: tuple[Case, ...] = ()
"""For routes without an input that could name another tenant's data."""

_FILTERED = [
    {"document_id": "{id}"},
    {"document_id": {"in": ["{id}"]}},
    {"or": [{"document_id": "{id}"}, {"document_id": "{id}"}]},
]


def _retrieving(**more: Any) -> tuple[Case, ...]:
    """Return the cases of a search route: ids in filters match nothing, names in options have no effect."""
    eels = {"query": "society eels", **more}
    filters = [
        Case("document", f"filter on {strategy}", {**eels, "strategy": strategy, "filters": shape}, status=200)
        for strategy in STRATEGIES
        if strategy != "dual_level"
        for shape in _FILTERED
    ]
    entities = [
        Case(kind, "options.entities", {**eels, "strategy": "graph", "options": {"entities": ["{id}"]}}, status=200)
        for kind in ("entity", "name")
    ]
    refused = [
        Case("tenant", f"filter {name}", {**eels, "filters": {name: "{id}"}}, status=422) for name in ("tenant_id", "group_id")
    ]
    return (*filters, *entities, *refused)


def _dify_condition(name: str, value: str) -> dict[str, Any]:
    condition = {"name": [name], "comparison_operator": "is", "value": value}
    return {"query": "society eels", "metadata_condition": {"conditions": [condition]}}


def _file_filter(value: str, key: str = "document_id") -> dict[str, Any]:
    return {"query": "society eels", "filters": {"type": "eq", "key": key, "value": value}}


def _file_search(stores: list[str], **more: Any) -> dict[str, Any]:
    tool = {"type": "file_search", "vector_store_ids": stores, **more}
    return {"input": "society eels", "tools": [tool], "include": ["file_search_call.results"]}


_OPERATORS = Case("tenant", "path", status=403)
CASES: Mapping[str, tuple[Case, ...]] = {
    "POST /openai/v1/chat/completions": (
        Case("tenant", "model", {"model": "{id}", "messages": [{"role": "user", "content": "eels"}]}),
    ),
    "POST /openai/v1/responses": (
        Case("tenant", "model", {"model": "{id}", "input": "eels"}),
        Case("store", "tool", _file_search(["{id}"])),
        Case("store", "second store", _file_search(["vs_all", "{id}"])),
        Case("document", "filter", _file_search(["vs_all"], filters=_file_filter("{id}")["filters"]), status=200),
    ),
    "GET /openai/v1/responses/{response_id}": (Case("answer", owner_status=404), Case("tenant")),
    "DELETE /openai/v1/responses/{response_id}": (Case("answer"),),
    "GET /openai/v1/models": NO_ID,
    "GET /openai/v1/models/{model}": (Case("tenant"), Case("document")),
    "POST /openai/v1/embeddings": (Case("tenant", "model", {"model": "{id}", "input": "eels"}),),
    "POST /openai/v1/files": NO_ID,
    "GET /openai/v1/files": (
        Case("file", "after", query={"after": "{id}"}),
        Case("document", "after", query={"after": "{id}"}),
    ),
    "GET /openai/v1/files/{file_id}": (Case("file"), Case("document"), Case("tenant")),
    "GET /openai/v1/files/{file_id}/content": (Case("file"), Case("document")),
    "DELETE /openai/v1/files/{file_id}": (Case("file"), Case("document")),
    "POST /openai/v1/vector_stores": (
        Case("file", "file_ids", {"file_ids": ["{id}"]}),
        Case("tenant", "filter", {"filter": {"tenant_id": "{id}"}}, status=400),
    ),
    "GET /openai/v1/vector_stores": (
        Case("store", "after", query={"after": "{id}"}),
        Case("tenant", "after", query={"after": "{id}"}),
    ),
    "GET /openai/v1/vector_stores/{vector_store_id}": (Case("store"), Case("file"), Case("tenant")),
    "POST /openai/v1/vector_stores/{vector_store_id}": (Case("store", "path", {"name": "stolen"}),),
    "DELETE /openai/v1/vector_stores/{vector_store_id}": (Case("store"), Case("file")),
    "POST /openai/v1/vector_stores/{vector_store_id}/search": (
        Case("store", "path", {"query": "eels"}),
        Case("document", "filter in vs_all", _file_filter("{id}"), status=200, fixed="vs_all"),
        Case("tenant", "reserved field", {**_file_filter("{id}", "tenant_id")}, status=200, fixed="vs_all"),
    ),
    "POST /openai/v1/vector_stores/{vector_store_id}/files": (
        Case("store", "path", {"file_id": "file-" + "0" * 32}),
        Case("file", "file_id", {"file_id": "{id}", "attributes": {"stolen": True}}, fixed="vs_all"),
    ),
    "GET /openai/v1/vector_stores/{vector_store_id}/files": (
        Case("store"),
        Case("file", "after", query={"after": "{id}"}, fixed="vs_all"),
    ),
    "GET /openai/v1/vector_stores/{vector_store_id}/files/{file_id}": (Case("file", "in vs_all", fixed="vs_all"), Case("store")),
    "POST /openai/v1/vector_stores/{vector_store_id}/files/{file_id}": (
        Case("file", "in vs_all", {"attributes": {"stolen": True}}, fixed="vs_all"),
        Case("store", "path", {"attributes": {"stolen": True}}),
    ),
    "DELETE /openai/v1/vector_stores/{vector_store_id}/files/{file_id}": (Case("store"),),
    "POST /openai/v1/vector_stores/{vector_store_id}/file_batches": (Case("store", "path", {"file_ids": ["file-" + "0" * 32]}),),
    "GET /openai/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}": (Case("store"),),
    "GET /openai/v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files": (Case("store"),),
    "POST /v1/rerank": (Case("tenant", "model", {"model": "{id}", "query": "eels", "documents": ["eels"]}, status=422),),
    "POST /v2/rerank": (Case("tenant", "model", {"model": "{id}", "query": "eels", "documents": ["eels"]}, status=422),),
    "POST /retrieval": (
        Case("tenant", "knowledge id", {"knowledge_id": "{id}", "query": "eels"}),
        Case("document", "condition", _dify_condition("document_id", "{id}"), status=200),
        Case("tenant", "reserved field", _dify_condition("tenant_id", "{id}"), status=200),
    ),
    "GET /.well-known/oauth-protected-resource": NO_ID,
    "GET /.well-known/oauth-protected-resource/mcp": NO_ID,
    "GET /health/live": NO_ID,
    "GET /health/ready": NO_ID,
    "GET /metrics": NO_ID,
    "GET /documents": (
        Case("key", "query key", query={"key": "{id}"}, status=200),
        Case("document", "metadata filter", query={"metadata.document_id": "{id}"}, status=200),
        Case("tenant", "reserved field", query={"metadata.tenant_id": "{id}"}, status=200),
        Case("document", "cursor", query={"cursor": "{id}"}, status=422),
    ),
    "POST /documents": (Case("document", "key", {"text": " ", "key": "{id}"}, status=422),),
    "DELETE /documents": (
        Case("key", "query key", query={"key": "{id}"}, status=202),
        Case("document", "metadata filter", query={"metadata.document_id": "{id}"}, status=202),
        Case("document", "filter", query={"filter": '{"document_id": "{id}"}'}, status=202),
        Case("tenant", "reserved field", query={"filter": '{"tenant_id": "{id}"}'}, status=422),
    ),
    "GET /documents/{document_id}": (Case("document"), Case("chunk"), Case("tenant")),
    "PATCH /documents/{document_id}": (
        Case("document", "path", {"metadata": {"stolen": True}}),
        Case("document", "If-Match", {"title": "Stolen"}, headers={"If-Match": "*"}),
    ),
    "DELETE /documents/{document_id}": (Case("document"), Case("job"), Case("document", "If-Match", headers={"If-Match": '"x"'})),
    "GET /documents/{document_id}/content": (Case("document"), Case("chunk")),
    "GET /documents/{document_id}/pages/{page}": (Case("document", owner_status=404), Case("chunk")),
    "GET /documents/{document_id}/pages/{page}/image": (
        Case("document", owner_status=415),
        Case("document", "highlight", query={"highlight": "1,2,3,4"}),
    ),
    "GET /documents/{document_id}/chunks": (Case("document"), Case("document", "limit", query={"limit": "1"})),
    "POST /documents/{document_id}/chunks": (
        Case("document", "path", {"chunk_size": 50, "overlap": 0}),
        Case("document", "If-Match", {"chunk_size": 50, "overlap": 0}, headers={"If-Match": '"x"'}),
    ),
    "POST /documents/{document_id}/extract": (
        Case("document", "path", {}),
        Case("document", "If-Match", {"extraction": "rules"}, headers={"If-Match": '"x"'}),
    ),
    "POST /chunking/preview": tuple(
        Case(kind, "body", {"document_id": "{id}", "chunking": {"chunk_size": 50}}) for kind in ("document", "chunk", "tenant")
    ),
    "GET /chunks/{chunk_id}": (Case("chunk"), Case("document"), Case("community")),
    "POST /chunks/{chunk_id}/extract": (Case("chunk", "path", {}), Case("chunk", "dry run", {"dry_run": True})),
    "GET /jobs": (Case("document", "query document_id", query={"document_id": "{id}"}, status=200),),
    "GET /jobs/{job_id}": (Case("job"), Case("document")),
    "GET /jobs/{job_id}/events": (Case("job"),),
    "POST /jobs/{job_id}/cancel": (Case("job"),),
    "POST /jobs/{job_id}/retry": (Case("job"),),
    "POST /search": _retrieving(limit=20),
    "POST /search/explain": tuple(
        Case(kind, "body", {"query": "eels", "document_id": "{id}", "strategy": strategy})
        for kind in ("document", "chunk")
        for strategy in ("hybrid", "graph")
    ),
    "POST /search/dual-level": NO_ID,
    "POST /answers": (*_retrieving(), *_retrieving(stream=True)),
    "POST /label": tuple(
        Case("document", f"filter on {strategy}", {"text": "eels", "strategy": strategy, "filters": shape}, status=200)
        for strategy in ("hybrid", "dense", "graph")
        for shape in _FILTERED
    ),
    "POST /feedback": (
        Case("answer", "answer_id", {"answer_id": "{id}", "rating": "bad"}),
        Case("answer", "correction", {"answer_id": "{id}", "rating": "bad", "citation": 1, "correction": "stolen"}),
    ),
    "GET /feedback": (
        Case("answer", "query answer_id", query={"answer_id": "{id}"}, status=200),
        Case("answer", "cursor", query={"cursor": "{id}"}, status=422),
    ),
    "POST /evaluation/submit": (
        Case(
            "chunk",
            "retrieved_chunk_ids",
            {"query": "eels", "answer": "Eels.", "retrieved_chunk_ids": ["{id}"], "scores": {"own": 1}},
            status=201,
        ),
        Case("chunk", "alone", {"query": "eels", "answer": "Eels.", "retrieved_chunk_ids": ["{id}"]}, status=422),
    ),
    "GET /evaluation/metrics": (
        Case("name", "query strategy", query={"strategy": "{id}"}, status=200),
        Case("chunk", "cursor", query={"cursor": "{id}"}, status=422),
    ),
    "GET /answers/streams/{stream_id}": (Case("stream"),),
    "DELETE /answers/streams/{stream_id}": (Case("stream"),),
    "GET /graph/entities": (
        Case("name", "query name", query={"name": "{id}"}, status=200),
        Case("entity", "query name", query={"name": "{id}"}, status=200),
        Case("entity", "cursor", query={"cursor": "{id}"}, status=422),
    ),
    "GET /graph/entities/{entity_id}": (Case("entity"), Case("name"), Case("chunk"), Case("community")),
    "GET /graph/entities/{entity_id}/neighbourhood": (
        Case("entity"),
        Case("name"),
        Case("entity", "hops", query={"hops": "4", "limit": "200"}),
        Case("entity", "query also", query={"also": "{id}"}),
    ),
    "POST /graph/paths": (
        *(Case(kind, "source", {"source": "{id}", "target": "Mara Venn"}) for kind in ("entity", "name", "chunk")),
        *(Case(kind, "target", {"source": "Mara Venn", "target": ["{id}"]}) for kind in ("entity", "name")),
        Case("name", "query", {"query": "How is {id} connected with Mara Venn?", "max_hops": 4}, status=200),
    ),
    "POST /graph/entities/{entity_id}/merge": (
        Case("entity", "path", {"entity_ids": ["x"]}),
        Case("entity", "entity_ids", {"entity_ids": ["{id}"]}),
    ),
    "POST /graph/entities/{entity_id}/split": (
        Case("entity", "path", {"names": ["Mara"]}),
        Case("entity", "document_ids", {"document_ids": ["{id}"]}),
    ),
    "POST /graph/entities/{entity_id}/rename": (Case("entity", "path", {"name": "Stolen"}), Case("name", "path", {"type": "x"})),
    "DELETE /graph/entities/{entity_id}": (Case("entity"), Case("name"), Case("document")),
    "GET /graph/edits": (Case("entity", "cursor", query={"cursor": "{id}"}, status=422),),
    "GET /graph/edits/{number}": NO_ID,
    "DELETE /graph/edits/{number}": NO_ID,
    "GET /graph/contradictions": (
        *(Case(kind, "query entity", query={"entity": "{id}"}) for kind in ("entity", "name", "chunk")),
        Case("entity", "cursor", query={"cursor": "{id}"}, status=422),
    ),
    "GET /graph/export": (Case("tenant", "X-Tenant-Id", headers={"X-Tenant-Id": "{id}"}, status=403),),
    "GET /communities": (Case("community", "cursor", query={"cursor": "{id}"}, status=422),),
    "GET /communities/{community_id}": (Case("community"), Case("entity")),
    "POST /admin/communities/rebuild": NO_ID,
    "GET /admin/communities": NO_ID,
    "GET /raptor": (Case("node", "cursor", query={"cursor": "{id}"}, status=422),),
    "GET /raptor/{node_id}": (Case("node"), Case("community")),
    "POST /admin/raptor/rebuild": NO_ID,
    "GET /admin/raptor": NO_ID,
    "POST /admin/reconcile": NO_ID,
    "GET /admin/reconcile": NO_ID,
    "GET /evaluation/questions": (Case("question", "cursor", query={"cursor": "{id}"}, status=422),),
    "DELETE /evaluation/questions": NO_ID,
    "DELETE /evaluation/questions/{question_id}": (Case("question"), Case("answer"), Case("case")),
    "POST /evaluation/datasets": (
        Case("question", "kept question", {"name": "x", "from_questions": {"id": "{id}"}}, status=422),
        Case("chunk", "gold", {"name": "x", "cases": [{"question": "?", "gold_chunk_ids": ["{id}"]}]}, status=422),
        Case("document", "gold", {"name": "x", "cases": [{"question": "?", "gold_documents": ["{id}"]}]}, status=201),
        Case("tenant", "filter", {"name": "x", "cases": [{"question": "?", "filters": {"tenant_id": "{id}"}}]}, status=422),
    ),
    "GET /evaluation/datasets": (Case("dataset", "cursor", query={"cursor": "{id}"}, status=422),),
    "GET /evaluation/datasets/{dataset_id}": (Case("dataset"), Case("run"), Case("document")),
    "DELETE /evaluation/datasets/{dataset_id}": (Case("dataset"), Case("run")),
    "GET /evaluation/datasets/{dataset_id}/cases": (
        Case("dataset"),
        Case("dataset", "version", query={"version": "1"}),
        Case("dataset", "cursor", query={"cursor": "{id}"}),
    ),
    "POST /evaluation/datasets/{dataset_id}/cases": (
        Case("dataset", "path", {"cases": [{"question": "stolen?"}]}),
        Case("dataset", "answer", {"answer": {"question": "stolen?", "citations": []}}),
    ),
    "DELETE /evaluation/datasets/{dataset_id}/cases/{case_id}": (Case("dataset"), Case("case")),
    "GET /evaluation/datasets/{dataset_id}/export": (Case("dataset"), Case("dataset", "version", query={"version": "1"})),
    "POST /evaluation/runs": (
        Case("dataset", "dataset", {"dataset": "{id}", "configurations": [{"name": "a"}]}),
        Case("dataset", "dry run", {"dataset": "{id}", "configurations": [{"name": "a"}], "dry_run": True}),
    ),
    "GET /evaluation/runs": (
        Case("dataset", "query dataset", query={"dataset": "{id}"}, status=200),
        Case("run", "cursor", query={"cursor": "{id}"}, status=422),
    ),
    "GET /evaluation/runs/{run_id}": (Case("run"), Case("dataset"), Case("run", "baseline", query={"baseline": "{id}"})),
    "GET /evaluation/runs/{run_id}/report": (Case("run"), Case("run", "baseline", query={"baseline": "{id}"})),
    "GET /evaluation/runs/{run_id}/outcomes": (Case("run"), Case("run", "cursor", query={"cursor": "{id}"})),
    "DELETE /evaluation/runs/{run_id}": (Case("run"), Case("job")),
    "POST /evaluation/experiments": NO_ID,
    "GET /evaluation/experiments": (Case("experiment", "cursor", query={"cursor": "{id}"}, status=422),),
    "GET /evaluation/experiments/{experiment_id}": (Case("experiment"), Case("run")),
    "POST /evaluation/experiments/{experiment_id}/stop": (Case("experiment"), Case("run")),
    "DELETE /evaluation/experiments/{experiment_id}": (Case("experiment"), Case("run")),
    "POST /admin/tuning": (
        Case("dataset", "datasets", {"datasets": ["{id}"]}),
        Case("dataset", "dry run", {"datasets": ["{id}"], "dry_run": True}),
    ),
    "GET /admin/tuning": (Case("proposal", "cursor", query={"cursor": "{id}"}, status=422),),
    "GET /admin/tuning/{proposal_id}": (Case("proposal"), Case("run")),
    "POST /admin/tuning/{proposal_id}/accept": (Case("proposal"), Case("dataset")),
    "POST /admin/tuning/{proposal_id}/rollback": (Case("proposal"), Case("job")),
    "DELETE /admin/tuning/{proposal_id}": (Case("proposal"), Case("job")),
    "GET /status": (Case("tenant", "X-Tenant-Id", headers={"X-Tenant-Id": "{id}"}, status=403),),
    "GET /usage": (Case("tenant", "X-Tenant-Id", headers={"X-Tenant-Id": "{id}"}, status=403),),
    "GET /tenants/usage": (Case("tenant", "cursor", query={"cursor": "{id}"}, status=403),),
    "GET /features": NO_ID,
    "PATCH /features": NO_ID,
    "GET /ontology": NO_ID,
    "PUT /ontology": NO_ID,
    "GET /strategies": NO_ID,
    "GET /rerankers": NO_ID,
    "GET /tenants/me": (Case("tenant", "X-Tenant-Id", headers={"X-Tenant-Id": "{id}"}, status=403),),
    "POST /tenants": (Case("name", "name", {"name": "{id}"}, status=403),),
    "GET /tenants": NO_ID,
    "GET /tenants/{tenant_id}": (_OPERATORS,),
    "PATCH /tenants/{tenant_id}": (
        Case("tenant", "path", {"suspended": True}, status=403),
        Case("tenant", "name", {"name": "stolen", "labels": {"of": "alpha"}}, status=403),
    ),
    "DELETE /tenants/{tenant_id}": (_OPERATORS,),
    "GET /tenants/{tenant_id}/quota": (_OPERATORS,),
    "PUT /tenants/{tenant_id}/quota": (Case("tenant", "path", {"documents": 0}, status=403),),
    "PUT /tenants/{tenant_id}/keys/{key_id}/quota": (
        Case("tenant", "path", {"requests_per_minute": 0}, status=403),
        Case("api_key", "path", {"requests_per_minute": 0}, status=403),
    ),
    "POST /tenants/{tenant_id}/keys": (Case("tenant", "path", {"name": "stolen"}, status=403),),
    "GET /tenants/{tenant_id}/keys": (_OPERATORS,),
    "POST /tenants/{tenant_id}/export": (_OPERATORS,),
    "POST /tenants/import": (Case("tenant", "query tenant", query={"tenant": "{id}"}, status=403),),
    "POST /tenants/{tenant_id}/keys/{key_id}/rotate": (
        Case("tenant", "path", {"overlap_s": 0}, status=403),
        Case("api_key", "path", {"overlap_s": 0}, status=403),
    ),
    "DELETE /tenants/{tenant_id}/keys/{key_id}": (_OPERATORS, Case("api_key", "path", status=403)),
}


async def _routes(app: Any) -> list[str]:
    """Return ``METHOD /path`` of every route in the application's OpenAPI document."""
    paths = (await asyncio.to_thread(app.openapi))["paths"]
    return [f"{method.upper()} {path.removeprefix(BASE)}" for path, operations in paths.items() for method in operations]


async def test_every_route_has_a_row(world: World) -> None:
    assert set(await _routes(world.app)) == set(CASES)
    hidden = {route.path for route in _walk(world.app.routes) if isinstance(route, APIRoute) and not route.include_in_schema}
    assert hidden == set(), "a route outside the OpenAPI document would escape this matrix"


def _walk(routes: Any) -> Iterator[Any]:
    for route in routes:
        yield route
        yield from _walk(getattr(route, "routes", None) or [])


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def ids(world: World) -> dict[str, str]:
    """One id of each kind that belongs to beta and reveals nothing about beta by itself. No test may delete what it names."""
    tide = world.documents["beta"]["tide"]
    chunk = (await world.beta.data("GET", f"/documents/{tide['id']}/chunks"))[0]
    found = await world.beta.data("POST", "/search", json={"query": "Brimwhistle Society", "strategy": "graph"})
    entities = {entity["name"]: entity["id"] for result in found["results"] for entity in result["entities"]}
    keys = await world.operator.data("GET", f"/tenants/{world.beta.caller.tenant_id}/keys")
    run = await _evaluation_run(world.beta)
    case = (await world.beta.data("GET", f"/evaluation/datasets/{run['dataset']}/cases"))[0]
    await world.beta.data("PATCH", "/features", json={"QUESTION_LOG_ENABLED": True})
    kept = await world.beta.data("POST", "/answers", json={"query": "Who keeps the minutes of the society?"})
    return {
        "question": kept["id"],
        "answer": (await world.beta.data("POST", "/answers", json={"query": "Who chairs the society?"}))["id"],
        "document": tide["id"],
        "file": "file-" + tide["id"].replace("-", ""),
        "store": await _store(world.beta, "file-" + tide["id"].replace("-", "")),
        "chunk": chunk["id"],
        "job": tide["job_id"] or (await world.beta.data("GET", "/jobs", params={"document_id": tide["id"]}))[0]["id"],
        "community": (await world.beta.data("GET", "/communities"))[0]["id"],
        "node": (await world.beta.data("GET", "/raptor"))[0]["id"],
        "tenant": world.beta.caller.tenant_id,
        "api_key": keys[0]["id"],
        "entity": entities["Brimwhistle Society"],
        "name": "Brimwhistle Society",
        "key": "brimwhistle/1",
        "dataset": run["dataset"],
        "case": case["id"],
        "run": run["id"],
        "proposal": await _proposal(world.beta, run["dataset"]),
        "experiment": await _experiment(world.beta),
    }


async def _evaluation_run(client: Client) -> dict[str, Any]:
    """Return the client's evaluation run that has ended. The first call starts it."""
    runs: list[dict[str, Any]] = await client.data("GET", "/evaluation/runs")
    if not runs:
        cases = [{"question": "Who chairs the society?"}]
        dataset = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "its", "cases": cases})
        body = {"dataset": dataset["id"], "configurations": [{"name": "sparse", "strategy": "sparse"}], "metrics": ["recall"]}
        accepted = await client.data("POST", "/evaluation/runs", status=202, json=body)
        assert (await client.ended(accepted["job_id"]))["state"] == "succeeded"
        runs = await client.data("GET", "/evaluation/runs")
    return runs[0]


async def _store(client: Client, file_id: str) -> str:
    """Return the client's vector store. The first call creates it."""
    stores = (await client.get("//openai/v1/vector_stores")).json()["data"]
    if len(stores) < 2:
        return str((await client.post("//openai/v1/vector_stores", {"name": "its", "file_ids": [file_id]})).json()["id"])
    return str(stores[1]["id"])


async def _experiment(client: Client) -> str:
    """Return the client's experiment that runs. The first call starts it."""
    experiments: list[dict[str, Any]] = await client.data("GET", "/evaluation/experiments")
    if not experiments:
        body = {"name": "its", "configurations": [{"name": "a"}, {"name": "b"}], "share": 0.01}
        return str((await client.data("POST", "/evaluation/experiments", status=201, json=body))["id"])
    return str(experiments[0]["id"])


async def _proposal(client: Client, dataset: str) -> str:
    """Return the client's proposal of tuning that has ended. The first call requests it."""
    proposals: list[dict[str, Any]] = await client.data("GET", "/admin/tuning")
    if not proposals:
        accepted = await client.data("POST", "/admin/tuning", status=202, json={"datasets": [dataset]})
        assert (await client.ended(accepted["job_id"]))["state"] == "succeeded"
        proposals = await client.data("GET", "/admin/tuning")
    return str(proposals[0]["id"])


def _unknown(kind: str) -> str:
    """Return an id in the kind's format that was never used."""
    made = {
        "tenant": f"t_{uuid.uuid4().hex}",
        "answer": f"a_{uuid.uuid4().hex}",
        "question": f"a_{uuid.uuid4().hex}",
        "name": "Grumbleweed Society",
        "key": "grumbleweed/1",
        "file": f"file-{uuid.uuid4().hex}",
        "store": f"vs_{uuid.uuid4().hex}",
    }
    return made.get(kind, str(uuid.uuid4()))


ROWS = [pytest.param(route, case, id=f"{route} {case.kind} {case.where}") for route, cases in CASES.items() for case in cases]


@pytest.mark.parametrize(("route", "case"), ROWS)
async def test_a_foreign_id_is_an_unknown_id(world: World, ids: dict[str, str], route: str, case: Case) -> None:
    if case.kind == "key" and not await world.beta.data("GET", "/documents", params={"key": ids["key"]}):
        await world.beta.upload("Of beta's only.", key=ids["key"])
    id = await _id(world.beta, ids, case.kind)
    before = await _state(world.beta)
    foreign = await _asked(world.alpha, route, case, id)
    unknown = await _asked(world.alpha, route, case, _unknown(case.kind))

    assert foreign[0] == unknown[0] == case.status
    assert foreign == unknown
    assert await _state(world.beta) == before
    if case.kind == "document" and case.status == 200 and route == "POST /search":
        assert json.loads(foreign[1])["data"]["results"] == []
        assert json.loads(foreign[1])["data"]["facts"] == []


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def restricted(world: World) -> Client:
    """A key of beta that may not read the document of `ids`."""
    keys = f"/tenants/{world.beta.caller.tenant_id}/keys"
    name = f"restricted {uuid.uuid4().hex}"
    issued = await world.operator.data(
        "POST", keys, status=201, json={"name": name, "scopes": ["read"], "filter": {"category": "report"}}
    )
    return world.client(replace(world.beta.caller, name=name, key=issued["key"]))


HIDDEN = ("document", "file", "chunk", "key", "dataset", "case", "run", "job", "proposal", "experiment", "question", "stream")
"""Kinds of ids that a restricted key may not learn about. It reads other documents with the entities and themes of `ids`."""


def _hidden_rows() -> list[Any]:
    """Return the rows with these kinds. One form of a filter by id suffices here."""

    def is_other_form(case: Case) -> bool:
        return isinstance(case.body, Mapping) and case.body.get("filters") in _FILTERED[1:]

    rows = ((route, case) for route, cases in CASES.items() for case in cases)
    chosen = ((route, case) for route, case in rows if case.kind in HIDDEN and not is_other_form(case))
    return [pytest.param(route, case, id=f"{route} {case.kind} {case.where}") for route, case in chosen]


@pytest.mark.parametrize(("route", "case"), _hidden_rows())
async def test_an_id_of_a_hidden_document_is_an_unknown_id(
    world: World, ids: dict[str, str], restricted: Client, route: str, case: Case
) -> None:
    if case.kind == "key" and not await world.beta.data("GET", "/documents", params={"key": ids["key"]}):
        await world.beta.upload("Of beta's only.", key=ids["key"])
    id = await _id(world.beta, ids, case.kind)
    before = await _state(world.beta)
    hidden = await _asked(restricted, route, case, id)

    assert hidden == await _asked(restricted, route, case, _unknown(case.kind))
    assert hidden[0] in (403, case.status)
    assert await _state(world.beta) == before


_RIGHT = {
    "document_id": "document",
    "file_id": "file",
    "vector_store_id": "store",
    "chunk_id": "chunk",
    "job_id": "job",
    "community_id": "community",
    "entity_id": "entity",
    "node_id": "node",
    "stream_id": "stream",
    "dataset_id": "dataset",
    "run_id": "run",
}


def _readable() -> list[Any]:
    """Return the rows that only read, with the kind of id that the route needs."""
    rows = []
    for route, cases in CASES.items():
        wanted = _RIGHT.get("".join(re.findall(r"\{(\w+_id)\}", route))) if route.startswith("GET ") else None
        rows += [pytest.param(route, case, id=route) for case in cases if case.kind == wanted and not case.query]
    return rows


@pytest.mark.parametrize(("route", "case"), _readable())
async def test_the_owner_finds_it(world: World, ids: dict[str, str], route: str, case: Case) -> None:
    """The cases would prove nothing with ids that do not exist."""
    assert (await _asked(world.beta, route, case, await _id(world.beta, ids, case.kind)))[0] == case.owner_status


async def _id(client: Client, ids: dict[str, str], kind: str) -> str:
    """Return the client's id of this kind. A stream is kept for a short time only, so its id is always of a new one."""
    if kind != "stream":
        return ids[kind]
    streamed = await client.post("/answers", {"query": "Who chairs the society?", "stream": True})
    return streamed.headers["content-location"].rpartition("/")[2]


async def _asked(client: Client, route: str, case: Case, id: str) -> tuple[int, str]:
    """Return status and body of a request with ``id``, without the parts that name the id or the time."""
    method, path = route.split(" ")

    def put(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("{id}", id))

    if case.fixed is not None:
        path = re.sub(r"\{\w+\}", case.fixed, path, count=1)
    filled = re.sub(r"\{\w+\}", id, path.replace("{page}", "1"))
    if path.startswith(("/health", "/.well-known", *DOORS)):
        filled = "/" + filled
    body = {} if case.body is None else {"json": put(case.body)}
    response = await client.request(method, filled, params=put(dict(case.query)), headers=put(dict(case.headers)), **body)
    return response.status_code, _comparable(response.text, id)


_VOLATILE: tuple[tuple[str, str], ...] = (
    # A dataset that names a document of nobody is created.
    (r'"id":"[^"]*","name":"x"', '"id":"","name":"x"'),
    (r'"(created|updated)_at":"[^"]*"', r'"\1_at":""'),
    (r'"requestId":"[^"]*"', '"requestId":""'),
    (r'"timestamp":"[^"]*"', '"timestamp":""'),
    (r'"processing_time_ms":\{[^}]*\}', '"processing_time_ms":{}'),
    (r'"(resp|fs|msg)_[0-9a-f]{32}"', '""'),
    (r'"created_at":\d+', '"created_at":0'),
    (r'"(id|answer_id)":"a_[0-9a-f]{32}"', r'"\1":""'),
    # The id of a submission.
    (r'"data":\{"id":"[^"]*","scores"', '"data":{"id":"","scores"'),
    # Whether the same tenant asked before.
    (r'"cache":(?:null|"\w+")', '"cache":null'),
)


def _comparable(text: str, id: str) -> str:
    for pattern, replacement in _VOLATILE:
        text = re.sub(pattern, replacement, text)
    text = text.replace(id, "ID")
    return text.replace(f"length {len(id)}", "length N")


async def _state(client: Client) -> dict[str, Any]:
    """Return the data that an intruder could have changed."""
    status = await client.data("GET", "/status")
    return {"counts": status["counts"], "version": status["state_version"], "flags": status["features"]}


async def test_a_key_of_one_tenant_names_no_other(world: World, ids: dict[str, str]) -> None:
    for method, path in (("GET", "/documents"), ("GET", "/tenants/me"), ("POST", "/search")):
        body = {"json": {"query": "eels"}} if method == "POST" else {}
        for tenant in (ids["tenant"], world.alpha.caller.tenant_id, "t_nobody", "*"):
            response = await world.alpha.request(method, path, headers={"X-Tenant-Id": tenant}, **body)
            assert (response.status_code, response.json()["code"]) == (403, "forbidden")


async def test_equal_keys_of_two_tenants_are_two_documents(world: World) -> None:
    mine, other = (world.documents[name]["tide"] for name in ("alpha", "beta"))
    assert mine["key"] == other["key"]
    assert mine["id"] != other["id"]
    chunks = [await client.data("GET", "/documents", params={"key": "tide"}) for client in (world.alpha, world.beta)]
    assert [[item["id"] for item in page] for page in chunks] == [[mine["id"]], [other["id"]]]


async def test_deleting_in_one_tenant_changes_nothing_in_the_other(world: World) -> None:
    """Last in the module: beta loses a document under a key that alpha uses too."""
    before = [await _state(world.alpha), *(await _searches(world.alpha))]
    accepted = await world.beta.data("DELETE", f"/documents/{world.documents['beta']['tide']['id']}", status=202)
    assert (await world.beta.ended(accepted["job_id"]))["state"] == "succeeded"
    assert [await _state(world.alpha), *(await _searches(world.alpha))] == before


async def _searches(client: Client) -> list[str]:
    answers = []
    for strategy in ("dense", "sparse", "hybrid", "graph", "community", "raptor"):
        response = await client.post("/search", {"query": "Who objected to the barrage?", "strategy": strategy, "limit": 20})
        answers.append(_comparable(response.text, "-"))
    return answers
