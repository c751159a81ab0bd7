"""Schemas of structured replies: JSON Schema in the form that structured outputs require.

Every property of an object is required, and no other is allowed. Bounds keep a model from writing without an end, and are only
where the reader of a reply cuts it anyway. Servers that refuse bounds get the schema without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}


def object_of(properties: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


def list_of(items: Schema, max_items: int | None = None) -> Schema:
    """Return the schema of a list of at most ``max_items`` items."""
    return {"type": "array", "items": items} | ({} if max_items is None else {"maxItems": max_items})


def text_of(max_length: int) -> Schema:
    """Return the schema of a text of at most ``max_length`` characters. Servers' grammars are slow for more than some hundred."""
    return {**TEXT, "maxLength": max_length}


def one_of(words: Sequence[str]) -> Schema:
    """Return the schema of one of several words. Another word is read as ``other`` if that is one of them."""
    return {**TEXT, "enum": list(words)}
