"""Graphiti's client classes with our models."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from graphiti_worlds import WordEmbedder, vector
from pydantic import BaseModel

from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.errors import InvalidRequest, ModelUnavailable
from agentic_rag_backend.models.llm.base import ExtractiveModel, ModelReply, ModelRequest
from agentic_rag_backend.plugins.graphiti.clients import GraphitiEmbedder, GraphitiLanguageModel, GraphitiReranker, strict
from agentic_rag_backend.plugins.graphiti.sdk import Message, ModelSize

from graphiti_core.prompts.dedupe_edges import EdgeDuplicate  # isort: skip
from graphiti_core.prompts.dedupe_nodes import NodeResolutions  # isort: skip
from graphiti_core.prompts.extract_edges import EdgeTimestamps, ExtractedEdges  # isort: skip
from graphiti_core.prompts.extract_nodes import ExtractedEntities  # isort: skip


class Names(BaseModel):
    names: list[str]


class Scripted:
    """Records its requests."""

    generative = True
    name = "big"

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return ModelReply("{}", Usage(), self.name, {"names": ["Ada"]})


def messages() -> list[Message]:
    return [Message(role="system", content="Extract names."), Message(role="user", content="Ada\x00 came.")]


async def test_a_prompt_of_graphitis_becomes_a_request_of_ours() -> None:
    model = Scripted()
    client = GraphitiLanguageModel(model, fast_model="small")  # type: ignore[arg-type]

    assert await client.generate_response(messages(), response_model=Names) == {"names": ["Ada"]}
    await client.generate_response(messages(), response_model=Names, model_size=ModelSize.small, max_tokens=7)
    await client.generate_response(messages(), model="other")

    first, small, other = model.asked
    assert [turn.role for turn in first.messages] == ["system", "user"]
    assert first.messages[0].content.startswith("Extract names.")
    assert first.messages[1].content.startswith("Ada came.")
    assert first.schema is not None
    assert first.schema["required"] == ["names"]
    assert (first.model, small.model, other.model) == (None, "small", "other")
    assert (small.max_tokens, other.schema) == (7, {"type": "object"})


async def test_a_model_that_writes_nothing_says_so() -> None:
    client = GraphitiLanguageModel(ExtractiveModel())
    with pytest.raises(ModelUnavailable, match="LLM=openai"):
        await client.generate_response(messages(), response_model=Names)
    with pytest.raises(InvalidRequest, match="tool"):
        await GraphitiLanguageModel(Scripted()).generate_response(  # type: ignore[arg-type]
            [Message(role="tool", content="x")]
        )


@pytest.mark.parametrize("given", ["tides of Sund", ["tides of Sund", "other"]])
async def test_a_text_or_the_first_of_a_list_is_embedded(given: Any) -> None:
    found = await GraphitiEmbedder(WordEmbedder()).create(given)

    assert np.allclose(found, vector("tides of Sund"))
    assert isinstance(found, list)


@pytest.mark.parametrize("given", [[], [1, 2], [[1]]])
async def test_token_ids_are_refused(given: Any) -> None:
    with pytest.raises(InvalidRequest):
        await GraphitiEmbedder(WordEmbedder()).create(given)


async def test_batches_keep_their_order() -> None:
    client = GraphitiEmbedder(WordEmbedder())

    assert np.allclose(await client.create_batch(["a tide", "a boat"]), [vector("a tide"), vector("a boat")])
    assert await client.create_batch([]) == []


async def test_passages_are_ranked_by_cosine_and_equals_keep_their_order() -> None:
    ranked = await GraphitiReranker(WordEmbedder()).rank("tides of Sund", ["boats", "tides of Sund", "boats", "tides"])

    assert [passage for passage, _ in ranked][:2] == ["tides of Sund", "tides"]
    assert ranked[0][1] == pytest.approx(1.0)
    assert await GraphitiReranker(WordEmbedder()).rank("tides", []) == []


@pytest.mark.parametrize("model", [ExtractedEntities, ExtractedEdges, EdgeTimestamps, EdgeDuplicate, NodeResolutions])
def test_schemas_become_those_of_structured_outputs(model: type[Any]) -> None:
    """OpenAI refuses a schema in which a property is optional, or others are allowed."""

    def objects(value: Any) -> list[dict[str, Any]]:
        if isinstance(value, list):
            return [each for item in value for each in objects(item)]
        if not isinstance(value, dict):
            return []
        return [*([value] if "properties" in value else []), *(each for item in value.values() for each in objects(item))]

    found = objects(strict(model.model_json_schema()))
    assert found
    for each in found:
        assert each["required"] == list(each["properties"])
        assert each["additionalProperties"] is False
        assert "default" not in json.dumps(each)
