"""The scripted model that reads plain sentences."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from graphiti_worlds import WordEmbedder  # noqa: F401 - imports Graphiti without its warnings

from agentic_rag_backend.domain.document import Chunk, content_hash
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.knowledge.extraction.model.inquiries import ModelExtractionOptions, inquiry
from agentic_rag_backend.plugins.graphiti.clients import strict
from agentic_rag_testing.models import reader
from agentic_rag_testing.models.server import ModelServer

from graphiti_core.prompts import prompt_library  # isort: skip
from graphiti_core.prompts.dedupe_edges import EdgeDuplicate  # isort: skip
from graphiti_core.prompts.dedupe_nodes import NodeResolutions  # isort: skip
from graphiti_core.prompts.extract_edges import EdgeTimestamps, ExtractedEdges  # isort: skip
from graphiti_core.prompts.extract_nodes import ExtractedEntities, SummarizedEntities  # isort: skip

TEXT = "Ann Lee works at Acme Works since 2019. In May Bob Ray left the Beta Labs until 2020-03-05. It rained."
CONTEXT: dict[str, Any] = {
    "episode_content": TEXT,
    "previous_episodes": [],
    "custom_extraction_instructions": "",
    "entity_types": [
        {"entity_type_id": 0, "entity_type_name": "Entity", "entity_type_description": "any"},
        {"entity_type_id": 1, "entity_type_name": "Organisation", "entity_type_description": "a firm"},
    ],
    "nodes": [],
    "reference_time": "2026-01-01",
    "edge_types": [],
}


def reply(messages: Any, model: type[Any]) -> Any:
    return model(**json.loads(reader.reply(messages[-1].content, model.model_json_schema())))


def test_graphitis_prompts_are_answered_from_the_text() -> None:
    nodes = reply(prompt_library.extract_nodes.extract_text(CONTEXT), ExtractedEntities).extracted_entities
    assert [(each.name, each.entity_type_id) for each in nodes] == [
        *(("Ann Lee", 0), ("Acme Works", 1), ("May Bob Ray", 0), ("Beta Labs", 1)),
    ]
    edges = reply(prompt_library.extract_edges.edge(CONTEXT), ExtractedEdges).edges
    assert [(each.source_entity_name, each.relation_type, each.target_entity_name) for each in edges] == [
        ("Ann Lee", "WORKS_AT", "Acme Works"),
        ("May Bob Ray", "LEFT_THE", "Beta Labs"),
    ]
    assert [(each.valid_at, each.invalid_at) for each in edges] == [
        ("2019-01-01T00:00:00Z", None),
        (None, "2020-03-05T00:00:00Z"),
    ]
    times = prompt_library.extract_edges.extract_timestamps(
        {"fact": "Ann Lee lives in Oslo since 2019-04", "reference_time": "2026"}
    )
    assert reply(times, EdgeTimestamps).valid_at == "2019-04-01T00:00:00Z"
    assert reply(prompt_library.extract_nodes.extract_text(CONTEXT), SummarizedEntities).summaries == []


def test_candidates_are_the_same_by_name_and_contradict_by_their_target() -> None:
    entities = {"extracted_nodes": [{"id": 0, "name": "Ann Lee"}, {"id": 1, "name": "Bob Ray"}], "existing_nodes": []}
    entities["existing_nodes"] = [{"candidate_id": 0, "name": "Eve"}, {"candidate_id": 1, "name": "ann lee"}]
    found = reply(prompt_library.dedupe_nodes.nodes({**CONTEXT, **entities}), NodeResolutions).entity_resolutions
    assert [each.duplicate_candidate_id for each in found] == [1, -1]
    facts = {
        "new_edge": "Ann Lee works at Beta Labs.",
        "existing_edges": [
            {"idx": 0, "fact": "Today Ann Lee works at Beta Labs."},
            {"idx": 1, "fact": "Ann Lee works at Beta Labs, says Bob."},
        ],
        "edge_invalidation_candidates": [
            {"idx": 2, "fact": "Ann Lee works at Acme Works."},
            {"idx": 3, "fact": "Ann Lee met Bob."},
        ],
    }
    resolved = reply(prompt_library.dedupe_edges.resolve_edge(facts), EdgeDuplicate)
    assert (resolved.duplicate_facts, resolved.contradicted_facts) == ([1], [2])


def test_our_own_prompt_is_answered_over_http() -> None:
    chunk = Chunk(
        id="c",
        document_id="d",
        version=1,
        ordinal=0,
        text=TEXT,
        size_tokens=9,
        content_hash=content_hash(TEXT),
        location=Location(start_char=0, end_char=len(TEXT), start_line=1, end_line=1),
    )
    asked = inquiry("Notes", chunk, ModelExtractionOptions())
    system, user = asked.prompt.render(asked.values)
    schema = {"type": "json_schema", "json_schema": {"name": "reply", "schema": asked.schema}}
    with ModelServer() as server:
        request = {"model": "reader", "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]}
        answer = httpx.post(f"{server.base_url}/chat/completions", json={**request, "response_format": schema}).json()

    value = json.loads(answer["choices"][0]["message"]["content"])
    assert {each["name"]: each["type"] for each in value["entities"]}["Acme Works"] == "organisation"
    assert value["relationships"][0] == {
        "source": "Ann Lee",
        "relation": "works_at",
        "target": "Acme Works",
        "negated": False,
        "valid_at": "2019-01-01",
        "invalid_at": "",
    }


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
