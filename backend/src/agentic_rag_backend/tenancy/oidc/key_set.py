"""Public keys of an OpenID provider (JWKS)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt

from agentic_rag_backend.domain.identity_provider import SIGNING_ALGORITHMS

MAX_KEYS = 100
"""Keys of a set that are read. Providers have fewer than ten."""


class KeySet:
    """The keys of one set. A key is built when it is first needed.

    Args:
        document: a JSON Web Key Set. Entries that sign nothing are ignored.

    Raises:
        ValueError: it is no such set.
    """

    def __init__(self, document: object) -> None:
        entries = document.get("keys") if isinstance(document, Mapping) else None
        if not isinstance(entries, list):
            raise ValueError("it has no list of keys")
        self._entries: list[Mapping[str, Any]] = [entry for entry in entries[:MAX_KEYS] if isinstance(entry, Mapping)]
        self._keys: dict[tuple[int, str], jwt.PyJWK] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def find_key(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        """Return the key with an id that fits an algorithm. Without an id, the only key that fits. None: there is none."""
        fitting = [
            number
            for number, entry in enumerate(self._entries)
            if _fits(entry, algorithm) and (key_id is None or entry.get("kid") == key_id)
        ]
        return self._build_key(fitting[0], algorithm) if len(fitting) == 1 else None

    def _build_key(self, number: int, algorithm: str) -> jwt.PyJWK | None:
        if (number, algorithm) not in self._keys:
            try:
                # The caller's algorithm, which `_fits` has compared with the entry's. The library would choose one otherwise.
                self._keys[number, algorithm] = jwt.PyJWK(dict(self._entries[number]), algorithm=algorithm)
            except (jwt.PyJWTError, ValueError, TypeError):
                return None
        return self._keys[number, algorithm]


def _fits(entry: Mapping[str, Any], algorithm: str) -> bool:
    """Return whether an entry is a key that verifies signatures of an algorithm."""
    kind, curve = SIGNING_ALGORITHMS[algorithm]
    operations = entry.get("key_ops")
    return (
        entry.get("kty") == kind
        and (curve is None or entry.get("crv") == curve)
        and entry.get("alg") in (None, algorithm)
        and entry.get("use") in (None, "sig")
        and (not isinstance(operations, list) or "verify" in operations)
    )
