"""Estimates of what models would cost to ingest a document, without calling them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.documents.chunking.passages import passage_text
from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.fairness import current_actor
from agentic_rag_backend.ingestion.accept.uploads import checked_method
from agentic_rag_backend.knowledge.extraction.methods import RULES, ExtractionMethods
from agentic_rag_backend.knowledge.extraction.model.temporal import GRAPHITI
from agentic_rag_backend.knowledge.model_calls import Unrecorded
from agentic_rag_backend.language.tokens import text_tokens
from agentic_rag_backend.models.embedding.base import Embedder
from agentic_rag_backend.models.llm.base import ModelDelta, ModelReply, ModelRequest
from agentic_rag_backend.stores.catalogue.base import TenantDirectory

REPLY_SHARE = 7.0
"""Expected tokens of the knowledge of a chunk for each token of the chunk. See ``docs/guide/usage.md`` for the measurement."""


@dataclass(frozen=True, slots=True)
class IngestionEstimate:
    """Expected calls and tokens of extraction by ``method``, tokens to embed, and the cost of both.

    Args:
        embedding_tokens: 0 for an embedder in this process.
        cost: None: the price of a model is unknown.
    """

    method: str
    extraction: Usage
    embedding_tokens: int
    cost: float | None


class _EstimatingModel:
    """A `LanguageModel` that sends nothing. It replies with empty lists, and with the usage that a request would have."""

    generative = True

    def __init__(self, name: str, reply_tokens: int) -> None:
        self.name = name
        self._reply_tokens = reply_tokens

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return an empty reply with the expected usage."""
        prompt_tokens = text_tokens(message.content for message in request.messages)
        usage = Usage(prompt_tokens, min(self._reply_tokens, request.max_tokens), 1)
        request.account.add_usage(usage)
        empty: Mapping[str, Any] = {name: [] for name in (request.schema or {}).get("properties", {})}
        return ModelReply("", usage, request.model or self.name, empty)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Refuse: estimates need whole replies."""
        raise ModelUnavailable("an estimate has no stream")

    async def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestionEstimator:
    """Estimates the cost of ingesting chunks: extraction and embedding.

    Synthetic questions, chunking by a model and summaries are not a part of it.

    Args:
        default_method: method of extraction of documents that ask for none.
        embedding_model: name of the embedder's model in MODEL_PRICES.
    """

    methods: ExtractionMethods
    embedder: Embedder
    tenants: TenantDirectory
    default_method: str
    embedding_model: str

    async def estimate_usage(
        self, tenant: TenantId, title: str, chunks: Sequence[Chunk], method: str | None = None
    ) -> IngestionEstimate | None:
        """Return the estimate for the chunks of one document. None: the number of calls of ``graphiti`` is not known.

        Args:
            method: of extraction; None: the default.

        Raises:
            InvalidRequest: the method is not known, or cannot be used.
        """
        chosen_method = checked_method(method or self.default_method, self.methods)
        if chosen_method == GRAPHITI:
            return None
        ontology = await self.tenants.ontology(require_tenant(tenant))
        usage, model_name = await self._estimate_extraction(self.methods.under(ontology), chosen_method, title, chunks)
        price = current_actor().estimate_cost
        costs, embedding_tokens = [price(model_name, usage)], 0
        if chunks and self.embedder.query_tokens(title or "text"):  # the embedder bills tokens
            embedding_tokens = text_tokens(passage_text(title, chunk) for chunk in chunks)
            costs.append(price(self.embedding_model, Usage(embedding_tokens, 0, 1)))
        known = [cost for cost in costs if cost is not None]
        return IngestionEstimate(chosen_method, usage, embedding_tokens, sum(known) if len(known) == len(costs) else None)

    @staticmethod
    async def _estimate_extraction(
        methods: ExtractionMethods, method: str, title: str, chunks: Sequence[Chunk]
    ) -> tuple[Usage, str]:
        """Return the usage and the name of the model. The extractor itself decides which chunks the model reads."""
        model = methods.model
        if model is None or method == RULES:
            return Usage(), ""
        name, record = model.name or model.model.name, Unrecorded()
        reply_tokens = round(REPLY_SHARE * sum(chunk.size_tokens for chunk in chunks) / max(1, len(chunks)))
        estimating = replace(methods, model=replace(model, model=_EstimatingModel(name, reply_tokens), absence=None))
        await estimating.extractor(method, record).extract(title, chunks)
        return await record.spent(), name
