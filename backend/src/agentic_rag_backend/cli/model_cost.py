"""Estimate of the language model's work for an ingestion, from the sizes of files."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.domain.text.tokens import text_tokens
from agentic_rag_backend.prompts import built_in

_BYTES_PER_TOKEN = 4
_NEW_TOKENS_PER_CHUNK = 188
"""Tokens of a chunk of default size that the chunk before does not have."""
_CHUNK_TOKENS = 220
_WRITTEN_TOKENS = 300
"""Tokens of a usual reply. The limit is higher."""


@dataclass(frozen=True, slots=True)
class ModelCost:
    """Number of calls, and the tokens that they read and write."""

    calls: int
    tokens_read: int
    tokens_written: int


def extraction_cost(files: int, size_bytes: int) -> ModelCost:
    """Return the cost of one call for each chunk of ``files`` files of text. Files that are not text have fewer chunks."""
    return cost_of_chunks(max(files, -(-size_bytes // (_BYTES_PER_TOKEN * _NEW_TOKENS_PER_CHUNK))))


def cost_of_chunks(calls: int) -> ModelCost:
    """Return the cost of a call for each of a number of chunks."""
    prompt = built_in("extraction")
    return ModelCost(calls, calls * (text_tokens([prompt.system, prompt.user]) + _CHUNK_TOKENS), calls * _WRITTEN_TOKENS)
