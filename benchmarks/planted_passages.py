"""A tenant of planted passages: vectors around themes, texts of their themes' words, without an encoder and ingestion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_testing.stores.passages import show

PER_THEME = 12
PER_DOCUMENT = 100
SENTENCES, WORDS = 8, 14
SEED = 7


def planted_vectors(count: int, dimensions: int = 384) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return vectors of length 1 around count ÷ `PER_THEME` themes, shape (count, dimensions), and the theme of each."""
    rng = np.random.default_rng(SEED)
    centres = rng.normal(size=(max(1, count // PER_THEME), dimensions)).astype(np.float32)
    themes = rng.integers(0, len(centres), count)
    rows = centres[themes] + rng.normal(size=(count, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, themes


async def plant(services: Container, tenant: TenantId, count: int, *, first: int = 0) -> None:
    """Make ``count`` passages visible, `PER_DOCUMENT` per document. Those before ``first`` already exist."""
    vectors, themes = planted_vectors(first + count, services.embedder.dimensions)
    rng = np.random.default_rng(SEED)
    texts = [_text(rng, int(theme)) for theme in themes]
    for start in range(first, first + count, PER_DOCUMENT):
        part = slice(start, min(start + PER_DOCUMENT, first + count))
        volume = (f"Volume {start // PER_DOCUMENT}", texts[part])
        await show(services.catalogue, services.vectors, tenant, volume, list(vectors[part]))
    await services.vectors.flush()


def _text(rng: np.random.Generator, theme: int) -> str:
    words = rng.integers(0, 40, (SENTENCES, WORDS))
    common = rng.integers(0, 500, (SENTENCES, 4))
    sentences = (
        " ".join([f"w{theme}x{word}" for word in own] + [f"c{word}" for word in shared])
        for own, shared in zip(words, common, strict=True)
    )
    return " ".join(f"{sentence.capitalize()}." for sentence in sentences)
