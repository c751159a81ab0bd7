"""What all bodies share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Strict

Whole = Annotated[int, Strict()]
"""An integer, and not a boolean or a text that could be read as one."""
Number = Annotated[float, Strict()]
Switch = Annotated[bool, Strict()]


class Body(BaseModel):
    """A request body: unknown fields are refused, numbers are finite."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, str_strip_whitespace=False)


class View(BaseModel):
    """A response body."""

    model_config = ConfigDict(from_attributes=True)
