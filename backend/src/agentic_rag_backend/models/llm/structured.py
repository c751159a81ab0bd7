"""Structured replies: read the JSON object in a model's reply, and check it against the requested schema.

Covers the part of JSON Schema that OpenAI's structured outputs allow: types, properties, required,
additionalProperties, items, enum, const, anyOf, $ref into $defs, and bounds on lengths and numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_FENCE = "```"
_CLOSING = {"{": "}", "[": "]"}
_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?|[][{}]', re.DOTALL)
"""A bracket, or a string, which may end with the text."""
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def read_object(text: str, schema: Mapping[str, Any], *, partial: bool = False) -> dict[str, Any]:
    """Return the JSON object in ``text`` (a fenced code block around it is tolerated).

    Args:
        partial: whether an object that ends in the middle of a list is used up to the last whole item of the list.

    Raises:
        ValueError: it is not JSON, not an object, or does not match ``schema``; the message gives place and error, for the
            model.
    """
    try:
        try:
            value = json.loads(_unfenced(text))
        except json.JSONDecodeError as error:
            completed = _completed(text, schema) if partial else None
            if completed is None:
                raise ValueError(f"not JSON: {error.msg} at character {error.pos}") from error
            value = json.loads(completed)
    except RecursionError as error:
        raise ValueError("not JSON: nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"the reply must be a JSON object, not {type(value).__name__}")
    problem = _problem(value, schema, schema, "$")
    if problem:
        raise ValueError(problem)
    return value


def _completed(text: str, schema: Mapping[str, Any]) -> str | None:
    """Return an object that was cut off, up to the last whole item of a list. Lists that are missing are empty. None: no item."""
    begin = text.find("{")
    open_brackets: list[str] = []
    end, closing = 0, ""
    for match in _BRACKET_OR_STRING.finditer(text, max(begin, 0)):
        mark = match[0][0]
        if mark in _CLOSING:
            open_brackets.append(_CLOSING[mark])
        elif mark in "}]" and open_brackets and open_brackets.pop() == mark and open_brackets[1:] == ["]"]:
            end, closing = match.end(), "".join(reversed(open_brackets))
    if begin < 0 or not end:
        return None
    value = json.loads(f"{text[begin:end]}{closing}")
    lists: dict[str, list[Any]] = {name: [] for name, of in schema.get("properties", {}).items() if of.get("type") == "array"}
    return json.dumps({**lists, **value})


def _problem(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> str | None:
    """Return the first error in ``value``, or None."""
    while "$ref" in schema:
        schema = root["$defs"][str(schema["$ref"]).rpartition("/")[2]]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        problems = [_problem(value, choice, root, at) for choice in choices]
        return None if None in problems else problems[0]
    if "const" in schema and value != schema["const"]:
        return f"{at} must be {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{at} must be one of {schema['enum']!r}"
    kinds = schema.get("type")
    if kinds is not None and not _is_one_of(value, [kinds] if isinstance(kinds, str) else kinds):
        return f"{at} must be of type {kinds}, not {type(value).__name__}"
    if isinstance(value, dict):
        return _object_problem(value, schema, root, at)
    if isinstance(value, list):
        return _array_problem(value, schema, root, at)
    return _bounds_problem(value, schema, at)


def _is_one_of(value: Any, kinds: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, _TYPES.get(kind, (object,))) for kind in kinds)


def _object_problem(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> str | None:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{at}.{name} is missing"
    for name, held in value.items():
        if name in properties:
            problem = _problem(held, properties[name], root, f"{at}.{name}")
            if problem:
                return problem
        elif schema.get("additionalProperties") is False:
            return f"{at}.{name} is not asked for"
    return None


def _array_problem(value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> str | None:
    if len(value) < schema.get("minItems", 0) or len(value) > schema.get("maxItems", len(value)):
        return f"{at} must have {schema.get('minItems', 0)} to {schema.get('maxItems', 'any number of')} items, not {len(value)}"
    items = schema.get("items")
    problems = (_problem(item, items, root, f"{at}[{index}]") for index, item in enumerate(value)) if items else ()
    return next((problem for problem in problems if problem), None)


def _bounds_problem(value: Any, schema: Mapping[str, Any], at: str) -> str | None:
    if isinstance(value, str):
        size, least, most = len(value), schema.get("minLength", 0), schema.get("maxLength")
        if size < least or (most is not None and size > most):
            return f"{at} must have {least} to {most or 'any number of'} characters, not {size}"
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = schema.get("minimum"), schema.get("maximum")
        if (low is not None and value < low) or (high is not None and value > high):
            return f"{at} must be between {low} and {high}, not {value}"
    return None


def _unfenced(text: str) -> str:
    """Return the content of a fenced code block that spans all of ``text``, otherwise ``text``."""
    block = text.strip()
    first, newline, rest = block.partition("\n")
    if not newline or not first.startswith(_FENCE) or not rest.endswith(_FENCE):
        return text
    return rest.removesuffix(_FENCE) if first.removeprefix(_FENCE).strip() in ("", "json") else text
