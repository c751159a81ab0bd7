"""JSON Schemas of a request's ``options``, shared by strategies, and the validation against them."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from agentic_rag_backend.errors import InvalidRequest, in_field

Schema = Mapping[str, Any]
_IDENTIFIER = re.compile(r"[A-Za-z0-9._:-]+")

ENTITIES: Schema = {
    "type": "array",
    "items": {"type": "string", "maxLength": 512},
    "maxItems": 20,
    "description": "names or ids to start from",
}
COMMUNITIES_OF: Schema = {**ENTITIES, "description": "names or ids; only communities that contain one of these entities"}
MAX_HOPS: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 4,
    "default": 2,
    "description": "maximum number of relationships of a path",
}
RELATION_TYPES: Schema = {
    "type": "array",
    "items": {"type": "string", "maxLength": 128},
    "maxItems": 20,
    "description": "only relationships of these types, in any case: `works_for`, `WORKS FOR`",
}
MIN_WEIGHT: Schema = {
    "type": "number",
    "minimum": 0,
    "maximum": 1000,
    "default": 0,
    "description": "least weight of a relationship",
}
DIRECTION: Schema = {
    "type": "string",
    "enum": ["any", "out", "in"],
    "default": "any",
    "description": "out: each relationship leads away from the entity of the question; in: towards it",
}
LOW_STRATEGY: Schema = {
    "type": "string",
    "enum": ["auto", "graph", "hybrid", "agentic"],
    "description": "strategy that finds the passages; auto: hybrid for questions that ask for an account, otherwise graph, or in "
    "`auto` agentic; agentic: rounds of graph searches without a language model",
}
MAX_LATENCY_MS: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 600_000,
    "description": "milliseconds that retrieval should take: a cheaper strategy is chosen if recent searches took longer",
}
MAX_COST: Schema = {
    "type": "integer",
    "minimum": 0,
    "maximum": 1_000_000,
    "description": "tokens of remote models that retrieval should take: if an embedding is expected to take more, none is made",
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

SESSION_ID: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "pattern": f"^{_IDENTIFIER.pattern}$",
    "description": "session of the caller's API key, which keeps verified facts and negative constraints between requests",
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
PASSAGES: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 5,
    "default": 1,
    "description": "hypothetical passages that a language model writes",
}
REWRITES: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 5,
    "default": 3,
    "description": "maximum number of other wordings that are searched",
}
CONTEXT_WINDOW: Schema = {
    "type": "integer",
    "minimum": 0,
    "maximum": 10,
    "description": "chunks that are read on each side of a match; default: the whole parent, or 1 without a parent",
}
MAX_CHUNKS: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 50,
    "default": 10,
    "description": "maximum number of chunks that are read together",
}
RELEVANCE_THRESHOLD: Schema = {
    "type": "number",
    "minimum": 0,
    "maximum": 1,
    "default": 0.7,
    "description": "least grade of a relevant result",
}
MAX_REFINEMENT_ATTEMPTS: Schema = {
    "type": "integer",
    "minimum": 0,
    "maximum": 5,
    "default": 2,
    "description": "maximum number of searches with other wordings",
}
MIN_RELEVANT: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": 10,
    "default": 1,
    "description": "relevant results that are sufficient",
}


def choice(names: Sequence[str], default: str | None, description: str) -> Schema:
    """Return the schema of one of some names."""
    return {
        "type": "string",
        "enum": list(names),
        **({} if default is None else {"default": default}),
        "description": description,
    }


def choices(names: Sequence[str], *, least: int, most: int, description: str) -> Schema:
    """Return the schema of a list of different names."""
    return {
        "type": "array",
        "items": {"type": "string", "enum": list(names)},
        "minItems": least,
        "maxItems": most,
        "uniqueItems": True,
        "description": description,
    }


def shares_of(names: Sequence[str], description: str) -> Schema:
    """Return the schema of an object from names to numbers in [0, 1]."""
    share = {"type": "number", "minimum": 0, "maximum": 1}
    return {
        "type": "object",
        "properties": dict.fromkeys(names, share),
        "additionalProperties": False,
        "description": description,
    }


def check_option(option: str, value: Any, schema: Schema, *, of: str = "options") -> None:
    """Validate a value against its schema. ``of`` is the object that holds the option.

    Raises:
        InvalidRequest: the value does not match. The message names the option and the allowed values.
    """
    with in_field(option):
        _check(option, value, schema, of)


def _check(option: str, value: Any, schema: Schema, of: str) -> None:
    if schema["type"] == "string" and "enum" not in schema:
        _check_identifier(f"{of}.{option}", value, schema)
    elif schema["type"] == "string" and value not in schema["enum"]:
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
    if schema["type"] == "object":
        _check_shares(option, value, schema, of)
    if schema["type"] == "array" and schema["items"]["type"] == "integer":
        _check_numbers(f"{of}.{option}", value, schema)
    elif schema["type"] == "array" and "enum" in schema["items"]:
        _check_choices(f"{of}.{option}", value, schema)
    elif schema["type"] == "array":
        _check_names(f"{of}.{option}", value, schema)


def _check_identifier(option: str, value: Any, schema: Schema) -> None:
    least, most = schema["minLength"], schema["maxLength"]
    if not isinstance(value, str) or not least <= len(value) <= most:
        got = f"{len(value)} characters" if isinstance(value, str) else shown(value)
        raise InvalidRequest(f"{option} must be a text of {least} to {most} characters; got {got}")
    if _IDENTIFIER.fullmatch(value) is None:
        raise InvalidRequest(f"{option} must match the pattern {_IDENTIFIER.pattern}; got {shown(value)}")


def _check_numbers(option: str, value: Any, schema: Schema) -> None:
    low, high, most = schema["items"]["minimum"], schema["items"]["maximum"], schema["maxItems"]
    numbers = value if isinstance(value, list) and schema["minItems"] <= len(value) <= most else [None]
    if any(isinstance(item, bool) or not isinstance(item, int) or not low <= item <= high for item in numbers):
        raise InvalidRequest(
            f"{option} must be a list of {schema['minItems']} to {most} integers from {low} to {high}; got {shown(value)}"
        )


def _check_shares(option: str, value: Any, schema: Schema, of: str) -> None:
    if not isinstance(value, Mapping) or not value:
        raise InvalidRequest(f"{of}.{option} must be an object of names and numbers; got {shown(value)}")
    for name, share in value.items():
        known = schema["properties"].get(name)
        if known is None:
            raise InvalidRequest(f"{of}.{option} must have names among {', '.join(schema['properties'])}; got {shown(name)}")
        check_option(name, share, known, of=f"{of}.{option}")


def _check_choices(option: str, value: Any, schema: Schema) -> None:
    least, most, names = schema["minItems"], schema["maxItems"], schema["items"]["enum"]
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise InvalidRequest(f"{option} must be a list of {least} to {most} names; got {shown(value)}")
    unknown = next((item for item in value if item not in names), None)
    if unknown is not None:
        raise InvalidRequest(f"{option} must have names among {', '.join(names)}; got {shown(unknown)}")


def _check_names(option: str, value: Any, schema: Schema) -> None:
    most, longest = schema["maxItems"], schema["items"]["maxLength"]
    if not (isinstance(value, list) and len(value) <= most and all(isinstance(item, str) for item in value)):
        raise InvalidRequest(f"{option} must be a list of at most {most} names; got {shown(value)}")
    if any(len(item) > longest for item in value):
        raise InvalidRequest(f"{option}: a name has at most {longest} characters; got {max(map(len, value))}")


def unknown_levels(option: str, asked: Iterable[int], known: Collection[int]) -> tuple[str, ...]:
    """Return a warning about the levels of an option that do not exist. If none is known, nothing can be said."""
    unknown = sorted(set(asked).difference(known))
    if not unknown or not known:
        return ()
    none, some = (", ".join(map(str, levels)) for levels in (unknown, sorted(known)))
    return (f"options.{option}: there is no level {none}; levels are {some}",)


def shown(value: Any) -> str:
    """Return a value in the form used in messages."""
    # Not repr: a value may be nested deeper than Python's recursion limit.
    return reprlib.repr(value)[:80]
