"""The retriever for LlamaIndex, alone and in a query engine."""

from __future__ import annotations

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import CompactAndRefine
from llama_index.core.schema import MetadataMode

from agentic_rag_client import AsyncClient, Client
from agentic_rag_client.llamaindex import AgenticRagRetriever
from conftest import QUESTION, Site


async def test_both_ways_return_the_same(site: Site) -> None:
    with Client(site.url, site.key) as client:
        async with AsyncClient(site.url, site.key) as async_client:
            retriever = AgenticRagRetriever(client, async_client=async_client, similarity_top_k=3)
            nodes = retriever.retrieve(QUESTION)
            assert nodes == await retriever.aretrieve(QUESTION)
        assert nodes == await AgenticRagRetriever(client, similarity_top_k=3).aretrieve(QUESTION)
    assert len(nodes) == 3
    assert "400 metres" in nodes[0].node.get_content()
    assert [node.score for node in nodes] == sorted((node.score for node in nodes), reverse=True)
    shown = nodes[0].node.get_content(metadata_mode=MetadataMode.LLM)
    assert "title: The Narrows Accord" in shown
    assert nodes[0].metadata["document_id"] not in shown


def test_a_query_engine_reads_the_passages(site: Site) -> None:
    with Client(site.url, site.key) as client:
        retriever = AgenticRagRetriever(client, search={"filters": {"number": {"gte": 0}}})
        engine = RetrieverQueryEngine(retriever, response_synthesizer=CompactAndRefine(llm=MockLLM()))
        response = engine.query(QUESTION)
    assert "400 metres" in str(response)  # the mock repeats the prompt
    assert response.source_nodes[0].metadata["title"] == "The Narrows Accord"
