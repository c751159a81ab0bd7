"""Bodies with chunking options: missing options follow from the given ones."""

from __future__ import annotations

from typing import Any

import pytest

from agentic_rag_backend.api.schemas.documents.documents import Chunking
from agentic_rag_backend.domain.document import ChunkingOptions


@pytest.mark.parametrize(
    ("given", "size", "overlap"),
    [
        ({}, 220, 32),
        ({"chunk_size": 50}, 50, 7),
        ({"chunk_size": 20}, 20, 2),
        ({"chunk_size": 2000}, 2000, 32),
        ({"unit": "characters"}, 1000, 100),
        ({"unit": "characters", "chunk_size": 64}, 64, 6),
        ({"chunk_size": 50, "overlap": 25}, 50, 25),
        ({"overlap": 0}, 220, 0),
    ],
)
def test_the_overlap_follows_the_size(given: dict[str, Any], size: int, overlap: int) -> None:
    options = Chunking.model_validate(given).options()
    assert (options.chunk_size, options.overlap) == (size, overlap)
    assert isinstance(options, ChunkingOptions)
