"""The offline language model: it answers with sentences of the evidence, each with its passage's marker."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

import numpy as np

from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.domain.text.independence import plain
from agentic_rag_backend.domain.text.sentences import with_full_stop
from agentic_rag_backend.errors import ModelReplyInvalid
from agentic_rag_backend.models.embedding.base import TextEncoder
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, ModelDelta, ModelReply, ModelRequest
from agentic_rag_backend.models.llm.selection import Candidate, read, select

MIN_SIMILARITY = 0.25
"""Least cosine of the question and the nearest sentence. Below it, no sentence is chosen."""
_BRACKETED_NUMBER = re.compile(r"(?:(?<!\s)\s+)?\[\s*\d[\d\s,;–-]*\]")


class ExtractiveModel:
    """Selects and orders sentences of `ModelRequest.evidence`. Calls only the encoder of sentences, once per answer.

    The text is "Sentence. [n] Sentence. [m]", or `NOT_ANSWERED`. Bracketed numbers inside a sentence (the references of
    an encyclopedia, or text that imitates a marker) are removed, so that every bracket in the text is a marker.
    """

    generative = False
    name = "extractive"

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the chosen sentences.

        Raises:
            ModelReplyInvalid: the request had a schema.
        """
        pieces = await self._pieces(request)
        return ModelReply(" ".join(pieces), Usage(), self.name)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Yield one sentence after the other."""
        for index, piece in enumerate(await self._pieces(request)):
            yield ModelDelta(f" {piece}" if index else piece)
        yield ModelDelta("", Usage())

    async def close(self) -> None:
        """Nothing to release: the caller that made the encoder owns it."""

    async def _pieces(self, request: ModelRequest) -> list[str]:
        if request.schema is not None:
            raise ModelReplyInvalid("LLM=extractive selects sentences; it writes no structured replies")
        chosen = request.quotations or await self._chosen(request)
        return [f"{_clean(each.text)} [{each.marker}]" for each in chosen] or [NOT_ANSWERED]

    async def _chosen(self, request: ModelRequest) -> list[Candidate]:
        if not request.question.strip():
            return []
        reading = read(request.question, request.evidence)
        if not reading.candidates:
            return []
        asked = await self._encoder.embed_query(request.question)
        vectors = await self._encoder.embed([candidate.in_context for candidate in reading.candidates])
        similarity = vectors @ asked
        return select(reading, similarity, vectors @ vectors.T) if np.max(similarity) >= MIN_SIMILARITY else []


def _clean(text: str) -> str:
    written = plain(_BRACKETED_NUMBER.sub("", text))
    # A table row or a list item has no full stop and would run into the next sentence.
    return with_full_stop(written)
