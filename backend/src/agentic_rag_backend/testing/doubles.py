"""Test doubles for the dependencies of a theme service: an embedder, a model and a queue that tests can inspect."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.domain.job import Job
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.text.words import content_forms
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.jobs.base import QueueName, Workflow
from agentic_rag_backend.jobs.coordination.tenant_locks import TenantLock, TenantLocks
from agentic_rag_backend.models.llm.base import ModelDelta, ModelReply, ModelRequest
from agentic_rag_backend.stores.catalogue.base import Enqueue


class HashedWords:
    """A fast, deterministic embedder whose vectors depend only on the words. ``embedded`` counts texts."""

    fingerprint = "hashed-words"
    languages: tuple[str, ...] | None = None

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.embedded = 0

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for each text."""
        self.embedded += len(texts)
        return np.stack([self._vector(text) for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a question."""
        return self._vector(text)

    def query_characters(self, text: str) -> int:
        """Return the length of the question: it is read completely."""
        return len(text)

    def query_tokens(self, text: str) -> int:
        """Return 0: nothing is billed."""
        return 0

    async def close(self) -> None:
        """Nothing to close."""

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.full(self.dimensions, 1e-3, dtype=np.float32)
        for form in content_forms(text):
            vector[hashlib.sha256(form.encode()).digest()[0] % self.dimensions] += 1
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class ScriptedModel:
    """A generative model that writes equal summaries and records every request. It can be held.

    Of three findings, only the first cites a fact.

    Args:
        failing: receives the number of the call, from 1; returns whether the model is unavailable.
    """

    generative = True
    name = "scripted"

    def __init__(self, *, failing: Callable[[int], bool] = lambda call: False) -> None:
        self.requests: list[ModelRequest] = []
        self.started = asyncio.Event()
        self.released = asyncio.Event()
        self.released.set()
        self._failing = failing

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Reply once released."""
        self.requests.append(request)
        self.started.set()
        number = len(self.requests)
        await self.released.wait()
        if self._failing(number):
            raise ModelUnavailable("the model is away")
        parsed = {
            "title": f"Theme {number}",
            "summary": f"What connects these is told in summary {number}.",
            "keywords": ["tide", "museum"],
            "findings": [
                {"statement": "Held by the first fact.", "sources": [1]},
                {"statement": "Held by nothing.", "sources": [999]},
                {"statement": "Names no fact.", "sources": []},
            ],
            "rating": 7,
        }
        return ModelReply("", Usage(100, 20, 1), self.name, parsed)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelDelta]:
        """Not used: the tests do not stream."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to close."""


class HeldQueue:
    """A queue that only records enqueued jobs, as workflow and job. Tests run the workflows themselves."""

    def __init__(self) -> None:
        self.enqueued: list[tuple[str, str]] = []
        self._tenant_locks = TenantLocks()

    def register(self, name: str, queue: QueueName, workflow: Workflow) -> None:
        """Do nothing: no workflows run."""
        raise NotImplementedError

    def enqueuer(self, name: str) -> Enqueue:
        """Return a function that records a job."""

        def enqueue(connection: Connection, tenant: TenantId, job: Job) -> None:
            self.enqueued.append((name, job.id))

        return enqueue

    async def enqueue(self, name: str, tenant: TenantId, job_id: str, attempt: int) -> None:
        """Record a job."""
        self.enqueued.append((name, job_id))

    def tenant_lock(self, tenant_lock: TenantLock, tenant: TenantId) -> AbstractAsyncContextManager[object]:
        """Return the turn of this process."""
        return self._tenant_locks.held(tenant_lock, tenant)

    async def leads(self) -> bool:
        """Return True: there is no other process."""
        return True

    async def launch(self) -> None:
        """Do nothing."""

    async def shutdown(self, *, drain: bool = True) -> None:
        """Do nothing."""

    async def ping(self) -> None:
        """Do nothing: always available."""
