"""Reads the errors of model servers: which feature a server refuses, and whether a prompt exceeds the context window.

Servers use the same status for every reason, so that only the text of an error tells them apart. An error that names nothing is
about the request itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import openai

Feature = Literal[
    "json_schema",
    "schema_bounds",
    "json_object",
    "stream_options",
    "stream",
    "system_role",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
]
"""A part of a request that a server or a model may refuse."""

LEAST_WINDOW = 256
"""A smaller number in an error is no context window."""
MAX_CHARACTERS = 4_000
"""Characters of an error that are read."""
_FEATURE_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
"""500: llama.cpp and Ollama, if the chat template fails."""
_OVERFLOW_STATUSES = frozenset({400, 413, 422, 500})
_OWN_WORDS = ("message", "msg", "detail", "error", "code", "param", "type", "loc", "n_ctx", "n_prompt_tokens")
"""Members of an error that are the server's own words. FastAPI repeats the request in ``input``."""
_NAMES: tuple[tuple[Feature, re.Pattern[str]], ...] = (
    ("reasoning_effort", re.compile(r"reasoning[_. ]effort|does not support thinking|think value")),
    ("stream_options", re.compile(r"stream_options|include_usage")),
    ("stream", re.compile(r"\bstream(?:ing)?\b")),
    ("schema_bounds", re.compile(r"\b(?:max|min)(?:items|length|imum)\b|failed to parse grammar|number of repetitions")),
    ("json_schema", re.compile(r"response_format|json_schema|json schema|structured[_ ]output|guided_json|grammar")),
    ("json_object", re.compile(r"response_format|json_object|json mode|structured[_ ]output|grammar")),
    (
        "system_role",
        re.compile(
            r"system (?:role|message|prompt)|roles? must alternate|'system'|role:? ?[\"`]?system"
            r"|only user and assistant roles|messages\[0\]\.role"
        ),
    ),
    ("max_completion_tokens", re.compile(r"\bmax_completion_tokens\b")),
    ("max_tokens", re.compile(r"\bmax_tokens\b")),
    ("temperature", re.compile(r"\btemperature\b")),
)
"""Features with the words that name them, in lower case. The first one that was sent is refused."""
_REPLY_LIMIT = re.compile(
    r"at most (\d{1,9}) (?:completion|output) tokens|max_(?:completion_)?tokens\W{1,4}must be "
    r"(?:less than or equal to|<=|at most) (\d{1,9})|max_(?:completion_)?tokens[^\d]{0,60}\[1, (\d{1,9})\]"
)
_OVERFLOW = re.compile(
    r"context[_ ](?:length|size|window)|context the overflows|exceed_context_size|prompt (?:is )?too long|maximum model length"
    r"|max_new_tokens\W{1,3}must be|inputs\W{1,3}must have less than|input token count|reduce the length of the messages"
    r"|maximum input length|too many tokens"
)
_NUMBER = r"(\d[\d,]{0,11})"
_WINDOWS = tuple(
    re.compile(pattern + _NUMBER)
    for pattern in (
        r"n_ctx\W{1,4}",
        r"context[_ ](?:length|size|window)(?: of| is)?(?: only)?[ (:=]{1,3}",
        r"maximum model length of ",
        r"max_new_tokens\W{1,3}must be <= ",
        r"tokens? allowed \(",
        r"tokens > ",
        r"for model with ",
    )
)
_READ = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\({_NUMBER} in the messages",
        rf"{_NUMBER} (?:input|prompt) tokens",
        rf"{_NUMBER} `inputs` tokens",
        rf"request \({_NUMBER} tokens",
        rf"n_prompt_tokens\W{{1,4}}{_NUMBER}",
    )
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """A request that does not fit. ``window`` and ``prompt_tokens`` are what the server states; None: it states nothing."""

    window: int | None = None
    prompt_tokens: int | None = None


def overflow_of(error: Exception) -> Overflow | None:
    """Return what an error says about the context window. None if the error has another reason."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in _OVERFLOW_STATUSES:
        return None
    text = text_of(error)
    if not _OVERFLOW.search(text):
        return None
    window = _first_number(_WINDOWS, text)
    return Overflow(window if window is not None and window >= LEAST_WINDOW else None, _first_number(_READ, text))


def refused_feature(error: Exception, features_sent: Collection[Feature]) -> Feature | None:
    """Return the feature of a request that the error names. None if it names none, or the prompt is too long.

    Args:
        features_sent: the features that the request used.
    """
    if not isinstance(error, openai.APIStatusError) or error.status_code not in _FEATURE_STATUSES:
        return None
    text = text_of(error)
    if _OVERFLOW.search(text) or _REPLY_LIMIT.search(text):
        return None
    return next((feature for feature, words in _NAMES if feature in features_sent and words.search(text)), None)


def reply_limit_of(error: Exception) -> int | None:
    """Return the most tokens of a reply that an error states."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in _FEATURE_STATUSES:
        return None
    match = _REPLY_LIMIT.search(text_of(error))
    return int(next(number for number in match.groups() if number)) if match else None


def text_of(error: openai.APIStatusError) -> str:
    """Return the server's own words in an error, in lower case, without what it repeats of the request."""
    content = error.response.text
    try:
        text = "\n".join(_strings_of(json.loads(content), 0))
    except (ValueError, RecursionError):
        text = content
    return text[:MAX_CHARACTERS].lower()


def _strings_of(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, dict) and depth < 6:
        for name, inner in value.items():
            if name in _OWN_WORDS and isinstance(inner, dict | list):
                yield from _strings_of(inner, depth + 1)
            elif name in _OWN_WORDS and inner is not None:
                yield f"{name}: {inner}"
    elif isinstance(value, list) and depth < 6:
        for inner in value[:20]:
            yield from _strings_of(inner, depth + 1)
    elif isinstance(value, str):
        yield value


def _first_number(patterns: Collection[re.Pattern[str]], text: str) -> int | None:
    matches = (pattern.search(text) for pattern in patterns)
    match = next((match for match in matches if match), None)
    return int(match[1].replace(",", "")) if match else None
