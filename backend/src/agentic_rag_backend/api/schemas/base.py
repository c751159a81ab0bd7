"""What all bodies share."""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Strict

Whole = Annotated[int, Strict()]
"""An integer, and not a boolean or a text that could be read as one."""
Number = Annotated[float, Strict()]
Switch = Annotated[bool, Strict()]


class Body(BaseModel):
    """A request body: unknown fields are refused, numbers are finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, str_strip_whitespace=False)


ESCAPED_BYTES = 12
"""Of the longest character in JSON: one beyond U+FFFF, written as two escapes."""


def text_bytes(kind: Any, limits: Iterable[Any] = ()) -> int:
    """Return how many bytes the texts of a body may take as JSON, by the limits on their lengths.

    Counts texts, models and lists of them; what has no limit on its length counts nothing.

    Args:
        kind: the annotation of a body, or of a field.
        limits: the metadata of that field.
    """
    most: int = next((limit.max_length for limit in limits if hasattr(limit, "max_length")), 0)
    if kind is str:
        return most * ESCAPED_BYTES
    if get_origin(kind) in (Union, UnionType):
        return max(text_bytes(each, limits) for each in get_args(kind))
    if get_origin(kind) is list:
        return most * text_bytes(*get_args(kind))
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return sum(text_bytes(field.annotation, field.metadata) for field in kind.model_fields.values())
    return 0


class View(BaseModel):
    """A response body."""

    model_config = ConfigDict(from_attributes=True)
