"""OpenAPI document: FastAPI's document, completed with problems, credentials and examples."""

from __future__ import annotations

import asyncio
import threading
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from agentic_rag_backend.api.documentation.partial_schemas import document_parts
from agentic_rag_backend.api.documentation.response_examples import example_of, problem_example
from agentic_rag_backend.api.responses.error_responses import MEDIA_TYPE
from agentic_rag_backend.api.schemas.documents.documents import NewDocument
from agentic_rag_backend.api.schemas.documents.previews import PreviewBody
from agentic_rag_backend.api.schemas.evaluation_views import DatasetBody

_REFERENCE = "#/components/schemas/{model}"
_CREDENTIALS = frozenset({"authorization", "x-api-key"})
_DESCRIPTIONS = {
    "401": "no key, or an unknown or revoked key",
    "403": "the key lacks the scope, or the route requires the operator's key",
    "404": "nothing has this id; ids of other tenants get the same response",
    "408": "the body stopped arriving",
    "409": "the state does not allow this, the name is taken, or a request with this `Idempotency-Key` is running",
    "412": "the document has changed since the revision in If-Match",
    "413": "the body or a file is too large",
    "415": "the media type of the body is not supported",
    "422": "a value is outside its limits; `detail` names limit and value",
    "429": "the address of the caller has too many open connections, or has sent too many wrong keys",
    "503": "a store or model does not respond, or the server is overloaded; retry after `Retry-After`",
    "504": "the request exceeded its time limit",
    "default": "any other problem",
}
_RETRY_AFTER = {"Retry-After": {"description": "seconds to wait before a retry", "schema": {"type": "integer", "minimum": 1}}}
_HEADERS = {
    "401": {"WWW-Authenticate": {"description": "how to send a key", "schema": {"type": "string"}}},
    "429": _RETRY_AFTER,
    "503": _RETRY_AFTER,
}


class FieldProblem(BaseModel):
    """An invalid field of a request, and the reason."""

    field: str
    message: str
    code: str
    value: str | None = None


class Problem(BaseModel):
    """An error in the format of RFC 9457."""

    type: str = Field(examples=["urn:agentic-rag:problem:not_found"])
    title: str
    status: int
    detail: str = Field(description="explanation, with limit and value")
    code: str = Field(description="stable code for programs", examples=["not_found"])
    requestId: str  # noqa: N815 - the contract's spelling
    errors: list[FieldProblem] | None = None


def describe(app: FastAPI, *, base_path: str) -> None:
    """Complete the document of ``app`` and serve it. Paths outside ``base_path`` describe their errors themselves."""
    derive, deriving = app.openapi, threading.Lock()

    def complete() -> dict[str, Any]:
        with deriving:
            if app.openapi_schema is None:
                app.openapi_schema = _complete_operation(derive(), base_path)
            return app.openapi_schema

    async def document(request: Request) -> Response:
        # In a thread, because deriving takes half a second of CPU.
        return await asyncio.to_thread(lambda: _render_document(complete(), request.scope.get("root_path", "").rstrip("/")))

    app.openapi = complete  # type: ignore[method-assign]
    app.add_route(f"{base_path}/openapi.json", document, include_in_schema=False)


def _render_document(document: dict[str, Any], root_path: str) -> Response:
    """Return the document as a response; below a proxy's prefix, with that prefix as server."""
    return JSONResponse({**document, "servers": [{"url": root_path}]} if root_path else document)


def _complete_operation(document: dict[str, Any], base_path: str) -> dict[str, Any]:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for model in (Problem, NewDocument, PreviewBody, DatasetBody):
        schema = model.model_json_schema(ref_template=_REFERENCE)
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parameters = operation.pop("parameters", [])
            # The security schemes document these headers; as parameters they would appear twice.
            asks = [item["name"] for item in parameters if item["name"].lower() in _CREDENTIALS]
            if remaining := [item for item in parameters if item["name"] not in asks]:
                operation["parameters"] = remaining
            if path.startswith(base_path):
                _require_key(operation)
                _add_problems(operation, _statuses(operation, method, named="{" in path))
            elif "default" in operation["responses"]:  # a door, whose errors have a form of their own
                _require_key(operation)
                operation["responses"].pop("422", None)
            elif asks:
                _require_key(operation, optional=True)
                operation["responses"].pop("422", None)
                _add_problems(operation, {"401", "403", "429"})
            _add_examples(operation, schemas)
            document_parts(operation, schemas)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return document


def _require_key(operation: dict[str, Any], *, optional: bool = False) -> None:
    operation["security"] = [{"bearer": []}, {"apiKey": []}, *([{}] if optional else [])]


def _statuses(operation: dict[str, Any], method: str, *, named: bool) -> set[str]:
    """Return the statuses of the problems that an operation may return."""
    statuses = {"401", "403", "422", "429", "503", "504", "default"}
    statuses |= {"404"} if named else set()
    # With an `Idempotency-Key`, the body is read even if the endpoint takes none.
    statuses |= {"408", "413"} if method in {"post", "patch", "put"} else set()
    statuses |= {"415"} if "requestBody" in operation else set()
    statuses |= {"409"} if method == "post" else set()
    return statuses | {status for status in operation["responses"] if status >= str(HTTPStatus.BAD_REQUEST.value)}


def _add_problems(operation: dict[str, Any], statuses: set[str]) -> None:
    for status in sorted(statuses):
        description = operation["responses"].get(status, {}).get("description", "")
        content: dict[str, Any] = {"schema": {"$ref": _REFERENCE.format(model="Problem")}}
        if (example := problem_example(status)) is not None:
            content["example"] = example
        response: dict[str, Any] = {
            "description": description if status == "404" and description else _DESCRIPTIONS.get(status, description),
            "content": {MEDIA_TYPE: content},
        }
        if status in _HEADERS:
            response["headers"] = _HEADERS[status]
        operation["responses"][status] = response


def _add_examples(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    for response in operation["responses"].values():
        for media_type, content in response.get("content", {}).items():
            if media_type == "application/json" and "example" not in content and content.get("schema"):
                content["example"] = example_of(content["schema"], schemas)
