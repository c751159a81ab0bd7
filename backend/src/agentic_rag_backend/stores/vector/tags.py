"""Filterable fields as tags: one exact keyword per (field, value), and one per field that is present.

Metadata has no schema, so its keys cannot each have an index; tags of all fields share one. A tag is the JSON text
``["field", value]`` (``["field"]`` for presence). This text keeps true, 1 and "true" apart, is the same for 1 and 1.0, as in
Python, and stays unambiguous if a key holds dots, quotes or control characters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from agentic_rag_backend.domain.filters import has_value
from agentic_rag_backend.errors import InvalidRequest


def presence_tag(field: str) -> str:
    """Return the tag of every point that has ``field``."""
    return json.dumps([field])


def value_tag(field: str, value: object) -> str | None:
    """Return the tag of ``value`` in ``field``. None for a value that equals nothing: NaN, an object, a nested list."""
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer():
            value = int(value)
    elif value is not None and not isinstance(value, (str, int)):
        return None
    return json.dumps([field, value])


def tags_of(fields: Mapping[str, Any]) -> list[str]:
    """Return the tags of a point's fields. A list field has one tag per item; a missing or empty field has none.

    Raises:
        InvalidRequest: a value is not JSON.
    """
    tags: dict[str, None] = {}
    for field, value in fields.items():
        items = list(value) if isinstance(value, (list, tuple)) else [value]
        if not has_value(value):
            continue
        if not isinstance(field, str):
            raise InvalidRequest(f"metadata keys are strings; got {field!r} of type {type(field).__name__}")
        tags[presence_tag(field)] = None
        for item in items:
            if item is not None and not isinstance(item, (str, int, float, list, tuple, dict)):
                raise InvalidRequest(f"metadata values are JSON; field {field!r} holds a {type(item).__name__}")
            tag = value_tag(field, item)
            if tag is not None:
                tags[tag] = None
    return list(tags)


def read_tag(tag: str) -> tuple[str, list[Any]]:
    """Return the field and the value of a tag. The value is in a list, which is empty for a presence tag."""
    field, *values = json.loads(tag)
    return field, values
