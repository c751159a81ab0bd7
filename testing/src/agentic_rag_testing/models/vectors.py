"""Vectors of a scripted embedder: equal texts have equal vectors, in every process and on every machine."""

from __future__ import annotations

import base64
import hashlib
import math
import struct
from collections.abc import Sequence

from agentic_rag_backend.language.words import words


def embed_text(text: str, dimensions: int) -> list[float]:
    """Return a unit vector that is similar for texts with common words. Deterministic in all processes."""
    vector = [0.0] * dimensions
    for word in words(text):
        digest = hashlib.sha256(word.form.encode()).digest()
        vector[int.from_bytes(digest[:4], "big") % dimensions] += 1.0 if digest[4] % 2 else -1.0
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else [1.0, *vector[1:]]


def hash_text(text: str, dimensions: int) -> list[float]:
    """Return a unit vector from the text's hash: different texts are unrelated. Twenty times as fast."""
    drawn = hashlib.shake_128(text.encode(errors="surrogatepass")).digest(2 * dimensions)
    values = struct.unpack(f"<{dimensions}h", drawn)
    length = math.sqrt(sum(value * value for value in values)) or 1.0
    return [value / length for value in values]


def with_floor(vector: Sequence[float], floor: float) -> list[float]:
    """Return a unit vector of the same dimension whose cosines with its like are ``floor`` + (1 - ``floor``) · cosine.

    The last value is used for it, so that cosines of vectors that have one differ a little.
    """
    scale = math.sqrt(1.0 - floor)
    length = math.sqrt(sum(value * value for value in vector[:-1])) or 1.0
    return [*(scale * value / length for value in vector[:-1]), math.sqrt(floor)]


def packed(vector: Sequence[float]) -> str:
    """Return a vector as the protocol's base64 of little-endian 32-bit floats."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
