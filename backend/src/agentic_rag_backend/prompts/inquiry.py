"""Requests for JSON objects, written by prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.prompts import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """A request for a JSON object. ``accepts`` checks a reply that matches ``schema``; a refused reply is a failure.

    Untrusted text in ``values`` must already be fenced. ``partial``: see `ModelRequest`.
    """

    prompt: Prompt
    values: Mapping[str, str]
    schema: Mapping[str, Any]
    max_tokens: int
    accepts: Callable[[Mapping[str, Any]], bool]
    partial: bool = False
