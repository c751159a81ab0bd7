"""Retriever for LlamaIndex. Install ``agentic-rag-client[llamaindex]``."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from agentic_rag_client import AsyncClient, Client, models
from agentic_rag_client.passages import describe_passages


class AgenticRagRetriever(BaseRetriever):
    """Retrieves passages of a tenant as nodes.

    Args:
        client: for calls that block, and in a thread for others.
        async_client: for asynchronous calls, on the event loop that uses it. Optional.
        similarity_top_k: number of passages, 1 to 100.
        search: further arguments of `Client.search`, such as ``strategy`` and ``filters``.
    """

    def __init__(
        self,
        client: Client,
        *,
        async_client: AsyncClient | None = None,
        similarity_top_k: int = 5,
        search: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._client = client
        self._async_client = async_client
        self._search = {**(search or {}), "limit": similarity_top_k}
        super().__init__(**options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _list_nodes(self._client.search(query_bundle.query_str, **self._search))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._async_client is None:
            return await asyncio.to_thread(self._retrieve, query_bundle)
        return _list_nodes(await self._async_client.search(query_bundle.query_str, **self._search))


def _list_nodes(results: models.SearchResults) -> list[NodeWithScore]:
    """Return the passages as nodes. A model reads their title; ids, places and addresses are for the program."""
    nodes = []
    for result, metadata in describe_passages(results):
        hidden = [name for name in metadata if name != "title"]
        node = TextNode(
            id_=result.id,
            text=result.content,
            metadata=metadata,
            excluded_llm_metadata_keys=hidden,
            excluded_embed_metadata_keys=hidden,
        )
        nodes.append(NodeWithScore(node=node, score=result.score))
    return nodes
