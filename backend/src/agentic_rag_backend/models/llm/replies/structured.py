"""Structured replies: fits a JSON value to the requested schema.

Covers the part of JSON Schema that OpenAI's structured outputs allow: types, properties, required,
additionalProperties, items, enum, const, anyOf, $ref into $defs, and bounds on lengths and numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

UNKNOWN_KEYS = "dropped unknown keys"
NO_VALUES = "replaced missing values"
CONVERTED = "converted values"
SHORTENED = "shortened values"

OTHER = "other"
"""Word of an enumeration that stands for every word that it lacks."""
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_EMPTY: dict[str, type] = {"array": list, "string": str, "boolean": bool}
"""Types for which null has one meaning: nothing."""
_MAX_WRAPPERS = 2


def fit_schema(value: Any, schema: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Return ``value`` in the form of ``schema``, and what was changed: unknown keys, null for a list, a number in quotes.

    Raises:
        ValueError: it does not fit. The message has place and error, for the model.
    """
    fitting = _Fitting(schema)
    return fitting.fit_value(value, schema, "$"), tuple(dict.fromkeys(fitting.mended))


def unwrap_object(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return the object in ``[ {…} ]`` or ``{"result": {…}}``. A list of items becomes the only list of the schema."""
    properties = schema.get("properties", {})
    for _ in range(_MAX_WRAPPERS):
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and _shares_names(value[0], properties):
            value = value[0]
        elif isinstance(value, list) and len(properties) == 1 and next(iter(properties.values())).get("type") == "array":
            value = {next(iter(properties)): value}
        elif isinstance(value, dict) and len(value) == 1 and not _shares_names(value, properties):
            inner = next(iter(value.values()))
            value = inner if isinstance(inner, dict) and _shares_names(inner, properties) else value
    return value


def _shares_names(value: Mapping[str, Any], properties: Mapping[str, Any]) -> bool:
    return any(name in properties for name in value)


@dataclass(slots=True)
class _Fitting:
    """Fits the values of one reply. ``root`` is the whole schema."""

    root: Mapping[str, Any]
    mended: list[str] = field(default_factory=list)

    def fit_value(self, value: Any, schema: Mapping[str, Any], at: str) -> Any:
        while "$ref" in schema:
            schema = self.root["$defs"][str(schema["$ref"]).rpartition("/")[2]]
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            return self._fit_choice(value, choices, at)
        if "const" in schema and value != schema["const"]:
            raise ValueError(f"{at} must be {schema['const']!r}")
        if "enum" in schema:
            return self._one_of(value, schema["enum"], at)
        kinds = schema.get("type")
        if kinds is not None and not _is_one_of(value, _list_kinds(kinds)):
            value = self._convert_value(value, schema, at)
        if isinstance(value, dict):
            return self._fit_object(value, schema, at)
        if isinstance(value, list):
            return self._fit_list(value, schema, at)
        return self._check_bounds(value, schema, at)

    def _fit_choice(self, value: Any, choices: list[Mapping[str, Any]], at: str) -> Any:
        first_error: ValueError | None = None
        # A choice of the value's own type comes before a choice that the value can be converted to.
        for choice in sorted(choices, key=lambda choice: not _is_one_of(value, _list_kinds(choice.get("type", [])))):
            try:
                return self.fit_value(value, choice, at)
            except ValueError as error:
                first_error = first_error or error
        raise first_error or ValueError(f"{at} fits no choice")

    def _one_of(self, value: Any, allowed: list[Any], at: str) -> Any:
        if value in allowed:
            return value
        folded = {word.casefold(): word for word in allowed if isinstance(word, str)}
        if isinstance(value, str) and value.strip().casefold() in folded:
            self.mended.append(CONVERTED)
            return folded[value.strip().casefold()]
        if isinstance(value, str) and OTHER in allowed:
            self.mended.append(CONVERTED)
            return OTHER
        raise ValueError(f"{at} must be one of {allowed!r}")

    def _convert_value(self, value: Any, schema: Mapping[str, Any], at: str) -> Any:
        """Return a value of another type in the schema's type, if its meaning is certain."""
        kinds = _list_kinds(schema["type"])
        converted: Any = None
        empty = next((_EMPTY[kind] for kind in kinds if kind in _EMPTY), None)
        if value is None and empty is not None:
            self.mended.append(NO_VALUES)
            return empty()
        if "array" in kinds and not isinstance(value, list):
            converted = self._only_item(value, schema.get("items"), at)
        elif isinstance(value, str) and value.strip().lower() in ("true", "false") and "boolean" in kinds:
            converted = value.strip().lower() == "true"
        elif isinstance(value, str):
            converted = _read_number(value)
        elif isinstance(value, float) and value.is_integer():
            converted = int(value)
        elif isinstance(value, int) and not isinstance(value, bool) and "string" in kinds:
            converted = str(value)
        if converted is None or not _is_one_of(converted, kinds):
            raise ValueError(f"{at} must be of type {schema['type']}, not {type(value).__name__}")
        self.mended.append(CONVERTED)
        return converted

    def _only_item(self, value: Any, items: Mapping[str, Any] | None, at: str) -> list[Any] | None:
        """Return a list of ``value`` if it is an item of the list. An empty text is no item."""
        if value == "":
            return []
        if items is None or not _is_one_of(value, _list_kinds(items.get("type", "object"))):
            return None
        return [self.fit_value(value, items, at)]

    def _fit_object(self, value: dict[str, Any], schema: Mapping[str, Any], at: str) -> dict[str, Any]:
        properties = schema.get("properties", {})
        members = {name: inner for name, inner in value.items() if name in properties}
        if len(members) < len(value) and schema.get("additionalProperties") is False:
            if not members:
                raise ValueError(f"{at}.{next(iter(value))} is not asked for")
            self.mended.append(UNKNOWN_KEYS)
        else:
            members = value
        fitted = {
            name: self.fit_value(inner, properties[name], f"{at}.{name}") if name in properties else inner
            for name, inner in members.items()
        }
        for name in schema.get("required", ()):
            if name not in fitted:
                kind = properties.get(name, {})
                if not fitted or kind.get("type") != "array" or kind.get("minItems"):
                    raise ValueError(f"{at}.{name} is missing")
                self.mended.append(NO_VALUES)
                fitted[name] = []
        return fitted

    def _fit_list(self, value: list[Any], schema: Mapping[str, Any], at: str) -> list[Any]:
        least, largest = schema.get("minItems", 0), schema.get("maxItems")
        if len(value) < least:
            raise ValueError(f"{at} must have {least} to {largest or 'any number of'} items, not {len(value)}")
        if largest is not None and len(value) > largest:
            self.mended.append(SHORTENED)
            value = value[:largest]
        items = schema.get("items")
        return [self.fit_value(item, items, f"{at}[{index}]") for index, item in enumerate(value)] if items else value

    def _check_bounds(self, value: Any, schema: Mapping[str, Any], at: str) -> Any:
        if isinstance(value, str):
            value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            least, largest = schema.get("minLength", 0), schema.get("maxLength")
            if len(value) < least:
                raise ValueError(f"{at} must have {least} to {largest or 'any number of'} characters, not {len(value)}")
            if largest is not None and len(value) > largest:
                self.mended.append(SHORTENED)
                value = value[:largest]
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
            if not (math.isfinite(value) and low <= value <= high):
                raise ValueError(f"{at} must be between {low} and {high}, not {value}")
        return value


def _list_kinds(kinds: str | list[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds


def _is_one_of(value: Any, kinds: list[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, _TYPES.get(kind, (object,))) for kind in kinds)


def _read_number(text: str) -> int | float | None:
    """Return the number that a short text consists of."""
    if len(text) > 32 or not text.isascii():
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
