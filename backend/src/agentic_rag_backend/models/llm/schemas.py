"""Schemas of structured replies: JSON Schema in the form that structured outputs require.

Every property of an object is required, and no other is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}


def object_of(properties: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


def list_of(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}
