"""Canonical results: without times and random ids, with rounded numbers, so that equal results are equal byte for byte."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

DIGITS = 6
_UUID = re.compile(r"\b(?:[a-z]+_)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b|\b(?:req|ans)_[0-9a-f]{32}\b")
_TIMES = frozenset(
    {"processing_time_ms", "requestId", "timestamp", "created_at", "updated_at", "built_at", "usage", "latency_ms"}
)
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
"""A time with microseconds: that of the request, or one relative to it."""
_TEXTS = frozenset({"content", "text"})
"""Fields of passages, which are stored as hashes."""


def digest(value: Any, length: int = 64) -> str:
    """Return the SHA-256 of a value as JSON, in hex."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


class Canon:
    """Makes results canonical. ``labels`` are the names of ids; an id without a name becomes ``id``."""

    def __init__(self, labels: Mapping[str, str] | None = None) -> None:
        self.labels = dict(labels or {})

    def clean(self, value: Any, name: str = "") -> Any:
        """Return a canonical copy of a JSON value. ``name`` is the field that holds it."""
        if isinstance(value, Mapping):
            return {self._label(str(key)): self.clean(item, str(key)) for key, item in value.items() if key not in _TIMES}
        if isinstance(value, list | tuple):
            return [self.clean(item, name) for item in value]
        if isinstance(value, float):
            return round(value, DIGITS) + 0.0
        if isinstance(value, str):
            return digest(value, 12) if name in _TEXTS else self._label(value)
        return value

    def _label(self, text: str) -> str:
        return _MOMENT.sub("moment", _UUID.sub(lambda match: self.labels.get(match[0], "id"), text))


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield the differences of two canonical values, as ``path: old → new``."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            yield from differences(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}: {len(old)} items → {len(new)} items"
        for number, (first, second) in enumerate(zip(old, new, strict=False)):
            yield from differences(first, second, f"{path}[{number}]")
    elif old != new:
        yield f"{path}: {_short(old)} → {_short(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else text[:100] + "…"
