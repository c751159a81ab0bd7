"""The OpenAPI document: what FastAPI derives, with problems, credentials and the body that it cannot see."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, Field

from agentic_rag_backend.api.errors import MEDIA_TYPE
from agentic_rag_backend.api.schemas.documents import NewDocument

_REFERENCE = "#/components/schemas/{model}"
_CREDENTIALS = frozenset({"authorization", "x-api-key"})
_DESCRIPTIONS = {
    "401": "no key, or one that nobody holds",
    "403": "the key's scope does not allow it, or it is the operator's",
    "404": "there is nothing of that id; another tenant's ids are no different",
    "409": "not in a state that allows this, the name is taken, or the request of that `Idempotency-Key` is being carried out",
    "412": "the document was changed since the revision in If-Match",
    "413": "the body or a file is too large",
    "415": "the body's media type is not one that is read",
    "422": "a value is outside its limits; `detail` names limit and value",
    "default": "any other problem, such as a store or model that does not answer (503)",
}


class FieldProblem(BaseModel):
    """One field of a request and what is wrong with it."""

    field: str
    message: str
    code: str
    value: str | None = None


class Problem(BaseModel):
    """An error, as RFC 9457 has it."""

    type: str = Field(examples=["urn:agentic-rag:problem:not_found"])
    title: str
    status: int
    detail: str = Field(description="what is wrong, with limit and value")
    code: str = Field(description="stable, for programs", examples=["not_found"])
    requestId: str  # noqa: N815 - the contract's spelling
    errors: list[FieldProblem] | None = None


def describe(app: FastAPI, *, base_path: str) -> None:
    """Complete the document of ``app``; paths outside ``base_path`` need no key and stay as they are."""
    derive = app.openapi

    def complete() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(derive(), base_path)
        return app.openapi_schema

    app.openapi = complete  # type: ignore[method-assign]


def _completed(document: dict[str, Any], base_path: str) -> dict[str, Any]:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for model in (Problem, NewDocument):
        schema = model.model_json_schema(ref_template=_REFERENCE)
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    }
    for path, operations in document["paths"].items():
        if path.startswith(base_path):
            for method, operation in operations.items():
                _complete_operation(operation, method, named="{" in path)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return document


def _complete_operation(operation: dict[str, Any], method: str, *, named: bool) -> None:
    operation["security"] = [{"bearer": []}, {"apiKey": []}]
    parameters = [item for item in operation.pop("parameters", []) if item["name"].lower() not in _CREDENTIALS]
    if parameters:
        operation["parameters"] = parameters
    statuses = ["401", "403", "422", "default"]
    statuses += ["404"] if named else []
    statuses += ["413", "415"] if "requestBody" in operation else []
    statuses += ["409"] if method == "post" else []
    for status in sorted(
        {*statuses, *(status for status in operation["responses"] if status >= str(HTTPStatus.BAD_REQUEST.value))}
    ):
        said = operation["responses"].get(status, {}).get("description", "")
        operation["responses"][status] = {
            "description": said if status == "404" and said else _DESCRIPTIONS.get(status, said),
            "content": {MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}},
        }
