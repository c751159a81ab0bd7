"""What errors of servers name, in the words of the servers."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai

from agentic_rag_backend.models.server_errors import Feature, Overflow, overflow_of, refused_feature, text_of

SENT: frozenset[Feature] = frozenset(
    {"json_schema", "schema_bounds", "stream_options", "system_role", "temperature", "max_tokens", "reasoning_effort"}
)


def error(body: Any, status: int = 400) -> openai.APIStatusError:
    content = body if isinstance(body, str) else json.dumps(body)
    request = httpx2.Request("POST", "http://llm/v1/chat/completions")
    return openai.BadRequestError("refused", response=httpx2.Response(status, text=content, request=request), body=None)


def test_windows_are_read_from_the_words_of_servers() -> None:
    for message, overflow in [
        (
            "This model's maximum context length is 8,192 tokens. However, you requested 9000 tokens (8,500 in the messages, 500 "
            "in the completion).",
            Overflow(8192, 8500),
        ),
        ("maximum context length is 4096 tokens. However, your request has 5000 input tokens.", Overflow(4096, 5000)),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", Overflow(4096)),
        ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", Overflow(4096, 5000)),
        ("prompt too long; exceeded max context length by 100 tokens", Overflow()),
        ("prompt is too long: 210000 tokens > 200000 maximum", Overflow(200000)),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", Overflow(1048576)),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", Overflow(4096)),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            Overflow(32768),
        ),
        ("This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens", Overflow(8192)),
        ("context_length_exceeded: 12", Overflow()),
    ]:
        assert overflow_of(error({"error": {"message": message}})) == overflow
        assert refused_feature(error({"error": {"message": message}}), SENT) is None


def test_a_feature_is_refused_only_if_it_is_named_and_was_sent() -> None:
    for body, feature in [
        ({"error": {"message": "Unknown parameter: 'stream_options'"}}, "stream_options"),
        ({"error": {"message": "bad request"}}, None),
        ({"error": {"message": "the temperature outside is 12 degrees", "param": None}}, "temperature"),
        ({"detail": [{"loc": ["body", "max_tokens"], "msg": "extra", "input": "response_format"}]}, "max_tokens"),
        ({"input": "response_format", "message": "no"}, None),
        ("System role not supported", "system_role"),
        ({"error": "json_object is not supported"}, None),
        ("[" * 10_000, None),
    ]:
        assert refused_feature(error(body), SENT) == feature
        assert refused_feature(error(body, 401), SENT) is None
        assert refused_feature(ValueError("temperature"), SENT) is None


def test_an_error_is_read_up_to_a_limit() -> None:
    assert len(text_of(error("x" * 100_000))) == 4_000
