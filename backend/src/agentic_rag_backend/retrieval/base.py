"""The retriever port, and what every retriever uses: the stores, the vector of the question and the graph leg.

The direct path links names in the tenant's in-memory graph and finds facts by BM25. It is used if no engine is configured, or
if the engine fails or exceeds its time limit.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, ModelInputRefused, ModelUnavailable
from agentic_rag_backend.knowledge.visible.fact_reader import FactReader
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.embedding.calibration import Calibration, Calibrator
from agentic_rag_backend.retrieval.caching import SingleFlight, TenantCache, forbid_reuse
from agentic_rag_backend.stores.catalogue.documents.document_catalogue import DocumentCatalogue
from agentic_rag_backend.stores.catalogue.documents.questions import QuestionCatalogue
from agentic_rag_backend.stores.catalogue.summaries.generations import CommunityCatalogue
from agentic_rag_backend.stores.catalogue.summaries.trees import TreeCatalogue
from agentic_rag_backend.stores.graph.base import GraphFindings, GraphQuestion, GraphSearchEngine, GraphStore
from agentic_rag_backend.stores.vector.base import Vector, VectorStore
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.telemetry.metrics import EMBEDDINGS_CACHE, count_cache_use


class QueryEncoder:
    """Cache and single flight of `Embedder.embed_query`.

    The tenant is a part of the key: the time of a search must not show whether another tenant asked the same question.

    Args:
        embedder: makes the vectors. Its fingerprint is a part of the key.
        max_bytes: bound of the kept vectors. 0: none are kept, and only overlapping calls share one embedding.
    """

    def __init__(self, embedder: Embedder, *, max_bytes: int = 0) -> None:
        self._embedder = embedder
        self.entries = TenantCache[Vector](EMBEDDINGS_CACHE, max_bytes)
        self._flights = SingleFlight[Vector]()

    async def of(self, query: Query) -> Vector:
        """Return the vector to search for a query: the query's own one if it has one, otherwise the vector of its text."""
        return query.embedding if query.embedding is not None else await self.encode(query.tenant_id, query.text)

    async def encode(self, tenant: TenantId, text: str) -> Vector:
        """Return the unit vector of ``text``, float32, shape (dimensions,). It is read-only if vectors are kept."""
        if not self.entries.enabled:
            return (await self._flights.run((tenant, text), lambda: self._embedder.embed_query(text)))[0]
        key = hashlib.sha256(f"{self._embedder.fingerprint}\n{text}".encode("utf-8", "surrogatepass")).digest()
        cached = self.entries.get(tenant, key)
        if cached is not None:
            count_cache_use(EMBEDDINGS_CACHE, "hit")
            return cached
        vector, joined = await self._flights.run((tenant, text), lambda: self._embed(tenant, key, text))
        count_cache_use(EMBEDDINGS_CACHE, "shared" if joined else "miss")
        return vector

    async def mean_of(self, query: Query, passages: Sequence[str]) -> tuple[Vector | None, str | None]:
        """Return the mean of the vectors of the query and hypothetical passages, of length 1 (HyDE, Gao et al., ACL 2023).

        None with the reason if there is none.
        """
        if not passages:
            return None, None
        question = await self.of(query)
        try:
            # As questions: `Embedder.embed` would wait behind the passages of ingestion.
            vectors = await asyncio.gather(*(self.encode(query.tenant_id, text) for text in passages))
        except (ModelUnavailable, ModelInputRefused) as error:
            return None, f"hypothetical passages could not be embedded: {error.code}"
        total = np.mean([question, *vectors], axis=0)
        length = float(np.linalg.norm(total))
        return (None, "hypothetical passages cancel the question out") if length == 0 else (np.float32(1 / length) * total, None)

    def tokens(self, query: Query) -> int:
        """Return the tokens that the vector of a query is expected to cost, if it is not kept."""
        return self._embedder.query_tokens(query.text) if query.embedding is None else 0

    async def _embed(self, tenant: TenantId, key: bytes, text: str) -> Vector:
        vector = await self._embedder.embed_query(text)
        vector.setflags(write=False)  # several searches read it
        self.entries.put(tenant, key, vector, vector.nbytes)
        return vector


_log = get_logger(__name__)

DIRECT = "direct"
FINDINGS = 20
"""Maximum number of entities, and of facts, that the engine returns."""


@dataclass(frozen=True, slots=True)
class LegAnswer:
    """The engine's findings. If there are none because the engine failed, ``failure`` has the reason."""

    leg: str = DIRECT
    findings: GraphFindings | None = None
    failure: str | None = None


class GraphLeg:
    """Queries the engine with a time limit. Never raises an engine's error.

    Args:
        engine: None always uses the direct path.
        timeout_s: time limit in seconds, from when the question's vector is known.
    """

    def __init__(self, engine: GraphSearchEngine | None = None, *, timeout_s: float = 2.0) -> None:
        self._engine = engine
        self._timeout_s = timeout_s

    @property
    def engine(self) -> str | None:
        """The engine's name, or None."""
        return self._engine.name if self._engine is not None else None

    async def ask(self, query: Query, vector: Vector) -> LegAnswer:
        """Return the engine's findings, or the reason to use the direct path."""
        engine = self._engine
        if engine is None:
            return LegAnswer()
        question = GraphQuestion(text=query.text, vector=vector, limit=FINDINGS, moment=query.moment, filter=query.filters)
        try:
            async with asyncio.timeout(self._timeout_s):
                return LegAnswer(engine.name, await engine.find(query.tenant_id, question))
        except TimeoutError:
            reason = f"no answer within {self._timeout_s:g} s"
        except Exception as error:  # noqa: BLE001 - logged, and shown as the failure of this leg
            # The direct path depends on no part of the engine, so it can answer after any error.
            reason = error.code if isinstance(error, AgenticRagError) else type(error).__name__
            _log.error("graph_leg_failed", leg=engine.name, tenant_id=query.tenant_id.value, code=reason, exc_info=error)
        failure = f"the graph leg {engine.name!r} failed: {reason}"
        _log.warning("graph_leg_fallback", tenant_id=query.tenant_id.value, reason=failure)
        return LegAnswer(failure=failure)


class Retriever(Protocol):
    """Finds results for a query, within the query's tenant only."""

    async def retrieve(self, query: Query) -> Retrieval:
        """Return chunks, facts and themes, best first, with a trace of how they were found.

        A strategy returns at least ``query.candidates`` chunks if there are as many. It may return more: a stage cuts them.

        Raises:
            StoreUnavailable: a required store did not answer.
            InvalidRequest: an option is outside its limits.
        """


class Strategies(Protocol):
    """The registered strategies, for a strategy that holds others."""

    async def retrieve(self, name: str, query: Query) -> Retrieval:
        """Retrieve with the strategy of this canonical name. It gets the options of the query that belong to it."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores that retrievers read. Retrievers never write."""

    documents: DocumentCatalogue
    communities: CommunityCatalogue
    vectors: VectorStore
    graph: GraphStore
    embedder: Embedder
    encoder: QueryEncoder
    leg: GraphLeg = field(default_factory=GraphLeg)
    trees: TreeCatalogue = field(kw_only=True)
    questions: QuestionCatalogue = field(kw_only=True)
    facts: FactReader = field(kw_only=True)
    calibrator: Calibrator = field(kw_only=True)

    async def calibration(self) -> Calibration:
        """Return the calibration of the embedder. While it is not known, results are used only once."""
        calibration = await self.calibrator.current_calibration()
        if self.calibrator.pending:
            forbid_reuse()
        return calibration
