"""Reranking of texts that a caller brings, by the rerankers that read nothing but text."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.document import Chunk, VisibleChunk, chunk_id, content_hash
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.domain.query import Hit, Query, Rerank
from agentic_rag_backend.domain.tenant import Tenant, TenantId
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import InvalidRequest, ModelTimeout
from agentic_rag_backend.retrieval.rerank.registry import RERANKERS, RerankerRegistry

AUTO = "auto"
TEXT_RERANKERS = tuple(name for name, entry in RERANKERS.items() if entry.reads_texts)
_PREFERENCE = ("http", "cross_encoder", "late_interaction")
"""Rerankers of `AUTO`, best first, if the default one needs stored passages. `llm` is left out, because it costs more."""


@dataclass(frozen=True, slots=True)
class RankedTexts:
    """Scores in [0, 1] in the order of the texts, and the name of the reranker."""

    reranker: str
    scores: Sequence[float]


@dataclass(frozen=True, slots=True)
class TextReranking:
    """Scores texts for a question.

    Args:
        rerankers: by name.
        default: the deployment's default reranker.
        timeout_s: time limit of a call.
    """

    rerankers: RerankerRegistry
    default: str
    timeout_s: float

    async def rank_texts(self, tenant: Tenant, question: str, texts: Sequence[str], name: str = AUTO) -> RankedTexts:
        """Return the score of each text.

        Raises:
            InvalidRequest: no reranker of texts has this name.
            RerankerUnavailable: this deployment lacks something that the reranker requires.
            ModelUnavailable: the model behind it did not answer, or took longer than the time limit.
        """
        chosen = self.choose_reranker(name)
        reranker = self.rerankers.get(chosen)
        reranker.check()
        options = {"max_calls": 10} if chosen == "llm" else {}  # so that it reads every text
        query = Query(tenant=tenant, text=question, rerank=Rerank(name=chosen, candidates=len(texts), options=options))
        hits = [_to_hit(tenant.id, number, text) for number, text in enumerate(texts)]
        try:
            async with asyncio.timeout(self.timeout_s):
                scores = (await reranker.rerank(query, hits, UsageAccount())).scores
        except TimeoutError:
            raise ModelTimeout(f"reranking by {chosen} took more than {self.timeout_s:g} s (RERANK_TIMEOUT_S)") from None
        return RankedTexts(chosen, [scores.get(hit.id, 0.0) for hit in hits])

    def choose_reranker(self, name: str) -> str:
        """Return the reranker that a name stands for. `AUTO`: the default one, or the best available one that reads texts."""
        if name == AUTO:
            names = (self.default, *_PREFERENCE) if self.default in TEXT_RERANKERS else _PREFERENCE
            return next(name for name in names if self.rerankers.why_not(name) is None)
        if name not in TEXT_RERANKERS:
            known = ", ".join((AUTO, *TEXT_RERANKERS))
            raise InvalidRequest(f"no reranker of texts is named {name[:80]!r}; known are {known}", field="model")
        return name


def _to_hit(tenant: TenantId, number: int, text: str) -> Hit:
    """Return a text in the form of a candidate without a score. Its id names the tenant, so that tenants share no cache."""
    digest = content_hash(text)
    chunk = Chunk(
        id=chunk_id(tenant, "reranked text", digest, number),
        document_id="",
        version=0,
        ordinal=number,
        text=text,
        size_tokens=0,
        content_hash=digest,
        location=Location(start_char=0, end_char=len(text), start_line=1, end_line=1),
    )
    return Hit(visible=VisibleChunk(chunk=chunk, document_title="", document_key=None, metadata={}), score=0.0)
