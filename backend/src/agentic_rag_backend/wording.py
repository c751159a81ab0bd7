"""Words for invalid values: the only module that knows the validator's kinds of errors.

Pydantic validates settings, request bodies, parameters and lines of archives. This module writes the messages for people.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

MAX_SHOWN = 40
"""Maximum characters shown of a refused value."""
MAX_MESSAGE = 400
"""Maximum characters of a message that our own validator wrote."""

_OBJECT, _LIST, _TEXT = "must be an object", "must be a list", "must be text"
_WHOLE, _NUMBER, _SWITCH = "must be a whole number", "must be a number", "must be true or false"
_TIME = "must be a time in ISO 8601, such as 2019-05-01T12:00:00Z"
_BY_TYPE: Mapping[str, str] = {
    "missing": "is required",
    "extra_forbidden": "is not known here",
    "none_required": "must be null",
    "bool_type": _SWITCH,
    "bool_parsing": _SWITCH,
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "must be a finite number",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "string_type": _TEXT,
    "string_sub_type": _TEXT,
    "string_unicode": "must be text in valid Unicode",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "list_type": _LIST,
    "tuple_type": _LIST,
    "dict_type": _OBJECT,
    "mapping_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "dataclass_type": _OBJECT,
    "timezone_aware": "must be a time with a time zone, such as 2019-05-01T12:00:00Z",
    "union_tag_invalid": "must have one of {expected_tags} as its {discriminator}",
    "union_tag_not_found": "must have a {discriminator}",
    "json_invalid": "must be JSON",
    "json_type": "must be JSON",
}
_BY_FAMILY: Mapping[str, str] = {"datetime_": _TIME, "date_": "must be a date, such as 2019-05-01", "uuid_": "must be a UUID"}
_OWN = frozenset({"value_error", "assertion_error", "limit"})
"""Error types whose message comes from our own validators. Pydantic adds a prefix to some."""


def message_of(problem: Mapping[str, Any]) -> str:
    """Return the message of a pydantic error: the limit that was missed, as the end of a sentence about the field."""
    kind = str(problem["type"])
    if kind in _OWN:
        message = str(problem["msg"])
        for prefix in ("Value error, ", "Assertion failed, "):
            message = message.removeprefix(prefix)
        return shorten_line(message, MAX_MESSAGE)
    family = next((words for prefix, words in _BY_FAMILY.items() if kind.startswith(prefix)), "is not valid")
    words = _BY_TYPE.get(kind, family).format_map(_Context(problem.get("ctx") or {}))
    if words.endswith((" 1 characters", " 1 items")):
        words = words.removesuffix("s")
    return shorten_line(words, MAX_MESSAGE)


def describe_value(value: Any) -> str:
    """Return a value as text, shortened. Numbers and strings as JSON; of larger values, the beginning or the size."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        length = f" ({len(value)} characters)" if len(value) > MAX_SHOWN else ""
        return f"'{shorten_line(value, MAX_SHOWN)}'{length}"
    if isinstance(value, int | float):
        return str(value) if isinstance(value, float) or abs(value) < 2**64 else "a number beyond 64 bits"
    if isinstance(value, list | tuple | set | frozenset):
        return f"a list of {len(value)}"
    return "an object" if isinstance(value, Mapping) else "something else"


def shorten_line(text: str, limit: int) -> str:
    """Return the beginning of a text on one line. Unprintable characters, such as control characters, are escaped."""
    visible = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[:limit])
    return f"{visible}…" if len(text) > limit else visible


class _Context(dict[str, Any]):
    """Values of an error's limits. A missing name gives a question mark, because a message must not fail."""

    def __missing__(self, _: str) -> str:
        return "?"


def format_value(value: Any) -> str:
    """Return a value in the form used in messages."""
    # Not repr: a value may be nested deeper than Python's recursion limit.
    return reprlib.repr(value)[:80]
