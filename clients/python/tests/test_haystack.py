"""The component for Haystack, alone, in a pipeline, and as a file."""

from __future__ import annotations

import asyncio

import pytest
from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from haystack.utils import Secret

from agentic_rag_client import InvalidRequest
from agentic_rag_client.haystack import AgenticRagRetriever, convert_filter
from conftest import QUESTION, Site

TEMPLATE = "{% for document in documents %}{{ document.content }}\n{% endfor %}{{ question }}"


@pytest.fixture
def variable(site: Site, monkeypatch: pytest.MonkeyPatch) -> Secret:
    """Return the key as the name of a variable."""
    monkeypatch.setenv("KEY_OF_TESTS", site.key)
    return Secret.from_env_var("KEY_OF_TESTS")


def test_a_pipeline_reads_the_passages(site: Site, variable: Secret) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", AgenticRagRetriever(site.url, variable, top_k=3))
    pipeline.add_component("prompt", PromptBuilder(TEMPLATE, required_variables="*"))
    pipeline.connect("retriever.documents", "prompt.documents")
    written = pipeline.dumps()
    assert site.key not in written
    restored = Pipeline.loads(written, allowed_modules=["agentic_rag_client.haystack"])
    for used in (pipeline, restored):
        result = used.run(
            {"retriever": {"query": QUESTION}, "prompt": {"question": QUESTION}}, include_outputs_from={"retriever"}
        )
        assert "400 metres" in result["prompt"]["prompt"]
        documents = result["retriever"]["documents"]
        assert len(documents) == 3
        assert documents[0].meta["title"] == "The Narrows Accord"
        assert documents[0].score == max(document.score for document in documents)
        used.get_component("retriever").close()


def test_an_asynchronous_pipeline_runs_it(site: Site, variable: Secret) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", AgenticRagRetriever(site.url, variable, top_k=1))
    result = asyncio.run(pipeline.run_async({"retriever": {"query": QUESTION}}))
    assert len(result["retriever"]["documents"]) == 1
    pipeline.get_component("retriever").close()


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"field": "meta.number", "operator": "<", "value": 3}, {0, 1, 2}),
        ({"field": "meta.number", "operator": "in", "value": [2, 5]}, {2, 5}),
        ({"field": "meta.number", "operator": "not in", "value": list(range(10))}, {10, 11}),
        ({"operator": "NOT", "conditions": [{"field": "meta.number", "operator": ">=", "value": 1}]}, {0}),
        (
            {
                "operator": "AND",
                "conditions": [
                    {"field": "meta.number", "operator": "!=", "value": 0},
                    {
                        "operator": "OR",
                        "conditions": [
                            {"field": "meta.number", "operator": "<=", "value": 1},
                            {"field": "meta.number", "operator": "==", "value": 7},
                        ],
                    },
                ],
            },
            {1, 7},
        ),
        ({"number": {"gt": 9}}, {10, 11}),
        ({"field": "meta.nothing", "operator": "==", "value": None}, set(range(12))),
    ],
)
def test_filters_of_haystack(site: Site, variable: Secret, filter: dict[str, object], expected: set[int]) -> None:
    retriever = AgenticRagRetriever(site.url, variable, top_k=100, search={"strategy": "dense"})
    numbers = {document.meta["number"] for document in retriever.run(QUESTION, filters=filter)["documents"]}
    retriever.close()
    assert numbers == expected


def test_mistakes(site: Site, variable: Secret) -> None:
    for mistake in ({"field": "a", "operator": "~", "value": 1}, {"operator": "XOR", "conditions": []}):
        with pytest.raises(ValueError, match="must be"):
            convert_filter(mistake)
    retriever = AgenticRagRetriever(site.url, variable, top_k=1000)
    with pytest.raises(InvalidRequest, match="at most 100"):
        retriever.run(QUESTION)
    retriever.close()
