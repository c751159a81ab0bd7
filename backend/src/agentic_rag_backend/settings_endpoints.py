"""Settings of model endpoints: addresses and fields of requests. What is clear is mended, everything else is refused."""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any
from urllib.parse import urlsplit

_TEXT = "replies are read as text"
_EACH_CALL = "every call sets it"
RESERVED_FIELDS = {
    **dict.fromkeys(("messages", "prompt", "input", "stream", "stream_options", "response_format"), _EACH_CALL),
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), "every call sets its own limit (LLM_REASONING_TOKENS adds to it)"),
    **dict.fromkeys(("tools", "tool_choice", "functions", "function_call", "modalities", "audio"), _TEXT),
    **dict.fromkeys(("n", "best_of"), "one reply is read"),
    "model": "set LLM_MODEL",
    "temperature": "set LLM_TEMPERATURE",
    "reasoning_effort": "set LLM_REASONING_EFFORT",
}
"""Fields of a request that an administrator may not set, and why."""
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}://")
_ROUTES = ("/chat/completions", "/completions", "/embeddings", "/responses", "/models", "/chat")
"""Routes below the address, which people paste with it."""
_VERSION = "/v1"
_PATHS = {".openai.azure.com": f"/openai{_VERSION}", "openrouter.ai": f"/api{_VERSION}"}
"""Hosts whose interface has another path than ``/v1``."""
_SHOWN = 200


def endpoint_address(value: str, name: str) -> str:
    """Return the base URL of an OpenAI-compatible endpoint in its usual form.

    White space, quotes, a slash at the end and a route such as ``/chat/completions`` are removed. A missing scheme becomes
    http for local hosts and https for others. A missing path becomes ``/v1``.

    Raises:
        ValueError: it is no such address. The message names the setting ``name``, the reason and an example.
    """
    address = value.strip().strip("\"'").strip()
    if re.search(r"\s", address):
        raise _refuse_value(name, "has white space in it", value)
    if not _SCHEME.match(address):
        address = f"{'http' if _is_local(address) else 'https'}://{address}"
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError as error:
        raise _refuse_value(name, f"is no address: {error}", value) from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise _refuse_value(name, "is no http or https address", value)
    if parts.query or parts.fragment:
        raise _refuse_value(name, "has a query; for Azure use https://RESOURCE.openai.azure.com/openai/v1", value)
    path = _path_of(parts.path.rstrip("/"))
    usual_path = next((host_path for host, host_path in _PATHS.items() if parts.hostname.endswith(host)), _VERSION)
    if path in ("", usual_path.removesuffix(_VERSION)):
        path = usual_path
    if path.endswith("/api"):
        raise _refuse_value(
            name,
            "ends with /api; use /v1 instead of /api (Ollama, LM Studio), or the path of your provider, such as /api/v1",
            value,
        )
    return f"{parts.scheme.lower()}://{parts.netloc}{path}"


def body_fields(value: str, name: str) -> dict[str, Any]:
    """Return the fields of a JSON object.

    Raises:
        ValueError: it is not a JSON object, or a field may not be set or cannot be sent. The message names the setting ``name``.
    """
    if not value.strip():
        return {}
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} must be a JSON object: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"{name} must be a JSON object, not {type(fields).__name__}")
    for field, content in fields.items():
        if field in RESERVED_FIELDS:
            raise ValueError(f"{name} may not set {field}: {RESERVED_FIELDS[field]}")
        try:
            json.dumps(content, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name}: {field} cannot be sent as JSON: {error}") from None
    return fields


def _path_of(path: str) -> str:
    route = next((route for route in _ROUTES if path.endswith(route)), "")
    path = path.removesuffix(route).rstrip("/")
    return f"{path}{_VERSION}" if path == "/openai" else path  # Azure


def _is_local(address: str) -> bool:
    """Return whether an address without a scheme names a host of this machine or network."""
    try:
        host = urlsplit(f"//{address}").hostname or ""
    except ValueError:
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost"))


def _refuse_value(name: str, reason: str, value: str) -> ValueError:
    shortened_value = value.rpartition("@")[2][:_SHOWN]  # without a password
    return ValueError(f"{name} {reason}; got {shortened_value!r}, expected an address such as http://127.0.0.1:11434/v1")
