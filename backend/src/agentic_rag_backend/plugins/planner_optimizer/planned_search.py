"""Searches with a given plan, and the recall of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.query import Hit, Query
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.plugins.planner_optimizer.examples import Example
from agentic_rag_backend.retrieval.agentic.plan import FixedPlan, Plan, Planner
from agentic_rag_backend.retrieval.agentic.strategy import Agentic, AgenticParts
from agentic_rag_backend.retrieval.requests.builder import QueryBuilder
from agentic_rag_backend.retrieval.requests.search_requests import SearchRequest

LEAST_WORDS = 8
"""A chunk of at least so many words counts as found for a longer passage that contains it."""


@dataclass(frozen=True, slots=True)
class Question:
    """An example with the tenant that it is asked for, and the ids of each of its documents.

    Several documents may have one title: each of them counts as the document.
    """

    example: Example
    caller: Principal
    documents: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Recall:
    """The share in [0, 1] of documents and passages that a search found, and what it missed."""

    value: float
    missed: tuple[str, ...]


class PlannedSearch:
    """Searches as `agentic` does in its first round. No model reflects or reranks, so a search costs no call.

    Args:
        limit: number of results that count.
    """

    def __init__(self, parts: AgenticParts, queries: QueryBuilder, limit: int) -> None:
        options = replace(parts.options, query_planning=True, policy="novelty", max_rounds=1)
        self._parts = replace(parts, options=options, sessions=None)
        self._queries = queries
        self._limit = limit

    async def query(self, question: Question) -> Query:
        """Return the query of a question."""
        values = {"query": question.example.question, "limit": self._limit}
        request = SearchRequest.model_validate({**values, "strategy": "agentic", "rerank": False, "cache": False})
        return (await self._queries.build(question.caller, request)).query

    async def recall(self, question: Question, planner: Planner, plan: Plan) -> Recall:
        """Return the recall of the results for a plan.

        Raises:
            AgenticRagError: the search failed.
        """
        parts = replace(self._parts, planner=FixedPlan(planner.prompt, plan))
        retrieval = await Agentic(parts).retrieve(await self.query(question))
        return recall_of(question, retrieval.hits[: self._limit])


def recall_of(question: Question, hits: Sequence[Hit]) -> Recall:
    """Return the recall of results."""
    ids = {hit.visible.chunk.document_id for hit in hits}
    texts = [_plain(text) for hit in hits for text in (hit.visible.chunk.text, hit.parent.text if hit.parent else "") if text]
    missed = [name for name, documents in question.documents.items() if not documents & ids]
    missed += [passage for passage in question.example.passages if not _is_found(_plain(passage), texts)]
    total = len(question.documents) + len(question.example.passages)
    return Recall(1 - len(missed) / total, tuple(missed))


def _is_found(passage: str, texts: Sequence[str]) -> bool:
    return any(passage in text or (text in passage and text.count(" ") + 1 >= LEAST_WORDS) for text in texts)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
