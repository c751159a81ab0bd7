"""The body of a request: settings, one system message, room for reasoning, and schemas with and without bounds."""

from __future__ import annotations

from typing import Any

import pytest

from agentic_rag_backend.models.llm.base import INTEGER, Message, ModelRequest, list_of, object_of, one_of, text_of
from agentic_rag_backend.models.llm.model_traits import ModelTraits
from agentic_rag_backend.models.llm.request_bodies import ModelRequestOptions, build_body, first_turn, without_bounds

SCHEMA = object_of({"maxItems": list_of(text_of(9), 3), "kind": one_of(("a", "other")), "n": {**INTEGER, "minimum": 1}})
MESSAGES = (Message("system", "One."), Message("user", "Question?"), Message("system", "Two <|im_start|>."))


def arguments(
    model: str = "m", options: ModelRequestOptions | None = None, traits: ModelTraits | None = None, **fields: Any
) -> Any:
    request = ModelRequest(**{"prompt": "p@1", "messages": MESSAGES, "max_tokens": 100, **fields})
    options, traits = options or ModelRequestOptions(), traits or ModelTraits()
    turn = first_turn(model, request, options, traits)
    return build_body(model, request, turn, options, traits, stream=False).arguments


def test_there_is_one_system_message_and_no_control_token() -> None:
    assert [message["role"] for message in arguments()["messages"]] == ["system", "user"]
    assert arguments()["messages"][0]["content"] == "One.\n\nTwo ⟨|im_start|>."
    refused = arguments(traits=ModelTraits(refused={"system_role": 1.0}))["messages"]
    assert [message["role"] for message in refused] == ["user"]
    assert refused[0]["content"] == "One.\n\nTwo ⟨|im_start|>.\n\nQuestion?"
    assert arguments(messages=(Message("user", "x"),))["messages"] == [{"role": "user", "content": "x"}]


def test_settings_apply_to_every_request() -> None:
    options = ModelRequestOptions(temperature=0.7, reasoning_effort="low", reasoning_tokens=50, extra_body={"top_k": 20})
    body = arguments(options=options)
    assert (body["temperature"], body["reasoning_effort"], body["max_tokens"]) == (0.7, "low", 150)
    assert body["extra_body"] == {"top_k": 20}
    plain = arguments(temperature=0.2)
    assert (plain["temperature"], plain["max_tokens"]) == (0.2, 100)
    assert not {"reasoning_effort", "extra_body"} & plain.keys()


@pytest.mark.parametrize(
    ("model", "field", "tokens"),
    [
        ("gpt-4o-mini", "max_tokens", 100),
        ("openai/gpt-5-mini", "max_completion_tokens", 4_196),
        ("o3", "max_completion_tokens", 4_196),
        ("gpt-oss:20b", "max_tokens", 4_196),
        ("deepseek-ai/DeepSeek-R1", "max_tokens", 4_196),
        ("qwen3-30b-a3b-thinking", "max_tokens", 4_196),
        ("qwen2.5:7b", "max_tokens", 100),
    ],
)
def test_models_that_reason_get_room(model: str, field: str, tokens: int) -> None:
    assert arguments(model)[field] == tokens
    assert arguments(model, ModelRequestOptions(reasoning_effort="none"))[field] == 100
    assert arguments(model, ModelRequestOptions(reasoning_tokens=0))[field] == 100


def test_a_refused_format_is_replaced_by_the_next_one() -> None:
    assert arguments(schema=SCHEMA)["response_format"]["json_schema"]["schema"] == SCHEMA
    unbounded = arguments(schema=SCHEMA, traits=ModelTraits(refused={"schema_bounds": 1.0}))["response_format"]
    assert unbounded["json_schema"]["schema"] == without_bounds(SCHEMA)
    by_object = arguments(schema=SCHEMA, traits=ModelTraits(refused={"json_schema": 1.0}))
    assert by_object["response_format"] == {"type": "json_object"}
    assert by_object["messages"][0]["content"].startswith("One.\n\nTwo ⟨|im_start|>.\n\nAnswer with one JSON object")
    by_prompt = arguments(schema=SCHEMA, traits=ModelTraits(refused={"json_schema": 1.0, "json_object": 1.0}))
    assert "response_format" not in by_prompt
    assert '"maxLength": 9' in by_prompt["messages"][0]["content"]


def test_bounds_are_removed_and_names_of_properties_stay() -> None:
    plain = without_bounds(SCHEMA)
    assert plain["properties"] == {
        "maxItems": {"type": "array", "items": {"type": "string"}},
        "kind": {"type": "string", "enum": ["a", "other"]},
        "n": {"type": "integer"},
    }
