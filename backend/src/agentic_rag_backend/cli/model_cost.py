"""Estimate of the language model's work for an ingestion, from the sizes of files."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.language.tokens import text_tokens
from agentic_rag_backend.prompts import built_in

_BYTES_PER_TOKEN = 4
_NEW_TOKENS_PER_CHUNK = 188
"""Tokens of a chunk of default size that the chunk before does not have."""
_CHUNK_TOKENS = 220
_WRITTEN_TOKENS = 300
"""Tokens of a usual reply. The limit is higher."""
_OF_EPISODE = (6, 8_100, 510)
"""Calls of `graphiti` for a chunk, and the tokens that they read and write, as measured on ``examples/``."""


@dataclass(frozen=True, slots=True)
class ModelCost:
    """Number of calls, and the tokens that they read and write."""

    calls: int
    tokens_read: int
    tokens_written: int


def extraction_cost(files: int, size_bytes: int, method: str = "llm") -> ModelCost:
    """Return the cost of a method for the chunks of ``files`` files of text. Files that are not text have fewer chunks."""
    return cost_of_chunks(max(files, -(-size_bytes // (_BYTES_PER_TOKEN * _NEW_TOKENS_PER_CHUNK))), method)


def cost_of_chunks(chunks: int, method: str = "llm") -> ModelCost:
    """Return the cost of a method for a number of chunks."""
    if method == "graphiti":
        return ModelCost(*(chunks * share for share in _OF_EPISODE))
    prompt = built_in("extraction")
    return ModelCost(chunks, chunks * (text_tokens([prompt.system, prompt.user]) + _CHUNK_TOKENS), chunks * _WRITTEN_TOKENS)
