"""The retriever port. Retrievers that improve on others, such as rerankers, wrap them and have the same signature."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, cast

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.retrieval.encoder import QueryEncoder
from agentic_rag_backend.retrieval.graph_leg import GraphLeg
from agentic_rag_backend.stores.catalogue.base import CommunityCatalogue, DocumentCatalogue
from agentic_rag_backend.stores.catalogue.ports.trees import TreeCatalogue
from agentic_rag_backend.stores.graph.base import GraphStore
from agentic_rag_backend.stores.vector.base import VectorStore


class Retriever(Protocol):
    """Finds results for a query, within the query's tenant only."""

    async def retrieve(self, query: Query) -> Retrieval:
        """Return chunks, facts and themes, best first, with a trace of how they were found.

        Raises:
            StoreUnavailable: a required store did not answer.
            InvalidRequest: an option is outside its limits.
        """


Retrieve = TypeVar("Retrieve", bound=Callable[..., Coroutine[Any, Any, Retrieval]])


def timed(retrieve: Retrieve) -> Retrieve:
    """Decorate ``retrieve``: record the duration of the ``retrieval`` in the trace, in milliseconds."""

    @functools.wraps(retrieve)
    async def measured(self: Retriever, query: Query) -> Retrieval:
        started = time.perf_counter()
        found = await retrieve(self, query)
        times = {**found.trace.processing_time_ms, "retrieval": (time.perf_counter() - started) * 1000}
        return replace(found, trace=replace(found.trace, processing_time_ms=times))

    return cast(Retrieve, measured)


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
