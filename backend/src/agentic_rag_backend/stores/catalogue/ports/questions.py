"""The port of synthetic questions. They are results of a chunk: they come, are reused and go with its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.domain.document import Failure
from agentic_rag_backend.domain.synthetic_questions import SyntheticQuestion
from agentic_rag_backend.domain.tenant import TenantId


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """A question with its vector. None: the embedder refused the question, so search does not find it."""

    question: SyntheticQuestion
    vector: NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class ChunkQuestions:
    """The questions of a chunk, 0 to 3, each text once.

    ``recipe`` is a hash of their inputs and models. Questions with a ``failure``, such as that of a model that patterns
    replaced, are not reused.
    """

    recipe: str
    items: tuple[PreparedQuestion, ...] = ()
    failure: Failure | None = None


class QuestionCatalogue(Protocol):
    """Synthetic questions of chunks. Readers get those of visible versions only."""

    async def save(self, tenant: TenantId, document_id: str, version: int, questions: Mapping[str, ChunkQuestions]) -> None:
        """Record questions by chunk id, in place of recorded ones. The chunks are staged for the version. Idempotent.

        A version that is visible, or older than a visible one, is not changed. `NotFound` if the document was deleted.
        """

    async def reuse(self, tenant: TenantId, document_id: str, version: int, wanted: Mapping[str, str]) -> frozenset[str]:
        """Record the questions of ``wanted``, recipes by chunk id, that are known. Return the ids of their chunks.

        Questions count if they have the same recipe and no failure. They may belong to this version, or to another version of
        the document; then they are copied. The chunks are staged for the version. `NotFound` if the document was deleted.
        """

    async def of_chunks(self, tenant: TenantId, chunk_ids: Sequence[str]) -> dict[str, tuple[SyntheticQuestion, ...]]:
        """Return the questions of chunks of visible versions, in order. Chunks without questions are absent."""

    async def by_id(self, tenant: TenantId, question_ids: Sequence[str]) -> dict[str, SyntheticQuestion]:
        """Return questions of visible versions. Other questions are absent."""

    async def embedded(self, tenant: TenantId, document_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the ids of the questions that each document's visible version has in the vector store."""
