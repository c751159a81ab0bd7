"""Metadata of documents: a limited number of keys with JSON scalars or lists of them, so that every store can filter by it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from typing import Any

from agentic_rag_backend.domain.filters import DOCUMENT_FIELDS
from agentic_rag_backend.domain.size_limits import MAX_KEYS, MAX_METADATA_BYTES, make_storable, size_of
from agentic_rag_backend.errors import InvalidRequest

MAX_KEY_CHARACTERS = 128
MAX_INTEGER = 2**63 - 1
"""Larger integers do not fit into a database column."""
_UNSTORABLE = "has a NUL character or an unpaired surrogate"


def check_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a caller's metadata as plain values.

    Raises:
        InvalidRequest: a key or value is outside the limits. The message names key, limit and value.
    """
    if len(metadata) > MAX_KEYS:
        raise InvalidRequest(f"metadata has {len(metadata)} keys; the limit is {MAX_KEYS}")
    for key, value in metadata.items():
        problem = _key_problem(key) or _value_problem(value)
        if problem:
            raise InvalidRequest(f"metadata key {str(key)[:MAX_KEY_CHARACTERS]!r}: {problem}")
    plain = {key: list(value) if isinstance(value, (list, tuple)) else value for key, value in metadata.items()}
    size = size_of(plain)
    if size > MAX_METADATA_BYTES:
        raise InvalidRequest(f"metadata takes {size} bytes as JSON; the limit is {MAX_METADATA_BYTES}")
    return plain


def keep_valid_fields(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the ``fields`` of a file that are valid metadata, without the others. Dates become ISO 8601 strings."""
    plain = {str(key).strip(): _to_plain_value(value) for key, value in fields.items()}
    return {key: value for key, value in plain.items() if not _key_problem(key) and not _value_problem(value)}


def _key_problem(key: object) -> str:
    if not isinstance(key, str) or not key.strip():
        return "a key must be a string that is not empty"
    if key != make_storable(key):
        return f"the key {_UNSTORABLE}"
    if len(key) > MAX_KEY_CHARACTERS:
        return f"the key has {len(key)} characters; the limit is {MAX_KEY_CHARACTERS}"
    if key in DOCUMENT_FIELDS:
        return f"{', '.join(DOCUMENT_FIELDS)} are fields of every document, not metadata"
    return ""


def _value_problem(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return next((problem for problem in map(_scalar_problem, value) if problem), "")
    return _scalar_problem(value)


def _scalar_problem(value: object) -> str:
    if isinstance(value, str):
        return f"a string {_UNSTORABLE}" if value != make_storable(value) else ""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return "" if abs(value) <= MAX_INTEGER else f"the number is beyond ±{MAX_INTEGER}"
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{value} is not a JSON number"
    return f"a value must be a string, number, boolean, null or a list of them; it is {type(value).__name__}"


def _to_plain_value(value: object) -> object:
    if isinstance(value, date):  # datetime is a subclass
        return value.isoformat()
    return [_to_plain_value(item) for item in value] if isinstance(value, (list, tuple)) else value
