"""JSON Schemas of a request's ``options``, shared by strategies, and the validation against them."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from agentic_rag_backend.errors import InvalidRequest

Schema = Mapping[str, Any]

ENTITIES: Schema = {
    "type": "array",
    "items": {"type": "string", "maxLength": 512},
    "maxItems": 20,
    "description": "names or ids to start from",
}
COMMUNITIES_OF: Schema = {**ENTITIES, "description": "names or ids; only communities that contain one of these entities"}
LOW_STRATEGY: Schema = {
    "type": "string",
    "enum": ["auto", "graph", "hybrid"],
    "description": "strategy that finds the passages; auto: hybrid for questions that ask for an account, otherwise graph",
}
LEVEL: Schema = {
    "type": "integer",
    "minimum": 0,
    "maximum": 9,
    "description": "keep communities of one level; 0 is the coarsest",
}
BUDGET_TOKENS: Schema = {
    "type": "integer",
    "minimum": 200,
    "maximum": 100_000,
    "description": "tokens of all themes together, estimated at four characters each",
}
RATE: Schema = {
    "type": "string",
    "enum": ["score", "model"],
    "default": "score",
    "description": "how the relevance of themes is decided",
}
MAX_CALLS: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 32,
    "description": "maximum number of requests to the language model",
}
FOLLOW_UPS: Schema = {
    "type": "integer",
    "minimum": 0,
    "maximum": 8,
    "description": "maximum number of follow-up questions",
}
TREE_LEVELS: Schema = {
    "type": "array",
    "items": {"type": "integer", "minimum": 0, "maximum": 10},
    "minItems": 1,
    "maxItems": 11,
    "description": "levels of the tree to search; 0 are the passages, 1 the clusters of passages",
}
INCLUDE_SUMMARIES: Schema = {
    "type": "boolean",
    "default": True,
    "description": "whether to return summaries of clusters as themes",
}

CONTRADICTIONS: Schema = {
    "type": "boolean",
    "default": False,
    "description": "whether to return statements that contradict a result",
}

SYNTHETIC_QUESTIONS: Schema = {
    "type": "boolean",
    "description": "whether to search the synthetic questions of chunks, too; default: whether SYNTHETIC_QUESTIONS is on",
}


def check_option(option: str, value: Any, schema: Schema, *, of: str = "options") -> None:
    """Validate a value against its schema. ``of`` is the object that holds the option.

    Raises:
        InvalidRequest: the value does not match. The message names the option and the allowed values.
    """
    if schema["type"] == "string" and value not in schema["enum"]:
        raise InvalidRequest(f"{of}.{option} must be one of {', '.join(schema['enum'])}; got {shown(value)}")
    if schema["type"] == "integer" and (
        isinstance(value, bool) or not isinstance(value, int) or not schema["minimum"] <= value <= schema["maximum"]
    ):
        limits = f"from {schema['minimum']} to {schema['maximum']}"
        raise InvalidRequest(f"{of}.{option} must be an integer {limits}; got {shown(value)}")
    if schema["type"] == "number" and (
        isinstance(value, bool) or not isinstance(value, int | float) or not schema["minimum"] <= value <= schema["maximum"]
    ):
        limits = f"from {schema['minimum']} to {schema['maximum']}"
        raise InvalidRequest(f"{of}.{option} must be a number {limits}; got {shown(value)}")
    if schema["type"] == "boolean" and not isinstance(value, bool):
        raise InvalidRequest(f"{of}.{option} must be true or false; got {shown(value)}")
    if schema["type"] == "array" and schema["items"]["type"] == "integer":
        _check_numbers(f"{of}.{option}", value, schema)
    elif schema["type"] == "array":
        _check_names(f"{of}.{option}", value, schema)


def _check_numbers(option: str, value: Any, schema: Schema) -> None:
    low, high, most = schema["items"]["minimum"], schema["items"]["maximum"], schema["maxItems"]
    numbers = value if isinstance(value, list) and schema["minItems"] <= len(value) <= most else [None]
    if any(isinstance(item, bool) or not isinstance(item, int) or not low <= item <= high for item in numbers):
        raise InvalidRequest(
            f"{option} must be a list of {schema['minItems']} to {most} integers from {low} to {high}; got {shown(value)}"
        )


def _check_names(option: str, value: Any, schema: Schema) -> None:
    most, longest = schema["maxItems"], schema["items"]["maxLength"]
    if not (isinstance(value, list) and len(value) <= most and all(isinstance(item, str) for item in value)):
        raise InvalidRequest(f"{option} must be a list of at most {most} names; got {shown(value)}")
    if any(len(item) > longest for item in value):
        raise InvalidRequest(f"{option}: a name has at most {longest} characters; got {max(map(len, value))}")


def shown(value: Any) -> str:
    """Return a value in the form used in messages."""
    # Not repr: a value may be nested deeper than Python's recursion limit.
    return reprlib.repr(value)[:80]
