"""Addresses of endpoints: what is clear is mended, everything else is refused at the start with its reason."""

from __future__ import annotations

import pytest

from agentic_rag_backend.errors import ConfigurationError
from agentic_rag_backend.settings_endpoints import endpoint_address
from agentic_rag_backend.settings_reading import read_settings


def test_addresses_are_mended() -> None:
    for value, address in [
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
        (" http://127.0.0.1:11434/v1/ ", "http://127.0.0.1:11434/v1"),
        ("'http://llm/v1'", "http://llm/v1"),
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("http://127.0.0.1:11434/", "http://127.0.0.1:11434/v1"),
        ("localhost:11434", "http://localhost:11434/v1"),
        ("10.0.0.7:8000/v1", "http://10.0.0.7:8000/v1"),
        ("[::1]:8000", "http://[::1]:8000/v1"),
        ("ollama:11434", "http://ollama:11434/v1"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1"),
        ("https://api.openai.com/chat/completions/", "https://api.openai.com/v1"),
        ("http://tei/v1/embeddings", "http://tei/v1"),
        ("https://r.openai.azure.com/openai/v1", "https://r.openai.azure.com/openai/v1"),
        ("https://r.openai.azure.com/", "https://r.openai.azure.com/openai/v1"),
        ("https://r.openai.azure.com/openai", "https://r.openai.azure.com/openai/v1"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "https://generativelanguage.googleapis.com/v1beta/openai"),
        ("https://openrouter.ai/api", "https://openrouter.ai/api/v1"),
        ("openrouter.ai", "https://openrouter.ai/api/v1"),
        ("https://openrouter.ai/api/v1/chat/completions", "https://openrouter.ai/api/v1"),
        ("HTTPS://api.example.com/api/v1", "https://api.example.com/api/v1"),
    ]:
        assert endpoint_address(value, "X") == address
        assert endpoint_address(address, "X") == address


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("http://a b/v1", "white space"),
        ("ftp://host/v1", "no http or https"),
        ("http://", "no http or https"),
        ("http://host:port/v1", "no address"),
        ("http://[::1/v1", "no address"),
        ("https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21", "has a query"),
        ("http://127.0.0.1:11434/api/chat", "use /v1 instead of /api"),
        ("https://llm.example.com/api", "the path of your provider, such as /api/v1"),
    ],
)
@pytest.mark.parametrize("name", ["openai_base_url", "embedding_base_url"])
def test_other_addresses_are_refused_at_the_start(value: str, reason: str, name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name.upper()}.*{reason}"):
        read_settings(**{name: value})


def test_no_password_is_shown() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_settings(openai_base_url="http://me:hush@host:x/v1")
    assert "hush" not in caught.value.message


def test_fields_of_the_body_are_checked() -> None:
    for value, reason in [
        ("{", "must be a JSON object"),
        ("[]", "not list"),
        ('{"model": "x", "stream": true}', "may not set model: set LLM_MODEL"),
        ('{"tools": []}', "may not set tools: replies are read as text"),
        ('{"n": 2}', "may not set n: one reply is read"),
        ('{"max_tokens": 20}', "may not set max_tokens: every call sets its own limit"),
        ('{"temperature": 1}', "may not set temperature: set LLM_TEMPERATURE"),
        ('{"top_k": 1, "min_p": NaN}', "min_p cannot be sent as JSON"),
        ('{"bias": {"7": -Infinity}}', "bias cannot be sent as JSON"),
        ('{"min_p": 1e999}', "min_p cannot be sent as JSON"),
        ('{"user": "\\ud800"}', "user cannot be sent as JSON"),
    ]:
        with pytest.raises(ConfigurationError, match=f"LLM_EXTRA_BODY.*{reason}"):
            read_settings(llm_extra_body=value)
        assert read_settings(llm_extra_body='{"top_k": 20}').extra_body == {"top_k": 20}
        assert read_settings(llm_extra_body="").extra_body == {}
