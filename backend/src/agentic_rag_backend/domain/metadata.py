"""Limits of a document's metadata, and the part of a file's own metadata that they leave room for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

MAX_KEYS = 64
MAX_METADATA_BYTES = 8192
OWNERS_BYTES = 1024
"""Room that the values of a file leave for values that its owner adds later."""
_SHORT_CHARACTERS = (1000, 200)
"""Lengths to which texts are shortened, one after the other, until all values fit."""


def size_of(metadata: Mapping[str, Any]) -> int:
    """Return the size of metadata as JSON in bytes."""
    return len(json.dumps(metadata, ensure_ascii=False).encode())


def merge_file_fields(owner_fields: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``fields`` of a file that fit into a document's metadata together with the owner's values.

    Long texts are shortened if not everything fits, and then the last fields are left out.
    """
    keys = MAX_KEYS - len(owner_fields)
    room = MAX_METADATA_BYTES - max(size_of(owner_fields), OWNERS_BYTES)
    for shortened in _shorten_fields(fields):
        if len(shortened) <= keys and size_of(shortened) <= room:
            return shortened
    merged: dict[str, Any] = {}
    for name, value in shortened.items():
        room -= size_of({name: value})
        if len(merged) >= keys or room < 0:
            break
        merged[name] = value
    return merged


def _shorten_fields(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield dict(fields)
    for limit in _SHORT_CHARACTERS:
        yield {name: _shorten_value(value, limit) for name, value in fields.items()}


def _shorten_value(value: Any, limit: int) -> Any:
    return f"{value[: limit - 1]}…" if isinstance(value, str) and len(value) > limit else value
