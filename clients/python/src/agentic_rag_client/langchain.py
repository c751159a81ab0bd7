"""Retriever for LangChain. Install ``agentic-rag-client[langchain]``."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from agentic_rag_client import AsyncClient, Client, models
from agentic_rag_client.passages import describe_passages


class AgenticRagRetriever(BaseRetriever):
    """Retrieves passages of a tenant.

    Args:
        client: for calls that block, and in a thread for others.
        async_client: for asynchronous calls, on the event loop that uses it. Optional.
        k: number of passages, 1 to 100. ``invoke`` takes it, too.
        search: further arguments of `Client.search`, such as ``{"strategy": "graph", "filters": {"year": {"gte": 2019}}}``.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Client
    async_client: AsyncClient | None = None
    k: int = Field(default=5, ge=1, le=100)
    search: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun | None = None, k: int | None = None
    ) -> list[Document]:
        return _list_documents(self.client.search(query, **{**self.search, "limit": k or self.k}))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        if self.async_client is None:
            return await asyncio.to_thread(self._get_relevant_documents, query, k=k)
        return _list_documents(await self.async_client.search(query, **{**self.search, "limit": k or self.k}))


def _list_documents(results: models.SearchResults) -> list[Document]:
    passages = describe_passages(results)
    return [Document(id=result.id, page_content=result.content, metadata=metadata) for result, metadata in passages]
