"""Schemas of responses whose parts a request chooses by ``fields``: models without required fields, named ``PartOf…``."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

Schemas = dict[str, dict[str, Any]]
_REFERENCE = "#/components/schemas/"


def document_parts(operation: dict[str, Any], schemas: Schemas) -> None:
    """Say in an operation whose body has ``fields`` that its response may have a part of ``data`` only."""
    body = _resolve(operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {}), schemas)
    if "fields" not in body.get("properties", {}):
        return
    content = operation["responses"]["200"]["content"]["application/json"]
    envelope = _resolve(content["schema"], schemas)
    view = envelope["properties"]["data"]["$ref"].removeprefix(_REFERENCE)
    parts = {name: make_optional_schema(schema, schemas) for name, schema in schemas[view]["properties"].items()}
    chosen = {
        "type": "object",
        "description": "the response to a request with `fields`",
        "properties": {**envelope["properties"], "data": _add_model(f"PartOf{view}", parts, schemas)},
        "required": envelope["required"],
    }
    content["schema"] = {"anyOf": [content["schema"], chosen]}


def _add_model(name: str, properties: Mapping[str, Any], schemas: Schemas) -> dict[str, str]:
    # A copy: programs that convert the document in place would convert shared schemas twice.
    model = {"type": "object", "title": name, "properties": properties, "additionalProperties": False, "minProperties": 1}
    schemas[name] = deepcopy(model)
    return {"$ref": f"{_REFERENCE}{name}"}


def make_optional_schema(schema: Mapping[str, Any], schemas: Schemas) -> dict[str, Any]:
    """Return the schema of a part, whose fields may be missing."""
    if "$ref" in schema and "properties" in (model := _resolve(schema, schemas)):
        return dict(_add_model(f"PartOf{schema['$ref'].removeprefix(_REFERENCE)}", model["properties"], schemas))
    if "items" in schema:
        return {**schema, "items": make_optional_schema(schema["items"], schemas)}
    if "anyOf" in schema:
        return {**schema, "anyOf": [make_optional_schema(option, schemas) for option in schema["anyOf"]]}
    return dict(schema)


def _resolve(schema: Mapping[str, Any], schemas: Schemas) -> dict[str, Any]:
    """Return the model that a schema refers to, else the schema."""
    return schemas[schema["$ref"].removeprefix(_REFERENCE)] if "$ref" in schema else dict(schema)
