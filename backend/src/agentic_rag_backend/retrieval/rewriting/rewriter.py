"""Rewrites a question for search: a language model does if there is one, otherwise other names of the question's entities."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.knowledge.tenant_graph.cache import TenantGraphs
from agentic_rag_backend.models.llm.schemas import list_of, object_of, text_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.hydration import shown_graph
from agentic_rag_backend.retrieval.rewriting.names import rewrites_by_names
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls, line_in, objects_in

MAX_CHARACTERS = 500
"""Characters of a wording by a model."""
TOKENS_PER_REWRITE = 120
NO_NAMES = "no name in the question has another name in the graph: only the question itself was searched"
NO_OTHER_WORDING = "the model wrote no other wording: only the question itself was searched"
_SCHEMA = object_of({"queries": list_of(object_of({"query": text_of(MAX_CHARACTERS)}))})


@dataclass(frozen=True, slots=True)
class Rewrites:
    """Other wordings of a question, best first, without the question.

    ``by`` is ``model`` or ``names``. ``missing`` is the reason why there are none, ``failures`` what failed.
    """

    texts: tuple[str, ...] = ()
    by: Literal["model", "names"] = "names"
    missing: str | None = None
    failures: tuple[str, ...] = field(default=())


class QueryRewriter:
    """Writes other wordings of a question.

    Args:
        graphs: the tenants' graphs, for other names.
        calls: calls of the cheap model.
    """

    def __init__(self, graphs: TenantGraphs, calls: StructuredCalls) -> None:
        self._graphs = graphs
        self._calls = calls

    async def rewrite(self, query: Query, most: int, spending: Spending) -> Rewrites:
        """Return at most ``most`` wordings. Without a model, after its failure, or without a call left, they are by names."""
        if self._calls.possible and spending.left:
            written = await self._by_model(query.text, most, spending)
            if not written.failures:
                return written
            named = await self._by_names(query, most)
            return Rewrites(named.texts, named.by, named.missing, (*written.failures, *named.failures))
        return await self._by_names(query, most)

    async def _by_model(self, question: str, most: int, spending: Spending) -> Rewrites:
        values = {"question": fence("question", question), "most": str(most)}
        spending.begin()
        reply = await self._calls.ask(built_in("query_rewrites"), values, _SCHEMA, max_tokens=TOKENS_PER_REWRITE * most)
        spending.ended(reply)
        if reply.parsed is None:
            return Rewrites(by="model", failures=(f"rewriting failed: {reply.failure}",))
        written = (line_in(item, "query", most=MAX_CHARACTERS) for item in objects_in(reply.parsed, "queries"))
        same = question.casefold()
        texts = tuple(dict.fromkeys(text for text in written if text and text.casefold() != same))[:most]
        return Rewrites(texts, "model", None if texts else NO_OTHER_WORDING)

    async def _by_names(self, query: Query, most: int) -> Rewrites:
        graph, failures = await shown_graph(self._graphs, query)
        # In a thread: its cost depends on the names of the tenant.
        texts = tuple(await asyncio.to_thread(rewrites_by_names, graph, query.text, most)) if graph is not None else ()
        return Rewrites(texts, "names", None if texts or failures else NO_NAMES, failures)
