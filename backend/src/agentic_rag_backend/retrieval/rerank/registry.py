"""The registry of rerankers: name, description, options and builder.

`none`: the candidates keep the scores of the strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.models.embedding.base import TokenEncoder
from agentic_rag_backend.models.embedding.calibration import Calibrator
from agentic_rag_backend.models.reranking.base import PassageScorer
from agentic_rag_backend.retrieval.options.model import RequestOptions
from agentic_rag_backend.retrieval.rerank.base import Reranker, Reranking
from agentic_rag_backend.retrieval.rerank.graph import GraphReranker, GraphRerankRequestOptions, Mmr, MmrRequestOptions
from agentic_rag_backend.retrieval.rerank.scored import (
    LateInteraction,
    Listwise,
    ListwiseRequestOptions,
    ScoredByModel,
    TokenVectorCache,
)
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.stores.vector.base import VectorStore


class Unchanged:
    """Returns the scores of the strategy."""

    def check(self) -> None:
        """It can always be used."""

    async def rerank(self, query: Query, candidates: Sequence[Hit], account: UsageAccount) -> Reranking:
        """Return the own score of each candidate."""
        return Reranking(scores={hit.id: hit.score for hit in candidates})


NONE = "none"
MAX_CANDIDATES = 300
"""Three times the largest limit."""
LEAST_CANDIDATES = 30
"""Candidates of small limits: all limits up to 10 have the same candidates, so that 5 results are the first of 10."""

_NO_CROSS_ENCODER = (
    "reranker 'cross_encoder' requires a model: run 'agentic-rag models pull ms-marco-MiniLM-L-6-v2', set "
    "CROSS_ENCODER_DOWNLOAD=true, or set CROSS_ENCODER_MODEL_PATH to a folder with model.onnx and tokenizer.json"
)
_NO_ENDPOINT = (
    "reranker 'http' requires the address of a rerank endpoint: set RERANK_URL, and RERANK_API_KEY if it asks for a key"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerParts:
    """Parts that rerankers are built from. A model that the deployment lacks is None."""

    vectors: VectorStore
    graphs: TenantGraphs
    calls: StructuredCalls
    tokens: TokenEncoder
    token_cache: TokenVectorCache
    calibrator: Calibrator
    cross_encoder: PassageScorer | None = None
    endpoint: PassageScorer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankerEntry:
    """One entry of ``GET /rerankers``. ``options`` is the model of its options.

    A request has at least ``least`` and at most ``most`` candidates, unless it names their number. ``reads_texts``: it reads
    nothing but the texts, and so can order texts that are not stored.
    """

    description: str
    build: Callable[[RerankerParts], Reranker]
    options: type[RequestOptions] = RequestOptions
    least: int = LEAST_CANDIDATES
    most: int = MAX_CANDIDATES
    reads_texts: bool = False


RERANKERS: Mapping[str, RerankerEntry] = {
    NONE: RerankerEntry(description="keeps the order of the strategy", build=lambda p: Unchanged()),
    "mmr": RerankerEntry(
        description="maximal marginal relevance: prefers passages that differ from those before them",
        build=lambda p: Mmr(p.vectors, p.calibrator),
        options=MmrRequestOptions,
    ),
    "graph": RerankerEntry(
        description="the graph around the entities of the question: PageRank mass, distance or mentions",
        build=lambda p: GraphReranker(p.graphs),
        least=60,  # the walk costs the same for any number: R@5 of MuSiQue .701 with 60, .691 with 30
        options=GraphRerankRequestOptions,
    ),
    "late_interaction": RerankerEntry(
        description="MaxSim: the bundled encoder compares word pieces of question and passage",
        build=lambda p: LateInteraction(p.tokens, p.token_cache),
        reads_texts=True,
        most=60,
    ),
    "cross_encoder": RerankerEntry(
        description="an ONNX cross-encoder reads the question and each passage together",
        build=lambda p: ScoredByModel(p.cross_encoder, remedy=_NO_CROSS_ENCODER),
        reads_texts=True,
        most=60,
    ),
    "llm": RerankerEntry(
        description="the fast language model orders lists of passages",
        build=lambda p: Listwise(p.calls),
        options=ListwiseRequestOptions,
        reads_texts=True,
        most=110,
    ),
    "http": RerankerEntry(
        description="a rerank endpoint in the form of Cohere or Jina",
        build=lambda p: ScoredByModel(p.endpoint, remedy=_NO_ENDPOINT),
        reads_texts=True,
        most=100,
    ),
}


class RerankerRegistry:
    """Builds each reranker once."""

    def __init__(self, parts: RerankerParts) -> None:
        self._rerankers = {name: entry.build(parts) for name, entry in RERANKERS.items()}

    def get(self, name: str) -> Reranker:
        """Return a reranker.

        Raises:
            InvalidRequest: no reranker has this name.
        """
        if name not in self._rerankers:
            raise InvalidRequest(f"unknown reranker {name[:80]!r}; known are {', '.join(self._rerankers)}")
        return self._rerankers[name]

    def why_not(self, name: str) -> str | None:
        """Return the reason why a reranker cannot be used; None if it can."""
        try:
            self.get(name).check()
        except AgenticRagError as error:
            return error.message
        return None

    async def try_out(self, name: str) -> str:
        """Call the model of `cross_encoder` or `http` with one passage. Return a description of it.

        Raises:
            InvalidRequest: the reranker has no model of its own, or none is configured.
            ModelUnavailable: the model did not answer.
        """
        reranker = self.get(name)
        if not isinstance(reranker, ScoredByModel):
            raise InvalidRequest(f"reranker {name!r} has no model of its own")
        return await reranker.try_out()

    def describe(self) -> list[dict[str, Any]]:
        """Return the entries of ``GET /rerankers``."""
        rows = []
        for name, entry in RERANKERS.items():
            why_not = self.why_not(name)
            rows.append(
                {
                    "name": name,
                    "description": entry.description,
                    "options": {"type": "object", "properties": dict(entry.options.schemas()), "additionalProperties": False},
                    "max_candidates": entry.most,
                    "available": why_not is None,
                    "why_not": why_not,
                }
            )
        return rows


def check_reranker_options(name: str, options: Mapping[str, Any]) -> None:
    """Validate options against the reranker's schema.

    Raises:
        InvalidRequest: an option is unknown or invalid.
    """
    model = RERANKERS[name].options
    schemas = model.schemas()
    for option, value in options.items():
        if option not in schemas:
            raise InvalidRequest(
                f"reranker {name!r} has no option {option[:80]!r}; it has {', '.join(schemas) or 'none'}", field=option
            )
        model.check_option(option, value, of="rerank")
