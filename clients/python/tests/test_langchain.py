"""The retriever for LangChain passes LangChain's standard tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_tests.integration_tests import RetrieversIntegrationTests

from agentic_rag_client import AsyncClient, Client
from agentic_rag_client.langchain import AgenticRagRetriever
from conftest import QUESTION, Site


@pytest.fixture
def client(site: Site) -> Iterator[Client]:
    with Client(site.url, site.key) as opened:
        yield opened


@pytest_asyncio.fixture
async def async_client(site: Site) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(site.url, site.key) as opened:
        yield opened


class TestAgenticRagRetriever(RetrieversIntegrationTests):
    """LangChain's tests, with the client in a thread for asynchronous calls."""

    @pytest.fixture(autouse=True)
    def _open(self, client: Client) -> None:
        self.client = client

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return AgenticRagRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"client": self.client}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


async def test_both_ways_return_the_same(client: Client, async_client: AsyncClient) -> None:
    retriever = AgenticRagRetriever(client=client, async_client=async_client, k=4, search={"strategy": "hybrid"})
    documents = retriever.invoke(QUESTION)
    assert documents == await retriever.ainvoke(QUESTION)
    assert len(await retriever.ainvoke(QUESTION, k=2)) == 2
    first = documents[0]
    assert "400 metres" in first.page_content
    assert first.metadata["title"] == "The Narrows Accord"
    assert first.metadata["source"].endswith(f"?chunk={first.metadata['chunk_id']}")
    assert first.id == first.metadata["chunk_id"]


def test_a_chain_reads_the_passages(client: Client) -> None:
    def join(documents: list[Document]) -> str:
        return "\n".join(document.page_content for document in documents)

    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    chain = {"context": AgenticRagRetriever(client=client) | join, "question": RunnablePassthrough()} | prompt
    assert "400 metres" in chain.invoke(QUESTION).to_string()


def test_filters_reach_the_server(client: Client) -> None:
    retriever = AgenticRagRetriever(client=client, search={"filters": {"number": {"lt": 2}}})
    assert {document.metadata["number"] for document in retriever.invoke(QUESTION)} <= {0, 1}
